//! Just enough of the protocol to ask a server something, and to see the single requests and replies that pass by.

use super::LIMIT;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Asks the server on that port of the loopback interface something, on a connection of its own, and returns the words of the
/// answer, one a line.
pub(crate) fn ask(port: u16, question: &[&str]) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(&request(question))?;
    let frame = Frames::new(stream).next()?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(words(&frame).join("\n"))
}

/// A request.
pub(crate) fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// The words of a request, or of a reply that is an array of strings; the one word of any other reply. Lossy.
pub(crate) fn words(frame: &[u8]) -> Vec<String> {
    let mut words = Vec::new();
    collect(frame, 0, &mut words);
    words
}

/// Where the line that begins at `from` ends, its line end included.
fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    bytes.get(from..)?.windows(2).position(|pair| pair == b"\r\n").map(|length| from + length + 2)
}

/// The text of the line that begins at `from`, without its first byte.
fn text(bytes: &[u8], from: usize, end: usize) -> &str {
    str::from_utf8(&bytes[from + 1..end - 2]).unwrap_or("")
}

/// How many frames follow an aggregate's head.
fn parts(kind: u8, count: &str) -> usize {
    let count = count.parse().unwrap_or(0);
    if matches!(kind, b'%' | b'|') { 2 * count } else { count }
}

/// Where the frame that begins at `from` ends, if all of it is there.
pub(crate) fn frame_end(bytes: &[u8], from: usize) -> Option<usize> {
    let end = line_end(bytes, from)?;
    match bytes[from] {
        kind @ (b'*' | b'~' | b'>' | b'%' | b'|') => {
            (0..parts(kind, text(bytes, from, end))).try_fold(end, |end, _| frame_end(bytes, end))
        }
        b'$' | b'=' | b'!' => match text(bytes, from, end).parse::<usize>() {
            Ok(length) => Some(end + length + 2).filter(|end| *end <= bytes.len()),
            // -1: there is none.
            Err(_) => Some(end),
        },
        _ => Some(end),
    }
}

/// Adds the words of the frame that begins at `from`, and returns where it ends.
fn collect(bytes: &[u8], from: usize, words: &mut Vec<String>) -> usize {
    let end = line_end(bytes, from).expect("a whole frame");
    match bytes[from] {
        kind @ (b'*' | b'~' | b'>' | b'%' | b'|') => {
            (0..parts(kind, text(bytes, from, end))).fold(end, |end, _| collect(bytes, end, words))
        }
        b'$' | b'=' | b'!' => {
            let Ok(length) = text(bytes, from, end).parse::<usize>() else {
                words.push("(nil)".to_owned());
                return end;
            };
            words.push(String::from_utf8_lossy(&bytes[end..end + length]).into_owned());
            end + length + 2
        }
        b'-' => {
            words.push(format!("(error) {}", text(bytes, from, end)));
            end
        }
        _ => {
            words.push(text(bytes, from, end).to_owned());
            end
        }
    }
}

/// What a peer sends, frame by frame.
pub(crate) struct Frames<R> {
    from: R,
    buffer: Vec<u8>,
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, buffer: Vec::new() }
    }

    /// The next one; `None` if the peer has closed the connection.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = frame_end(&self.buffer, 0) {
                let rest = self.buffer.split_off(end);
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            let mut chunk = [0; 16 * 1024];
            match self.from.read(&mut chunk)? {
                0 => return Ok(None),
                length => self.buffer.extend_from_slice(&chunk[..length]),
            }
        }
    }
}

//! An HTTP client of a few lines: one request, one connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Ends a test that hangs; decides nothing else.
const LIMIT: Duration = Duration::from_secs(60);

/// What a client was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Asks for `path`.
pub(crate) fn get(addr: SocketAddr, path: &str) -> io::Result<Answer> {
    // tiny_http frees the thread that reads a connection once it knows that no other request follows. So the server has
    // read the requests of all clients, however many of them wait for one page.
    ask(addr, "GET", path, "close")
}

/// Asks with any method, and says what is to become of the connection.
pub(crate) fn ask(addr: SocketAddr, method: &str, path: &str, connection: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: {connection}\r\n\r\n")?;

    let mut stream = BufReader::new(stream);
    let (mut status, mut length) = (None, 0);
    for line in stream.by_ref().lines() {
        let line = line?;
        if line.is_empty() {
            break;
        } else if let Some(rest) = line.strip_prefix("HTTP/1.0 ") {
            // 1.0: the client is to close the connection.
            status = rest.get(..3).and_then(|digits| digits.parse().ok());
        } else if let Some(rest) = line.strip_prefix("Content-Length: ") {
            length = rest.parse().unwrap_or(0);
        }
    }
    let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "an answer without a status"))?;
    let mut body = String::new();
    if method != "HEAD" {
        stream.take(length).read_to_string(&mut body)?;
    }
    Ok(Answer { status, body })
}

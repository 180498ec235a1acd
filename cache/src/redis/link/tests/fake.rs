//! Something that is no server.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

pub(super) struct Fake {
    port: u16,
    accepted: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
}

impl Fake {
    /// Lets every client in, and answers `GET` with the key. Over the first connection it waits for two of these, and then says
    /// first, as a server of a cluster may, that a channel is not listened to any more.
    pub(super) fn start() -> Self {
        Self::serving(|client, is_first| serve(client, is_first))
    }

    /// What it answers to each command. `None` closes the connection, and if it is empty, it says nothing.
    pub(super) fn answering(answer: impl Fn(&[String]) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::serving(move |client, _| {
            let mut writer = client.try_clone()?;
            let mut reader = BufReader::new(client);
            while let Some(text) = answer(&command(&mut reader)?) {
                writer.write_all(text.as_bytes())?;
            }
            Ok(())
        })
    }

    fn serving(serve: impl Fn(TcpStream, bool) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (accepted, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end) = (Arc::clone(&accepted), Arc::clone(&ended));
        let serve = Arc::new(serve);
        thread::spawn(move || {
            for client in listener.incoming() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
                let serve = Arc::clone(&serve);
                // It ends with the connection.
                thread::spawn(move || client.map(|client| serve(client, is_first)));
            }
        });
        Self { port, accepted, ended }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// How many connections there have been.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // So that it sees that.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(client: TcpStream, is_first: bool) -> std::io::Result<()> {
    let mut writer = client.try_clone()?;
    let mut reader = BufReader::new(client);
    let mut answers = Vec::new();
    loop {
        let words = command(&mut reader)?;
        match words[0].as_str() {
            "GET" => answers.push(format!("${}\r\n{}\r\n", words[1].len(), words[1])),
            "HELLO" => writer.write_all(b"%1\r\n+proto\r\n:3\r\n")?,
            _ => writer.write_all(b"+OK\r\n")?,
        }
        if is_first && answers.len() == 2 {
            answers.insert(0, ">3\r\n$12\r\nsunsubscribe\r\n$1\r\nc\r\n:0\r\n".to_owned());
        }
        if !is_first || answers.len() > 1 {
            writer.write_all(answers.concat().as_bytes())?;
            answers.clear();
        }
    }
}

/// The words of the next command.
fn command(reader: &mut impl BufRead) -> std::io::Result<Vec<String>> {
    let words = number(reader)?;
    let mut word = || {
        let mut bytes = vec![0; number(reader)? + 2];
        reader.read_exact(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..bytes.len() - 2]).into_owned())
    };
    (0..words).map(|_| word()).collect()
}

/// That of a line such as `*2` or `$3`.
fn number(reader: &mut impl BufRead) -> std::io::Result<usize> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let digits = line.get(1..).map(str::trim).unwrap_or_default();
    digits.parse().map_err(|_| std::io::ErrorKind::UnexpectedEof.into())
}

//! An HTTP client of a few lines: one request, one connection.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Ends a test that hangs; decides nothing else.
const LIMIT: Duration = Duration::from_secs(60);

/// What a client was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Asks for `path` over a connection of its own.
pub(crate) fn get(addr: SocketAddr, path: &str) -> io::Result<Answer> {
    ask(addr, "GET", path)
}

/// The same with any method.
pub(crate) fn ask(addr: SocketAddr, method: &str, path: &str) -> io::Result<Answer> {
    let mut connection = TcpStream::connect(addr)?;
    connection.set_read_timeout(Some(LIMIT))?;
    connection.set_write_timeout(Some(LIMIT))?;
    // `close` also matters to tiny_http: a connection that may bring another request occupies one of its readers.
    write!(
        connection,
        "{method} {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    parse(&answer).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("not an answer: {answer:?}"),
        )
    })
}

fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some(Answer {
        status,
        body: body.to_owned(),
    })
}

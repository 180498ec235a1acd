//! What is left of a connection that is closed: nothing that the server could still be sent.

use super::{LONG, OWN, SHORT, commands, is_away};
use crate::redis::link::{BlockingLink, Link};
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::thread;

/// It is reset: what has not been sent, or not been received, is thrown away.
#[test]
fn what_a_thread_has_given_up_is_not_sent_any_more() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let url = format!("redis://127.0.0.1:{}/", listener.local_addr().expect("its address").port());
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept()?;
        client.set_read_timeout(Some(LONG))?;
        // Up to its end.
        client.read_to_end(&mut Vec::new())
    });
    let link = BlockingLink::open(&url, SHORT, OWN).unwrap();
    assert!(is_away(&crate::time::block_on(link.send(commands([&["GET", "a"]])))));
    let end = server.join().unwrap().unwrap_err();
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
}

//! A way to the server that goes silent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::thread;

/// Passes on what comes, until it is told to swallow what goes over the connections that there are.
pub(super) struct Proxy {
    port: u16,
    /// Where new connections lead.
    server: Arc<AtomicU16>,
    accepted: Arc<AtomicUsize>,
    /// Connections before this one are silent.
    silent_before: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
}

impl Proxy {
    pub(super) fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let [accepted, silent_before] = [0, 0].map(|count| Arc::new(AtomicUsize::new(count)));
        let ended = Arc::new(AtomicBool::new(false));
        let server = Arc::new(AtomicU16::new(server));
        let (count, silent, end) = (Arc::clone(&accepted), Arc::clone(&silent_before), Arc::clone(&ended));
        let to = Arc::clone(&server);
        thread::spawn(move || {
            for client in listener.incoming() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let server = TcpStream::connect(("127.0.0.1", to.load(Ordering::SeqCst)));
                let (Ok(client), Ok(server)) = (client, server) else { continue };
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else { continue };
                for (from, to) in [(from, to), (server, client)] {
                    let silent = Arc::clone(&silent);
                    thread::spawn(move || pass_on(from, to, || number < silent.load(Ordering::SeqCst)));
                }
            }
        });
        Self { port, server, accepted, silent_before, ended }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port())
    }

    /// As a name that is another server's from now on.
    pub(super) fn lead_to(&self, server: u16) {
        self.server.store(server, Ordering::SeqCst);
    }

    /// How many connections there have been.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Nothing more comes over those that there are, and they do not end either. New ones work.
    pub(super) fn silence(&self) {
        self.silent_before.store(self.accepted(), Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // So that it sees that.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_silent: impl Fn() -> bool) {
    let mut buffer = [0; 4_096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if !is_silent() && to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    if !is_silent() {
        let _ = to.shutdown(Shutdown::Both);
    }
}

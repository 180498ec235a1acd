//! What the tests drive the server with: crowds of clients, a gate, a wait with a limit, a count of renderings.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(crate) mod http;

use http::Answer;

/// Ends a test that hangs; decides nothing else.
const LIMIT: Duration = Duration::from_secs(60);

/// As many clients as asked for, each a thread that asks for `path` once.
pub(crate) fn clients(count: usize, addr: SocketAddr, path: &'static str) -> Vec<JoinHandle<Answer>> {
    (0..count).map(|_| thread::spawn(move || http::get(addr, path).expect("an answer"))).collect()
}

/// The answers of all of them.
pub(crate) fn answers(clients: Vec<JoinHandle<Answer>>) -> Vec<Answer> {
    clients.into_iter().map(|client| client.join().expect("a client that got its answer")).collect()
}

/// Closed until it is opened, then open for good.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        let (open, opened) = &*self.0;
        *open.lock().unwrap() = true;
        opened.notify_all();
    }

    pub(crate) fn pass(&self) {
        let (open, opened) = &*self.0;
        let (open, _) = opened.wait_timeout_while(open.lock().unwrap(), LIMIT, |open| !*open).unwrap();
        assert!(*open, "the gate was never opened");
    }
}

/// How often each path was rendered.
#[derive(Clone, Default)]
pub(crate) struct Renderings(Arc<Mutex<HashMap<String, usize>>>);

impl Renderings {
    /// Counts one more; the first is number 1.
    pub(crate) fn next(&self, path: &str) -> usize {
        let mut counts = self.0.lock().unwrap();
        let count = counts.entry(path.to_owned()).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn of(&self, path: &str) -> usize {
        self.0.lock().unwrap().get(path).copied().unwrap_or_default()
    }
}

/// Waits until `holds`, looking again and again.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "still not so after {LIMIT:?}: {what}");
        thread::yield_now();
    }
}

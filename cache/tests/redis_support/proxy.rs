//! A network with faults that are switched on and off.

use super::resp::{self, Frames};
use super::{LIMIT, free_port};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What happens to everything that passes, until another is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It passes.
    Pass,
    /// Replies pass so much later.
    Delay(Duration),
    /// Requests pass, replies do not: each connection on which one was swallowed stays mute.
    Swallow,
    /// All passes but what is pushed to subscribers, which is lost.
    LosePushes,
    /// Nothing passes. It passes later, in another mode.
    Hang,
    /// All connections are closed, and new ones at once after they were made.
    Refuse,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection is closed before the server sees it.
    CutBefore,
    /// The connection is closed when the server has answered it, in place of the reply.
    CutAfter,
    /// The server's reply is dropped, and the connection stays mute.
    Swallow,
}

/// What has passed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) request_bytes: u64,
    /// Those that the server has sent, whether they passed or not. Pushes to a subscriber are among them.
    pub(crate) replies: u64,
    /// Requests by the name of the command, in capitals.
    pub(crate) commands: BTreeMap<String, u64>,
}

type Matches = Box<dyn Fn(&[String]) -> bool + Send>;

/// The network between clients and one server on the loopback interface.
pub(crate) struct Proxy {
    port: u16,
    net: Arc<Net>,
    accepts: Option<JoinHandle<()>>,
}

struct Net {
    server: u16,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    mode: Mode,
    faults: Vec<(Matches, Fault)>,
    counts: Counts,
    pairs: Vec<Arc<Pair>>,
    has_ended: bool,
}

/// A client's connection, and the one to the server that belongs to it.
struct Pair {
    client: TcpStream,
    server: TcpStream,
    is_mute: AtomicBool,
    is_cut: AtomicBool,
    /// What is to happen to the replies that are due, in order.
    due: Mutex<VecDeque<Option<Fault>>>,
}

impl Proxy {
    /// In front of the server on that port.
    pub(crate) fn start(server: u16) -> Self {
        let (port, listener) = super::until("a port of a proxy", || {
            let port = free_port();
            TcpListener::bind(("127.0.0.1", port)).ok().map(|listener| (port, listener))
        });
        let (mode, faults, counts, pairs) = (Mode::Pass, Vec::new(), Counts::default(), Vec::new());
        let state = Mutex::new(State { mode, faults, counts, pairs, has_ended: false });
        let net = Arc::new(Net { server, state, changed: Condvar::new() });
        let accepts = thread::spawn({
            let net = Arc::clone(&net);
            move || net.accept(&listener)
        });
        Self { port, net, accepts: Some(accepts) }
    }

    /// For a client.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// From now on. What hangs or is yet to be sent goes the new way.
    pub(crate) fn set(&self, mode: Mode) {
        self.net.lock().mode = mode;
        if mode == Mode::Refuse {
            self.cut();
        }
        self.net.changed.notify_all();
    }

    /// Closes all connections that there are.
    pub(crate) fn cut(&self) {
        let pairs = std::mem::take(&mut self.net.lock().pairs);
        for pair in pairs {
            pair.cut();
        }
        self.net.changed.notify_all();
    }

    /// Befalls the next request whose words match, and no other.
    pub(crate) fn once(&self, matches: impl Fn(&[String]) -> bool + Send + 'static, fault: Fault) {
        self.net.lock().faults.push((Box::new(matches), fault));
    }

    /// What has passed so far.
    pub(crate) fn counts(&self) -> Counts {
        self.net.lock().counts.clone()
    }

    /// How often the command was sent.
    pub(crate) fn commands(&self, name: &str) -> u64 {
        self.net.lock().counts.commands.get(name).copied().unwrap_or(0)
    }

    /// Waits until what has passed is as it should be.
    ///
    /// # Panics
    ///
    /// If it is not within [`LIMIT`].
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, enough: impl Fn(&Counts) -> bool) {
        let (mut state, end) = (self.net.lock(), Instant::now() + LIMIT);
        while !enough(&state.counts) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not within {LIMIT:?}: {what}; {:?}", state.counts);
            state = self.net.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.net.lock().has_ended = true;
        self.cut();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
    }
}

impl Net {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.lock().has_ended {
                return;
            }
            // A client that is gone again, or a server that is down: this connection ends here.
            let _ = client.and_then(|client| self.join(client));
        }
    }

    /// Joins a client's connection to one to the server.
    fn join(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        if self.lock().mode == Mode::Refuse {
            return Ok(());
        }
        let server = TcpStream::connect(("127.0.0.1", self.server))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (is_mute, is_cut) = (AtomicBool::new(false), AtomicBool::new(false));
        let pair = Arc::new(Pair { client, server, is_mute, is_cut, due: Mutex::default() });
        let mut state = self.lock();
        if state.mode == Mode::Refuse || state.has_ended {
            return Ok(());
        }
        state.counts.connections += 1;
        state.pairs.push(Arc::clone(&pair));
        drop(state);
        for pass in [Self::pass_requests, Self::pass_replies] {
            let (net, pair) = (Arc::clone(self), Arc::clone(&pair));
            thread::spawn(move || {
                // Whatever ends one direction ends the other.
                let _ = pass(&net, &pair);
                pair.cut();
                net.lock().pairs.retain(|other| !Arc::ptr_eq(other, &pair));
                net.changed.notify_all();
            });
        }
        Ok(())
    }

    fn pass_requests(&self, pair: &Pair) -> io::Result<()> {
        let mut requests = Frames::new(&pair.client);
        while let Some(request) = requests.next()? {
            let words = resp::words(&request);
            let mut state = self.passing(pair);
            state.counts.requests += 1;
            state.counts.request_bytes += request.len() as u64;
            *state.counts.commands.entry(words[0].to_uppercase()).or_default() += 1;
            let found = state.faults.iter().position(|(matches, _)| matches(&words));
            let fault = found.map(|place| state.faults.remove(place).1);
            drop(state);
            self.changed.notify_all();
            if fault == Some(Fault::CutBefore) {
                return Ok(());
            }
            pair.due().push_back(fault);
            (&pair.server).write_all(&request)?;
        }
        Ok(())
    }

    fn pass_replies(&self, pair: &Pair) -> io::Result<()> {
        let mut replies = Frames::new(&pair.server);
        while let Some(reply) = replies.next()? {
            // A push is nobody's reply.
            let is_push = is_push(&reply);
            let fault = if is_push { None } else { pair.due().pop_front().flatten() };
            let mut state = self.passing(pair);
            state.counts.replies += 1;
            let mode = state.mode;
            drop(state);
            self.changed.notify_all();
            if fault == Some(Fault::CutAfter) {
                return Ok(());
            }
            if fault == Some(Fault::Swallow) || mode == Mode::Swallow {
                pair.is_mute.store(true, Ordering::Relaxed);
            }
            if let Mode::Delay(delay) = mode {
                thread::sleep(delay);
            }
            let is_lost = is_push && mode == Mode::LosePushes;
            if !is_lost && !pair.is_mute.load(Ordering::Relaxed) {
                (&pair.client).write_all(&reply)?;
            }
        }
        Ok(())
    }

    /// The state, as soon as nothing hangs, or the connection is cut.
    fn passing(&self, pair: &Pair) -> MutexGuard<'_, State> {
        let hangs = |state: &mut State| state.mode == Mode::Hang && !pair.is_cut.load(Ordering::Relaxed);
        self.changed.wait_while(self.lock(), hangs).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is a message to a subscriber, in either version of the protocol.
fn is_push(reply: &[u8]) -> bool {
    matches!(reply[0], b'>' | b'*')
        && matches!(resp::words(reply).first().map(String::as_str), Some("message" | "smessage"))
}

impl Pair {
    fn due(&self) -> MutexGuard<'_, VecDeque<Option<Fault>>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        // It may be closed already.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

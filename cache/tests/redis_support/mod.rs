//! Real servers, real processes and a faulty network, for the tests of the Redis store.
//!
//! | what | is |
//! |---|---|
//! | [`server::Server`] | a `redis-server` of a test's own |
//! | [`proxy::Proxy`] | the network between a client and a server, whose faults are switched by the test |
//! | [`process::Process`] | a child: the test binary runs itself, and is told what to do line by line |

// Each test target uses a part of it.
#![allow(dead_code)]

pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod resp;
pub(crate) mod server;
pub(crate) mod signal;

use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for what must happen: for ever, on any machine that is not about to fall over.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Looks every few milliseconds until there is something. For what cannot tell: another program.
///
/// # Panics
///
/// If there is nothing within [`LIMIT`].
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A port of the loopback interface on which nobody listens.
///
/// Outside of the range from which the system takes the ports of outgoing connections: otherwise a client that tries to reach a
/// server that is down now and then gets the server's own port, and reaches itself. Even: the odd ones are for the tests of the
/// links.
pub(crate) fn free_port() -> u16 {
    static TAKEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);
    until("a free port", || {
        let port = fastrand::u16(7_500..11_000) * 2;
        let is_new = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port);
        (is_new && TcpListener::bind(("127.0.0.1", port)).is_ok()).then_some(port)
    })
}

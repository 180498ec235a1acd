//! Looks at the server all the time, past all clients.

use crate::redis_support::resp;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What was seen on a server, on which one key is used, with values that are version numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The versions of the value, each once for each time it came.
    pub(crate) versions: Vec<u64>,
    /// Leases and epochs that would have stayed for ever.
    pub(crate) endless: Vec<String>,
}

/// A thread that looks at a server until it is dropped. That the server does not answer is no matter.
pub(crate) struct Watcher {
    seen: Arc<Mutex<Seen>>,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    pub(crate) fn start(port: u16) -> Self {
        let (seen, has_ended) = (Arc::<Mutex<Seen>>::default(), Arc::<AtomicBool>::default());
        let thread = thread::spawn({
            let (seen, has_ended) = (Arc::clone(&seen), Arc::clone(&has_ended));
            move || {
                while !has_ended.load(Ordering::Relaxed) {
                    // A server that is down says nothing.
                    let _ = look(port, &seen);
                    thread::sleep(Duration::from_millis(5));
                }
            }
        });
        Self { seen, has_ended, thread: Some(thread) }
    }

    /// What was seen so far, and is there now.
    pub(crate) fn seen(&self, port: u16) -> Seen {
        look(port, &self.seen).expect("the server is there again");
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn look(port: u16, seen: &Mutex<Seen>) -> std::io::Result<()> {
    // Held over all of it, so that two looks do not add what they saw in the wrong order.
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    for name in resp::ask(port, &["KEYS", "*"])?.lines() {
        if name.ends_with(":v") {
            if let Some(version) = version_in(&resp::ask(port, &["GET", name])?)
                && seen.versions.last() != Some(&version)
            {
                seen.versions.push(version);
            }
        } else if (name.ends_with(":l") || name.ends_with(":g")) && resp::ask(port, &["PTTL", name])? == "-1" {
            seen.endless.push(name.to_owned());
        }
    }
    Ok(())
}

/// The version number in a value, or in what it is stored as.
pub(crate) fn version_in(stored: &str) -> Option<u64> {
    let (_, number) = stored.rsplit_once("v=")?;
    number.split_once('.')?.0.parse().ok()
}

#[test]
fn a_version_is_found_in_what_is_stored() {
    assert_eq!(version_in("\0header v= \u{fffd}v=000042."), Some(42));
    assert_eq!(version_in("(nil)"), None);
}

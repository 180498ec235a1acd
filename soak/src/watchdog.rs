//! Says who is stuck, if anybody is.

use crate::breach::Breach;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What each caller is at, and since when.
#[derive(Clone, Debug)]
pub(crate) struct Watch(Arc<[Mutex<Option<At>>]>);

#[derive(Clone, Copy, Debug)]
struct At {
    operation: &'static str,
    key: u32,
    since: Instant,
}

impl Watch {
    /// Begins to watch `callers`, for whom a call that takes `bound` is lost.
    pub(crate) fn start(callers: usize, bound: Duration) -> Self {
        let watch = Self((0..callers).map(|_| Mutex::new(None)).collect());
        let watched = watch.clone();
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(250));
                watched.look(bound);
            }
        });
        watch
    }

    /// The caller begins with an operation.
    pub(crate) fn begin(&self, caller: usize, operation: &'static str, key: u32) {
        self.put(caller, Some(At { operation, key, since: Instant::now() }));
    }

    /// The caller has ended it.
    pub(crate) fn end(&self, caller: usize) {
        self.put(caller, None);
    }

    fn put(&self, caller: usize, at: Option<At>) {
        *self.0[caller].lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    fn look(&self, bound: Duration) {
        let mut lost = Vec::new();
        let mut key = None;
        for (caller, at) in self.0.iter().enumerate() {
            let Some(at) = *at.lock().unwrap_or_else(PoisonError::into_inner) else { continue };
            let since = at.since.elapsed();
            // The others that wait too: what they wait for is half of the explanation.
            if since > bound / 2 {
                lost.push(format!("caller {caller} in {} of key {} for {since:.1?}", at.operation, at.key));
            }
            if since > bound {
                key = Some(at.key);
            }
        }
        if key.is_some() {
            Breach::Lost(lost.join("; ")).raise(key);
        }
    }
}

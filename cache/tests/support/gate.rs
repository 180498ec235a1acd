//! A gate for threads.

use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Longer than any gate here stays shut on the busiest machine.
const EVENT: Duration = Duration::from_secs(30);

/// A gate that is opened once, for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn open(&self) {
        let (open, condvar) = &*self.0;
        *open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        condvar.notify_all();
    }

    /// Waits until the gate is open; fails if that never comes.
    #[track_caller]
    pub(crate) fn wait(&self) {
        let (open, condvar) = &*self.0;
        let open = open.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = condvar.wait_timeout_while(open, EVENT, |open| !*open);
        let timed_out = waited.unwrap_or_else(PoisonError::into_inner).1.timed_out();
        assert!(!timed_out, "waited {EVENT:?} in vain for a gate to be opened");
    }
}

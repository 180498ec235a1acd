//! Attempts to connect: one at a time, shared by all who wait.

use crate::redis::error::Error;
use event_listener::{Event, EventListener};
use parking_lot::Mutex;
use std::sync::Arc;

/// What is known of the attempts of a link.
#[derive(Default)]
pub(super) struct Attempts {
    state: Mutex<State>,
    ended: Event,
}

#[derive(Default)]
struct State {
    is_on: bool,
    ended: u64,
    /// Of the last one.
    error: Option<Error>,
}

/// An attempt that is on. If it is dropped, it has failed: whoever drives it has ended.
pub(super) struct Attempt {
    attempts: Arc<Attempts>,
    error: Option<Error>,
}

/// Waits for the attempt that is on, or for the next.
pub(super) struct Waiting {
    seen: u64,
    pub(super) end: EventListener,
}

impl Attempts {
    /// To be called before it is looked whether there is a connection: what ends after that is not missed. With an attempt that
    /// is for the caller to have made, if none is on.
    pub(super) fn wait(self: &Arc<Self>) -> (Waiting, Option<Attempt>) {
        let end = self.ended.listen();
        let mut state = self.state.lock();
        let waiting = Waiting { seen: state.ended, end };
        let is_first = !std::mem::replace(&mut state.is_on, true);
        drop(state);
        let error = Some(Error::odd("whoever connects has ended"));
        (waiting, is_first.then(|| Attempt { attempts: Arc::clone(self), error }))
    }

    /// The error of an attempt that has ended since then.
    pub(super) fn failure(&self, since: &Waiting) -> Option<Error> {
        let state = self.state.lock();
        state.error.clone().filter(|_| state.ended != since.seen)
    }
}

impl Attempt {
    pub(super) fn end(mut self, error: Option<Error>) {
        self.error = error;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut state = self.attempts.state.lock();
        state.is_on = false;
        state.ended += 1;
        state.error = self.error.take();
        drop(state);
        self.attempts.ended.notify(usize::MAX);
    }
}

//! Until when a thread has time for what it asks a store. Stores are told no deadline, and need not know of one; those that can
//! wait for less find it here.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Until this is dropped, what this thread asks for is of no use after a moment.
#[must_use = "it ends when it is dropped"]
pub(crate) struct TimeLimit {
    before: Option<Instant>,
}

impl TimeLimit {
    pub(crate) fn until(moment: Instant) -> Self {
        Self { before: UNTIL.replace(Some(moment)) }
    }

    /// How long this thread has. `None`: for as long as it takes.
    pub(crate) fn left() -> Option<Duration> {
        time_left(UNTIL.get())
    }

    pub(crate) fn is_over() -> bool {
        Self::left().is_some_and(|left| left.is_zero())
    }
}

/// The moment so much later, or none if there is no such moment.
pub(crate) fn deadline(after: Duration) -> Option<Instant> {
    Instant::now().checked_add(after)
}

/// How long it is until that moment, if there is one.
pub(crate) fn time_left(until: Option<Instant>) -> Option<Duration> {
    until.map(|until| until.saturating_duration_since(Instant::now()))
}

/// Whether that moment has come, if there is one.
pub(crate) fn is_past(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until <= Instant::now())
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        UNTIL.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_its_own_threads_and_ends_when_it_is_dropped() {
        let hour = Duration::from_secs(3_600);
        assert_eq!(TimeLimit::left(), None);
        let outer = TimeLimit::until(Instant::now() + hour);
        {
            let _inner = TimeLimit::until(Instant::now());
            assert!(TimeLimit::is_over());
            assert_eq!(std::thread::spawn(TimeLimit::left).join().unwrap(), None);
        }
        assert!(TimeLimit::left().is_some_and(|left| left > hour / 2) && !TimeLimit::is_over());
        drop(outer);
        assert_eq!(TimeLimit::left(), None);
    }
}

//! Leaves a store alone for a while that does not answer.

use crate::time::Time;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// After so many requests in a row without an answer none is made for a while; then one is, and its outcome decides.
pub(crate) struct Breaker {
    /// Zero: it never opens.
    failures: u32,
    open: Duration,
    in_a_row: AtomicU32,
    /// Until when no request is made, in nanoseconds of the cache's clock; zero if they are.
    until: AtomicU64,
}

/// The store was not asked.
#[derive(Debug)]
pub(crate) struct NotAsked;

impl fmt::Display for NotAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it was not asked, as it has not answered of late")
    }
}

impl std::error::Error for NotAsked {}

impl Breaker {
    pub(crate) fn new(failures: u32, open: Duration) -> Self {
        Self { failures, open, in_a_row: AtomicU32::new(0), until: AtomicU64::new(0) }
    }

    /// Whether a request may be made. Of those who ask when the time is up, one may. `random` from 0 to 1.
    pub(crate) fn allows(&self, now: Time, random: impl FnOnce() -> f64) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until == 0
            || now >= Time::from_start(Duration::from_nanos(until)) && self.swap(until, self.again_at(now, random()))
    }

    pub(crate) fn answered(&self) {
        // Most of the time there is nothing to be written. Both are looked at: it may open while this clears the one.
        if self.in_a_row.load(Ordering::Relaxed) > 0 || self.until.load(Ordering::Relaxed) > 0 {
            self.in_a_row.store(0, Ordering::Relaxed);
            self.until.store(0, Ordering::Relaxed);
        }
    }

    /// A request was not answered. Whether it opens by that.
    pub(crate) fn unanswered(&self, now: Time, random: impl FnOnce() -> f64) -> bool {
        if self.failures == 0 {
            return false;
        }
        let in_a_row = self.in_a_row.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        in_a_row >= self.failures && self.swap(0, self.again_at(now, random()))
    }

    /// Up to a quarter sooner or later: processes that were cut off together do not come back together.
    fn again_at(&self, now: Time, random: f64) -> u64 {
        let open = self.open.as_secs_f64() * (0.75 + random.clamp(0.0, 1.0) / 2.0);
        let again = now.after(Duration::try_from_secs_f64(open).unwrap_or(Duration::MAX));
        u64::try_from(again.since(Time::START).as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    fn swap(&self, from: u64, to: u64) -> bool {
        self.until.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Time {
        Time::from_start(SECOND * 100).after(Duration::from_millis(millis))
    }

    #[test]
    fn it_opens_after_so_many_in_a_row_and_lets_one_try_when_the_time_is_up() {
        let breaker = Breaker::new(3, SECOND);
        let allows = |millis| breaker.allows(at(millis), || 0.5);
        assert!(!breaker.unanswered(at(0), || 0.5) && !breaker.unanswered(at(0), || 0.5) && allows(0));
        breaker.answered();
        assert!(!breaker.unanswered(at(0), || 0.5) && !breaker.unanswered(at(0), || 0.5) && allows(0));
        assert!(breaker.unanswered(at(0), || 0.5));
        assert!(!allows(0) && !allows(999));
        assert!(allows(1_000) && !allows(1_000) && !allows(1_999), "one tries");
        assert!(!breaker.unanswered(at(1_010), || 0.5), "it was open");
        assert!(!allows(1_999) && allows(2_000));
        breaker.answered();
        assert!(allows(2_001) && allows(2_001));
    }

    #[test]
    fn processes_do_not_come_back_together() {
        for (random, again) in [(0.0, 750), (1.0, 1_250)] {
            let breaker = Breaker::new(1, SECOND);
            assert!(breaker.unanswered(at(0), || random));
            assert!(!breaker.allows(at(again - 1), || random) && breaker.allows(at(again), || random));
        }
    }

    #[test]
    fn it_closes_though_it_opened_while_it_was_being_closed() {
        let breaker = Breaker::new(1, SECOND);
        assert!(breaker.unanswered(at(0), || 0.5));
        // What another thread leaves that was between its two steps.
        breaker.in_a_row.store(0, Ordering::Relaxed);
        assert!(!breaker.allows(at(0), || 0.5));
        breaker.answered();
        assert!(breaker.allows(at(0), || 0.5));
    }

    #[test]
    fn it_may_stay_open_for_ever() {
        for open in [Duration::MAX, Duration::from_secs(u64::MAX / 2)] {
            let breaker = Breaker::new(1, open);
            assert!(breaker.unanswered(at(0), || 1.0) && !breaker.allows(at(1_000_000_000), || 1.0));
        }
    }

    #[test]
    fn it_may_be_switched_off() {
        let breaker = Breaker::new(0, SECOND);
        assert!((0..100).all(|_| !breaker.unanswered(at(0), || 0.5) && breaker.allows(at(0), || 0.5)));
    }
}

//! Leaves a store alone for a while that does not answer.

use crate::error::Message;
use crate::time::{Time, nanos};
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

/// What a [`Breaker`] says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    Yes,
    /// As the only one for a while. [`Breaker::probed`] must be told when it has ended.
    Probe,
    No,
}

/// A probe that has not ended for so long is not counted on any more: perhaps nobody polls it. There may be another then.
const LOST: Duration = Duration::from_secs(30);

/// Why a request that is not allowed has failed.
pub(crate) const NOT_ASKED: Message = Message("it was not asked, as it has not answered of late");

impl Breaker {
    pub(crate) fn new(failures: u32, open: Duration) -> Self {
        Self { failures, open, in_a_row: AtomicU32::new(0), until: AtomicU64::new(0) }
    }

    /// Whether a request may be made. Of those who ask when the time is up, one may.
    pub(crate) fn allows(&self, now: Time) -> Allowed {
        let until = self.until.load(Ordering::Relaxed);
        if until == 0 {
            Allowed::Yes
        } else if now >= Time::from_start(Duration::from_nanos(until)) && self.swap(until, number(now.after(LOST))) {
            Allowed::Probe
        } else {
            Allowed::No
        }
    }

    /// A probe has ended, or was dropped. If it was not answered, there is no other for a while, counted from now: a server that
    /// hangs makes each take longer than that may be.
    pub(crate) fn probed(&self, now: Time, random: f64) {
        let until = self.until.load(Ordering::Relaxed);
        if until != 0 {
            // If it fails, an answer has closed it.
            let _ = self.swap(until, self.again_at(now, random));
        }
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
        number(now.after(Duration::try_from_secs_f64(open).unwrap_or(Duration::MAX)))
    }

    fn swap(&self, from: u64, to: u64) -> bool {
        self.until.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// As it stands in [`Breaker::until`].
fn number(time: Time) -> u64 {
    nanos(time.since(Time::START)).max(1)
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
        let says = |millis| breaker.allows(at(millis));
        let fails = |millis| breaker.unanswered(at(millis), || 0.5);
        assert!(!fails(0) && !fails(0));
        assert_eq!(says(0), Allowed::Yes);
        breaker.answered();
        assert!(!fails(0) && !fails(0));
        assert_eq!(says(0), Allowed::Yes);
        assert!(fails(0));
        assert_eq!([says(0), says(999)], [Allowed::No; 2]);
        assert_eq!([says(1_000), says(1_000), says(1_999)], [Allowed::Probe, Allowed::No, Allowed::No], "one tries");
        assert!(!fails(1_010), "it was open");
        breaker.probed(at(1_010), 0.5);
        assert_eq!([says(2_009), says(2_010)], [Allowed::No, Allowed::Probe]);
        breaker.answered();
        breaker.probed(at(2_011), 0.5);
        assert_eq!([says(2_011), says(2_011)], [Allowed::Yes; 2]);
    }

    #[test]
    fn a_probe_that_takes_longer_than_it_is_open_is_the_only_one() {
        let breaker = Breaker::new(1, SECOND);
        assert!(breaker.unanswered(at(0), || 0.5));
        assert_eq!(breaker.allows(at(1_000)), Allowed::Probe);
        assert_eq!(breaker.allows(at(5_000)), Allowed::No, "it is on");
        breaker.probed(at(5_000), 0.5);
        assert_eq!([breaker.allows(at(5_999)), breaker.allows(at(6_000))], [Allowed::No, Allowed::Probe]);
        assert_eq!(breaker.allows(at(35_999)), Allowed::No);
        assert_eq!(breaker.allows(at(36_000)), Allowed::Probe, "nobody polls the first");
    }

    #[test]
    fn processes_do_not_come_back_together() {
        for (random, again) in [(0.0, 750), (1.0, 1_250)] {
            let breaker = Breaker::new(1, SECOND);
            assert!(breaker.unanswered(at(0), || random));
            assert_eq!([breaker.allows(at(again - 1)), breaker.allows(at(again))], [Allowed::No, Allowed::Probe]);
        }
    }

    #[test]
    fn it_closes_though_it_opened_while_it_was_being_closed() {
        let breaker = Breaker::new(1, SECOND);
        assert!(breaker.unanswered(at(0), || 0.5));
        // What another thread leaves that was between its two steps.
        breaker.in_a_row.store(0, Ordering::Relaxed);
        assert_eq!(breaker.allows(at(0)), Allowed::No);
        breaker.answered();
        assert_eq!(breaker.allows(at(0)), Allowed::Yes);
    }

    #[test]
    fn it_may_stay_open_for_ever() {
        for open in [Duration::MAX, Duration::from_secs(u64::MAX / 2)] {
            let breaker = Breaker::new(1, open);
            assert!(breaker.unanswered(at(0), || 1.0));
            assert_eq!(breaker.allows(at(1_000_000_000)), Allowed::No);
        }
    }

    #[test]
    fn it_may_be_switched_off() {
        let breaker = Breaker::new(0, SECOND);
        assert!((0..100).all(|_| !breaker.unanswered(at(0), || 0.5) && breaker.allows(at(0)) == Allowed::Yes));
    }
}

//! What a cache was told when it was made, and the arithmetic of it.

use crate::entry::Entry;
use crate::fill;
use crate::time::{AnyClock, Time, Timer, nanos};
use oneflight::refresh::Policy;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Config<V> {
    pub(crate) ttl: Ttl<V>,
    /// The time to live of a value that says "there is none".
    pub(crate) negative_ttl: Option<(fn(&V) -> bool, Duration)>,
    pub(crate) ttl_jitter: f64,
    pub(crate) early_refresh: Policy,
    pub(crate) stale_while_revalidate: Duration,
    pub(crate) stale_if_error: Duration,
    pub(crate) first_backoff: Duration,
    pub(crate) longest_backoff: Duration,
    pub(crate) load_timeout: Option<Duration>,
    pub(crate) max_loads: usize,
    pub(crate) max_waiters: Option<usize>,
    pub(crate) max_refreshes: usize,
    pub(crate) sharing: Sharing,
    pub(crate) clock: AnyClock,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) random: Option<Arc<dyn Fn() -> f64 + Send + Sync>>,
    /// What the cache is called in metrics and events.
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    pub(crate) name: String,
}

/// What is to be done about a store that several processes share.
pub(crate) struct Sharing {
    /// How long leases last, and what is done without one.
    pub(crate) fill: fill::Config,
    pub(crate) max_uncached_loads: usize,
    pub(crate) breaker_failures: u32,
    pub(crate) breaker_open: Duration,
}

pub(crate) enum Ttl<V> {
    Fixed(Duration),
    Of(Arc<dyn Fn(&V) -> Duration + Send + Sync>),
}

/// A value that is put.
pub(crate) struct Put<V> {
    pub(crate) value: V,
    /// `None`: as long as the settings say.
    pub(crate) ttl: Option<Duration>,
}

/// What may be done with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is fresh, and nobody refreshes it yet.
    Calm,
    /// It is fresh, and somebody may refresh it early.
    Fresh,
    /// It may be served while it is refreshed.
    Stale,
    /// It may be served if the load fails.
    IfError,
    Gone,
}

impl Verdict {
    pub(crate) fn may_be_served(self) -> bool {
        matches!(self, Self::Calm | Self::Fresh | Self::Stale)
    }
}

impl<V> Config<V> {
    pub(crate) fn random(&self) -> f64 {
        let random = self.random.as_ref().map_or_else(fastrand::f64, |random| random());
        if random.is_nan() { 0.0 } else { random }
    }

    /// The entry of a value whose load began at `loaded_at` and is over `now`. `None` if it is not to be stored. `former` is
    /// the cost of the entry in whose place it comes.
    pub(crate) fn entry(&self, value: V, loaded_at: Time, now: Time, former: Option<Duration>) -> Option<Entry<V>> {
        let took = now.since(loaded_at);
        // The larger one of the last load's time and a moving average: see `Freshness::cost`.
        let cost = former.map_or(took, |former| took.max(former / 4 * 3 + took / 4));
        let ttl = self.jittered(self.ttl_of(&value))?;
        Some(self.entry_with(value, loaded_at, now, cost, ttl))
    }

    /// The entry of a value that is put, and that would take so long to load. `None` if it is not to be stored.
    pub(crate) fn entry_put(&self, put: Put<V>, now: Time, cost: Duration) -> Option<Entry<V>> {
        let Put { value, ttl } = put;
        let ttl = self.jittered(ttl.unwrap_or_else(|| self.ttl_of(&value)))?;
        Some(self.entry_with(value, now, now, cost, ttl))
    }

    /// `ttl` is in nanoseconds.
    fn entry_with(&self, value: V, loaded_at: Time, now: Time, cost: Duration, ttl: u64) -> Entry<V> {
        let fresh_until = now.after_nanos(ttl);
        let stale = self.stale_while_revalidate.max(self.stale_if_error);
        let mut entry = Entry::stale_for(value, fastrand::u32(..), loaded_at, fresh_until, stale, cost);
        entry.set_early(match self.early_refresh {
            Policy::Never => Duration::ZERO,
            policy => policy.cutoff(entry.freshness(now)),
        });
        entry
    }

    fn ttl_of(&self, value: &V) -> Duration {
        match (&self.negative_ttl, &self.ttl) {
            (Some((is_negative, ttl)), _) if is_negative(value) => *ttl,
            (_, Ttl::Fixed(ttl)) => *ttl,
            (_, Ttl::Of(ttl)) => ttl(value),
        }
    }

    /// In nanoseconds. `None`: not to be stored. Less than a millisecond is a millisecond, as for stores that count in those.
    fn jittered(&self, ttl: Duration) -> Option<u64> {
        if ttl.is_zero() {
            return None;
        }
        let ttl = nanos(ttl);
        let shorter = ttl as f64 * self.ttl_jitter.clamp(0.0, 1.0) * self.random().clamp(0.0, 1.0);
        // What is longer than the clock goes does not end, and is not made shorter.
        Some(if ttl == u64::MAX { ttl } else { ttl.saturating_sub(shorter as u64) }.max(1_000_000))
    }

    pub(crate) fn judge(&self, entry: &Entry<V>, now: Time) -> Verdict {
        if entry.is_calm(now) {
            Verdict::Calm
        } else if now < entry.fresh_until() {
            Verdict::Fresh
        } else if now < entry.fresh_until().after(self.stale_while_revalidate) {
            Verdict::Stale
        } else if now < entry.fresh_until().after(self.stale_if_error) {
            Verdict::IfError
        } else {
            Verdict::Gone
        }
    }
}

//! What other crates are told of: `metrics`.

use crate::stats::{COUNTS, Count};
use metrics::{Counter, Histogram, counter, histogram};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Handles into the recorder that was installed when the cache was made.
pub(crate) struct Exported {
    counts: [Counter; COUNTS],
    evictions: Counter,
    /// How many of the store's evictions were told.
    evicted: AtomicU64,
    load_seconds: Histogram,
}

/// What each [`Count`] is called, in their order: its name, and a label.
const NAMES: [(&str, Option<(&str, &str)>); COUNTS] = [
    outcome("hit"),
    outcome("early"),
    outcome("stale"),
    outcome("miss"),
    ("oneflight_cache_loads_total", None),
    ("oneflight_cache_joins_total", None),
    ("oneflight_cache_refreshes_total", None),
    ("oneflight_cache_refreshes_ducked_total", None),
    ("oneflight_cache_load_errors_total", None),
    ("oneflight_cache_store_errors_total", None),
    ("oneflight_cache_invalidated_loads_total", None),
    ("oneflight_cache_overloaded_total", None),
    lease("held"),
    lease("waited"),
    lease("taken_over"),
    lease("lost"),
    lease("late"),
    lease("superseded"),
    lease("fallback"),
    lease("breaker_opened"),
];

const fn outcome(outcome: &str) -> (&str, Option<(&str, &str)>) {
    ("oneflight_cache_requests_total", Some(("outcome", outcome)))
}

const fn lease(event: &str) -> (&str, Option<(&str, &str)>) {
    ("oneflight_cache_lease_events_total", Some(("event", event)))
}

impl Exported {
    pub(crate) fn new(cache: &str) -> Self {
        Self {
            counts: NAMES.map(|(name, label)| match label {
                None => counter!(name, "cache" => cache.to_owned()),
                Some((label, value)) => counter!(name, "cache" => cache.to_owned(), label => value),
            }),
            evictions: counter!("oneflight_cache_evictions_total", "cache" => cache.to_owned()),
            evicted: AtomicU64::new(0),
            load_seconds: histogram!("oneflight_cache_load_seconds", "cache" => cache.to_owned()),
        }
    }

    #[inline]
    pub(crate) fn add(&self, count: Count) {
        self.counts[count as usize].increment(1);
    }

    /// So many so far. Each is told once, by whoever sees it first.
    pub(crate) fn evicted(&self, evictions: u64) {
        if self.evicted.load(Ordering::Relaxed) < evictions {
            let told = self.evicted.fetch_max(evictions, Ordering::Relaxed);
            self.evictions.increment(evictions.saturating_sub(told));
        }
    }

    pub(crate) fn took(&self, load: Duration) {
        self.load_seconds.record(load.as_secs_f64());
    }
}

#[cfg(test)]
mod tests;

//! What other crates are told of: `metrics`.

use crate::stats::Count;
use metrics::{Counter, Histogram, counter, histogram};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Handles into the recorder that was installed when the cache was made.
pub(crate) struct Exported {
    requests: [Counter; 4],
    joins: Counter,
    loads: Counter,
    refreshes: Counter,
    ducked: Counter,
    load_errors: Counter,
    store_errors: Counter,
    invalidated: Counter,
    overloaded: Counter,
    leases: [Counter; 8],
    evictions: Counter,
    /// How many of the store's evictions were told.
    evicted: AtomicU64,
    load_seconds: Histogram,
}

impl Exported {
    pub(crate) fn new(cache: &str) -> Self {
        let count = |name: &'static str| counter!(name, "cache" => cache.to_owned());
        let outcome = |outcome: &'static str| counter!("oneflight_cache_requests_total", "cache" => cache.to_owned(), "outcome" => outcome);
        let lease = |event: &'static str| counter!("oneflight_cache_lease_events_total", "cache" => cache.to_owned(), "event" => event);
        Self {
            requests: ["hit", "early", "stale", "miss"].map(outcome),
            joins: count("oneflight_cache_joins_total"),
            loads: count("oneflight_cache_loads_total"),
            refreshes: count("oneflight_cache_refreshes_total"),
            ducked: count("oneflight_cache_refreshes_ducked_total"),
            load_errors: count("oneflight_cache_load_errors_total"),
            store_errors: count("oneflight_cache_store_errors_total"),
            invalidated: count("oneflight_cache_invalidated_loads_total"),
            overloaded: count("oneflight_cache_overloaded_total"),
            leases: ["held", "waited", "taken_over", "lost", "late", "superseded", "fallback", "breaker_opened"]
                .map(lease),
            evictions: count("oneflight_cache_evictions_total"),
            evicted: AtomicU64::new(0),
            load_seconds: histogram!("oneflight_cache_load_seconds", "cache" => cache.to_owned()),
        }
    }

    #[inline]
    pub(crate) fn add(&self, count: Count) {
        let counter = match count {
            Count::Hits => &self.requests[0],
            Count::Early => &self.requests[1],
            Count::Stale => &self.requests[2],
            Count::Misses => &self.requests[3],
            Count::Joins => &self.joins,
            Count::Loads => &self.loads,
            Count::Refreshes => &self.refreshes,
            Count::Ducked => &self.ducked,
            Count::LoadErrors => &self.load_errors,
            Count::StoreErrors => &self.store_errors,
            Count::Invalidated => &self.invalidated,
            Count::Overloaded => &self.overloaded,
            Count::Held => &self.leases[0],
            Count::Waited => &self.leases[1],
            Count::TakenOver => &self.leases[2],
            Count::Lost => &self.leases[3],
            Count::Late => &self.leases[4],
            Count::Superseded => &self.leases[5],
            Count::Fallbacks => &self.leases[6],
            Count::BreakerOpened => &self.leases[7],
        };
        counter.increment(1);
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

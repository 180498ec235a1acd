//! What a cache has done so far.

mod stripes;

use std::time::Duration;
use stripes::Stripes;

/// What a cache has done since it was made. The numbers are read one after the other, and others go on meanwhile.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::blocking::Cache;
/// let users: Cache<u64, String> = Cache::builder().build_blocking();
/// for _ in 0..4 {
///     users.get_or_load(&7, || Ok("Ada".to_owned()))?;
/// }
/// let stats = users.stats();
/// assert_eq!((stats.misses, stats.loads, stats.hits + stats.early), (1, 1, 3));
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Calls that found a fresh value and did nothing else.
    pub hits: u64,
    /// Calls that found a fresh value and started a refresh, or did one.
    pub early: u64,
    /// Calls that found a value that was not fresh any more and got it, or the new one if they have refreshed it themselves.
    pub stale: u64,
    /// Calls of `get` and `get_or_load`, and keys of `get_many`, `get_or_load_many` and a collector, that found no value they could be
    /// served: there was none, or it was too old, or the store failed. What became of them is told by the other numbers: a call that
    /// loaded, or waited, or found what another had stored meanwhile, or was refused; one that got an old value
    /// [instead](crate::Builder::stale_if_error) of an error is among the stale ones too. A `get` that returns the store's error is
    /// not among them, nor are calls that bypass the cache or refresh, whatever there is.
    ///
    /// The hit ratio is `(hits + early + stale) / (hits + early + stale + misses)`, but for what was served instead of errors.
    pub misses: u64,
    /// Runs of a loader, those of refreshes and of calls that bypass the cache included. A batch counts once for the keys that it
    /// loads together. A [collector](crate::Collector) counts as its callers do: `load` as one key, `load_many` as a batch.
    pub loads: u64,
    /// Calls that waited for another's load until it had ended, by a value or an error.
    pub joins: u64,
    /// Refreshes that were started. One that finds a load of its key on leaves it to that, and counts as well.
    pub refreshes: u64,
    /// Refreshes that found the value refreshed already, and ran no loader.
    pub ducked: u64,
    /// Loads that ended without a value: by an error, a panic, or because they took too long. A batch counts once here too, if it
    /// has no value for some of its keys or for all, or another number of values than of keys.
    pub load_errors: u64,
    /// Requests to the store that failed.
    pub store_errors: u64,
    /// Loads whose value was not stored, because the key was written while they were on.
    pub invalidated: u64,
    /// Calls that were refused because of too many loads or callers.
    pub overloaded: u64,
    /// Answers of a shared store that another process has the lease.
    pub held: u64,
    /// Flights that got the value of another process for which they had waited.
    pub waited: u64,
    /// Leases that were acquired after another had had them: it failed, died or took too long.
    pub taken_over: u64,
    /// Leases that were found lost while the loader ran.
    pub lost: u64,
    /// Values that were stored though the lease had been lost.
    pub late: u64,
    /// Values that were not stored, as the lease had been lost and there was a value.
    pub superseded: u64,
    /// Loads past a shared store, which had failed or made them wait too long.
    pub fallbacks: u64,
    /// How often a shared store was given up for a while.
    pub breaker_opened: u64,
    /// Entries that the store gave up to make room.
    pub evictions: u64,
    /// How long loads took.
    pub load_times: LoadTimes,
}

/// A histogram of load times, by powers of two.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::blocking::Cache;
/// let users: Cache<u64, String> = Cache::builder().build_blocking();
/// users.get_or_load(&7, || Ok("Ada".to_owned()))?;
/// let times = users.stats().load_times;
/// assert!(times.quantile(0.99).is_some());
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTimes {
    buckets: [u64; BUCKETS],
}

/// The last one is for all over 2^30 us, 18 minutes.
const BUCKETS: usize = 32;

impl LoadTimes {
    /// For each bucket the time that its loads took at most, and their number: up to 1 us, 2 us, 4 us and so
    /// on, up to 2^30 us, which is 18 minutes; and [`Duration::MAX`] for those that took longer.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::blocking::Cache;
    ///
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.get_or_load(&7, || Ok("Ada".to_owned()))?;
    /// let times = users.stats().load_times;
    /// assert_eq!((times.iter().map(|(_, loads)| loads).sum::<u64>(), times.count()), (1, 1));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.buckets.iter().enumerate().map(|(index, &count)| {
            let bound = if index + 1 < BUCKETS { Duration::from_micros(1 << index) } else { Duration::MAX };
            (bound, count)
        })
    }

    /// How many loads have ended: by a value, an error or a panic, or because they took too long. Those that were dropped because all
    /// who wanted them had left are not among them.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.get_or_load(&7, || Ok("Ada".to_owned()))?;
    /// assert_eq!(users.stats().load_times.count(), 1);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// A time that the fraction `quantile` of the loads did not exceed, and not more than twice the smallest such time, from 0.5 us to
    /// 18 minutes: what is less is 1 us, and what is more is [`Duration::MAX`]. `None` if there were no loads.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Stats;
    /// assert_eq!(Stats::default().load_times.quantile(0.5), None);
    /// ```
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let wanted = ((self.count() as f64 * quantile.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        self.iter().find_map(|(bound, count)| {
            seen += count;
            (seen >= wanted).then_some(bound)
        })
    }

    fn bucket(took: Duration) -> usize {
        let micros =
            took.as_secs().saturating_mul(1_000_000).saturating_add(took.subsec_nanos().div_ceil(1_000).into());
        // 1 us and less: 0; up to 2 us: 1; up to 4 us: 2.
        let index = u64::BITS - micros.saturating_sub(1).leading_zeros();
        (index as usize).min(BUCKETS - 1)
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    Hits,
    Early,
    Stale,
    Misses,
    Loads,
    Joins,
    Refreshes,
    Ducked,
    LoadErrors,
    StoreErrors,
    Invalidated,
    Overloaded,
    Held,
    Waited,
    TakenOver,
    Lost,
    Late,
    Superseded,
    Fallbacks,
    BreakerOpened,
}

pub(crate) const COUNTS: usize = Count::BreakerOpened as usize + 1;

/// A cell for each count, and then one for each bucket of load times.
const CELLS: usize = COUNTS + BUCKETS;

pub(crate) struct Counters {
    stripes: Stripes<CELLS>,
    #[cfg(feature = "metrics")]
    exported: crate::observe::Exported,
}

impl Counters {
    pub(crate) fn new(#[cfg(feature = "metrics")] name: &str) -> Self {
        Self {
            stripes: Stripes::new(),
            #[cfg(feature = "metrics")]
            exported: crate::observe::Exported::new(name),
        }
    }

    #[inline]
    pub(crate) fn add(&self, count: Count) {
        self.stripes.add(count as usize);
        #[cfg(feature = "metrics")]
        self.exported.add(count);
    }

    pub(crate) fn took(&self, load: Duration) {
        self.stripes.add(COUNTS + LoadTimes::bucket(load));
        #[cfg(feature = "metrics")]
        self.exported.took(load);
    }

    /// The store has given up so many entries so far.
    #[cfg(feature = "metrics")]
    pub(crate) fn evicted(&self, evictions: u64) {
        self.exported.evicted(evictions);
    }

    pub(crate) fn stats(&self, evictions: u64) -> Stats {
        let sum = |count: Count| self.stripes.sum(count as usize);
        Stats {
            hits: sum(Count::Hits),
            early: sum(Count::Early),
            stale: sum(Count::Stale),
            misses: sum(Count::Misses),
            loads: sum(Count::Loads),
            joins: sum(Count::Joins),
            refreshes: sum(Count::Refreshes),
            ducked: sum(Count::Ducked),
            load_errors: sum(Count::LoadErrors),
            store_errors: sum(Count::StoreErrors),
            invalidated: sum(Count::Invalidated),
            overloaded: sum(Count::Overloaded),
            held: sum(Count::Held),
            waited: sum(Count::Waited),
            taken_over: sum(Count::TakenOver),
            lost: sum(Count::Lost),
            late: sum(Count::Late),
            superseded: sum(Count::Superseded),
            fallbacks: sum(Count::Fallbacks),
            breaker_opened: sum(Count::BreakerOpened),
            evictions,
            load_times: LoadTimes { buckets: std::array::from_fn(|bucket| self.stripes.sum(COUNTS + bucket)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_time_is_in_the_bucket_whose_bound_it_does_not_exceed() {
        for (nanos, bound) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (2_000, 2), (2_001, 4), (1_000_000, 1_024)] {
            let mut times = LoadTimes::default();
            times.buckets[LoadTimes::bucket(Duration::from_nanos(nanos))] += 1;
            assert_eq!(times.quantile(1.0), Some(Duration::from_micros(bound)), "{nanos} ns");
        }
        assert_eq!(LoadTimes::bucket(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn there_is_no_bound_for_load_times_of_more_than_18_minutes() {
        let quantile = |took: Duration| {
            let mut times = LoadTimes::default();
            times.buckets[LoadTimes::bucket(took)] += 1;
            assert_eq!(times.iter().last().map(|(bound, _)| bound), Some(Duration::MAX));
            times.quantile(1.0)
        };
        let longest = Duration::from_micros(1 << 30);
        assert_eq!(quantile(longest), Some(longest));
        assert_eq!(quantile(longest + Duration::from_nanos(1)), Some(Duration::MAX));
        assert_eq!(quantile(Duration::from_secs(20 * 60)), Some(Duration::MAX));
    }
}

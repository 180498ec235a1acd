//! What a store keeps, and what a caller gets.

use crate::time::Time;
use oneflight::refresh::Freshness;
use std::ops::Deref;
use std::time::Duration;

/// A value in a store, with all that the cache must know to serve it.
///
/// All times are those of the cache's [`Clock`](crate::Clock). A store outside this process keeps durations instead, and adds
/// them to the time that it is given when it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<V> {
    /// The value.
    pub value: V,
    /// A number that tells it from the other values that the key has had: random, and stored with it.
    pub version: u64,
    /// When its load began.
    pub loaded_at: Time,
    /// Until when it is served without a second thought.
    pub fresh_until: Time,
    /// Until when it is of any use: while it is being refreshed, or if it cannot be. The store may drop it then, and never
    /// returns it after that.
    pub stale_until: Time,
    /// How long its load took, to the nanosecond.
    pub(crate) cost: u64,
    /// Until when no read refreshes it, whatever its random number.
    pub(crate) calm_until: Time,
}

impl<V> Entry<V> {
    /// An entry as a store finds it. `cost` is how long the load took.
    #[must_use]
    pub fn new(value: V, version: u64, loaded_at: Time, fresh_until: Time, stale_until: Time, cost: Duration) -> Self {
        let cost = u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX);
        Self { value, version, loaded_at, fresh_until, stale_until, cost, calm_until: loaded_at }
    }

    /// How long its load took.
    #[must_use]
    pub fn cost(&self) -> Duration {
        Duration::from_nanos(self.cost)
    }

    /// What the policies of early refresh want to know.
    #[must_use]
    pub fn freshness(&self, now: Time) -> Freshness {
        Freshness { age: now.since(self.loaded_at), left: self.fresh_until.since(now), cost: self.cost() }
    }
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// It was there, and fresh.
    Hit,
    /// It was there, and fresh; this call has started a refresh, or done one.
    Early,
    /// It was there, and not fresh any more: it is being refreshed, or could not be.
    Stale,
    /// This caller has loaded it.
    Loaded,
    /// Another caller has loaded it while this one waited.
    Joined,
}

/// A value, where it came from, and how old it is. It derefs to the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched<V> {
    /// The value.
    pub value: V,
    /// Where it came from.
    pub source: Source,
    /// How long ago its load began, or it was put.
    pub age: Duration,
}

impl<V> Fetched<V> {
    /// The value alone.
    pub fn into_value(self) -> V {
        self.value
    }
}

impl<V> Deref for Fetched<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

//! `AsyncGroup`: coalescing for tasks, on any executor.

mod calls;
mod inline;
mod owned;
mod place;

use crate::call::Defaults;
use crate::group::{Group, info_of};
use crate::outcome::{FlightInfo, Stats};
use crate::primitive::Arc;
use crate::table::Table;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::panic::{RefUnwindSafe, UnwindSafe};
use hashbrown::{DefaultHashBuilder, Equivalent};

/// Coalesces the calls of tasks, on any executor or several.
pub struct AsyncGroup<K, V, S = DefaultHashBuilder> {
    group: Arc<Group<K, V, S>>,
}

impl<K, V> AsyncGroup<K, V> {
    /// A group with the defaults.
    #[must_use]
    pub fn new() -> Self {
        let table = Table::new(if cfg!(loom) { 1 } else { 256 }, DefaultHashBuilder::default(), None);
        Self { group: Arc::new(Group { table, defaults: Defaults::new() }) }
    }
}

impl<K, V, S: BuildHasher> AsyncGroup<K, V, S> {
    /// Detaches the flight of `key`, so that the next caller starts afresh.
    pub fn forget<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.forget(key)
    }

    /// Detaches the flight of `key` if nobody shares it.
    pub fn forget_unshared<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.forget_unshared(key)
    }

    /// How many callers wait for the flight of `key`.
    #[must_use]
    pub fn waiters<Q>(&self, key: &Q) -> usize
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.waiters(key)
    }

    /// The flight of `key` that newcomers would join.
    #[must_use]
    pub fn flight_info<Q>(&self, key: &Q) -> Option<FlightInfo>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.flight_info(key)
    }
}

impl<K, V, S> AsyncGroup<K, V, S> {
    /// How many flights are on.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.group.table.len()
    }

    /// All flights that are on.
    #[must_use]
    pub fn snapshot(&self) -> Vec<FlightInfo> {
        let clock = self.group.table.clock();
        let mut flights = Vec::with_capacity(self.group.table.len());
        self.group.table.for_each_shard(|entries| flights.extend(entries.iter().map(|entry| info_of(entry, clock))));
        flights
    }

    /// What has happened since the group was made.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.group.table.for_each_shard(|entries| stats.add(&entries.counts));
        stats
    }
}

impl<K, V> Default for AsyncGroup<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V, S> fmt::Debug for AsyncGroup<K, V, S> {
    /// Never blocks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncGroup").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

impl<K, V, S> UnwindSafe for AsyncGroup<K, V, S> {}
impl<K, V, S> RefUnwindSafe for AsyncGroup<K, V, S> {}

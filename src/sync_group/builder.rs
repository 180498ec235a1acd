//! The settings of a group.

use super::SyncGroup;
use crate::call::{Defaults, OnAbandon, SharePredicate, checked_attempts};
use crate::group::Group;
use crate::primitive::AgeClock;
use crate::table::Table;
use alloc::sync::Arc;
use core::fmt;
use core::hash::BuildHasher;
use core::marker::PhantomData;
use core::time::Duration;
use hashbrown::DefaultHashBuilder;

/// Builds a [`SyncGroup`] with other settings than [`SyncGroup::new`] has.
///
/// | setting | default |
/// |---|---|
/// | [`shards`](Self::shards) | 256 |
/// | [`hasher`](Self::hasher) | hashbrown's default, seeded for each group |
/// | [`max_flight_age`](Self::max_flight_age) | none, and no clock is read |
/// | [`wait_timeout`](Self::wait_timeout) | none: wait as long as it takes |
/// | [`max_attempts`](Self::max_attempts) | no limit |
/// | [`on_abandon`](Self::on_abandon) | [`OnAbandon::TakeOver`] |
/// | [`share_if`](Self::share_if) | every value is shared |
///
/// # Examples
///
/// ```
/// use oneflight::SyncGroup;
/// use std::time::Duration;
///
/// let group: SyncGroup<String, u32> = SyncGroup::builder()
///     .shards(64)
///     .max_flight_age(Duration::from_secs(30))
///     .build();
/// assert_eq!(group.do_call("k", || 7), 7);
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct SyncGroupBuilder<K, V, S = DefaultHashBuilder> {
    shards: usize,
    hasher: S,
    max_flight_age: Option<Duration>,
    defaults: Defaults<V>,
    key: PhantomData<fn() -> K>,
}

impl<K, V> SyncGroupBuilder<K, V> {
    pub(super) fn new() -> Self {
        Self {
            // Measured: with two threads 256 shards collide noticeably less than 64. Under loom each shard is one more
            // object to track.
            shards: if cfg!(loom) { 1 } else { 256 },
            hasher: DefaultHashBuilder::default(),
            max_flight_age: None,
            defaults: Defaults::new(),
            key: PhantomData,
        }
    }
}

impl<K, V, S> SyncGroupBuilder<K, V, S> {
    /// Into how many parts the table is cut, each with a lock of its own. Rounded up to a power of two, at most 65,536.
    /// A part takes 128 bytes.
    ///
    /// # Panics
    ///
    /// If `shards` is zero.
    #[track_caller]
    pub fn shards(mut self, shards: usize) -> Self {
        assert!(shards > 0, "oneflight: a group needs at least one shard");
        self.shards = shards;
        self
    }

    /// How keys are hashed. A call hashes its key once.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::SyncGroup;
    /// use std::hash::RandomState;
    ///
    /// let group: SyncGroup<String, u32, RandomState> = SyncGroup::builder().hasher(RandomState::new()).build();
    /// assert_eq!(group.do_call("k", || 7), 7);
    /// ```
    pub fn hasher<H: BuildHasher>(self, hasher: H) -> SyncGroupBuilder<K, V, H> {
        let Self { shards, hasher: _, max_flight_age, defaults, key } = self;
        SyncGroupBuilder { shards, hasher, max_flight_age, defaults, key }
    }

    /// From this age on a flight takes no newcomer: the next caller leads a new flight, while those inside the old one are
    /// served by it. It bounds how many callers a stuck leader can hold up. Off by default, and then no clock is read.
    ///
    /// The age is measured to about a 4,096th of `age`. With zero nobody ever joins.
    pub fn max_flight_age(mut self, age: Duration) -> Self {
        self.max_flight_age = Some(age);
        self
    }

    /// The default of [`Call::wait_timeout`](crate::Call::wait_timeout). The methods that return no `Result` wait as long
    /// as it takes, whatever is set here.
    pub fn wait_timeout(mut self, timeout: Duration) -> Self {
        self.defaults.wait_timeout = Some(timeout);
        self
    }

    /// The default of [`Call::max_attempts`](crate::Call::max_attempts).
    ///
    /// # Panics
    ///
    /// If `max` is zero.
    #[track_caller]
    pub fn max_attempts(mut self, max: u32) -> Self {
        self.defaults.max_attempts = checked_attempts(max);
        self
    }

    /// The default of [`Call::on_abandon`](crate::Call::on_abandon).
    pub fn on_abandon(mut self, on_abandon: OnAbandon) -> Self {
        self.defaults.on_abandon = on_abandon;
        self
    }

    /// The default of [`Call::share_if`](crate::Call::share_if).
    pub fn share_if(mut self, share_if: impl Fn(&V) -> bool + Send + Sync + 'static) -> Self {
        let share_if: Arc<SharePredicate<V>> = Arc::new(share_if);
        self.defaults.share_if = Some(share_if);
        self
    }

    /// The group.
    pub fn build(self) -> SyncGroup<K, V, S> {
        let clock = self.max_flight_age.map(AgeClock::new);
        SyncGroup { group: Group { table: Table::new(self.shards, self.hasher, clock), defaults: self.defaults } }
    }
}

impl<K, V, S> fmt::Debug for SyncGroupBuilder<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncGroupBuilder")
            .field("shards", &self.shards)
            .field("max_flight_age", &self.max_flight_age)
            .field("wait_timeout", &self.defaults.wait_timeout)
            .field("max_attempts", &self.defaults.max_attempts)
            .field("on_abandon", &self.defaults.on_abandon)
            .finish_non_exhaustive()
    }
}

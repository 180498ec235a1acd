//! `SyncGroup`: coalescing for threads.

mod builder;
mod calls;
mod many;

pub use builder::SyncGroupBuilder;

use crate::group::{Group, info_of};
use crate::outcome::{FlightInfo, Stats};
use alloc::vec::Vec;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::panic::{RefUnwindSafe, UnwindSafe};
use hashbrown::{DefaultHashBuilder, Equivalent};

/// Coalesces the calls of threads: of those that ask for a key at the same time, the first one runs the work, and the
/// others sleep until they share its value.
///
/// A group stores nothing: once a flight has landed, the next call runs its own work. It is meant to be shared by `&`, in
/// an `Arc` or in a `static`; it is `Sync` if keys are `Send` and values `Send + Sync`.
///
/// # What every call keeps to
///
/// - **Panics.** A panic in the work reaches the caller whose work it was, payload and all. The followers do not see it:
///   one of them takes over with its own work. The key is free afterwards.
/// - **Re-entrancy.** A call of its own key from inside the work would wait for itself. It is told so at once: by
///   [`CallError::Reentrant`](crate::CallError::Reentrant), or by a panic where the method returns no `Result`. A call of the same key on another
///   thread just waits. With feature `deadlock-detection`, circles through several threads are told likewise, by
///   [`CallError::WouldDeadlock`](crate::CallError::WouldDeadlock).
/// - **Timeouts** bound waiting, never a caller's own work.
/// - **Memory.** What the leader wrote before its work returned is visible to every follower when its call returns.
/// - **Locks.** None is held while anything of the user's runs, except `Hash` and `Eq` of keys. A panic in `Hash`, `Eq`,
///   `Clone` or `Drop` concerns the call that it happens in and leaves the group usable.
/// - **Clones.** A lone caller's value is moved out. N callers that collect one after another cost N - 1 clones.
///
/// # Examples
///
/// ```
/// use oneflight::SyncGroup;
/// use std::sync::Arc;
///
/// # struct User; struct Db;
/// # impl Db { fn fetch(&self, _: u32) -> Arc<User> { Arc::new(User) } }
/// # let db = Db;
/// let group: SyncGroup<String, Arc<User>> = SyncGroup::new();
/// let user = group.do_call("user:1001", || db.fetch(1001));
/// ```
pub struct SyncGroup<K, V, S = DefaultHashBuilder> {
    pub(crate) group: Group<K, V, S>,
}

impl<K, V> SyncGroup<K, V> {
    /// A group with the defaults, which [`SyncGroupBuilder`] lists.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::SyncGroup;
    /// use std::sync::LazyLock;
    ///
    /// static PRICES: LazyLock<SyncGroup<String, u32>> = LazyLock::new(SyncGroup::new);
    /// assert_eq!(PRICES.do_call("anvil", || 7), 7);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A group with other settings.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::SyncGroup;
    /// use std::time::Duration;
    ///
    /// let group: SyncGroup<String, u32> = SyncGroup::builder().max_flight_age(Duration::from_secs(1)).build();
    /// assert_eq!(group.do_call("k", || 7), 7);
    /// ```
    pub fn builder() -> SyncGroupBuilder<K, V> {
        SyncGroupBuilder::new()
    }
}

impl<K, V, S: BuildHasher> SyncGroup<K, V, S> {
    /// A group with the defaults and the given hasher.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::SyncGroup;
    /// use std::hash::RandomState;
    ///
    /// let group = SyncGroup::with_hasher(RandomState::new());
    /// assert_eq!(group.do_call(&1_u32, || 2_u32), 2);
    /// ```
    pub fn with_hasher(hasher: S) -> Self {
        SyncGroupBuilder::new().hasher(hasher).build()
    }

    /// Detaches the flight of `key`, so that the next caller starts afresh. Those inside the flight are untouched: they get
    /// its value, or take over among themselves. Returns whether there was a flight to detach.
    ///
    /// Call it after a write: without it, a caller may be given what a flight had read before the write.
    ///
    /// # Blocking
    ///
    /// Does not wait for the flight. May be called from inside the work.
    ///
    /// # Panics
    ///
    /// Only if `Hash` or `Eq` of the key does.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// let stale = group.try_lead("k").expect("no flight is on");
    /// assert!(group.forget("k"));
    /// assert_eq!(group.do_call("k", || 2), 2); // does not wait for the first one
    /// assert_eq!(stale.land(1).value, 1);
    /// assert!(!group.forget("k"));
    /// ```
    pub fn forget<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.forget(key)
    }

    /// Detaches the flight of `key` if nobody shares it. Returns `true` if nobody does, which includes that there is no
    /// flight; `false` if followers are inside, and then nothing changes.
    ///
    /// After `true` no one joins what was running.
    ///
    /// # Blocking
    ///
    /// Does not wait for the flight. May be called from inside the work.
    ///
    /// # Panics
    ///
    /// Only if `Hash` or `Eq` of the key does.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// assert!(group.forget_unshared("k"));
    /// let lead = group.try_lead("k");
    /// assert!(group.forget_unshared("k"));
    /// assert!(group.try_lead("k").is_some());
    /// ```
    pub fn forget_unshared<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.forget_unshared(key)
    }

    /// [Forgets](Self::forget) every flight that is on: whoever calls after this has returned joins none of them.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// let (a, b) = (group.try_lead("a"), group.try_lead("b"));
    /// group.forget_all();
    /// assert!(group.try_lead("a").is_some() && group.try_lead("b").is_some());
    /// ```
    pub fn forget_all(&self) {
        self.group.table.forget_all();
    }

    /// How many callers wait for the flight of `key` that newcomers would join. Zero if there is none.
    ///
    /// # Panics
    ///
    /// Only if `Hash` or `Eq` of the key does.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// assert_eq!(group.waiters("k"), 0);
    /// ```
    #[must_use]
    pub fn waiters<Q>(&self, key: &Q) -> usize
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.waiters(key)
    }

    /// The flight of `key` that newcomers would join, as it is now. `None` if there is none.
    ///
    /// # Panics
    ///
    /// Only if `Hash` or `Eq` of the key does.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// assert!(group.flight_info("k").is_none());
    /// let lead = group.try_lead("k");
    /// assert_eq!(group.flight_info("k").map(|flight| flight.waiters), Some(0));
    /// ```
    #[must_use]
    pub fn flight_info<Q>(&self, key: &Q) -> Option<FlightInfo>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.flight_info(key)
    }
}

impl<K, V, S> SyncGroup<K, V, S> {
    /// How many flights are on, forgotten ones included. Those of calls that have returned are not among them. Like all that
    /// looks into the group, it must not be called from `Hash` or `Eq` of a key; to show the group may be.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// let lead = group.try_lead("k");
    /// assert_eq!(group.in_flight(), 1);
    /// drop(lead);
    /// assert_eq!(group.in_flight(), 0);
    /// ```
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.group.table.len()
    }

    /// All flights that are on, forgotten ones included, in no order; each shard as of one moment.
    ///
    /// Keys are not part of it: cloning them would run code of the user's under a lock. Use
    /// [`flight_info`](Self::flight_info) to ask about a key.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// let lead = group.try_lead("k");
    /// group.forget("k");
    /// let flights = group.snapshot();
    /// assert_eq!(flights.len(), 1);
    /// assert!(flights[0].forgotten);
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Vec<FlightInfo> {
        let clock = self.group.table.clock();
        let mut flights = Vec::with_capacity(self.group.table.len());
        self.group.table.for_each_shard(|entries| flights.extend(entries.iter().map(|entry| info_of(entry, clock))));
        flights
    }

    /// What has happened since the group was made, each shard as of one moment.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// group.do_call("k", || 1);
    /// assert_eq!(group.stats().flights, 1);
    /// assert_eq!(group.stats().joins, 0);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.group.table.for_each_shard(|entries| stats.add(&entries.stats()));
        stats
    }
}

impl<K, V, S: BuildHasher + Default> Default for SyncGroup<K, V, S> {
    /// A group with the defaults, and with a hasher of its own.
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> fmt::Debug for SyncGroup<K, V, S> {
    /// Never blocks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncGroup").field("in_flight", &self.group.table.len_at_a_glance()).finish_non_exhaustive()
    }
}

// Nothing of the user's runs while a group's data is being changed, except `Hash` and `Eq`, which run before it is: a panic
// cannot leave a group half changed.
impl<K, V, S> UnwindSafe for SyncGroup<K, V, S> {}
impl<K, V, S> RefUnwindSafe for SyncGroup<K, V, S> {}

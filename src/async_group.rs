//! `AsyncGroup`: coalescing for tasks, on any executor.

#[cfg(feature = "std")]
mod blocking;
mod builder;
mod call;
mod calls;
mod detached;
mod inline;
mod many;
mod mapped;
mod owned;
mod place;

pub use builder::AsyncGroupBuilder;
use detached::{Detacher, Spawner};

use crate::group::{Detach, Group, info_of};
use crate::outcome::{FlightInfo, Stats};
use crate::primitive::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::panic::{RefUnwindSafe, UnwindSafe};
use hashbrown::{DefaultHashBuilder, Equivalent};

/// Coalesces the calls of tasks, on any executor or on several: of those that ask for a key at the same time, one work runs,
/// and the others wait until they share its value.
///
/// A group stores nothing: once a flight has landed, the next call runs its own work. It is meant to be shared by `&`, in
/// an `Arc` or in a `static`. It spawns nothing and has no timer: a time limit is the caller's own, since a call may be
/// dropped at any time.
///
/// # Three ways to call
///
/// | method | the work | if its caller is dropped | if its caller is not polled |
/// |---|---|---|---|
/// | [`do_call`](Self::do_call) | belongs to the flight: `Send + 'static` | another caller goes on with it | another caller goes on with it |
/// | [`do_call_inline`](Self::do_call_inline) | runs inside the caller's future: may borrow | a follower runs its own | **the followers wait** |
#[cfg_attr(feature = "std", doc = "| [`do_call_blocking`](Self::do_call_blocking) | runs on the caller's thread | | |")]
///
/// All of them, and [`try_lead`](Self::try_lead), meet on one key.
///
/// # What every call keeps to
///
/// - **Who drives.** When the work wakes, the caller that drove it last is woken, and one standby, a different one each time;
///   whoever is polled first drives. So a caller that is not polled holds up nobody, and followers are not woken at every
///   await of the work. If both are parked, the flight goes on with the next poll of any caller, or with the next caller.
/// - **Leaving.** When the last caller leaves, the work is dropped there and then, or goes on if it was to be
///   [detached](crate::Call::detach), as all work that a group's flights own [can be](AsyncGroupBuilder::detach). If it is dropped
///   and threads still wait, one of them runs its own. A newcomer never joins work that is about to be dropped. Cancelled work is
///   dropped after its flight is over, outside all locks, so its destructors may run while the next flight's work has begun.
/// - **Panics.** A panic in the work reaches the caller whose closure made it, payload and all, also if another drove it at
///   the time (with `std`; without, it reaches whoever drives). A caller that drove somebody else's work goes on with its own.
/// - **Re-entrancy** (with `std`). A call of its own key that is awaited inside the work would wait for itself. It is told so:
///   by [`CallError::Reentrant`](crate::CallError::Reentrant), or by a panic where there is no `Result`. A call from another
///   task at that moment just waits.
/// - **Locks.** None is held while anything of the user's runs, except `Hash` and `Eq` of keys: no waker is woken, cloned or
///   dropped under one. If a waker panics, the others are woken all the same (with `std`).
/// - **Memory.** What the work wrote before it ended is visible to every caller that gets its value.
/// - **Clones.** A lone caller's value is moved out. N callers that collect one after another cost N - 1 clones.
///
/// Work that belongs to one runtime (its timers, its sockets) should be driven on it: use one group a runtime. If the runtime is
/// gone and the work panics for it, the caller that drives it then goes on with its own.
///
/// Work that awaits a call whose work awaits this one, through however many keys, hangs, as with locks: whichever tasks drive
/// them.
///
/// # Examples
///
/// ```
/// use oneflight::AsyncGroup;
/// use std::sync::Arc;
///
/// # struct User;
/// # async fn fetch(_: u32) -> Arc<User> { Arc::new(User) }
/// # smol::block_on(async {
/// let group: AsyncGroup<String, Arc<User>> = AsyncGroup::new();
/// let user = group.do_call("user:1001", || fetch(1001)).await;
/// # });
/// ```
pub struct AsyncGroup<K, V, S = DefaultHashBuilder> {
    group: Arc<Group<K, V, S>>,
    spawner: Option<alloc::sync::Arc<Spawner>>,
    /// Of a group, with a spawner, whose work goes on by default.
    detacher: Option<Detacher<K, V, S>>,
}

impl<K, V> AsyncGroup<K, V> {
    /// A group with the defaults, which [`AsyncGroupBuilder`] lists.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// assert_eq!(smol::block_on(group.do_call("k", || async { 7 })), 7);
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
    /// use oneflight::{AsyncGroup, OnAbandon};
    ///
    /// let group: AsyncGroup<String, u32> = AsyncGroup::builder().on_abandon(OnAbandon::Fail).build();
    /// assert_eq!(smol::block_on(group.do_call("k", || async { 7 })), 7);
    /// ```
    pub fn builder() -> AsyncGroupBuilder<K, V> {
        AsyncGroupBuilder::new()
    }
}

impl<K, V, S: BuildHasher> AsyncGroup<K, V, S> {
    /// A group with the defaults and the given hasher.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    /// use std::hash::RandomState;
    ///
    /// let group = AsyncGroup::with_hasher(RandomState::new());
    /// assert_eq!(smol::block_on(group.do_call(&1_u32, || async { 2_u32 })), 2);
    /// ```
    pub fn with_hasher(hasher: S) -> Self {
        AsyncGroupBuilder::new().hasher(hasher).build()
    }

    /// Detaches the flight of `key`, so that the next caller starts afresh. Those inside are untouched. Returns whether there
    /// was a flight to detach. See [`SyncGroup::forget`](crate::SyncGroup::forget).
    ///
    /// # Panics
    ///
    /// Only if `Hash` or `Eq` of the key does.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// let stale = group.try_lead("k");
    /// assert!(group.forget("k"));
    /// assert!(group.try_lead("k").is_some());
    /// ```
    pub fn forget<Q>(&self, key: &Q) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.forget(key)
    }

    /// Detaches the flight of `key` if nobody shares it, and returns whether nobody does. See
    /// [`SyncGroup::forget_unshared`](crate::SyncGroup::forget_unshared).
    ///
    /// # Panics
    ///
    /// Only if `Hash` or `Eq` of the key does.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// assert!(group.forget_unshared("k"));
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
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// let (a, b) = (group.try_lead("a"), group.try_lead("b"));
    /// group.forget_all();
    /// assert!(group.try_lead("a").is_some() && group.try_lead("b").is_some());
    /// ```
    pub fn forget_all(&self) {
        self.group.table.forget_all();
    }

    /// How many callers wait for the flight of `key` that newcomers would join, tasks and threads. Zero if there is none.
    ///
    /// # Panics
    ///
    /// Only if `Hash` or `Eq` of the key does.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
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
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// assert!(group.flight_info("k").is_none());
    /// ```
    #[must_use]
    pub fn flight_info<Q>(&self, key: &Q) -> Option<FlightInfo>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.flight_info(key)
    }
}

impl<K, V, S> AsyncGroup<K, V, S> {
    /// Where the work of a call goes on that does not say so itself, if it does.
    fn default_detach(&self) -> Option<Detach<V>> {
        let detacher = self.detacher?;
        self.spawner.as_ref().map(|spawner| detacher(&self.group, spawner))
    }

    /// How many flights are on, forgotten ones included. Those of calls that have returned are not among them. Like all that
    /// looks into the group, it must not be called from `Hash` or `Eq` of a key; to show the group may be.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// assert_eq!(group.in_flight(), 0);
    /// ```
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.group.table.len()
    }

    /// All flights that are on, forgotten ones included, in no order and without their keys. See
    /// [`SyncGroup::snapshot`](crate::SyncGroup::snapshot).
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// assert!(group.snapshot().is_empty());
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
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// assert_eq!(group.stats().flights, 0);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.group.table.for_each_shard(|entries| stats.add(&entries.stats()));
        stats
    }
}

impl<K, V, S: BuildHasher + Default> Default for AsyncGroup<K, V, S> {
    /// A group with the defaults, and with a hasher of its own.
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> fmt::Debug for AsyncGroup<K, V, S> {
    /// Never blocks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncGroup").field("in_flight", &self.group.table.len_at_a_glance()).finish_non_exhaustive()
    }
}

// Nothing of the user's runs while a group's data is being changed, except `Hash` and `Eq`, which run before it is: a panic
// cannot leave a group half changed.
impl<K, V, S> UnwindSafe for AsyncGroup<K, V, S> {}
impl<K, V, S> RefUnwindSafe for AsyncGroup<K, V, S> {}

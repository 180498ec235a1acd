//! `SyncGroup`: coalescing for threads.

mod builder;
mod calls;
mod follow;
mod lead;
mod slot;

pub use builder::SyncGroupBuilder;
pub use lead::Lead;

use crate::call::{Defaults, OnAbandon, Options};
use crate::error::CallError;
use crate::flight::Join;
use crate::outcome::{FlightInfo, Outcome, Role, Stats};
use crate::primitive::{AgeClock, Arc, ThreadNumber};
use crate::table::{self, Found, Table};
use alloc::vec::Vec;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::panic::{RefUnwindSafe, UnwindSafe};
use follow::{Followed, Following};
use hashbrown::{DefaultHashBuilder, Equivalent};
use lead::Leading;
use slot::{Slot, own};

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
///   [`CallError::Reentrant`], or by a panic where the method returns no `Result`. A call of the same key on another
///   thread just waits. With feature `deadlock-detection`, circles through several threads are told likewise, by
///   [`CallError::WouldDeadlock`].
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
    table: Table<K, Arc<Slot<V>>, S>,
    defaults: Defaults<V>,
}

type Entry<K, V> = table::Entry<K, Arc<Slot<V>>>;

/// What came of entering the table.
enum Entered<'g, K, V, S> {
    Lead(Leading<'g, K, V, S>),
    Wait(Following<V>),
    Reentrant,
}

impl<K, V> SyncGroup<K, V> {
    /// A group with the defaults, which [`SyncGroupBuilder`] lists.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A group with other settings.
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
        self.table.peek(key, |entry, counts| {
            let found = entry.is_some();
            if let Some(entry) = entry {
                entry.admission.forget();
                counts.forgets += 1;
            }
            found
        })
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
        self.table.peek(key, |entry, counts| {
            let Some(entry) = entry else { return true };
            let unshared = waiters_of(entry) == 0;
            if unshared {
                entry.admission.forget();
                counts.forgets += 1;
            }
            unshared
        })
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
        self.table.peek(key, |entry, _| entry.map_or(0, |entry| waiters_of(entry)))
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
        let clock = self.table.clock();
        self.table.peek(key, |entry, _| entry.map(|entry| info_of(entry, clock)))
    }

    /// Every call goes through here: enters the table, then leads or follows. Gives the work back if it was not run.
    #[inline]
    fn execute<Q, F, M, P>(
        &self,
        key: &Q,
        make_key: M,
        work: F,
        options: Options<P>,
    ) -> Result<Outcome<V>, (CallError, F)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        V: Clone,
        F: FnOnce() -> V,
        M: FnOnce() -> K,
        P: FnOnce(&V) -> bool,
    {
        let leading = match self.enter(key, make_key, options.on_abandon, options.max_attempts) {
            Entered::Lead(leading) => leading,
            Entered::Reentrant => return Err((CallError::Reentrant, work)),
            Entered::Wait(following) => {
                let id = following.id;
                match self.follow(following, options.wait_timeout) {
                    Followed::Value(value) => {
                        return Ok(Outcome { value: own(value), role: Role::Followed, shared: true });
                    }
                    Followed::Lead { attempt } => Leading::new(self, id, attempt, options.max_attempts),
                    Followed::Failed(error) => return Err((error, work)),
                }
            }
        };
        Ok(leading.run(work, options.share_if))
    }

    #[inline]
    fn enter<Q, M>(&self, key: &Q, make_key: M, on_abandon: OnAbandon, max_attempts: u32) -> Entered<'_, K, V, S>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        M: FnOnce() -> K,
    {
        let me = ThreadNumber::current();
        let found = self.table.join_or_lead(self.table.hash(key), key, make_key, me, |entry, counts| {
            if me.is_some() && entry.leader == me {
                return None;
            }
            let join = slot_of(entry).step(|flight| flight.join(on_abandon));
            match join {
                Join::Wait(_) => counts.joins += 1,
                Join::Lead { .. } => {
                    counts.take_overs += 1;
                    self.note_leader(entry, me);
                }
                Join::Refused => {}
            }
            Some((join, Arc::clone(slot_of(entry))))
        });
        match found {
            Found::Led(id) => Entered::Lead(Leading::new(self, id, 1, max_attempts)),
            Found::Joined(_, None) => Entered::Reentrant,
            Found::Joined(id, Some((Join::Wait(seat), slot))) => Entered::Wait(Following { id, slot, seat }),
            Found::Joined(id, Some((Join::Lead { attempt }, _))) => {
                Entered::Lead(Leading::new(self, id, attempt, max_attempts))
            }
            Found::Joined(_, Some((Join::Refused, _))) => {
                unreachable!("a flight leaves the table in the critical section in which it ends")
            }
        }
    }
}

impl<K, V, S> SyncGroup<K, V, S> {
    /// How many flights are on, forgotten ones included. Takes no lock; exact while nothing changes.
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
        self.table.len()
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
        let clock = self.table.clock();
        let mut flights = Vec::with_capacity(self.table.len());
        self.table.for_each_shard(|entries| flights.extend(entries.iter().map(|entry| info_of(entry, clock))));
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
        self.table.for_each_shard(|entries| stats.add(&entries.counts));
        stats
    }
}

/// The slot of a flight, made now if nobody has joined before.
fn slot_of<K, V>(entry: &mut Entry<K, V>) -> &Arc<Slot<V>> {
    let leader = entry.leader;
    entry.shared.get_or_insert_with(|| Arc::new(Slot::new(leader)))
}

fn waiters_of<K, V>(entry: &Entry<K, V>) -> usize {
    entry.shared.as_ref().map_or(0, |slot| slot.step(|flight| flight.waiters()) as usize)
}

fn info_of<K, V>(entry: &Entry<K, V>, clock: Option<&AgeClock>) -> FlightInfo {
    let (waiters, attempts) =
        entry.shared.as_ref().map_or((0, 1), |slot| slot.step(|flight| (flight.waiters(), flight.attempts())));
    FlightInfo {
        waiters: waiters as usize,
        attempts,
        forgotten: entry.admission.is_forgotten(),
        age: clock.and_then(|clock| entry.admission.age(clock.now()).map(|ticks| clock.duration_of(ticks))),
    }
}

impl<K, V> Default for SyncGroup<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V, S> fmt::Debug for SyncGroup<K, V, S> {
    /// Never blocks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncGroup").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

// Nothing of the user's runs while a group's data is being changed, except `Hash` and `Eq`, which run before it is: a panic
// cannot leave a group half changed.
impl<K, V, S> UnwindSafe for SyncGroup<K, V, S> {}
impl<K, V, S> RefUnwindSafe for SyncGroup<K, V, S> {}

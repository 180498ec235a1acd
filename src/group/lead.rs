//! Leading a flight: from the start of the work to its landing, or to its abandonment when the leader is dropped.

use super::leads::Aftermath;
use super::slot::{Landed, Slot, own};
use super::{Entry, Group, Wake, note_leader, slot_of};
use crate::flight::Land;
use crate::outcome::{Outcome, Role};
use crate::primitive::{Arc, ThreadNumber, catch_panic, resume_panic};
use crate::table::{FlightId, Verdict};
use core::fmt;
use core::mem::ManuallyDrop;

/// The lead of a flight. Dropping it abandons the flight: that one path serves panics, early returns and guards.
pub(crate) struct Leading<'g, K, V, S> {
    group: &'g Group<K, V, S>,
    id: FlightId,
    attempt: u32,
    max_attempts: u32,
}

impl<'g, K, V, S> Leading<'g, K, V, S> {
    #[inline]
    pub(crate) fn new(group: &'g Group<K, V, S>, id: FlightId, attempt: u32, max_attempts: u32) -> Self {
        Self { group, id, attempt, max_attempts }
    }

    /// The number of its attempt.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Its flight, whose lead the caller goes on with in another form.
    pub(crate) fn into_id(self) -> FlightId {
        ManuallyDrop::new(self).id
    }

    /// Writes down who runs the work from now on.
    pub(crate) fn note_leader(&self, leader: Option<ThreadNumber>) {
        let _ = self.group.table.update(self.id, |entry, _| (Verdict::Keep, note_leader(entry, leader)));
    }

    /// Lands with the value of the work, or abandons the flight if the value is not to be shared.
    #[inline]
    pub(crate) fn finish(self, value: V, share_if: impl FnOnce(&V) -> bool) -> Outcome<V>
    where
        V: Clone,
    {
        // Taken apart: nothing of the user's runs before the flight has ended, or is led by a whole `Leading` again. Moving one
        // about costs a lone caller more than removing its entry.
        let this = ManuallyDrop::new(self);
        let (group, id, attempt, max_attempts) = (this.group, this.id, this.attempt, this.max_attempts);
        let role = if attempt == 1 { Role::Led } else { Role::TookOver };
        // A lone leader's flight is only its entry, and removing it is all there is to do.
        if let Some(key) = group.table.remove_unshared(id, |slot| land_alone(slot)) {
            drop(key);
            // Its destructor is the user's code as well. The value would leak if it panicked at the end of this function.
            drop(share_if);
            return Outcome { value, role, shared: false };
        }
        let (value, shared) = Self::finish_shared(group, id, attempt, max_attempts, value, share_if);
        Outcome { value, role, shared }
    }

    #[cold]
    #[inline(never)]
    fn finish_shared(
        group: &'g Group<K, V, S>,
        id: FlightId,
        attempt: u32,
        max_attempts: u32,
        value: V,
        share_if: impl FnOnce(&V) -> bool,
    ) -> (V, bool)
    where
        V: Clone,
    {
        let this = Self::new(group, id, attempt, max_attempts);
        // If the predicate panics, the flight is abandoned.
        if !this.is_shared(&value, share_if) {
            drop(this);
            return (value, false);
        }
        let value = Arc::new(value);
        let kept = Arc::clone(&value);
        let (landed, entry) = this.land(value);
        // Partner of the look in `Following::wait` (threads), which comes after its `listen`.
        let unshared = landed.send();
        let shared = unshared.is_none();
        drop(unshared);
        drop(entry);
        (own(kept), shared)
    }

    /// [`finish`](Self::finish) for a batch: of the user's it runs the predicate alone, and leaves the rest to `aftermath`. The
    /// value stays where it is, or comes back with those who share it.
    pub(crate) fn finish_into(
        self,
        value: &mut Option<V>,
        share_if: impl FnOnce(&V) -> bool,
        aftermath: &mut Aftermath<K, V>,
    ) -> Option<(Arc<V>, Landed<V>)> {
        if let Some(key) = self.group.table.remove_unshared(self.id, |slot| land_alone(slot)) {
            let _ended = self.into_id();
            aftermath.drop_key(key);
            return None;
        }
        let shared = catch_panic(|| value.take_if(|value| self.is_shared(value, share_if)));
        let Ok(Some(shared)) = shared else {
            self.abandon_into(aftermath);
            return shared.map_or_else(|payload| resume_panic(payload), |_| None);
        };
        let shared = Arc::new(shared);
        let (landed, entry) = self.land(Arc::clone(&shared));
        aftermath.drop_entry(entry);
        Some((shared, landed))
    }

    /// Asks the predicate, which is the user's code: outside all locks.
    fn is_shared(&self, value: &V, share_if: impl FnOnce(&V) -> bool) -> bool {
        if self.is_last_attempt() {
            drop(share_if);
            return true;
        }
        share_if(value)
    }

    fn land(self, value: Arc<V>) -> (Landed<V>, Option<Entry<K, V>>) {
        let this = ManuallyDrop::new(self);
        // State and entry change under the table's lock together, so no newcomer finds the one without the other.
        let landed = this.group.table.update(this.id, |entry, _| {
            note_leader(entry, None);
            (Verdict::Remove, slot_of(entry).with(|shared| shared.land(value)))
        });
        landed.expect("a flight that is led is in the table")
    }

    /// Abandons the flight, and leaves the rest to `aftermath`.
    pub(crate) fn abandon_into(self, aftermath: &mut Aftermath<K, V>) {
        if let Some((wake, entry)) = ManuallyDrop::new(self).abandon() {
            wake.into_iter().for_each(|wake| aftermath.wake(wake));
            aftermath.drop_entry(entry);
        }
    }

    fn abandon(&self) -> Option<(Option<Wake<V>>, Option<Entry<K, V>>)> {
        let last = self.is_last_attempt();
        self.group.table.update(self.id, |entry, counts| {
            counts.abandons += 1;
            note_leader(entry, None);
            let Some(slot) = &entry.shared else { return (Verdict::Remove, None) };
            let (remove, wake) = slot.with(|shared| shared.abandon(last));
            let verdict = if remove { Verdict::Remove } else { Verdict::Keep };
            (verdict, Some(wake))
        })
    }

    pub(crate) fn is_last_attempt(&self) -> bool {
        self.attempt >= self.max_attempts
    }
}

/// Lands if all who have joined have left, or have only to leave: nobody is to be asked whether the value is for them. The
/// slot holds nothing of the user's then: a task that has a waker in it holds the slot as well.
#[cold]
#[inline(never)]
fn land_alone<V>(slot: &Slot<V>) -> bool {
    let alone = slot.with(|shared| {
        let alone = shared.flight.is_alone() && shared.flight.land() == Land::Alone;
        if alone {
            shared.leader = None;
            shared.tasks.drop_landing();
        }
        alone
    });
    #[cfg(all(feature = "deadlock-detection", not(loom)))]
    if alone {
        slot.leader.set(None);
    }
    alone
}

impl<K, V, S> Drop for Leading<'_, K, V, S> {
    fn drop(&mut self) {
        if let Some((Some(wake), entry)) = self.abandon() {
            wake.send();
            drop(entry);
        }
    }
}

/// The lead of a flight as a guard, for work that is no closure: made by [`SyncGroup::try_lead`](crate::SyncGroup::try_lead).
///
/// [`land`](Self::land) ends the flight with a value. Dropping the guard, also while unwinding, abandons the flight: a
/// follower takes over with its own closure. The guard belongs to no thread and may be sent to another; a call of its
/// own key by whoever holds it is not reported as re-entrant but waits.
///
/// Leaking a guard (`mem::forget`) keeps its flight on for ever; [`SyncGroup::forget`](crate::SyncGroup::forget) frees the key.
///
/// # Examples
///
/// ```
/// use oneflight::SyncGroup;
///
/// let group: SyncGroup<String, u32> = SyncGroup::new();
/// std::thread::scope(|threads| {
///     let lead = group.try_lead("k").expect("no flight is on");
///     let follower = threads.spawn(|| group.do_call("k", || 0));
///     while group.waiters("k") == 0 {
///         std::thread::yield_now();
///     }
///     lead.land(7); // from a callback, say
///     assert_eq!(follower.join().unwrap(), 7);
/// });
/// ```
#[must_use = "dropping the lead abandons the flight"]
pub struct Lead<'g, K, V, S> {
    leading: Leading<'g, K, V, S>,
}

impl<'g, K, V, S> Lead<'g, K, V, S> {
    pub(crate) fn new(leading: Leading<'g, K, V, S>) -> Self {
        Self { leading }
    }

    pub(crate) fn note_leader(&self, thread: Option<ThreadNumber>) {
        self.leading.note_leader(thread);
    }

    /// Ends the flight with `value`, which every follower gets, and gives it back. `share_if` is not asked.
    ///
    /// # Memory
    ///
    /// What was written before `land` is visible to every follower when its call returns.
    ///
    /// # Panics
    ///
    /// If `Clone` of the value or `Drop` of the key panics; the followers have the value by then.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// let lead = group.try_lead("k").expect("no flight is on");
    /// assert!(group.try_lead("k").is_none());
    /// assert_eq!(lead.land(7).value, 7);
    /// assert_eq!(group.in_flight(), 0);
    /// ```
    pub fn land(self, value: V) -> Outcome<V>
    where
        V: Clone,
    {
        self.leading.finish(value, |_| true)
    }
}

impl<K, V, S> fmt::Debug for Lead<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lead").field("attempt", &self.leading.attempt).finish_non_exhaustive()
    }
}

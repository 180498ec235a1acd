//! What both kinds of group are made of: the table of flights, and how callers lead them, follow them and leave them.

mod inside;
mod landing;
mod lead;
mod leads;
mod many;
mod roster;
mod slot;
mod tasks;
#[cfg(feature = "std")]
mod threads;
mod visit;

pub(crate) use landing::{Landing, Tie};
pub use lead::Lead;
pub(crate) use lead::Leading;
pub(crate) use leads::{Aftermath, Leads};
pub(crate) use many::{Batch, Polling, in_order, land_all, missing, refuse_length};
pub(crate) use roster::{Deposit, TaskId};
pub(crate) use slot::{Shared, Slot, Wake, flight_waker, own};
pub(crate) use tasks::{Detach, Drive, OwnedWork, Work};
pub(crate) use visit::{Departure, Visit};

use crate::call::{Defaults, OnAbandon};
use crate::flight::{Join, Seat};
use crate::outcome::FlightInfo;
use crate::primitive::{AgeClock, Arc, ThreadNumber};
use crate::table::{self, FlightId, Found, KeyHash, Table};
use core::hash::{BuildHasher, Hash};
use hashbrown::Equivalent;

/// A group, whatever its callers are.
pub(crate) struct Group<K, V, S> {
    pub(crate) table: Table<K, Arc<Slot<V>>, S>,
    pub(crate) defaults: Defaults<V>,
}

pub(crate) type Entry<K, V> = table::Entry<K, Arc<Slot<V>>>;

/// A caller about to enter the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    pub(crate) on_abandon: OnAbandon,
    pub(crate) max_attempts: u32,
}

/// Who enters, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entrant {
    /// Who is written down as the leader if it leads: this thread, or a work that it goes by.
    pub(crate) me: Option<ThreadNumber>,
    pub(crate) hash: KeyHash,
}

/// What came of entering the table.
pub(crate) enum Entered<'g, K, V, S, W> {
    Lead(Leading<'g, K, V, S>),
    /// The caller waits; what it is now is up to its kind.
    Wait(W),
    Reentrant,
}

impl<K, V, S: BuildHasher> Group<K, V, S> {
    /// Leads a new or a vacant flight of `key`, or gets a seat in one that is led. A waiter is made of the seat in two steps:
    /// `sit` under the locks, `wait` outside.
    #[inline]
    pub(crate) fn enter<'g, Q, M, T, W>(
        &'g self,
        key: &Q,
        make_key: M,
        newcomer: Newcomer,
        sit: impl FnMut(&Arc<Slot<V>>, &mut Shared<V>, Seat) -> T,
        wait: impl FnOnce(&'g Self, FlightId, T) -> W,
    ) -> Entered<'g, K, V, S, W>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        M: FnOnce() -> K,
    {
        let entrant = Entrant { me: ThreadNumber::current(), hash: self.table.hash(key) };
        self.enter_as(entrant, key, make_key, newcomer, sit, wait)
    }

    /// [`enter`](Self::enter), for who knows more.
    #[inline]
    pub(crate) fn enter_as<'g, Q, M, T, W>(
        &'g self,
        entrant: Entrant,
        key: &Q,
        make_key: M,
        newcomer: Newcomer,
        mut sit: impl FnMut(&Arc<Slot<V>>, &mut Shared<V>, Seat) -> T,
        wait: impl FnOnce(&'g Self, FlightId, T) -> W,
    ) -> Entered<'g, K, V, S, W>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        M: FnOnce() -> K,
    {
        enum Joined<W> {
            Wait(W),
            Lead { attempt: u32 },
            Reentrant,
        }
        let Newcomer { on_abandon, max_attempts } = newcomer;
        let Entrant { me, hash } = entrant;
        let found = self.table.join_or_lead(hash, key, make_key, me, |entry, counts| {
            if entry.leader.is_some_and(ThreadNumber::is_here) {
                return Joined::Reentrant;
            }
            let slot = slot_of(entry);
            let joined = slot.with(|shared| {
                if shared.leader.is_some_and(ThreadNumber::is_here) {
                    return Joined::Reentrant;
                }
                match shared.flight.join(on_abandon) {
                    Join::Wait(seat) => Joined::Wait(sit(slot, shared, seat)),
                    Join::Lead { attempt } => {
                        shared.leader = me;
                        Joined::Lead { attempt }
                    }
                    Join::Refused => unreachable!("a flight leaves the table in the critical section in which it ends"),
                }
            });
            match joined {
                Joined::Wait(_) => counts.joins += 1,
                Joined::Lead { .. } => {
                    counts.take_overs += 1;
                    note_leader(entry, me);
                }
                Joined::Reentrant => {}
            }
            joined
        });
        let (id, joined, unneeded) = match found {
            Found::Led(id) => return Entered::Lead(Leading::new(self, id, 1, max_attempts)),
            Found::Joined(id, joined, unneeded) => (id, joined, unneeded),
        };
        let entered = match joined {
            Joined::Lead { attempt } => Entered::Lead(Leading::new(self, id, attempt, max_attempts)),
            Joined::Wait(waiter) => Entered::Wait(wait(self, id, waiter)),
            Joined::Reentrant => Entered::Reentrant,
        };
        // If its destructor panics, the place in the flight is given up by that of `entered`.
        drop(unneeded);
        entered
    }

    /// See [`SyncGroup::try_lead_with`](crate::SyncGroup::try_lead_with).
    pub(crate) fn try_lead_with<Q>(&self, key: &Q, make_key: impl FnOnce() -> K) -> Option<Lead<'_, K, V, S>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        // A guard belongs to no thread, so nobody is noted as the leader.
        let found = self.table.join_or_lead(self.table.hash(key), key, make_key, None, |entry, counts| {
            // Without a slot the flight is led by somebody, alone.
            let attempt = entry.shared.as_ref()?.step(|flight| flight.try_lead())?;
            counts.take_overs += 1;
            Some(attempt)
        });
        let lead = |id, attempt| Lead::new(Leading::new(self, id, attempt, self.defaults.max_attempts));
        match found {
            Found::Led(id) => Some(lead(id, 1)),
            Found::Joined(id, attempt, unneeded) => {
                let lead = attempt.map(|attempt| lead(id, attempt));
                // But for as long as a destructor runs that may call the key: it would wait for this very lead.
                let note = |thread| lead.iter().for_each(|lead| lead.note_leader(thread));
                note(ThreadNumber::current());
                drop(unneeded);
                note(None);
                lead
            }
        }
    }

    /// See [`SyncGroup::forget`](crate::SyncGroup::forget).
    pub(crate) fn forget<Q>(&self, key: &Q) -> bool
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

    /// See [`SyncGroup::forget_unshared`](crate::SyncGroup::forget_unshared).
    pub(crate) fn forget_unshared<Q>(&self, key: &Q) -> bool
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

    pub(crate) fn waiters<Q>(&self, key: &Q) -> usize
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.table.peek(key, |entry, _| entry.map_or(0, |entry| waiters_of(entry)))
    }

    pub(crate) fn flight_info<Q>(&self, key: &Q) -> Option<FlightInfo>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let clock = self.table.clock();
        self.table.peek(key, |entry, _| entry.map(|entry| info_of(entry, clock)))
    }
}

/// Writes down which thread runs the work. The borrow of the entry is the witness that the table's lock is held.
pub(crate) fn note_leader<K, V>(entry: &mut Entry<K, V>, leader: Option<ThreadNumber>) {
    entry.leader = leader;
    if let Some(slot) = &entry.shared {
        slot.with(|shared| shared.leader = leader);
        #[cfg(all(feature = "deadlock-detection", not(loom)))]
        slot.leader.set(leader);
    }
}

/// The slot of a flight, made now if nobody has joined before.
pub(crate) fn slot_of<K, V>(entry: &mut Entry<K, V>) -> &Arc<Slot<V>> {
    let leader = entry.leader;
    entry.shared.get_or_insert_with(|| Arc::new(Slot::new(leader)))
}

fn waiters_of<K, V>(entry: &Entry<K, V>) -> usize {
    entry.shared.as_ref().map_or(0, |slot| slot.step(|flight| flight.waiters()) as usize)
}

pub(crate) fn info_of<K, V>(entry: &Entry<K, V>, clock: Option<&AgeClock>) -> FlightInfo {
    let (waiters, attempts) =
        entry.shared.as_ref().map_or((0, 1), |slot| slot.step(|flight| (flight.waiters(), flight.attempts())));
    FlightInfo {
        waiters: waiters as usize,
        attempts,
        forgotten: entry.admission.is_forgotten(),
        age: clock.and_then(|clock| entry.admission.age(clock.now()).map(|ticks| clock.duration_of(ticks))),
    }
}

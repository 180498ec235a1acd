//! Threads as callers: leading, waiting for a value, taking over, giving up.

use super::slot::{RELAY, Shared, Sight, Slot, Wake, own};
use super::{Entered, Group, Leading, note_leader};
use crate::call::Options;
use crate::error::CallError;
use crate::flight::Seat;
use crate::outcome::{Outcome, Role};
use crate::primitive::{Arc, ThreadNumber, spin_until};
use crate::table::{FlightId, Verdict};
use alloc::borrow::ToOwned;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use hashbrown::Equivalent;
use std::time::Instant;

/// How many followers of a flight may spin before they sleep.
const MOST_SPINNERS: u32 = 2;

/// A caller that has joined a flight.
struct Following<V> {
    id: FlightId,
    slot: Arc<Slot<V>>,
    seat: Seat,
}

/// How following ended.
enum Followed<V> {
    Value(Arc<V>),
    /// The caller leads now and must run this attempt.
    Lead {
        attempt: u32,
    },
    Failed(CallError),
}

/// Until when a caller waits for others.
#[derive(Clone, Copy)]
enum Deadline {
    Never,
    /// Passed before it began: no clock is read for it.
    Passed,
    At(Instant),
}

impl Deadline {
    fn after(timeout: Option<Duration>) -> Self {
        match timeout {
            None => Self::Never,
            Some(Duration::ZERO) => Self::Passed,
            // Past the end of time is never.
            Some(timeout) => Instant::now().checked_add(timeout).map_or(Self::Never, Self::At),
        }
    }

    fn has_passed(self) -> bool {
        match self {
            Self::Never => false,
            Self::Passed => true,
            Self::At(instant) => Instant::now() >= instant,
        }
    }

    fn instant(self) -> Option<Instant> {
        match self {
            Self::Never | Self::Passed => None,
            Self::At(instant) => Some(instant),
        }
    }
}

impl<K, V, S: BuildHasher> Group<K, V, S> {
    /// A thread's call that ends with a value, or does not end. See [`SyncGroup::do_call`](crate::SyncGroup::do_call).
    #[inline]
    #[track_caller]
    pub(crate) fn do_call<Q>(&self, key: &Q, work: impl FnOnce() -> V) -> V
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone,
    {
        let mut work = work;
        loop {
            let options = Options { wait_timeout: None, ..self.defaults.options() };
            match self.execute(key, || key.to_owned(), work, options) {
                Ok(outcome) => return outcome.value,
                Err((CallError::Abandoned, unused)) => work = unused,
                Err((error, _)) => error.refuse(),
            }
        }
    }

    /// A thread's call, from entering the table to its end. Gives the work back if it was not run.
    #[inline]
    pub(crate) fn execute<Q, F, M, P>(
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
        let leading = match self.enter(key, make_key, options.on_abandon, options.max_attempts, |_, seat| seat) {
            Entered::Lead(leading) => leading,
            Entered::Reentrant => return Err((CallError::Reentrant, work)),
            Entered::Wait(id, slot, seat) => match self.follow(Following { id, slot, seat }, options.wait_timeout) {
                Followed::Value(value) => {
                    return Ok(Outcome { value: own(value), role: Role::Followed, shared: true });
                }
                Followed::Lead { attempt } => Leading::new(self, id, attempt, options.max_attempts),
                Followed::Failed(error) => return Err((error, work)),
            },
        };
        // A panic in the work drops the lead, which abandons the flight, and goes on up.
        let value = work();
        Ok(leading.finish(value, options.share_if))
    }
}

impl<K, V, S> Group<K, V, S> {
    #[cold]
    fn follow(&self, following: Following<V>, timeout: Option<Duration>) -> Followed<V> {
        let Following { slot, seat, .. } = &following;
        let deadline = Deadline::after(timeout);
        // Spinning pays while few wait; a crowd would only take the cores from the leader.
        let mut spin = slot.step(|flight| flight.waiters() <= MOST_SPINNERS);
        loop {
            // Listen, look, wait, in this order: `Leading` changes the state before it notifies.
            let ticket = slot.queue.listen();
            match slot.with(|shared| shared.look(*seat)) {
                Sight::Value(value) => return relayed(slot, value),
                Sight::Abandoned => return self.give_up(&following, CallError::Abandoned),
                Sight::TakeOver => {
                    if let Some(attempt) = self.take_over(&following) {
                        return Followed::Lead { attempt };
                    }
                }
                Sight::Wait if deadline.has_passed() => return self.give_up(&following, CallError::TimedOut),
                Sight::Wait => {
                    if core::mem::take(&mut spin) {
                        spin_until(|| slot.queue.is_stale(ticket));
                    }
                    #[cfg(all(feature = "deadlock-detection", not(loom)))]
                    let _edge = match crate::deadlock::begin_wait(&slot.leader, deadline.instant().is_some()) {
                        Ok(edge) => edge,
                        Err(crate::deadlock::Cycle) => return self.give_up(&following, CallError::WouldDeadlock),
                    };
                    slot.queue.wait(ticket, deadline.instant());
                }
            }
        }
    }

    /// Takes the vacant flight over, unless another was faster.
    fn take_over(&self, following: &Following<V>) -> Option<u32> {
        let taken = self.table.update(following.id, |entry, counts| {
            let attempt = following.slot.step(|flight| flight.take_over(following.seat));
            if attempt.is_some() {
                counts.take_overs += 1;
                note_leader(entry, ThreadNumber::current());
            }
            (Verdict::Keep, attempt)
        });
        // Not in the table: it has landed, or ended, under another leader.
        taken.and_then(|(attempt, _)| attempt)
    }

    /// Leaves, and passes on whatever message it may have been the only one to get. If the flight has landed in the
    /// meantime, its value is returned after all.
    fn give_up(&self, following: &Following<V>, error: CallError) -> Followed<V> {
        let Following { id, slot, seat } = following;
        // The table's lock first: the last one to leave takes the entry away in the same critical section.
        let left = self.table.update(*id, |_, counts| {
            let left = slot.with(|shared| give_up(shared, *seat));
            counts.timeouts += u64::from(left.is_ok() && error == CallError::TimedOut);
            let last = matches!(left, Ok((true, _)));
            (if last { Verdict::Remove } else { Verdict::Keep }, left)
        });
        let (left, entry) = match left {
            Some((left, entry)) => (left, entry),
            None => (slot.with(|shared| give_up(shared, *seat)), None),
        };
        match left {
            Err(value) => return relayed(slot, value),
            Ok((_, wake)) => slot.wake(wake),
        }
        drop(entry);
        Followed::Failed(error)
    }
}

/// Passes the wake-up on before anything else: the caller may go on to run for long, and the others sleep.
fn relayed<V>(slot: &Slot<V>, value: Arc<V>) -> Followed<V> {
    slot.queue.relay(RELAY);
    Followed::Value(value)
}

/// Leaves, unless the flight has landed. Says whether the entry must go, and whom to wake.
fn give_up<V>(shared: &mut Shared<V>, seat: Seat) -> Result<(bool, Wake), Arc<V>> {
    match shared.look(seat) {
        Sight::Value(value) => Err(value),
        Sight::Wait | Sight::TakeOver | Sight::Abandoned => Ok(shared.leave(seat)),
    }
}

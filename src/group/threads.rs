//! Threads as callers: leading, waiting for a value, taking over, giving up.

use super::leads::Leads;
use super::many::{Batch, Polling, in_order, land_all, missing, refuse_length};
use super::slot::{Left, Shared, Sight, Slot, Wake, own};
use super::tasks::Wakers;
use super::{Entered, Group, Landing, Leading, Newcomer, note_leader};
use crate::call::Options;
use crate::error::CallError;
use crate::flight::Seat;
use crate::outcome::{Outcome, Role};
use crate::primitive::{Arc, ThreadNumber, spin_until};
use crate::table::{FlightId, Verdict};
use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use hashbrown::Equivalent;
use std::time::Instant;

/// How many followers of a flight may spin before they sleep.
const MOST_SPINNERS: u32 = 2;

/// A thread's place in a flight that it has joined. Dropping it leaves the flight.
pub(crate) struct Following<'g, K, V, S> {
    group: &'g Group<K, V, S>,
    id: FlightId,
    /// `None` once it has collected the value.
    landing: Option<Arc<Landing<V>>>,
    /// `None` once it has left.
    seat: Option<Seat>,
}

/// How following ended.
pub(crate) enum Followed<'g, K, V, S> {
    Value(V),
    /// The caller leads now and must run its own work.
    Lead(Leading<'g, K, V, S>),
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

    /// Runs work of the caller's own, which is no waiting: it is later by as long as that takes. No clock is read without a limit.
    fn put_off_while<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let Self::At(instant) = *self else { return work() };
        let begun = Instant::now();
        let result = work();
        *self = instant.checked_add(begun.elapsed()).map_or(Self::Never, Self::At);
        result
    }

    /// How long it is until then; `None`: for ever.
    fn left(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::Passed => Some(Duration::ZERO),
            Self::At(instant) => Some(instant.saturating_duration_since(Instant::now())),
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
        // Not in a closure: the panic says where the caller is.
        match self.do_call_until(key, Deadline::Never, work) {
            Ok(value) => value,
            Err(error) => error.refuse(),
        }
    }

    /// Never fails with [`CallError::Abandoned`]: it goes on in a fresh flight.
    #[inline]
    fn do_call_until<Q>(&self, key: &Q, deadline: Deadline, work: impl FnOnce() -> V) -> Result<V, CallError>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone,
    {
        let mut work = work;
        loop {
            let options = Options { wait_timeout: deadline.left(), ..self.defaults.options() };
            match self.execute(key, || key.to_owned(), work, options) {
                Ok(outcome) => return Ok(outcome.value),
                Err((CallError::Abandoned, unused)) => work = unused,
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// See [`SyncGroup::run_many`](crate::SyncGroup::run_many). `me`: the number under which it leads its keys. Where tasks may be polled
    /// when a key lands, it is not the thread's own: they may call the next key.
    #[track_caller]
    pub(crate) fn run_many<'q, Q>(
        &self,
        me: Option<ThreadNumber>,
        keys: impl IntoIterator<Item = &'q Q>,
        wait_timeout: Option<Duration>,
        mut work: impl FnMut(Vec<&'q Q>) -> Vec<V>,
    ) -> Result<Vec<V>, CallError>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        V: Clone,
    {
        // The leads last: if the work panics, they are dropped first.
        let Batch { order, keys, waits, leads } = self.enter_many(me, keys, sit, Following::new)?;
        let mut values: Vec<Option<V>> = keys.iter().map(|_| None).collect();
        if !leads.is_empty() {
            let polling = Polling::begin(me);
            let loaded = work(missing(&keys, &leads));
            drop(polling);
            land_all(self, me, leads, loaded, &mut values);
        }
        self.wait_for_all(me, &keys, waits, wait_timeout, &mut work, &mut values)?;
        // Before there is a result, which would leak if the destructor panicked at the end of this function.
        drop(work);
        Ok(in_order(&order, values))
    }

    /// The values of the keys that a batch waits for. Apart, so that batches within batches take less of the stack.
    #[inline(never)]
    #[track_caller]
    fn wait_for_all<'q, Q>(
        &self,
        me: Option<ThreadNumber>,
        keys: &[&'q Q],
        waits: Vec<(usize, Following<'_, K, V, S>)>,
        wait_timeout: Option<Duration>,
        work: &mut impl FnMut(Vec<&'q Q>) -> Vec<V>,
        values: &mut [Option<V>],
    ) -> Result<(), CallError>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone,
    {
        let mut deadline = Deadline::after(wait_timeout);
        for (index, following) in waits {
            let key = keys[index];
            let leading = match following.wait_until(deadline, self.defaults.max_attempts) {
                Followed::Value(value) => {
                    values[index] = Some(value);
                    continue;
                }
                Followed::Lead(leading) => leading,
                Followed::Failed(CallError::Abandoned) => {
                    let until = deadline;
                    // Out here: if there are too many, they are dropped once the flight has been left.
                    let mut loaded = Vec::new();
                    let work = || {
                        loaded = deadline.put_off_while(|| work(Vec::from([key])));
                        single(&mut loaded)
                    };
                    values[index] = Some(self.do_call_until(key, until, work)?);
                    continue;
                }
                Followed::Failed(error) => return Err(error),
            };
            let mut leads = Leads::none();
            leads.push(index, leading);
            let loaded = deadline.put_off_while(|| work(Vec::from([key])));
            land_all(self, me, leads, loaded, values);
        }
        Ok(())
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
        let Options { on_abandon, max_attempts, .. } = options;
        let newcomer = Newcomer { on_abandon, max_attempts };
        let leading = match self.enter(key, make_key, newcomer, sit, Following::new) {
            Entered::Lead(leading) => leading,
            Entered::Reentrant => {
                // As below.
                drop(options.share_if);
                return Err((CallError::Reentrant, work));
            }
            Entered::Wait(following) => match following.wait(options.wait_timeout, options.max_attempts) {
                Followed::Value(value) => {
                    // What was not needed goes first: the value would leak if a destructor panicked at the end of this function.
                    drop((work, options.share_if));
                    return Ok(Outcome { value, role: Role::Followed, shared: true });
                }
                Followed::Lead(leading) => leading,
                Followed::Failed(error) => {
                    drop(options.share_if);
                    return Err((error, work));
                }
            },
        };
        // A panic in the work drops the lead, which abandons the flight, and goes on up.
        let value = work();
        Ok(leading.finish(value, |value| options.share_if.is_none_or(|share_if| share_if(value))))
    }
}

impl<'g, K, V, S> Following<'g, K, V, S> {
    fn new(group: &'g Group<K, V, S>, id: FlightId, (seat, landing): (Seat, Arc<Landing<V>>)) -> Self {
        Self { group, id, landing: Some(landing), seat: Some(seat) }
    }

    fn landing(&self) -> &Landing<V> {
        self.landing.as_ref().expect("a thread that has collected the value looks no more")
    }

    fn slot(&self) -> &Slot<V> {
        &self.landing().slot
    }

    /// The value that was delivered to all that take over.
    fn collect(mut self) -> V
    where
        V: Clone,
    {
        self.seat = None;
        Landing::collect(self.landing.take().expect("it collects once"))
    }

    /// Waits until the flight lands, or this thread must lead, or the time is up.
    #[cold]
    pub(crate) fn wait(self, timeout: Option<Duration>, max_attempts: u32) -> Followed<'g, K, V, S>
    where
        V: Clone,
    {
        self.wait_until(Deadline::after(timeout), max_attempts)
    }

    fn wait_until(mut self, deadline: Deadline, max_attempts: u32) -> Followed<'g, K, V, S>
    where
        V: Clone,
    {
        let seat = self.seat.expect("it waits once");
        let (mut spin, wakers) = self.slot().with(|shared| {
            // A thread cannot drive. Those who were told to may all be parked, beside a task that sleeps and could.
            let wakers = if shared.tasks.is_runnable() { shared.tasks.take_two_wakers() } else { Wakers::default() };
            // Spinning pays while few wait; a crowd would only take the cores from the leader.
            (shared.flight.waiters() <= MOST_SPINNERS, wakers)
        });
        Wake::<V>::tasks(wakers).send();
        loop {
            // Listen, look, wait, in this order: `Leading` changes the state before it notifies.
            let ticket = self.landing().queue.listen();
            match self.slot().with(|shared| shared.look(seat, seat.takes_over())) {
                Sight::Landed => return Followed::Value(self.collect()),
                Sight::Value(value) => {
                    self.seat = None;
                    // As in `own`: it may be the last that holds the flight.
                    drop(self);
                    return Followed::Value(own(value));
                }
                Sight::Abandoned => return self.give_up(CallError::Abandoned),
                Sight::TakeOver => {
                    if let Some(attempt) = self.take_over(seat) {
                        self.seat = None;
                        return Followed::Lead(Leading::new(self.group, self.id, attempt, max_attempts));
                    }
                }
                Sight::Wait if deadline.has_passed() => return self.give_up(CallError::TimedOut),
                Sight::Wait => {
                    if core::mem::take(&mut spin) {
                        spin_until(|| self.landing().queue.is_stale(ticket));
                    }
                    #[cfg(all(feature = "deadlock-detection", not(loom)))]
                    let _edge = match crate::deadlock::begin_wait(&self.slot().leader, deadline.instant().is_some()) {
                        Ok(edge) => edge,
                        Err(crate::deadlock::Cycle) => return self.give_up(CallError::WouldDeadlock),
                    };
                    self.landing().queue.wait(ticket, deadline.instant());
                    // Without the flight's lock, on which a crowd would meet.
                    if seat.takes_over() && self.landing().has_value() {
                        return Followed::Value(self.collect());
                    }
                }
            }
        }
    }

    /// Takes the vacant flight over, unless another was faster.
    fn take_over(&self, seat: Seat) -> Option<u32> {
        let taken = self.group.table.update(self.id, |entry, counts| {
            let attempt = self.slot().step(|flight| flight.take_over(seat));
            if attempt.is_some() {
                counts.take_overs += 1;
                note_leader(entry, ThreadNumber::current());
            }
            (Verdict::Keep, attempt)
        });
        // Not in the table: it has landed, or ended, under another leader.
        taken.and_then(|(attempt, _)| attempt)
    }

    /// Leaves. If the flight has landed in the meantime, its value is returned after all.
    fn give_up(mut self, error: CallError) -> Followed<'g, K, V, S>
    where
        V: Clone,
    {
        match self.leave(error == CallError::TimedOut) {
            Some(value) => {
                // As in `wait_until`.
                drop(self);
                Followed::Value(own(value))
            }
            None => Followed::Failed(error),
        }
    }

    /// Leaves, and passes on whatever message it may have been the only one to get. Returns the value if the flight has
    /// landed.
    fn leave(&mut self, timed_out: bool) -> Option<Arc<V>> {
        let seat = self.seat.take()?;
        // The table's lock first: the last one to leave takes the entry away in the same critical section.
        let left = self.group.table.update(self.id, |_, counts| {
            let left = self.slot().with(|shared| give_up(shared, seat));
            counts.timeouts += u64::from(left.is_ok() && timed_out);
            let last = left.as_ref().is_ok_and(|left| left.remove);
            (if last { Verdict::Remove } else { Verdict::Keep }, left)
        });
        let (left, entry) = match left {
            Some((left, entry)) => (left, entry),
            None => (self.slot().with(|shared| give_up(shared, seat)), None),
        };
        match left {
            Err(Some(value)) => return Some(value),
            Err(None) => return self.landing.take().map(Landing::collect_shared),
            Ok(Left { wake, value, .. }) => {
                wake.send();
                drop(entry);
                drop(value);
            }
        }
        None
    }
}

impl<K, V, S> Drop for Following<'_, K, V, S> {
    fn drop(&mut self) {
        let _unwanted = self.leave(false);
    }
}

/// Takes out what the work of a batch returned for one key.
#[track_caller]
fn single<V>(loaded: &mut Vec<V>) -> V {
    match loaded.len() {
        1 => loaded.remove(0),
        got => refuse_length(1, got),
    }
}

/// What a thread takes along from a flight that it joins, under its lock.
fn sit<V>(slot: &Arc<Slot<V>>, shared: &mut Shared<V>, seat: Seat) -> (Seat, Arc<Landing<V>>) {
    (seat, shared.tasks.landing(slot))
}

/// Leaves, unless the flight has landed. `Err(None)`: its value is in its landing.
fn give_up<V>(shared: &mut Shared<V>, seat: Seat) -> Result<Left<V>, Option<Arc<V>>> {
    match shared.look(seat, seat.takes_over()) {
        Sight::Value(value) => Err(Some(value)),
        Sight::Landed => Err(None),
        Sight::Wait | Sight::TakeOver | Sight::Abandoned => Ok(shared.leave(seat)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::SyncGroup;
    use crate::error::CallError;
    use crate::primitive::Arc;
    use core::time::Duration;
    use std::thread;
    use std::time::Instant;

    /// CASES F5. Only from in here can a waiter be woken for nothing without luck.
    #[test]
    fn wake_ups_for_nothing_neither_prolong_nor_shorten_a_timed_wait() {
        // A waiter has to be woken before its time is up. Where the machine is too busy for that, another round is made.
        let limits = [50, 1_000, 8_000].map(Duration::from_millis);
        assert!(limits.into_iter().any(is_woken_in_its_time), "no waiter was woken within {limits:?}");
    }

    /// Wakes a waiter for nothing until its time is up. Whether it was woken before.
    fn is_woken_in_its_time(limit: Duration) -> bool {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        let lead = group.try_lead(&1).expect("no flight is on");
        let mut woken = 0;
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let begun = Instant::now();
                let result = group.call(&1).wait_timeout(limit).run(|| 1);
                (result.map(|outcome| outcome.value), begun.elapsed())
            });
            let slot = loop {
                match group.group.table.peek(&1, |entry, _| entry.and_then(|entry| entry.shared.clone())) {
                    Some(slot) => break slot,
                    None => thread::yield_now(),
                }
            };
            let begun = Instant::now();
            while !waiter.is_finished() {
                assert!(begun.elapsed() < Duration::from_secs(30), "each wake-up has set the time limit back");
                slot.with(|shared| shared.tasks.landing(&slot)).queue.notify_all();
                woken += 1;
                // Long enough for the waiter to go back to sleep, and shorter than its limit.
                thread::sleep(limit / 10);
            }
            let (result, waited) = waiter.join().expect("it does not panic");
            assert_eq!(result, Err(CallError::TimedOut));
            assert!(waited >= limit, "{waited:?}");
            // Where followers find the value holds it too.
            assert_eq!(Arc::strong_count(&slot), 3, "the waiter has left nothing behind");
            drop(lead);
            assert_eq!(Arc::strong_count(&slot), 1, "nor has the flight");
        });
        assert_eq!(group.in_flight(), 0);
        woken > 0
    }
}

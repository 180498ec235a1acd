//! A task's place in a flight: waiting, driving the flight's work, leaving.

use crate::call::OnAbandon;
use crate::error::CallError;
use crate::flight::Seat;
use crate::group::{
    Aftermath, Departure, Deposit, Detach, Drive, Entry, Group, Landing, Leading, Slot, TaskId, Tie, Visit, Wake, Work,
    flight_waker, note_leader, slot_of,
};
use crate::outcome::Role;
use crate::primitive::{Arc, ThreadNumber, catch_panic, discard_panic, resume_panic};
use crate::table::{FlightId, Verdict};
use alloc::boxed::Box;
use core::any::Any;
use core::mem;
use core::ops::Deref;
use core::task::{Context, Poll, Waker};

/// The place of a task in a flight that it joined, or whose work it made. Dropping it leaves the flight.
pub(crate) struct Place<G, K, V, S>
where
    G: Deref<Target = Group<K, V, S>>,
{
    group: G,
    id: FlightId,
    /// `None` once it has collected the value.
    tie: Option<Tie<V>>,
    /// `None` once it has left.
    task: Option<TaskId>,
    on_abandon: OnAbandon,
    /// The attempt that this task's own closure made, if it did.
    made: Option<u32>,
    /// Whether no caller is behind it: there is nobody whose closure could take over, or to whom a panic could go.
    detached: bool,
}

/// How a place in a flight ended.
pub(crate) enum Arrival<V> {
    /// The value that everybody gets, this task and others.
    Landed(Arc<V>, Role),
    /// A value that this task alone gets.
    Own(V, Role),
    /// The task leads now, and must run its own work as this attempt.
    TookOver {
        attempt: u32,
        /// The waker that it had left, to be dropped once the lead is safe.
        waker: Option<Waker>,
    },
    Failed(CallError),
    /// The work that this task's closure made has panicked while another task drove it.
    Panicked(Box<dyn Any + Send>),
}

impl<G, K, V, S> Place<G, K, V, S>
where
    G: Deref<Target = Group<K, V, S>>,
{
    /// The place of a newcomer that got a seat.
    pub(crate) fn waiting(group: G, id: FlightId, (task, tie): (TaskId, Tie<V>), on_abandon: OnAbandon) -> Self {
        Self { group, id, tie: Some(tie), task: Some(task), on_abandon, made: None, detached: false }
    }

    /// The place of a driver that goes on after the last caller has left, and that was put in the list by that caller.
    pub(crate) fn detached(group: G, id: FlightId, slot: Arc<Slot<V>>, task: TaskId) -> Self {
        Self {
            group,
            id,
            tie: Some(Tie::Slot(slot)),
            task: Some(task),
            on_abandon: OnAbandon::Fail,
            made: None,
            detached: true,
        }
    }

    /// The place of a caller that leads, and that is to make work for the flight.
    pub(crate) fn leading(group: G, leading: Leading<'_, K, V, S>, on_abandon: OnAbandon) -> Self
    where
        V: Send + Sync + 'static,
    {
        let attempt = leading.attempt();
        let id = leading.into_id();
        let placed = group.table.update(id, |entry, _| {
            note_leader(entry, None);
            let slot = Arc::clone(slot_of(entry));
            let task = slot.with(|shared| {
                shared.leader = ThreadNumber::current();
                shared.tasks.make(on_abandon)
            });
            (Verdict::Keep, (slot, task))
        });
        let ((slot, task), _) = placed.expect("a flight that is led is in the table");
        let tie = Some(Tie::Slot(slot));
        Self { group, id, tie, task: Some(task), on_abandon, made: Some(attempt), detached: false }
    }

    /// Gives work that this task has made and polled to the flight. `forward` is told the flight's waker, and says whether the
    /// work has woken since its poll began.
    pub(crate) fn store(&mut self, work: Work<V>, forward: impl FnOnce(Waker) -> bool, cx: &mut Context<'_>)
    where
        V: Send + Sync + 'static,
    {
        let task = self.task.expect("it leads");
        let has_woken = forward(flight_waker(self.slot()));
        self.end_poll(task, work, has_woken, cx);
    }

    /// The value, if this task follows and the flight has landed; without a lock.
    #[inline]
    pub(crate) fn collect(&mut self) -> Option<V>
    where
        V: Clone,
    {
        // Both out of the call's hands first: cloning is the user's code, and if it panics, nothing is left to leave or to keep.
        let Tie::Landing(landing) = self.tie.take_if(|tie| tie.has_value())? else { return None };
        self.task = None;
        Some(Landing::collect(landing))
    }

    /// Waits for the flight, or drives its work if it can go on and nobody else is at it. Polls the work once at most.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Arrival<V>> {
        let me = ThreadNumber::current();
        let task = self.task.expect("polled after it has ended");
        // Cloned and dropped outside the lock: wakers are the user's code.
        let mut waker = None;
        loop {
            let follows = matches!(self.tie, Some(Tie::Landing(_)));
            let visit = self.slot().with(|shared| shared.visit(task, cx.waker(), &mut waker, me, follows));
            let arrival = match visit {
                Visit::Wait => return Poll::Pending,
                Visit::LeaveWaker => {
                    waker = Some(cx.waker().clone());
                    continue;
                }
                Visit::Landed => {
                    self.task = None;
                    let Some(Tie::Landing(landing)) = self.tie.take() else { unreachable!("it follows") };
                    Arrival::Landed(Landing::collect_shared(landing), self.role())
                }
                Visit::Value(value) => {
                    self.task = None;
                    Arrival::Landed(value, self.role())
                }
                Visit::Deposit(deposit) => {
                    self.task = None;
                    match *deposit {
                        Deposit::Value(value) => Arrival::Own(value, self.role()),
                        Deposit::Panic(payload) => Arrival::Panicked(payload),
                    }
                }
                Visit::TakeOver(seat) => {
                    // Before the flight is this task's: if the destructor panics, nobody would lead it.
                    drop(waker.take());
                    match self.take_over(task, seat) {
                        Some((attempt, waker)) => Arrival::TookOver { attempt, waker },
                        None => continue,
                    }
                }
                Visit::Failed(error) => {
                    self.leave();
                    Arrival::Failed(error)
                }
                Visit::Drive(drive) => match self.drive(task, drive, cx) {
                    Poll::Ready(Some(arrival)) => arrival,
                    Poll::Ready(None) => continue,
                    Poll::Pending => return Poll::Pending,
                },
            };
            // Not left to the end of this function: what has arrived would leak if the destructor panicked there.
            drop(waker);
            return Poll::Ready(arrival);
        }
    }

    pub(crate) fn id(&self) -> FlightId {
        self.id
    }

    fn slot(&self) -> &Arc<Slot<V>> {
        self.tie.as_ref().expect("a task that has collected the value looks no more").slot()
    }

    fn role(&self) -> Role {
        match self.made {
            None => Role::Followed,
            Some(1) => Role::Led,
            Some(_) => Role::TookOver,
        }
    }

    /// The vacant flight's lead, unless another was faster. The task leaves the list: it leads like a thread until it has
    /// made work for the flight.
    fn take_over(&mut self, task: TaskId, seat: Seat) -> Option<(u32, Option<Waker>)> {
        let taken = self.group.table.update(self.id, |entry, counts| {
            let taken = self.slot().with(|shared| {
                let attempt = shared.flight.take_over(seat)?;
                Some((attempt, shared.tasks.remove(task)))
            });
            if taken.is_some() {
                counts.take_overs += 1;
                note_leader(entry, ThreadNumber::current());
            }
            (Verdict::Keep, taken)
        });
        let (attempt, left) = taken?.0?;
        self.task = None;
        Some((attempt, left.and_then(|(waker, _)| waker)))
    }

    /// Polls the work. `Ready(None)`: look again, the flight is vacant.
    #[inline]
    fn drive(&mut self, task: TaskId, drive: Drive<V>, cx: &mut Context<'_>) -> Poll<Option<Arrival<V>>> {
        let Drive { mut work, is_maker } = drive;
        let last = work.is_last_attempt();
        let waker = work.make_waker(self.slot());
        let mut flight_cx = Context::from_waker(&waker);
        let polled = self.guarded(task, last, is_maker, || work.as_mut().poll(&mut flight_cx));
        let arrival = match polled {
            Err(arrival) => arrival,
            Ok(Poll::Pending) => {
                self.end_poll(task, work, false, cx);
                return Poll::Pending;
            }
            Ok(Poll::Ready(value)) => match self.land_alone(task, value) {
                Ok(arrival) => Some(arrival),
                Err(value) => match self.guarded(task, last, is_maker, || last || work.as_mut().shares(&value)) {
                    Ok(true) => Some(self.land_shared(task, value)),
                    Ok(false) => self.keep(task, value, is_maker),
                    Err(arrival) => arrival,
                },
            },
        };
        drop_ended(work, is_maker);
        Poll::Ready(arrival)
    }

    /// Puts the work back after a poll that did not end it.
    fn end_poll(&mut self, task: TaskId, work: Work<V>, has_woken: bool, cx: &mut Context<'_>) {
        // It goes back whatever happens: the waker is the user's code.
        let mine = catch_panic(|| cx.waker().clone());
        let (wakers, unneeded) = self.slot().with(|shared| {
            shared.leader = None;
            let unneeded = mine.map(|mine| shared.tasks.keep_waker(task, mine));
            (shared.tasks.end_poll(work, has_woken), unneeded)
        });
        Wake::<V>::tasks(wakers).send();
        if let Err(payload) = unneeded {
            resume_panic(payload);
        }
    }

    /// Runs code that belongs to the work. If it panics, the flight is vacant; the panic goes on up to the caller whose closure
    /// made the work, and is left for it if another drives.
    #[inline]
    fn guarded<R>(
        &mut self,
        task: TaskId,
        last: bool,
        is_maker: bool,
        f: impl FnOnce() -> R,
    ) -> Result<R, Option<Arrival<V>>> {
        #[cfg(all(feature = "deadlock-detection", not(loom)))]
        let f = {
            let leader = Arc::clone(&self.slot().leader);
            move || {
                let _run = crate::deadlock::begin_run(&leader);
                f()
            }
        };
        if is_maker {
            let abandons = Abandons { place: self, last };
            let result = f();
            mem::forget(abandons);
            return Ok(result);
        }
        catch_panic(f).map_err(|payload| match self.step_down(task, last, Deposit::Panic(payload)) {
            // No caller will hear of it, so whoever runs the detached driver shall.
            Some(Deposit::Panic(payload)) if self.detached => {
                self.leave();
                Some(Arrival::Panicked(payload))
            }
            Some(Deposit::Panic(payload)) => {
                discard_panic(payload);
                None
            }
            _ => None,
        })
    }

    /// Lands with the value, if nobody is there to share it with.
    #[inline]
    fn land_alone(&mut self, task: TaskId, value: V) -> Result<Arrival<V>, V> {
        let role = self.role();
        let alone = self.group.table.update(self.id, |_, _| {
            let alone = self.slot().with(|shared| shared.land_alone(task));
            (if alone.is_some() { Verdict::Remove } else { Verdict::Keep }, alone)
        });
        if matches!(alone, Some((None, _))) {
            return Err(value);
        }
        self.task = None;
        drop(alone);
        Ok(Arrival::Own(value, role))
    }

    #[cold]
    fn land_shared(&mut self, task: TaskId, value: V) -> Arrival<V> {
        self.task = None;
        // Its own hold on where the value goes, if it has one, or the last to collect would not know that it is the last.
        let slot = Arc::clone(self.slot());
        self.tie = Some(Tie::Slot(slot));
        let value = Arc::new(value);
        let kept = Arc::clone(&value);
        let landed = self.group.table.update(self.id, |_, _| {
            let landed = self.slot().with(|shared| {
                shared.leader = None;
                shared.tasks.end_work();
                let me = shared.tasks.remove(task);
                (shared.land(value), me)
            });
            (Verdict::Remove, landed)
        });
        let ((landed, me), entry) = landed.expect("a flight that is led is in the table");
        let unshared = landed.send();
        // What is the user's is dropped before there is a value to return: one that is under way leaks if a destructor panics.
        drop(entry);
        drop(me);
        // Whoever was there has left meanwhile, or the value is in good hands.
        let Some(unshared) = unshared else { return Arrival::Landed(kept, self.role()) };
        drop(kept);
        match Arc::try_unwrap(unshared) {
            Ok(value) => Arrival::Own(value, self.role()),
            Err(_) => unreachable!("nobody else has seen it"),
        }
    }

    /// The value is not to be shared: it goes to the task whose closure made the work, or if that one has left, to this one.
    /// `None`: it went to another, and the flight is vacant.
    fn keep(&mut self, task: TaskId, value: V, is_maker: bool) -> Option<Arrival<V>> {
        if is_maker {
            let role = self.role();
            self.abandon(task, false);
            return Some(Arrival::Own(value, role));
        }
        match self.step_down(task, false, Deposit::Value(value)) {
            Some(Deposit::Value(value)) => {
                self.leave();
                Some(Arrival::Own(value, self.role()))
            }
            _ => None,
        }
    }

    /// Leaves the flight without a value for the others.
    fn abandon(&mut self, task: TaskId, last: bool) {
        self.task = None;
        let left = self.group.table.update(self.id, |_, counts| {
            counts.abandons += 1;
            let (remove, wake, me) = self.slot().with(|shared| {
                shared.leader = None;
                shared.tasks.end_work();
                let me = shared.tasks.remove(task);
                let (remove, wake) = shared.abandon(last);
                (remove, wake, me)
            });
            (if remove { Verdict::Remove } else { Verdict::Keep }, (wake, me))
        });
        if let Some(((wake, _me), entry)) = left {
            wake.send();
            drop(entry);
        }
    }

    /// Gives the lead up but stays. What the work left behind goes to the task whose closure made it, which is counted out;
    /// it comes back if that one has left.
    fn step_down(&mut self, task: TaskId, last: bool, deposit: Deposit<V>) -> Option<Deposit<V>> {
        let on_abandon = self.on_abandon;
        let mut deposit = Some(deposit);
        let left = self.group.table.update(self.id, |_, counts| {
            counts.abandons += 1;
            let (remove, wake) = self.slot().with(|shared| {
                shared.leader = None;
                shared.tasks.end_work();
                let maker = shared.deposit(task, &mut deposit);
                let (remove, wake) = shared.step_down(task, on_abandon, last);
                (remove, wake.and(maker))
            });
            (if remove { Verdict::Remove } else { Verdict::Keep }, wake)
        });
        if let Some((wake, entry)) = left {
            wake.send();
            drop(entry);
        }
        deposit
    }

    fn leave(&mut self) {
        let Some((departure, entry)) = self.depart() else { return };
        let Departure { wake, rest, detach, .. } = departure;
        // First of all, as what is left is the user's code too.
        if let Some(detach) = detach {
            self.go_on_detached(detach);
        }
        wake.send();
        drop(entry);
        drop(rest);
    }

    /// Leaves, for a batch: all but what is to go on detached is left to `aftermath`.
    pub(crate) fn leave_into(&mut self, aftermath: &mut Aftermath<K, V>) -> Option<(Detach<V>, TaskId)> {
        let (departure, entry) = self.depart()?;
        aftermath.wake(departure.wake);
        aftermath.drop_entry(entry);
        aftermath.drop_departed(departure.rest);
        departure.detach
    }

    /// If the spawner panics, it drops the driver, which leaves the flight like any last caller.
    pub(crate) fn go_on_detached(&self, (detach, driver): (Detach<V>, TaskId)) {
        if let Err(payload) = catch_panic(|| detach(self.id, Arc::clone(self.slot()), driver)) {
            discard_panic(payload);
        }
    }

    #[inline]
    fn depart(&mut self) -> Option<(Departure<V>, Option<Entry<K, V>>)> {
        let task = self.task.take()?;
        if self.tie.as_ref().is_none_or(Tie::has_value) {
            return None;
        }
        let left = self.group.table.update(self.id, |_, counts| {
            let departure = self.slot().with(|shared| shared.depart(task));
            counts.abandons += u64::from(departure.abandoned);
            (if departure.remove { Verdict::Remove } else { Verdict::Keep }, departure)
        });
        Some(left.unwrap_or_else(|| (self.slot().with(|shared| shared.depart(task)), None)))
    }
}

impl<G, K, V, S> Drop for Place<G, K, V, S>
where
    G: Deref<Target = Group<K, V, S>>,
{
    fn drop(&mut self) {
        self.leave();
    }
}

/// Drops work that has ended. Where there is a way to stop a panic, only its maker goes down with it.
fn drop_ended<V>(work: Work<V>, is_maker: bool) {
    if is_maker {
        drop(work);
    } else if let Err(payload) = catch_panic(|| drop(work)) {
        discard_panic(payload);
    }
}

/// Abandons the flight when it is dropped: its driver's poll is panicking.
struct Abandons<'p, G, K, V, S>
where
    G: Deref<Target = Group<K, V, S>>,
{
    place: &'p mut Place<G, K, V, S>,
    last: bool,
}

impl<G, K, V, S> Drop for Abandons<'_, G, K, V, S>
where
    G: Deref<Target = Group<K, V, S>>,
{
    fn drop(&mut self) {
        if let Some(task) = self.place.task {
            self.place.abandon(task, self.last);
        }
    }
}

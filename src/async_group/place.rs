//! A task's place in a flight: waiting, driving the flight's work, leaving.

use crate::call::OnAbandon;
use crate::error::CallError;
use crate::flight::Seat;
use crate::group::{
    Deposit, Detach, Drive, Group, Leading, OwnedWork, Shared, Sight, Slot, Task, TaskId, Wake, Work, flight_waker,
    note_leader, slot_of,
};
use crate::outcome::Role;
use crate::primitive::{Arc, ThreadNumber, catch_panic};
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
    slot: Arc<Slot<V>>,
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
    /// The value that everybody gets.
    Landed(Arc<V>, Role),
    /// The same, for the task that drove the work to its end.
    Drove {
        value: Arc<V>,
        role: Role,
        shared: bool,
    },
    /// A value that is for this task alone.
    Own(V, Role),
    /// The task leads now, and must run its own work as this attempt.
    TookOver {
        attempt: u32,
    },
    Failed(CallError),
    /// The work that this task's closure made has panicked while another task drove it.
    Panicked(Box<dyn Any + Send>),
}

/// What a task finds when it is polled.
enum Visit<V> {
    Wait,
    Drive(Drive<V>),
    Value(Arc<V>),
    TakeOver(Seat),
    Deposit(Deposit<V>),
    Failed(CallError),
}

impl<G, K, V, S> Place<G, K, V, S>
where
    G: Deref<Target = Group<K, V, S>>,
{
    /// The place of a newcomer that got a seat.
    pub(crate) fn waiting(group: G, id: FlightId, slot: Arc<Slot<V>>, task: TaskId, on_abandon: OnAbandon) -> Self {
        Self { group, id, slot, task: Some(task), on_abandon, made: None, detached: false }
    }

    /// The place of a driver that goes on after the last caller has left, and that was put in the list by that caller.
    pub(crate) fn detached(group: G, id: FlightId, slot: Arc<Slot<V>>, task: TaskId) -> Self {
        Self { group, id, slot, task: Some(task), on_abandon: OnAbandon::Fail, made: None, detached: true }
    }

    /// Gives the flight that `leading` leads its work, and the leader a place in it, from where it drives.
    pub(crate) fn driving<F>(
        group: G,
        leading: Leading<'_, K, V, S>,
        future: F,
        on_abandon: OnAbandon,
        detach: Option<Detach<V>>,
    ) -> Self
    where
        F: OwnedWork<V> + Send + 'static,
        V: Send + Sync + 'static,
    {
        let (attempt, max_attempts) = leading.attempts();
        let work = Work { future: Box::pin(future), attempt, max_attempts, detach };
        let id = leading.into_id();
        let stored = group.table.update(id, |entry, _| {
            entry.leader = None;
            let slot = Arc::clone(slot_of(entry));
            let task = slot.with(|shared| {
                shared.leader = None;
                let task = shared.tasks.insert(Task { waker: None, on_abandon, seat: None });
                shared.tasks.store(work, task, flight_waker);
                task
            });
            (Verdict::Keep, (slot, task))
        });
        let ((slot, task), _) = stored.expect("a flight that is led is in the table");
        Self { group, id, slot, task: Some(task), on_abandon, made: Some(attempt), detached: false }
    }

    /// Waits for the flight, or drives its work if it can go on and nobody else is at it. Polls the work once at most.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Arrival<V>> {
        let me = ThreadNumber::current();
        loop {
            let task = self.task.expect("polled after it has ended");
            // Cloned and dropped outside the lock: wakers are the user's code.
            let mut wakers = [Some(cx.waker().clone()), None];
            let visit = self.slot.with(|shared| shared.visit(task, &mut wakers, me));
            drop(wakers);
            let arrival = match visit {
                Visit::Wait => return Poll::Pending,
                Visit::Value(value) => {
                    self.task = None;
                    Arrival::Landed(value, self.role())
                }
                Visit::Deposit(deposit) => {
                    self.task = None;
                    match deposit {
                        Deposit::Value(value) => Arrival::Own(value, self.role()),
                        Deposit::Panic(payload) => Arrival::Panicked(payload),
                    }
                }
                Visit::TakeOver(seat) => match self.take_over(task, seat) {
                    Some(attempt) => Arrival::TookOver { attempt },
                    None => continue,
                },
                Visit::Failed(error) => {
                    self.leave();
                    Arrival::Failed(error)
                }
                Visit::Drive(drive) => match self.drive(task, drive) {
                    Poll::Ready(Some(arrival)) => arrival,
                    Poll::Ready(None) => continue,
                    Poll::Pending => return Poll::Pending,
                },
            };
            return Poll::Ready(arrival);
        }
    }

    pub(crate) fn id(&self) -> FlightId {
        self.id
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
    fn take_over(&mut self, task: TaskId, seat: Seat) -> Option<u32> {
        let taken = self.group.table.update(self.id, |entry, counts| {
            let taken = self.slot.with(|shared| {
                let attempt = shared.flight.take_over(seat)?;
                Some((attempt, shared.tasks.remove(task)))
            });
            if taken.is_some() {
                counts.take_overs += 1;
                note_leader(entry, ThreadNumber::current());
            }
            (Verdict::Keep, taken)
        });
        let ((attempt, _task), _) = taken.and_then(|(taken, entry)| Some((taken?, entry)))?;
        self.task = None;
        Some(attempt)
    }

    /// Polls the work. `Ready(None)`: look again, the flight is vacant.
    fn drive(&mut self, task: TaskId, drive: Drive<V>) -> Poll<Option<Arrival<V>>> {
        let Drive { mut work, make_waker, is_maker } = drive;
        let last = work.attempt >= work.max_attempts;
        let waker = make_waker(&self.slot);
        let mut cx = Context::from_waker(&waker);
        let polled = if is_maker {
            // A panic goes on up, to the caller whose closure made the work; on its way it abandons the flight.
            let abandons = Abandons { place: self, last };
            let polled = work.future.as_mut().poll(&mut cx).map(|value| {
                let shares = last || work.future.as_mut().shares(&value);
                (value, shares)
            });
            mem::forget(abandons);
            polled
        } else {
            let polled = catch_panic(|| {
                work.future.as_mut().poll(&mut cx).map(|value| {
                    let shares = last || work.future.as_mut().shares(&value);
                    (value, shares)
                })
            });
            match polled {
                Ok(polled) => polled,
                Err(payload) => {
                    let unclaimed = self.step_down(task, last, Deposit::Panic(payload));
                    drop(work);
                    return Poll::Ready(match unclaimed {
                        // No caller will hear of it, so whoever runs the detached driver shall.
                        Some(Deposit::Panic(payload)) if self.detached => {
                            self.leave();
                            Some(Arrival::Panicked(payload))
                        }
                        _ => None,
                    });
                }
            }
        };
        match polled {
            Poll::Pending => {
                let wake = self.slot.with(|shared| {
                    shared.leader = None;
                    shared.tasks.end_poll(work)
                });
                self.slot.wake(Wake::tasks(wake));
                Poll::Pending
            }
            Poll::Ready((value, true)) => {
                let arrival = self.land(task, value);
                drop(work);
                Poll::Ready(Some(arrival))
            }
            Poll::Ready((value, false)) => {
                let arrival = self.keep(task, value, is_maker);
                drop(work);
                Poll::Ready(arrival)
            }
        }
    }

    fn land(&mut self, task: TaskId, value: V) -> Arrival<V> {
        self.task = None;
        let role = self.role();
        let value = Arc::new(value);
        let kept = Arc::clone(&value);
        let landed = self.group.table.update(self.id, |entry, _| {
            note_leader(entry, None);
            let landed = self.slot.with(|shared| {
                shared.tasks.end_work();
                let me = shared.tasks.remove(task);
                (shared.land(value), me)
            });
            (Verdict::Remove, landed)
        });
        let (((unshared, wake), _me), entry) = landed.expect("a flight that is led is in the table");
        let shared = unshared.is_none();
        self.slot.wake(wake);
        drop(unshared);
        drop(entry);
        Arrival::Drove { value: kept, role, shared }
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
        let left = self.group.table.update(self.id, |entry, counts| {
            counts.abandons += 1;
            note_leader(entry, None);
            let (remove, wake, me) = self.slot.with(|shared| {
                shared.tasks.end_work();
                let me = shared.tasks.remove(task);
                let (remove, wake) = shared.abandon(last);
                (remove, wake, me)
            });
            (if remove { Verdict::Remove } else { Verdict::Keep }, (wake, me))
        });
        if let Some(((wake, _me), entry)) = left {
            self.slot.wake(wake);
            drop(entry);
        }
    }

    /// Gives the lead up but stays. What the work left behind goes to the task whose closure made it, which is counted out;
    /// it comes back if that one has left.
    fn step_down(&mut self, task: TaskId, last: bool, deposit: Deposit<V>) -> Option<Deposit<V>> {
        let on_abandon = self.on_abandon;
        let mut deposit = Some(deposit);
        let left = self.group.table.update(self.id, |entry, counts| {
            counts.abandons += 1;
            note_leader(entry, None);
            let (remove, wake) = self.slot.with(|shared| {
                shared.tasks.end_work();
                let maker = shared.deposit(task, &mut deposit);
                let (seat, (remove, wake)) = shared.step_down(on_abandon, last);
                shared.tasks.get(task).seat = Some(seat);
                (remove, wake.and(maker))
            });
            (if remove { Verdict::Remove } else { Verdict::Keep }, wake)
        });
        if let Some((wake, entry)) = left {
            self.slot.wake(wake);
            drop(entry);
        }
        deposit
    }

    fn leave(&mut self) {
        let Some(task) = self.task.take() else { return };
        let left = self.group.table.update(self.id, |entry, counts| {
            let departure = self.slot.with(|shared| shared.depart(task));
            counts.abandons += u64::from(departure.abandoned);
            if departure.abandoned {
                note_leader(entry, None);
            }
            (if departure.remove { Verdict::Remove } else { Verdict::Keep }, departure)
        });
        let (departure, entry) = match left {
            Some((departure, entry)) => (departure, entry),
            None => (self.slot.with(|shared| shared.depart(task)), None),
        };
        let Departure { wake, rest, detach, .. } = departure;
        self.slot.wake(wake);
        drop(entry);
        drop(rest);
        if let Some((detach, driver)) = detach {
            // If the spawner panics, it drops the driver, which leaves the flight like any last caller.
            let spawned = catch_panic(|| detach(self.id, Arc::clone(&self.slot), driver));
            drop(spawned);
        }
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

/// What a task leaves behind when it leaves.
struct Departure<V> {
    remove: bool,
    abandoned: bool,
    wake: Wake,
    /// The user's things, to be dropped outside all locks.
    rest: (Option<Task>, Option<Work<V>>, Option<Deposit<V>>),
    /// What spawns the driver that goes on, and its place.
    detach: Option<(Detach<V>, TaskId)>,
}

impl<V> Shared<V> {
    /// What `task` finds. The first of `wakers` is left here if it waits or drives; what is in `wakers` afterwards is of no
    /// more use, and is to be dropped outside the lock.
    fn visit(&mut self, task: TaskId, wakers: &mut [Option<Waker>; 2], me: Option<ThreadNumber>) -> Visit<V> {
        if let Some(deposit) = self.tasks.take_deposit(task) {
            wakers[1] = self.tasks.remove(task).and_then(|task| task.waker);
            return Visit::Deposit(deposit);
        }
        if let Some(seat) = self.tasks.get(task).seat {
            match self.look(seat) {
                Sight::Value(value) => {
                    wakers[1] = self.tasks.remove(task).and_then(|task| task.waker);
                    return Visit::Value(value);
                }
                Sight::Abandoned => return Visit::Failed(CallError::Abandoned),
                Sight::TakeOver => return Visit::TakeOver(seat),
                Sight::Wait => {}
            }
        }
        let kept = &mut self.tasks.get(task).waker;
        let known = matches!((&*kept, &wakers[0]), (Some(kept), Some(new)) if kept.will_wake(new));
        if !known {
            mem::swap(kept, &mut wakers[0]);
        }
        if let Some(drive) = self.tasks.begin_poll(task, &mut self.flight) {
            self.leader = me;
            return Visit::Drive(drive);
        }
        if me.is_some() && self.leader == me && !self.tasks.is_driver(task) {
            return Visit::Failed(CallError::Reentrant);
        }
        Visit::Wait
    }

    /// Counts the maker of the work out, if it is inside and not `driver`, and leaves `deposit` for it. Returns its waker.
    fn deposit(&mut self, driver: TaskId, deposit: &mut Option<Deposit<V>>) -> Option<Waker> {
        let maker = self.tasks.take_other_maker(driver)?;
        let seat = self.tasks.get(maker).seat.take()?;
        let (_, _) = self.leave(seat);
        self.tasks.leave_deposit(maker, deposit.take()?);
        self.tasks.get(maker).waker.take()
    }

    fn depart(&mut self, task: TaskId) -> Departure<V> {
        let deposit = self.tasks.take_deposit(task);
        let mut departure = Departure {
            remove: false,
            abandoned: false,
            wake: Wake::default(),
            rest: (None, None, deposit),
            detach: None,
        };
        let seat = self.tasks.get(task).seat;
        match seat {
            Some(seat) => {
                departure.rest.0 = self.tasks.remove(task);
                (departure.remove, departure.wake) = self.leave(seat);
                // It may have been one of the two that were woken to drive.
                if self.tasks.is_runnable() {
                    departure.wake = mem::take(&mut departure.wake).and(self.tasks.take_two_wakers().into_iter());
                }
            }
            None if self.tasks.is_driver(task) => {
                departure.rest.0 = self.tasks.remove(task);
                match self.tasks.hand_over(&mut self.flight) {
                    Ok(wakers) => departure.wake = Wake::tasks(wakers),
                    // In the same critical section: the flight is never without a caller, so no newcomer finds it doomed.
                    Err(Some(mut work)) if work.detach.is_some() => {
                        let detach = work.detach.take();
                        departure.detach = detach.map(|detach| (detach, self.tasks.detach(work)));
                    }
                    Err(work) => {
                        let last = work.as_ref().is_some_and(|work| work.attempt >= work.max_attempts);
                        departure.rest.1 = work;
                        departure.abandoned = true;
                        (departure.remove, departure.wake) = self.abandon(last);
                    }
                }
            }
            // Its deposit has been taken out; it was counted out when that was made.
            None => departure.rest.0 = self.tasks.remove(task),
        }
        departure
    }
}

//! The asynchronous callers of a flight, and the work that the flight owns and they drive.
//!
//! The work is driven by one task, the driver: it is the flight's leader. Any other may take its place: when the work is
//! runnable, whoever is polled first drives it and is the driver from then on. When the work wakes, the driver and one
//! standby are woken, a different one each time; so a driver that is not polled cannot hold up the flight.

use super::slot::Slot;
use crate::call::OnAbandon;
use crate::flight::{Flight, Seat};
use crate::primitive::Arc;
use crate::table::FlightId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use slab::Slab;

/// Work that a flight owns: polled by whichever task drives it.
pub(crate) trait OwnedWork<V> {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<V>;

    /// Whether the value may be shared. Asked once at most, when the work has ended.
    fn shares(self: Pin<&mut Self>, value: &V) -> bool;
}

/// The work in its box, with what travels with it.
pub(crate) struct Work<V> {
    pub(crate) future: Pin<Box<dyn OwnedWork<V> + Send>>,
    /// Which attempt of the flight it is.
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
    /// Where the work goes on when its last caller leaves; without it, it is dropped then.
    pub(crate) detach: Option<Detach<V>>,
}

/// Spawns a driver for the work of a flight, in which it already has a place.
pub(crate) type Detach<V> = Box<dyn FnOnce(FlightId, Arc<Slot<V>>, TaskId) + Send>;

/// Where a task's place is kept: the first caller's beside the list, so that a lone caller makes no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskId(usize);

/// An asynchronous caller.
#[derive(Debug)]
pub(crate) struct Task {
    /// Taken when the task is woken; it brings a new one with its next poll.
    pub(crate) waker: Option<Waker>,
    pub(crate) on_abandon: OnAbandon,
    /// Its place among the waiters; `None` while it drives.
    pub(crate) seat: Option<Seat>,
}

/// What the driver leaves for the task whose closure made the work.
pub(crate) enum Deposit<V> {
    /// A value that is not to be shared.
    Value(V),
    /// The payload of a panic.
    Panic(Box<dyn Any + Send>),
}

/// The asynchronous side of a flight.
pub(crate) struct Tasks<V> {
    first: Option<Task>,
    rest: Slab<Task>,
    /// The task that leads: it drives the work. `None` if the flight is vacant, or led by a thread, a guard or inline work.
    driver: Option<TaskId>,
    /// The task whose closure made the work, while it is inside.
    maker: Option<TaskId>,
    stage: Stage<V>,
    deposits: Vec<(TaskId, Deposit<V>)>,
    /// From where to look for the next standby.
    standby: usize,
    make_waker: Option<fn(&Arc<Slot<V>>) -> Waker>,
}

/// Where the flight's own work is.
enum Stage<V> {
    /// There is none: the leader runs its work itself, or has not made it yet, or there is no leader.
    None,
    /// Here, waiting to be polled.
    Stored { work: Work<V>, runnable: bool },
    /// With the driver, which polls it right now. Whether it has woken meanwhile.
    Polled { woken: bool },
}

/// Wakers taken out to be woken, after all locks are released.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    few: [Option<Waker>; 2],
    many: Vec<Waker>,
}

impl Wakers {
    pub(crate) fn extend(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.many.extend(wakers);
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = Waker> {
        self.few.into_iter().flatten().chain(self.many)
    }
}

/// Work taken out to be polled.
pub(crate) struct Drive<V> {
    pub(crate) work: Work<V>,
    pub(crate) make_waker: fn(&Arc<Slot<V>>) -> Waker,
    /// Whether the driver's own closure made it.
    pub(crate) is_maker: bool,
}

impl<V> Tasks<V> {
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            rest: Slab::new(),
            driver: None,
            maker: None,
            stage: Stage::None,
            deposits: Vec::new(),
            standby: 0,
            make_waker: None,
        }
    }

    pub(crate) fn insert(&mut self, task: Task) -> TaskId {
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(task);
            return TaskId(0);
        }
        TaskId(1 + self.rest.insert(task))
    }

    pub(crate) fn get(&mut self, id: TaskId) -> &mut Task {
        self.slot(id.0).expect("a task is in the list until it removes itself")
    }

    fn slot(&mut self, index: usize) -> Option<&mut Task> {
        match index {
            0 => self.first.as_mut(),
            _ => self.rest.get_mut(index - 1),
        }
    }

    /// Takes a task out, to be dropped outside the lock. Whoever calls this has dealt with its seat or its lead.
    pub(crate) fn remove(&mut self, id: TaskId) -> Option<Task> {
        if self.maker == Some(id) {
            self.maker = None;
        }
        match id.0 {
            0 => self.first.take(),
            index => self.rest.try_remove(index - 1),
        }
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// How many tasks have a seat: all but the driver, and those that were counted out and have not fetched their deposit.
    pub(crate) fn waiting(&self) -> u32 {
        (self.len() - usize::from(self.driver.is_some()) - self.deposits.len()) as u32
    }

    pub(crate) fn is_driver(&self, id: TaskId) -> bool {
        self.driver == Some(id)
    }

    /// Gives the flight its work, made by `maker`, which drives it.
    pub(crate) fn store(&mut self, work: Work<V>, maker: TaskId, make_waker: fn(&Arc<Slot<V>>) -> Waker) {
        self.driver = Some(maker);
        self.maker = Some(maker);
        self.stage = Stage::Stored { work, runnable: true };
        self.make_waker = Some(make_waker);
    }

    /// Lets a detached driver, which no task is yet, go on with work whose last caller has just left.
    pub(crate) fn detach(&mut self, work: Work<V>) -> TaskId {
        let driver = self.insert(Task { waker: None, on_abandon: OnAbandon::Fail, seat: None });
        self.driver = Some(driver);
        self.stage = Stage::Stored { work, runnable: true };
        driver
    }

    /// Takes the work out for `task` to poll, if it is here and can go on. The task drives from then on.
    pub(crate) fn begin_poll(&mut self, task: TaskId, flight: &mut Flight) -> Option<Drive<V>> {
        let Stage::Stored { runnable: true, .. } = self.stage else { return None };
        let make_waker = self.make_waker?;
        let Stage::Stored { work, .. } = mem::replace(&mut self.stage, Stage::Polled { woken: false }) else {
            return None;
        };
        if let (Some(former), Some(seat)) = (self.driver, self.get(task).seat.take()) {
            let on_abandon = self.get(former).on_abandon;
            let seat = flight.change_leader(seat, on_abandon);
            self.get(former).seat = Some(seat);
        }
        self.driver = Some(task);
        Some(Drive { work, make_waker, is_maker: self.maker == Some(task) })
    }

    /// Puts the work back after a poll that did not end it. If it has woken meanwhile, the driver and a standby must be.
    pub(crate) fn end_poll(&mut self, work: Work<V>) -> Wakers {
        let woken = matches!(self.stage, Stage::Polled { woken: true });
        self.stage = Stage::Stored { work, runnable: woken };
        if woken { self.take_two_wakers() } else { Wakers::default() }
    }

    /// Whether the work waits for somebody to poll it.
    pub(crate) fn is_runnable(&self) -> bool {
        matches!(self.stage, Stage::Stored { runnable: true, .. })
    }

    /// The work has ended, one way or the other: the driver drives no more.
    pub(crate) fn end_work(&mut self) {
        self.stage = Stage::None;
        self.driver = None;
    }

    /// The maker of the work, if it is inside and is not `driver`: the work is its no more.
    pub(crate) fn take_other_maker(&mut self, driver: TaskId) -> Option<TaskId> {
        self.maker.take().filter(|&maker| maker != driver)
    }

    /// The work calls for a poll: whom to wake.
    pub(crate) fn wake(&mut self) -> Wakers {
        match &mut self.stage {
            Stage::None => Wakers::default(),
            Stage::Polled { woken } => {
                *woken = true;
                Wakers::default()
            }
            Stage::Stored { runnable: true, .. } => Wakers::default(),
            Stage::Stored { runnable, .. } => {
                *runnable = true;
                self.take_two_wakers()
            }
        }
    }

    /// The driver leaves, and its work stays: another task becomes the driver, and the work must be polled, because the one
    /// who was told to may be the one who left. `None` if there is no other task: the work comes out, to be dropped.
    pub(crate) fn hand_over(&mut self, flight: &mut Flight) -> Result<Wakers, Option<Work<V>>> {
        self.driver = None;
        // One that has no waker has been woken and may be on its way; but it may as well be parked.
        let heir = self.next_heir(|task| task.waker.is_some()).or_else(|| self.next_heir(|_| true));
        match (heir, &mut self.stage) {
            (Some(heir), Stage::Stored { runnable, .. }) => {
                *runnable = true;
                let seat = self.get(heir).seat.take().expect("a task that does not drive has a seat");
                flight.hand_over(seat);
                self.driver = Some(heir);
                Ok(Wakers { few: [self.get(heir).waker.take(), None], many: Vec::new() })
            }
            _ => match mem::replace(&mut self.stage, Stage::None) {
                Stage::Stored { work, .. } => Err(Some(work)),
                Stage::None | Stage::Polled { .. } => Err(None),
            },
        }
    }

    pub(crate) fn take_all_wakers(&mut self) -> Wakers {
        let many = self.rest.iter_mut().filter_map(|(_, task)| task.waker.take()).collect();
        let first = self.first.as_mut().and_then(|task| task.waker.take());
        Wakers { few: [first, None], many }
    }

    /// The driver's waker, if it has one, and that of a standby: of another task of the executor, or one of them would do for
    /// both. Two standbys if the driver has none.
    pub(crate) fn take_two_wakers(&mut self) -> Wakers {
        let first = match self.driver.and_then(|driver| self.get(driver).waker.take()) {
            Some(waker) => Some(waker),
            None => self.take_standby(|_| true),
        };
        let second = first.as_ref().and_then(|first| self.take_standby(|waker| !waker.will_wake(first)));
        Wakers { few: [first, second], many: Vec::new() }
    }

    fn take_standby(&mut self, will_do: impl Fn(&Waker) -> bool) -> Option<Waker> {
        let standby = self.next_task(|task| task.waker.as_ref().is_some_and(&will_do))?;
        self.get(standby).waker.take()
    }

    /// The next task that can take over from the driver.
    fn next_heir(&mut self, will_do: impl Fn(&Task) -> bool) -> Option<TaskId> {
        self.next_task(|task| task.seat.is_some() && will_do(task))
    }

    /// The next task, round and round, that will do and does not drive.
    fn next_task(&mut self, will_do: impl Fn(&Task) -> bool) -> Option<TaskId> {
        let end = 1 + self.rest.capacity();
        let start = self.standby;
        let found = (start..end)
            .chain(0..start.min(end))
            .find(|&index| self.driver != Some(TaskId(index)) && self.slot(index).is_some_and(|task| will_do(task)))?;
        self.standby = found + 1;
        Some(TaskId(found))
    }

    pub(crate) fn leave_deposit(&mut self, maker: TaskId, deposit: Deposit<V>) {
        self.deposits.push((maker, deposit));
    }

    pub(crate) fn take_deposit(&mut self, task: TaskId) -> Option<Deposit<V>> {
        let index = self.deposits.iter().position(|(maker, _)| *maker == task)?;
        Some(self.deposits.swap_remove(index).1)
    }
}

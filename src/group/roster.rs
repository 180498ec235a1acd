//! The asynchronous callers of a flight: who is inside, who waits, who has left a waker.
//!
//! A list of our own and not an event of `event-listener`'s, for two reasons. Who is woken beside the driver must be a task
//! with another waker than the driver's, so the wakers must be in view. And that crate (5.4.2) wakes, replaces and drops
//! wakers while it holds a lock: an executor that polls inside `wake`, or a waker whose destructor calls the group, would
//! meet it. Here wakers are taken out under the flight's lock, and used or dropped when it has been released.

use crate::call::OnAbandon;
use crate::flight::Seat;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::num::NonZeroU32;
use core::task::Waker;
use slab::Slab;

/// An asynchronous caller.
pub(crate) struct Task<V> {
    /// Taken when the task is woken; it brings a new one with its next poll.
    waker: Option<Waker>,
    pub(crate) on_abandon: OnAbandon,
    /// Its place among the waiters; `None` while it drives, and when it was counted out with a deposit.
    seat: Option<Seat>,
    /// Its neighbours in the queue that it is in, if it has a seat.
    before: Option<TaskId>,
    after: Option<TaskId>,
    pub(crate) deposit: Option<Box<Deposit<V>>>,
}

impl<V> Task<V> {
    fn new(on_abandon: OnAbandon) -> Self {
        Self { waker: None, on_abandon, seat: None, before: None, after: None, deposit: None }
    }

    pub(crate) fn into_waker(self) -> Option<Waker> {
        self.waker
    }
}

/// What the driver leaves for the task whose closure made the work.
pub(crate) enum Deposit<V> {
    /// A value that is not to be shared.
    Value(V),
    /// The payload of a panic.
    Panic(Box<dyn Any + Send>),
}

/// Where a task's place is kept: the first caller's beside the list, so that a lone caller makes no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskId(NonZeroU32);

impl TaskId {
    pub(crate) const FIRST: Self = Self(NonZeroU32::MIN);

    /// The place in the list, for any but the first.
    fn rest(index: usize) -> Self {
        let id = u32::try_from(index).ok().and_then(|index| Self::FIRST.0.checked_add(index)?.checked_add(1));
        Self(id.expect("a flight has fewer than 2^32 callers"))
    }

    /// The place in the list; `None` for the first.
    fn index(self) -> Option<usize> {
        (self.0.get() as usize - 1).checked_sub(1)
    }
}

/// The tasks inside a flight.
pub(crate) struct Roster<V> {
    first: Option<Task<V>>,
    /// The other tasks, while there are any.
    rest: Option<Box<Slab<Task<V>>>>,
    /// How many tasks have a seat.
    waiting: u32,
    /// Those with a seat that have left a waker, the one that has slept longest at the front.
    asleep: Queue,
    /// Those with a seat that have left none: they were woken and may be on their way, or may be parked.
    awake: Queue,
}

#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    front: Option<TaskId>,
    back: Option<TaskId>,
}

impl Queue {
    const EMPTY: Self = Self { front: None, back: None };
}

impl<V> Roster<V> {
    pub(crate) const fn new() -> Self {
        Self { first: None, rest: None, waiting: 0, asleep: Queue::EMPTY, awake: Queue::EMPTY }
    }

    pub(crate) fn insert(&mut self, on_abandon: OnAbandon, seat: Option<Seat>) -> TaskId {
        let task = Task::new(on_abandon);
        let id = if self.first.is_none() && self.rest.is_none() {
            self.first = Some(task);
            TaskId::FIRST
        } else {
            TaskId::rest(self.rest.get_or_insert_default().insert(task))
        };
        if let Some(seat) = seat {
            self.sit(id, seat);
        }
        id
    }

    /// Takes a task out, to be dropped outside the lock. Whoever calls this has dealt with its seat or its lead.
    pub(crate) fn remove(&mut self, id: TaskId) -> Option<Task<V>> {
        self.stand_up(id);
        let Some(index) = id.index() else { return self.first.take() };
        let rest = self.rest.as_mut()?;
        let task = rest.try_remove(index);
        if rest.is_empty() {
            // The room of a crowd goes with the last of it.
            self.rest = None;
        }
        task
    }

    /// # Panics
    ///
    /// If the task has been removed.
    pub(crate) fn get(&mut self, id: TaskId) -> &mut Task<V> {
        self.find(id).expect("a task is in the list until it removes itself")
    }

    fn find(&mut self, id: TaskId) -> Option<&mut Task<V>> {
        match id.index() {
            None => self.first.as_mut(),
            Some(index) => self.rest.as_mut()?.get_mut(index),
        }
    }

    /// How many tasks have a seat.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting
    }

    pub(crate) fn seat(&mut self, id: TaskId) -> Option<Seat> {
        self.get(id).seat
    }

    pub(crate) fn sit(&mut self, id: TaskId, seat: Seat) {
        self.get(id).seat = Some(seat);
        self.waiting += 1;
        self.enqueue(id);
    }

    pub(crate) fn stand_up(&mut self, id: TaskId) -> Option<Seat> {
        let seat = self.find(id)?.seat?;
        self.dequeue(id);
        self.get(id).seat = None;
        self.waiting -= 1;
        Some(seat)
    }

    /// Whether the waker that is there would wake the same as `current`.
    pub(crate) fn is_known(&mut self, id: TaskId, current: &Waker) -> bool {
        self.get(id).waker.as_ref().is_some_and(|kept| kept.will_wake(current))
    }

    /// Leaves `waker` there, unless the one that is there would wake the same; returns the one that is of no more use.
    pub(crate) fn keep_waker(&mut self, id: TaskId, waker: Waker) -> Option<Waker> {
        match &self.get(id).waker {
            Some(kept) if kept.will_wake(&waker) => Some(waker),
            _ => self.set_waker(id, Some(waker)),
        }
    }

    pub(crate) fn take_waker(&mut self, id: TaskId) -> Option<Waker> {
        self.set_waker(id, None)
    }

    fn set_waker(&mut self, id: TaskId, waker: Option<Waker>) -> Option<Waker> {
        let task = self.get(id);
        if task.seat.is_none() || task.waker.is_some() == waker.is_some() {
            return core::mem::replace(&mut task.waker, waker);
        }
        self.dequeue(id);
        let former = core::mem::replace(&mut self.get(id).waker, waker);
        self.enqueue(id);
        former
    }

    /// The waker of the waiter that has slept longest, of those whose waker will do.
    pub(crate) fn wake_one(&mut self, mut will_do: impl FnMut(&Waker) -> bool) -> Option<Waker> {
        let id = self.first_of(self.asleep, |task| task.waker.as_ref().is_some_and(&mut will_do))?;
        self.take_waker(id)
    }

    /// The wakers of all, first the first caller's.
    pub(crate) fn wake_all(&mut self) -> (Option<Waker>, Vec<Waker>) {
        let first = self.first.as_mut().and_then(|task| task.waker.take());
        let mut others = Vec::new();
        if let Some(rest) = &mut self.rest {
            others.reserve_exact(rest.len());
            others.extend(rest.iter_mut().filter_map(|(_, task)| task.waker.take()));
        }
        let asleep = core::mem::take(&mut self.asleep);
        match (self.awake.back, asleep.front) {
            (Some(back), Some(front)) => {
                self.get(back).after = Some(front);
                self.get(front).before = Some(back);
                self.awake.back = asleep.back;
            }
            (None, Some(_)) => self.awake = asleep,
            (_, None) => {}
        }
        (first, others)
    }

    /// A waiter whose seat will do: one that sleeps, since one that does not may be parked; if there is none, any.
    pub(crate) fn heir(&mut self, mut will_do: impl FnMut(Seat) -> bool) -> Option<TaskId> {
        let mut will_do = |task: &Task<V>| task.seat.is_some_and(&mut will_do);
        self.first_of(self.asleep, &mut will_do).or_else(|| self.first_of(self.awake, &mut will_do))
    }

    fn first_of(&mut self, queue: Queue, mut will_do: impl FnMut(&Task<V>) -> bool) -> Option<TaskId> {
        let mut next = queue.front;
        while let Some(id) = next {
            let task = self.get(id);
            if will_do(task) {
                break;
            }
            next = task.after;
        }
        next
    }

    fn queue_of(&mut self, has_waker: bool) -> &mut Queue {
        if has_waker { &mut self.asleep } else { &mut self.awake }
    }

    /// To the back of its queue, which its waker names.
    fn enqueue(&mut self, id: TaskId) {
        let has_waker = self.get(id).waker.is_some();
        let before = self.queue_of(has_waker).back.replace(id);
        let task = self.get(id);
        (task.before, task.after) = (before, None);
        match before {
            Some(before) => self.get(before).after = Some(id),
            None => self.queue_of(has_waker).front = Some(id),
        }
    }

    fn dequeue(&mut self, id: TaskId) {
        let task = self.get(id);
        let (has_waker, before, after) = (task.waker.is_some(), task.before.take(), task.after.take());
        match before {
            Some(before) => self.get(before).after = after,
            None => self.queue_of(has_waker).front = after,
        }
        match after {
            Some(after) => self.get(after).before = before,
            None => self.queue_of(has_waker).back = before,
        }
    }
}

//! The asynchronous callers of a flight that has several: who is inside, who waits, who has left a waker.
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
use core::mem;
use core::num::NonZeroU32;
use core::task::Waker;
use slab::Slab;

/// An asynchronous caller, without what is the user's: so a crowd is let go without a look at each.
#[derive(Clone, Copy, Debug)]
struct Task {
    on_abandon: OnAbandon,
    /// Its place among the waiters; `None` while it drives, and when it was counted out with a deposit.
    seat: Option<Seat>,
    /// Its neighbours in the queue, if it is in there.
    before: Option<TaskId>,
    after: Option<TaskId>,
}

impl Task {
    fn takes_over(&self) -> bool {
        self.seat.is_some() && self.on_abandon == OnAbandon::TakeOver
    }
}

/// What a task that has left had in the list, to be dropped outside the lock.
pub(crate) type Belongings<V> = (Option<Waker>, Option<Box<Deposit<V>>>);

/// What the driver leaves for the task whose closure made the work.
pub(crate) enum Deposit<V> {
    /// A value that is not to be shared.
    Value(V),
    /// The payload of a panic.
    Panic(Box<dyn Any + Send>),
}

/// Where a task's place in the list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskId(NonZeroU32);

impl TaskId {
    pub(crate) const FIRST: Self = Self(NonZeroU32::MIN);

    fn at(index: usize) -> Self {
        let id = u32::try_from(index).ok().and_then(|index| Self::FIRST.0.checked_add(index));
        Self(id.expect("a flight has fewer than 2^32 callers"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// How many tasks a list may have room for after all but one of them have left.
const ROOM_KEPT: usize = 8;

/// The tasks inside a flight.
pub(crate) struct Roster<V> {
    tasks: Slab<Task>,
    /// The waker that each has left: taken when the task is woken, it brings a new one with its next poll.
    wakers: Vec<Option<Waker>>,
    /// For tasks that were counted out: next to none.
    deposits: Vec<(TaskId, Box<Deposit<V>>)>,
    /// How many tasks have a seat.
    waiting: u32,
    /// Those who sleep: they have a seat and have left a waker. The one that has slept longest is at the front.
    asleep: Queue,
    /// Whether all who sleep are known to have the same waker, as calls of one task have.
    are_alike: bool,
    /// From where to look, round and round, for one that does not sleep.
    next_awake: usize,
    /// Whether all have been woken for the last time, so that nobody asks any more who sleeps.
    is_closed: bool,
    /// How many of those who are still in the list have left since.
    gone: usize,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    front: Option<TaskId>,
    back: Option<TaskId>,
}

impl Queue {
    const EMPTY: Self = Self { front: None, back: None };
}

impl<V> Roster<V> {
    pub(crate) const fn new() -> Self {
        Self {
            tasks: Slab::new(),
            wakers: Vec::new(),
            deposits: Vec::new(),
            waiting: 0,
            asleep: Queue::EMPTY,
            are_alike: true,
            next_awake: 0,
            is_closed: false,
            gone: 0,
        }
    }

    pub(crate) fn insert(&mut self, on_abandon: OnAbandon, seat: Option<Seat>) -> TaskId {
        let id = TaskId::at(self.tasks.insert(Task { on_abandon, seat: None, before: None, after: None }));
        if self.wakers.len() <= id.index() {
            self.wakers.push(None);
        }
        if let Some(seat) = seat {
            self.sit(id, seat);
        }
        id
    }

    /// Takes a task out. Whoever calls this has dealt with its seat or its lead.
    pub(crate) fn remove(&mut self, id: TaskId) -> Option<Belongings<V>> {
        let task = self.tasks.try_remove(id.index())?;
        let waker = self.waker(id).take();
        let deposit = self.take_deposit(id);
        if self.tasks.len() <= 1 && self.tasks.capacity() > ROOM_KEPT {
            self.tasks.shrink_to_fit();
            self.wakers.truncate(self.tasks.capacity());
            self.wakers.shrink_to_fit();
        }
        if self.is_closed {
            self.drop_the_gone();
        }
        self.waiting -= u32::from(task.seat.is_some());
        if task.seat.is_some() && waker.is_some() {
            self.unlink(task.before, task.after);
        }
        Some((waker, deposit))
    }

    /// Lets a task go that has a seat, after all were woken for the last time. Taking it out would cost each of a crowd more than
    /// all else that it does here, so the list goes with the last of them.
    pub(crate) fn let_go(&mut self) {
        self.gone += 1;
        self.drop_the_gone();
    }

    /// Drops the list if nobody in it is left. Nothing in it is the user's: they have left no waker, and no deposit is theirs.
    fn drop_the_gone(&mut self) {
        if self.gone == self.tasks.len() {
            self.tasks = Slab::new();
            self.wakers = Vec::new();
            self.gone = 0;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// # Panics
    ///
    /// If the task has been removed.
    fn get(&mut self, id: TaskId) -> &mut Task {
        self.tasks.get_mut(id.index()).expect("a task is in the list until it removes itself")
    }

    fn waker(&mut self, id: TaskId) -> &mut Option<Waker> {
        &mut self.wakers[id.index()]
    }

    fn sleeps(&self, id: TaskId) -> bool {
        self.seat(id).is_some() && self.wakers[id.index()].is_some()
    }

    pub(crate) fn on_abandon(&mut self, id: TaskId) -> OnAbandon {
        self.get(id).on_abandon
    }

    pub(crate) fn leave_deposit(&mut self, id: TaskId, deposit: Deposit<V>) {
        self.deposits.push((id, Box::new(deposit)));
    }

    pub(crate) fn take_deposit(&mut self, id: TaskId) -> Option<Box<Deposit<V>>> {
        let found = self.deposits.iter().position(|&(task, _)| task == id)?;
        Some(self.deposits.swap_remove(found).1)
    }

    /// How many tasks have a seat.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting
    }

    pub(crate) fn seat(&self, id: TaskId) -> Option<Seat> {
        self.tasks.get(id.index())?.seat
    }

    pub(crate) fn sit(&mut self, id: TaskId, seat: Seat) {
        self.get(id).seat = Some(seat);
        self.waiting += 1;
        if self.sleeps(id) {
            self.enqueue(id);
        }
    }

    pub(crate) fn stand_up(&mut self, id: TaskId) -> Option<Seat> {
        let seat = self.tasks.get_mut(id.index())?.seat.take()?;
        self.waiting -= 1;
        if self.waker(id).is_some() {
            self.dequeue(id);
        }
        Some(seat)
    }

    /// Whether the waker that is there would wake the same as `current`.
    pub(crate) fn is_known(&mut self, id: TaskId, current: &Waker) -> bool {
        self.waker(id).as_ref().is_some_and(|kept| kept.will_wake(current))
    }

    /// Leaves `waker` there, unless the one that is there would wake the same; returns the one that is of no more use.
    pub(crate) fn keep_waker(&mut self, id: TaskId, waker: Waker) -> Option<Waker> {
        match self.waker(id) {
            Some(kept) if kept.will_wake(&waker) => Some(waker),
            _ => self.set_waker(id, Some(waker)),
        }
    }

    pub(crate) fn take_waker(&mut self, id: TaskId) -> Option<Waker> {
        self.set_waker(id, None)
    }

    fn set_waker(&mut self, id: TaskId, waker: Option<Waker>) -> Option<Waker> {
        let slept = self.sleeps(id);
        let former = mem::replace(self.waker(id), waker);
        match (slept, self.sleeps(id)) {
            (false, true) => self.enqueue(id),
            (true, false) => self.dequeue(id),
            // Another one than before.
            (true, true) => self.are_alike = false,
            (false, false) => {}
        }
        former
    }

    /// The waker of the waiter that has slept longest.
    pub(crate) fn wake_one(&mut self) -> Option<Waker> {
        let id = self.asleep.front?;
        self.take_waker(id)
    }

    /// The waker of the waiter that has slept longest, of those whose waker would not wake the same as `other`.
    pub(crate) fn wake_another(&mut self, other: &Waker) -> Option<Waker> {
        let is_another = |waker: &Option<Waker>| waker.as_ref().is_some_and(|waker| !waker.will_wake(other));
        let front = self.asleep.front?;
        if is_another(self.waker(front)) {
            return self.take_waker(front);
        }
        if self.are_alike {
            return None;
        }
        let found = self.asleep(|roster, id| is_another(&roster.wakers[id.index()]));
        match found {
            // Who was passed over goes to the back, or each time many may have to be.
            Some(found) => self.rotate_to(found),
            None => self.are_alike = true,
        }
        self.take_waker(found?)
    }

    /// Puts a sleeper and all behind it before those who are in front of it.
    fn rotate_to(&mut self, id: TaskId) {
        let (Some(passed), Queue { front: Some(front), back: Some(back) }) = (self.get(id).before.take(), self.asleep)
        else {
            return;
        };
        self.get(passed).after = None;
        self.get(back).after = Some(front);
        self.get(front).before = Some(back);
        self.asleep = Queue { front: Some(id), back: Some(passed) };
    }

    /// Lets all go, who wait and take over, and gives out their wakers.
    pub(crate) fn let_all_go(&mut self) -> Vec<Option<Waker>> {
        self.tasks = Slab::new();
        self.asleep = Queue::EMPTY;
        self.waiting = 0;
        mem::take(&mut self.wakers)
    }

    /// Lets those go who wait and take over, unless one is the maker of the work. All have been woken.
    pub(crate) fn let_followers_go(&mut self, maker: Option<TaskId>) {
        self.tasks.retain(|index, task| {
            let goes = task.takes_over() && maker != Some(TaskId::at(index));
            self.waiting -= u32::from(goes);
            !goes
        });
    }

    /// Whether the task waits, and takes over if it must.
    pub(crate) fn takes_over(&self, id: TaskId) -> bool {
        self.tasks.get(id.index()).is_some_and(Task::takes_over)
    }

    pub(crate) fn all_wait(&self) -> bool {
        self.waiting as usize == self.tasks.len()
    }

    /// Nobody asks any more who sleeps.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    /// The wakers of all.
    pub(crate) fn wake_all(&mut self) -> Vec<Option<Waker>> {
        self.asleep = Queue::EMPTY;
        self.wakers.iter_mut().map(Option::take).collect()
    }

    /// A waiter whose seat will do: one that sleeps, since one that does not may be parked; if there is none, any.
    pub(crate) fn heir(&mut self, mut will_do: impl FnMut(Seat) -> bool) -> Option<TaskId> {
        let mut will_do = |roster: &Self, id| roster.seat(id).is_some_and(&mut will_do);
        self.asleep(&mut will_do).or_else(|| self.awake(&mut will_do))
    }

    fn awake(&mut self, mut will_do: impl FnMut(&Self, TaskId) -> bool) -> Option<TaskId> {
        let end = self.tasks.capacity();
        let start = self.next_awake.min(end);
        let mut round = (start..end).chain(0..start);
        let found = round.find(|&index| will_do(self, TaskId::at(index)))?;
        self.next_awake = found + 1;
        Some(TaskId::at(found))
    }

    fn asleep(&mut self, mut will_do: impl FnMut(&Self, TaskId) -> bool) -> Option<TaskId> {
        let mut next = self.asleep.front;
        while let Some(id) = next {
            if will_do(self, id) {
                break;
            }
            next = self.get(id).after;
        }
        next
    }

    /// To the back of the queue.
    fn enqueue(&mut self, id: TaskId) {
        if self.is_closed {
            return;
        }
        let before = self.asleep.back.replace(id);
        let task = self.get(id);
        (task.before, task.after) = (before, None);
        match before {
            Some(before) => {
                self.get(before).after = Some(id);
                self.are_alike &= self.have_the_same_waker(before, id);
            }
            None => {
                self.asleep.front = Some(id);
                self.are_alike = true;
            }
        }
    }

    fn have_the_same_waker(&self, one: TaskId, other: TaskId) -> bool {
        let waker = |id: TaskId| self.wakers[id.index()].as_ref();
        waker(one).zip(waker(other)).is_some_and(|(one, other)| one.will_wake(other))
    }

    fn dequeue(&mut self, id: TaskId) {
        let task = self.get(id);
        let (before, after) = (task.before, task.after);
        self.unlink(before, after);
    }

    /// Brings those together between whom somebody stood.
    fn unlink(&mut self, before: Option<TaskId>, after: Option<TaskId>) {
        if self.is_closed {
            return;
        }
        match before {
            Some(before) => self.get(before).after = after,
            None => self.asleep.front = after,
        }
        match after {
            Some(after) => self.get(after).before = before,
            None => self.asleep.back = before,
        }
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests;

//! What a task finds in its flight when it is polled, and what it leaves behind: under the flight's lock.

use super::roster::{Belongings, Deposit, TaskId};
use super::slot::{Left, Shared, Sight, Wake};
use super::tasks::{Detach, Drive, Work};
use crate::error::CallError;
use crate::flight::Seat;
use crate::primitive::{Arc, ThreadNumber};
use alloc::boxed::Box;
use core::mem;
use core::task::Waker;

/// What a task finds when it is polled.
pub(crate) enum Visit<V> {
    Wait,
    /// It is to wait, and must leave its waker to do so.
    LeaveWaker,
    Drive(Drive<V>),
    Value(Arc<V>),
    /// The flight has landed, and its value is where the task finds it without the lock.
    Landed,
    TakeOver(Seat),
    Deposit(Box<Deposit<V>>),
    Failed(CallError),
}

/// The user's things that a task leaves behind, to be dropped outside all locks.
pub(crate) type Departed<V> = (Option<Belongings<V>>, Option<Work<V>>, Option<Arc<V>>);

/// What a task leaves behind when it leaves.
pub(crate) struct Departure<V> {
    /// Whether the entry must go.
    pub(crate) remove: bool,
    /// Whether the flight lost its leader without a value.
    pub(crate) abandoned: bool,
    pub(crate) wake: Wake<V>,
    pub(crate) rest: Departed<V>,
    /// What spawns the driver that goes on, and its place.
    pub(crate) detach: Option<(Detach<V>, TaskId)>,
}

impl<V> Shared<V> {
    /// What `task` finds. If it waits, its waker `current` is to be left here: `waker` holds a clone of it, unless that has not
    /// been made yet. What is in `waker` afterwards is of no more use, and is to be dropped outside the lock.
    pub(crate) fn visit(
        &mut self,
        task: TaskId,
        current: &Waker,
        waker: &mut Option<Waker>,
        me: Option<ThreadNumber>,
        follows: bool,
    ) -> Visit<V> {
        if follows && self.flight.has_landed() {
            return Visit::Landed;
        }
        if let Some(deposit) = self.tasks.take_deposit(task) {
            // Its waker was taken when the deposit was left, so nothing of the user's is dropped here.
            self.tasks.remove(task);
            return Visit::Deposit(deposit);
        }
        if let Some(seat) = self.tasks.seat(task) {
            match self.look(seat, follows) {
                Sight::Value(value) => {
                    self.tasks.let_go(task);
                    return Visit::Value(value);
                }
                Sight::Landed => return Visit::Landed,
                Sight::Abandoned => return Visit::Failed(CallError::Abandoned),
                Sight::TakeOver => return Visit::TakeOver(seat),
                Sight::Wait => {}
            }
        }
        if let Some(drive) = self.tasks.begin_poll(task, &mut self.flight) {
            self.leader = me;
            return Visit::Drive(drive);
        }
        if self.leader.is_some_and(ThreadNumber::is_here) && !self.tasks.is_driver(task) {
            return Visit::Failed(CallError::Reentrant);
        }
        if self.tasks.is_known(task, current) {
            return Visit::Wait;
        }
        match waker.take() {
            Some(clone) => {
                *waker = self.tasks.keep_waker(task, clone);
                Visit::Wait
            }
            None => Visit::LeaveWaker,
        }
    }

    /// Counts the maker of the work out, if it is inside and not `driver`, and leaves `deposit` for it. Returns its waker.
    pub(crate) fn deposit(&mut self, driver: TaskId, deposit: &mut Option<Deposit<V>>) -> Option<Waker> {
        let maker = self.tasks.take_other_maker(driver)?;
        let seat = self.tasks.stand_up(maker)?;
        // The flight is led, so nobody is told anything, and there is no value yet.
        let Left { .. } = self.leave(seat);
        self.tasks.leave_deposit(maker, deposit.take()?)
    }

    pub(crate) fn depart(&mut self, task: TaskId) -> Departure<V> {
        let mut departure = Departure {
            remove: false,
            abandoned: false,
            wake: Wake::default(),
            rest: (None, None, None),
            detach: None,
        };
        match self.tasks.seat(task) {
            Some(seat) => {
                departure.rest.0 = self.tasks.remove(task);
                let Left { remove, wake, value } = self.leave(seat);
                (departure.remove, departure.wake, departure.rest.2) = (remove, wake, value);
                // It may have been one of the two that were woken to drive.
                if self.tasks.is_runnable() {
                    departure.wake = mem::take(&mut departure.wake).and(self.tasks.take_two_wakers().into_iter());
                }
            }
            None if self.tasks.is_driver(task) => {
                departure.rest.0 = self.tasks.remove(task);
                match self.tasks.hand_over(&mut self.flight) {
                    Ok(wakers) => departure.wake = Wake::tasks(wakers),
                    Err(mut work) => {
                        let detach = work.as_mut().and_then(|work| work.as_mut().take_detach());
                        match (work, detach) {
                            // In the same critical section: the flight is never without a caller, and no newcomer finds
                            // it doomed.
                            (Some(work), Some(detach)) => departure.detach = Some((detach, self.tasks.detach(work))),
                            (work, _) => {
                                let last = work.as_ref().is_some_and(|work| work.is_last_attempt());
                                self.leader = None;
                                departure.rest.1 = work;
                                departure.abandoned = true;
                                (departure.remove, departure.wake) = self.abandon(last);
                            }
                        }
                    }
                }
            }
            // Its deposit has been taken out; it was counted out when that was made.
            None => departure.rest.0 = self.tasks.remove(task),
        }
        departure
    }
}

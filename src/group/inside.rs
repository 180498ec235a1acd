//! Who is inside a flight, in no more room than that takes.
//!
//! Most flights are never joined. So the slot itself has room for one task, the one that made the work; what a crowd needs is
//! made when the second caller comes, and a place for threads to sleep when the first of them does.

use super::landing::{Landing, Tie};
use super::roster::{Belongings, Deposit, Roster, TaskId};
use super::slot::Slot;
use super::tasks::Wakers;
use crate::call::OnAbandon;
use crate::flight::Seat;
use crate::primitive::Arc;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;
use core::task::Waker;

/// The callers of a flight that wait or drive.
///
/// A landing that is in here holds the slot, and with it itself, so it must go when the flight ends.
pub(crate) enum Inside<V> {
    /// No task; and where threads sleep and find the value, if one has come.
    Threads(Option<Arc<Landing<V>>>),
    /// One task, which has no seat.
    Lone(Lone),
    Crowd(Box<Crowd<V>>),
}

/// A task that has the flight to itself. Its place is [`TaskId::FIRST`].
pub(crate) struct Lone {
    waker: Option<Waker>,
    on_abandon: OnAbandon,
    is_driver: bool,
    is_maker: bool,
}

pub(crate) struct Crowd<V> {
    roster: Roster<V>,
    driver: Option<TaskId>,
    maker: Option<TaskId>,
    /// Where followers find the value; made with the first of them.
    landing: Option<Arc<Landing<V>>>,
}

impl<V> Inside<V> {
    pub(crate) const NOBODY: Self = Self::Threads(None);

    /// A newcomer that waits in the flight of `slot`, and what it holds of it. One that does not take over may be too late for the
    /// value, and must look under the lock.
    pub(crate) fn insert(&mut self, slot: &Arc<Slot<V>>, on_abandon: OnAbandon, seat: Seat) -> (TaskId, Tie<V>) {
        let id = self.crowd().roster.insert(on_abandon, Some(seat));
        let tie = match on_abandon {
            OnAbandon::Fail => Tie::Slot(Arc::clone(slot)),
            OnAbandon::TakeOver => Tie::Landing(self.landing(slot)),
        };
        (id, tie)
    }

    /// A task that leads, and drives from now on; perhaps it has made the work as well.
    pub(crate) fn insert_driver(&mut self, on_abandon: OnAbandon, is_maker: bool) -> TaskId {
        if let Self::Threads(None) = self {
            *self = Self::Lone(Lone { waker: None, on_abandon, is_driver: true, is_maker });
            return TaskId::FIRST;
        }
        let crowd = self.crowd();
        let driver = crowd.roster.insert(on_abandon, None);
        crowd.driver = Some(driver);
        crowd.maker = is_maker.then_some(driver);
        driver
    }

    /// Takes a task out. Whoever calls this has dealt with its seat or its lead.
    pub(crate) fn remove(&mut self, id: TaskId) -> Option<Belongings<V>> {
        match self {
            Self::Threads(_) => None,
            Self::Lone(lone) => {
                let waker = lone.waker.take();
                *self = Self::NOBODY;
                Some((waker, None))
            }
            Self::Crowd(crowd) => {
                crowd.forget_maker(id);
                let task = crowd.roster.remove(id);
                self.disperse();
                task
            }
        }
    }

    /// Lets a task go that has the flight's value.
    pub(crate) fn let_go(&mut self, id: TaskId) {
        if let Self::Crowd(crowd) = self {
            crowd.forget_maker(id);
            crowd.roster.let_go();
            self.disperse();
        }
    }

    /// The room of a crowd goes with the last task of it. Nothing in it is the user's.
    fn disperse(&mut self) {
        if let Self::Crowd(crowd) = self {
            if crowd.roster.is_empty() {
                *self = Self::Threads(crowd.landing.take());
            }
        }
    }

    /// Makes room for more than one task, or for a task and threads.
    fn crowd(&mut self) -> &mut Crowd<V> {
        if !matches!(self, Self::Crowd(_)) {
            let mut crowd = Box::new(Crowd { roster: Roster::new(), driver: None, maker: None, landing: None });
            match mem::replace(self, Self::NOBODY) {
                Self::Threads(landing) => crowd.landing = landing,
                Self::Lone(lone) => crowd.admit(lone),
                Self::Crowd(_) => unreachable!("it has just been something else"),
            }
            *self = Self::Crowd(crowd);
        }
        let Self::Crowd(crowd) = self else { unreachable!("it has just been made") };
        crowd
    }

    fn roster(&mut self) -> Option<&mut Roster<V>> {
        match self {
            Self::Crowd(crowd) => Some(&mut crowd.roster),
            Self::Threads(_) | Self::Lone(_) => None,
        }
    }

    /// The list, with `id` in it.
    fn roster_with(&mut self, id: TaskId) -> &mut Roster<V> {
        self.roster().unwrap_or_else(|| unreachable!("{id:?} is in the list until it removes itself"))
    }

    /// Where those who follow the flight of `slot` find its value, made now if this is the first one.
    pub(crate) fn landing(&mut self, slot: &Arc<Slot<V>>) -> Arc<Landing<V>> {
        let landing = match self {
            Self::Threads(landing) => landing,
            Self::Lone(_) | Self::Crowd(_) => &mut self.crowd().landing,
        };
        Arc::clone(landing.get_or_insert_with(|| Arc::new(Landing::new(Arc::clone(slot)))))
    }

    /// The same, if there is one.
    pub(crate) fn any_landing(&self) -> Option<Arc<Landing<V>>> {
        match self {
            Self::Threads(landing) => landing.clone(),
            Self::Lone(_) => None,
            Self::Crowd(crowd) => crowd.landing.clone(),
        }
    }

    /// The flight ends without a value for those who are inside. Whoever calls this has a hold on the slot.
    pub(crate) fn drop_landing(&mut self) {
        match self {
            Self::Threads(landing) => *landing = None,
            Self::Lone(_) => {}
            Self::Crowd(crowd) => crowd.landing = None,
        }
    }

    pub(crate) fn driver(&self) -> Option<TaskId> {
        match self {
            Self::Threads(_) => None,
            Self::Lone(lone) => lone.is_driver.then_some(TaskId::FIRST),
            Self::Crowd(crowd) => crowd.driver,
        }
    }

    pub(crate) fn set_driver(&mut self, driver: Option<TaskId>) {
        match self {
            Self::Threads(_) => debug_assert_eq!(driver, None, "only a task drives"),
            Self::Lone(lone) => lone.is_driver = driver.is_some(),
            Self::Crowd(crowd) => crowd.driver = driver,
        }
    }

    pub(crate) fn maker(&self) -> Option<TaskId> {
        match self {
            Self::Threads(_) => None,
            Self::Lone(lone) => lone.is_maker.then_some(TaskId::FIRST),
            Self::Crowd(crowd) => crowd.maker,
        }
    }

    /// The work that it has made is its no more.
    pub(crate) fn take_maker(&mut self) -> Option<TaskId> {
        match self {
            Self::Threads(_) => None,
            Self::Lone(lone) => mem::take(&mut lone.is_maker).then_some(TaskId::FIRST),
            Self::Crowd(crowd) => crowd.maker.take(),
        }
    }

    pub(crate) fn on_abandon(&mut self, id: TaskId) -> OnAbandon {
        match self {
            Self::Lone(lone) => lone.on_abandon,
            _ => self.roster_with(id).on_abandon(id),
        }
    }

    /// How many tasks have a seat.
    pub(crate) fn waiting(&self) -> u32 {
        match self {
            Self::Crowd(crowd) => crowd.roster.waiting(),
            Self::Threads(_) | Self::Lone(_) => 0,
        }
    }

    pub(crate) fn seat(&mut self, id: TaskId) -> Option<Seat> {
        self.roster()?.seat(id)
    }

    pub(crate) fn sit(&mut self, id: TaskId, seat: Seat) {
        self.crowd().roster.sit(id, seat);
    }

    pub(crate) fn stand_up(&mut self, id: TaskId) -> Option<Seat> {
        self.roster()?.stand_up(id)
    }

    /// A waiter whose seat will do. See [`Roster::heir`].
    pub(crate) fn heir(&mut self, will_do: impl FnMut(Seat) -> bool) -> Option<TaskId> {
        self.roster()?.heir(will_do)
    }

    /// Whether the waker that is there would wake the same as `current`.
    pub(crate) fn is_known(&mut self, id: TaskId, current: &Waker) -> bool {
        match self {
            Self::Lone(lone) => lone.waker.as_ref().is_some_and(|kept| kept.will_wake(current)),
            _ => self.roster_with(id).is_known(id, current),
        }
    }

    /// Leaves `waker` there, unless the one that is there would wake the same; returns the one that is of no more use.
    pub(crate) fn keep_waker(&mut self, id: TaskId, waker: Waker) -> Option<Waker> {
        match self {
            Self::Lone(Lone { waker: Some(kept), .. }) if kept.will_wake(&waker) => Some(waker),
            Self::Lone(lone) => lone.waker.replace(waker),
            _ => self.roster_with(id).keep_waker(id, waker),
        }
    }

    pub(crate) fn take_waker(&mut self, id: TaskId) -> Option<Waker> {
        match self {
            Self::Lone(lone) => lone.waker.take(),
            _ => self.roster_with(id).take_waker(id),
        }
    }

    /// The waker of the waiter that has slept longest.
    pub(crate) fn wake_one(&mut self) -> Option<Waker> {
        self.roster()?.wake_one()
    }

    /// The waker of a waiter that another waker than `other` would wake.
    pub(crate) fn wake_another(&mut self, other: &Waker) -> Option<Waker> {
        self.roster()?.wake_another(other)
    }

    /// The wakers of all: a lone task's, or a crowd's.
    pub(crate) fn wake_all(&mut self) -> (Option<Waker>, Vec<Option<Waker>>) {
        match self {
            Self::Threads(_) => (None, Vec::new()),
            Self::Lone(lone) => (lone.waker.take(), Vec::new()),
            Self::Crowd(crowd) => (None, crowd.roster.wake_all()),
        }
    }

    /// The wakers of all, for the last time; and where to put the value for how many of the waiters, who are let go. `takers` of
    /// them take over; `all_take_over`: no waiter does otherwise.
    pub(crate) fn close(&mut self, takers: u32, all_take_over: bool) -> (Wakers, Option<(Arc<Landing<V>>, u32)>) {
        let crowd = match self {
            Self::Threads(landing) => return (Wakers::default(), landing.take().map(|landing| (landing, takers))),
            Self::Lone(lone) => return (Wakers { few: [lone.waker.take(), None], many: Vec::new() }, None),
            Self::Crowd(crowd) => crowd,
        };
        let landing = crowd.landing.take();
        let (many, served) = match landing {
            Some(landing) if all_take_over && crowd.maker.is_none() && crowd.roster.all_wait() => {
                (crowd.roster.let_all_go(), Some((landing, takers)))
            }
            landing => {
                let many = crowd.roster.wake_all();
                let is_maker_served = |maker| crowd.roster.takes_over(maker);
                // The maker of the work never followed, and looks at the flight.
                let others = takers - u32::from(crowd.maker.is_some_and(is_maker_served));
                if landing.is_some() {
                    crowd.roster.let_followers_go(crowd.maker);
                }
                crowd.roster.close();
                (many, landing.map(|landing| (landing, others)))
            }
        };
        self.disperse();
        (Wakers { few: [None, None], many }, served)
    }

    pub(crate) fn leave_deposit(&mut self, maker: TaskId, deposit: Deposit<V>) {
        self.roster_with(maker).leave_deposit(maker, deposit);
    }

    pub(crate) fn take_deposit(&mut self, id: TaskId) -> Option<Box<Deposit<V>>> {
        self.roster()?.take_deposit(id)
    }
}

impl<V> Crowd<V> {
    /// The task that has been alone so far.
    fn admit(&mut self, lone: Lone) {
        let Lone { waker, on_abandon, is_driver, is_maker } = lone;
        let id = self.roster.insert(on_abandon, None);
        debug_assert_eq!(id, TaskId::FIRST, "the list is new");
        self.driver = is_driver.then_some(id);
        self.maker = is_maker.then_some(id);
        if let Some(waker) = waker {
            let _former = self.roster.keep_waker(id, waker);
        }
    }

    fn forget_maker(&mut self, id: TaskId) {
        if self.maker == Some(id) {
            self.maker = None;
        }
    }
}

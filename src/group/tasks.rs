//! The asynchronous callers of a flight, and the work that the flight owns and they drive.
//!
//! The work is driven by one task, the driver: it is the flight's leader. Any other may take its place: when the work is
//! runnable, whoever is polled first drives it and is the driver from then on. When the work wakes, the driver and one
//! standby are woken, a different one each time; so a driver that is not polled cannot hold up the flight.

use super::inside::Inside;
use super::landing::{Landing, Tie};
use super::roster::{Belongings, Deposit, TaskId};
use super::slot::Slot;
use crate::call::OnAbandon;
use crate::flight::{Flight, Look, Seat};
use crate::primitive::Arc;
use crate::table::FlightId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// Work that a flight owns: polled by whichever task drives it, together with what travels with it.
pub(crate) trait OwnedWork<V> {
    /// The flight's own waker. Only the calls that own their work know that `V` may be sent, as a waker must.
    fn make_waker(&self, slot: &Arc<Slot<V>>) -> Waker;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<V>;

    /// Whether the value may be shared. Asked once at most, when the work has ended.
    fn shares(self: Pin<&mut Self>, value: &V) -> bool;

    /// Whether no one may take over when it ends without a value for the others.
    fn is_last_attempt(&self) -> bool;

    /// Where the work goes on when its last caller leaves; without it, it is dropped then.
    fn take_detach(self: Pin<&mut Self>) -> Option<Detach<V>>;
}

/// The work in its box.
pub(crate) type Work<V> = Pin<Box<dyn OwnedWork<V> + Send>>;

/// Spawns a driver for the work of a flight, in which it already has a place.
pub(crate) type Detach<V> = Box<dyn FnOnce(FlightId, Arc<Slot<V>>, TaskId) + Send>;

/// The asynchronous side of a flight. The task that drives the work is its leader; there is no driver if the flight is vacant,
/// or led by a thread, a guard or inline work.
pub(crate) struct Tasks<V> {
    inside: Inside<V>,
    stage: Stage<V>,
}

/// Where the flight's own work is, or what the flight has come to.
enum Stage<V> {
    /// There is none: the leader runs its work itself, or has not made it yet, or there is no leader.
    None,
    /// Here, waiting to be polled.
    Stored { work: Work<V>, call: Call },
    /// With the driver, which makes it or polls it right now. Whether it has woken meanwhile.
    Polled { woken: bool },
    /// The flight has landed, with this value. Taken by the last one that collects.
    Landed(Arc<V>),
}

/// Wakers taken out to be woken, after all locks are released.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    pub(super) few: [Option<Waker>; 2],
    pub(super) many: Vec<Option<Waker>>,
}

impl Wakers {
    pub(crate) fn extend(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.many.extend(wakers.into_iter().map(Some));
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = Waker> {
        self.few.into_iter().chain(self.many).flatten()
    }
}

/// Why stored work is to be polled, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    None,
    /// Its driver has left, and one task was told: the work may be able to go on, and if it wakes, two more are.
    HandedOver,
    /// It has woken, and its driver and a standby were told.
    Woken,
}

/// Work taken out to be polled.
pub(crate) struct Drive<V> {
    pub(crate) work: Work<V>,
    /// Whether the driver's own closure made it.
    pub(crate) is_maker: bool,
}

impl<V> Tasks<V> {
    pub(crate) const fn new() -> Self {
        Self { inside: Inside::NOBODY, stage: Stage::None }
    }

    /// A newcomer that waits in the flight of `slot`.
    pub(crate) fn insert(&mut self, slot: &Arc<Slot<V>>, on_abandon: OnAbandon, seat: Seat) -> (TaskId, Tie<V>) {
        self.inside.insert(slot, on_abandon, seat)
    }

    /// Takes a task out. Whoever calls this has dealt with its seat or its lead.
    pub(crate) fn remove(&mut self, id: TaskId) -> Option<Belongings<V>> {
        self.inside.remove(id)
    }

    /// Lets a task go that has the flight's value.
    pub(crate) fn let_go(&mut self, id: TaskId) {
        self.inside.let_go(id);
    }

    /// Where those who follow the flight of `slot` find its value, made now if this is the first one.
    #[cfg(feature = "std")]
    pub(crate) fn landing(&mut self, slot: &Arc<Slot<V>>) -> Arc<Landing<V>> {
        self.inside.landing(slot)
    }

    /// The same, if there is one.
    pub(crate) fn any_landing(&self) -> Option<Arc<Landing<V>>> {
        self.inside.any_landing()
    }

    /// The flight ends without a value for those who are inside. Whoever calls this has a hold on the slot.
    pub(crate) fn drop_landing(&mut self) {
        self.inside.drop_landing();
    }

    /// How many tasks wait.
    pub(crate) fn waiting(&self) -> u32 {
        self.inside.waiting()
    }

    pub(crate) fn seat(&mut self, id: TaskId) -> Option<Seat> {
        self.inside.seat(id)
    }

    pub(crate) fn sit(&mut self, id: TaskId, seat: Seat) {
        self.inside.sit(id, seat);
    }

    pub(crate) fn stand_up(&mut self, id: TaskId) -> Option<Seat> {
        self.inside.stand_up(id)
    }

    /// Whether the waker that is there would wake the same as `current`.
    pub(crate) fn is_known(&mut self, id: TaskId, current: &Waker) -> bool {
        self.inside.is_known(id, current)
    }

    /// Leaves `waker` there, unless the one that is there would wake the same; returns the one that is of no more use.
    pub(crate) fn keep_waker(&mut self, id: TaskId, waker: Waker) -> Option<Waker> {
        self.inside.keep_waker(id, waker)
    }

    pub(crate) fn is_driver(&self, id: TaskId) -> bool {
        self.inside.driver() == Some(id)
    }

    /// Lets a newcomer, which leads, make work for the flight, and drive it.
    pub(crate) fn make(&mut self, on_abandon: OnAbandon) -> TaskId {
        self.stage = Stage::Polled { woken: false };
        self.inside.insert_driver(on_abandon, true)
    }

    /// Lets a detached driver, which no task is yet, go on with work whose last caller has just left.
    pub(crate) fn detach(&mut self, work: Work<V>) -> TaskId {
        self.stage = Stage::Stored { work, call: Call::HandedOver };
        self.inside.insert_driver(OnAbandon::Fail, false)
    }

    /// Takes the work out for `task` to poll, if it is here and can go on. The task drives from then on.
    pub(crate) fn begin_poll(&mut self, task: TaskId, flight: &mut Flight) -> Option<Drive<V>> {
        if !self.is_runnable() {
            return None;
        }
        let Stage::Stored { work, .. } = mem::replace(&mut self.stage, Stage::Polled { woken: false }) else {
            return None;
        };
        if let Some(seat) = self.stand_up(task) {
            let former = self.inside.driver().expect("stored work has a driver");
            let on_abandon = self.inside.on_abandon(former);
            let seat = flight.change_leader(seat, on_abandon);
            self.sit(former, seat);
        }
        self.inside.set_driver(Some(task));
        Some(Drive { work, is_maker: self.inside.maker() == Some(task) })
    }

    /// Puts the work back after a poll that did not end it. If it has woken meanwhile, as is known here or by who polled it,
    /// the driver and a standby must be woken.
    pub(crate) fn end_poll(&mut self, work: Work<V>, has_woken: bool) -> Wakers {
        let woken = has_woken || matches!(self.stage, Stage::Polled { woken: true });
        self.stage = Stage::Stored { work, call: if woken { Call::Woken } else { Call::None } };
        if woken { self.take_two_wakers() } else { Wakers::default() }
    }

    /// Whether the work waits for somebody to poll it.
    pub(crate) fn is_runnable(&self) -> bool {
        matches!(self.stage, Stage::Stored { call: Call::HandedOver | Call::Woken, .. })
    }

    /// The flight has landed with `value`, which others are to collect.
    pub(crate) fn publish(&mut self, value: Arc<V>) {
        self.stage = Stage::Landed(value);
    }

    /// The value of a flight that has landed.
    pub(crate) fn value(&self) -> Option<&Arc<V>> {
        match &self.stage {
            Stage::Landed(value) => Some(value),
            Stage::None | Stage::Stored { .. } | Stage::Polled { .. } => None,
        }
    }

    /// The value of a flight that has landed, for the last one that collects, or if nobody does.
    pub(crate) fn take_value(&mut self) -> Option<Arc<V>> {
        self.value()?;
        match mem::replace(&mut self.stage, Stage::None) {
            Stage::Landed(value) => Some(value),
            _ => unreachable!("it has just been seen"),
        }
    }

    /// The work has ended, one way or the other: the driver drives no more.
    pub(crate) fn end_work(&mut self) {
        self.stage = Stage::None;
        self.inside.set_driver(None);
    }

    /// The maker of the work, if it is inside and is not `driver`: the work is its no more.
    pub(crate) fn take_other_maker(&mut self, driver: TaskId) -> Option<TaskId> {
        self.inside.take_maker().filter(|&maker| maker != driver)
    }

    /// The work calls for a poll: whom to wake.
    pub(crate) fn wake(&mut self) -> Wakers {
        match &mut self.stage {
            Stage::None | Stage::Landed(_) => Wakers::default(),
            Stage::Polled { woken } => {
                *woken = true;
                Wakers::default()
            }
            Stage::Stored { call: Call::Woken, .. } => Wakers::default(),
            Stage::Stored { call, .. } => {
                *call = Call::Woken;
                self.take_two_wakers()
            }
        }
    }

    /// The driver leaves, and its work stays: another task becomes the driver, and the work must be polled, because the one
    /// who was told to may be the one who left. `None` if there is no other task: the work comes out, to be dropped.
    pub(crate) fn hand_over(&mut self, flight: &mut Flight) -> Result<Wakers, Option<Work<V>>> {
        self.inside.set_driver(None);
        let heir = self.inside.heir(|seat| flight.look(seat) == Look::Wait);
        match (heir, &mut self.stage) {
            (Some(heir), Stage::Stored { call, .. }) => {
                let has_woken = *call == Call::Woken;
                if !has_woken {
                    *call = Call::HandedOver;
                }
                let seat = self.stand_up(heir).expect("an heir has a seat");
                flight.hand_over(seat);
                self.inside.set_driver(Some(heir));
                if has_woken {
                    // Whoever was woken for it may be the one that left.
                    return Ok(self.take_two_wakers());
                }
                Ok(Wakers { few: [self.inside.take_waker(heir), None], many: Vec::new() })
            }
            _ => match mem::replace(&mut self.stage, Stage::None) {
                Stage::Stored { work, .. } => Err(Some(work)),
                Stage::None | Stage::Polled { .. } | Stage::Landed(_) => Err(None),
            },
        }
    }

    /// The wakers of all, after which nobody is woken any more; and where to put the value for how many of the waiters, who are
    /// let go. `takers` of them take over; `all_take_over`: no waiter does otherwise.
    pub(crate) fn close(&mut self, takers: u32, all_take_over: bool) -> (Wakers, Option<(Arc<Landing<V>>, u32)>) {
        self.inside.close(takers, all_take_over)
    }

    pub(crate) fn take_all_wakers(&mut self) -> Wakers {
        let (first, many) = self.inside.wake_all();
        Wakers { few: [first, None], many }
    }

    /// The driver's waker, if it has one, and that of a standby: of another task of the executor, or one of them would do for
    /// both. Two standbys if the driver has none.
    pub(crate) fn take_two_wakers(&mut self) -> Wakers {
        let driver = self.inside.driver().and_then(|driver| self.inside.take_waker(driver));
        let first = driver.or_else(|| self.inside.wake_one());
        let second = first.as_ref().and_then(|first| self.inside.wake_another(first));
        Wakers { few: [first, second], many: Vec::new() }
    }

    /// Forgets the waker of a driver that ends its flight alone; to be dropped outside the lock.
    pub(crate) fn take_waker(&mut self, task: TaskId) -> Option<Waker> {
        self.inside.take_waker(task)
    }

    pub(crate) fn leave_deposit(&mut self, maker: TaskId, deposit: Deposit<V>) -> Option<Waker> {
        self.inside.leave_deposit(maker, deposit);
        self.inside.take_waker(maker)
    }

    pub(crate) fn take_deposit(&mut self, task: TaskId) -> Option<Box<Deposit<V>>> {
        self.inside.take_deposit(task)
    }
}

//! What a flight gets when it is joined for the first time.

use super::landing::Landing;
use super::roster::TaskId;
use super::tasks::{Tasks, Wakers};
use crate::call::OnAbandon;
use crate::flight::{Abandon, Collect, Flight, Land, Leave, Look, Seat};
use crate::primitive::{Arc, Mutex, ThreadNumber, for_all, wake_all};
use core::task::Waker;

#[cfg(all(feature = "deadlock-detection", not(loom)))]
use crate::deadlock::LeaderCell;

/// The shared part of a flight: its state, its value once it has landed, and those who wait for it.
pub(crate) struct Slot<V> {
    state: Mutex<Shared<V>>,
    #[cfg(all(feature = "deadlock-detection", not(loom)))]
    pub(crate) leader: Arc<LeaderCell>,
}

/// What the flight's lock guards.
pub(crate) struct Shared<V> {
    pub(crate) flight: Flight,
    /// The thread that runs the work at this moment, or a number of the work's own, if there is one.
    pub(crate) leader: Option<ThreadNumber>,
    pub(crate) tasks: Tasks<V>,
}

/// What a waiter sees, with the value if there is one.
pub(crate) enum Sight<V> {
    Wait,
    TakeOver,
    Value(Arc<V>),
    /// The value is in the flight's [`Landing`].
    Landed,
    Abandoned,
}

/// Whom to wake once all locks are released.
#[must_use = "whoever is in here sleeps until it is woken"]
pub(crate) struct Wake<V> {
    tasks: Wakers,
    threads: Option<(Arc<Landing<V>>, Threads)>,
}

impl<V> Default for Wake<V> {
    fn default() -> Self {
        Self { tasks: Wakers::default(), threads: None }
    }
}

/// What is left to do when a flight has landed.
#[must_use]
pub(crate) struct Landed<V> {
    /// The value, if nobody is there to share it.
    unshared: Option<Arc<V>>,
    wake: Wake<V>,
    /// Where the value is for followers. It may go with the last of them, so it is dropped outside the lock; and before they wake,
    /// or the last of them would not know that it is the last.
    landing: Option<Arc<Landing<V>>>,
}

impl<V> Landed<V> {
    /// Wakes all. The value comes back if nobody is there to share it. No lock may be held.
    pub(crate) fn send(self) -> Option<Arc<V>> {
        drop(self.landing);
        self.wake.send();
        self.unshared
    }
}

/// What a waiter that leaves without looking leaves behind.
#[must_use]
pub(crate) struct Left<V> {
    /// Whether the entry must go.
    pub(crate) remove: bool,
    pub(crate) wake: Wake<V>,
    /// A value that nobody is left to collect, to be dropped outside the lock.
    pub(crate) value: Option<Arc<V>>,
}

/// How many threads to wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threads {
    One,
    All,
    /// All, for the last time.
    Last,
}

impl<V> Wake<V> {
    pub(crate) fn tasks(tasks: Wakers) -> Self {
        Self { tasks, threads: None }
    }

    /// These as well.
    pub(crate) fn and(mut self, tasks: impl IntoIterator<Item = Waker>) -> Self {
        self.tasks.extend(tasks);
        self
    }

    /// Wakes. No lock may be held: wakers are the user's code. If one panics, the others are woken all the same, and the
    /// panic goes on after that.
    pub(crate) fn send(self) {
        let Self { tasks, threads } = self;
        let Some((landing, threads)) = threads else { return wake_all(tasks.into_iter()) };
        match threads {
            Threads::One => landing.queue.notify_one(),
            Threads::Last => landing.queue.notify_last(),
            Threads::All => landing.queue.notify_all(),
        }
        // The flight may have landed meanwhile, and this be the last hold of its value, whose destructor is the user's code too.
        let mut landing = Some(landing);
        for_all(tasks.into_iter().map(Some).chain([None]), |waker| match waker {
            Some(waker) => waker.wake(),
            None => landing = None,
        });
    }
}

impl<V> Slot<V> {
    /// The slot of a flight that `leader` leads alone.
    pub(crate) fn new(leader: Option<ThreadNumber>) -> Self {
        let shared = Shared { flight: Flight::led(), leader, tasks: Tasks::new() };
        Self {
            state: Mutex::new(shared),
            #[cfg(all(feature = "deadlock-detection", not(loom)))]
            leader: Arc::new(LeaderCell::new(leader)),
        }
    }

    /// Changes or reads the flight under its lock.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Shared<V>) -> R) -> R {
        self.state.with(f)
    }

    /// One step of the state machine, under the flight's lock.
    pub(crate) fn step<R>(&self, f: impl FnOnce(&mut Flight) -> R) -> R {
        self.state.with(|shared| f(&mut shared.flight))
    }

    /// The work can go on: wakes its driver, and a standby in case the driver is not polled.
    fn work_wakes(&self) {
        let wakers = self.state.with(|shared| shared.tasks.wake());
        Wake::<V>::tasks(wakers).send();
    }
}

impl<V> Shared<V> {
    /// Lands. Gives the value back if nobody is there to share it.
    pub(crate) fn land(&mut self, value: Arc<V>) -> Landed<V> {
        match self.flight.land() {
            Land::Alone => {
                self.tasks.drop_landing();
                Landed { unshared: Some(value), wake: Wake::default(), landing: None }
            }
            Land::Publish => {
                let threads = self.tell_threads(Threads::Last);
                let (tasks, served) = self.tasks.close(self.flight.takers(), self.flight.all_take_over());
                let landing = served.map(|(landing, count)| {
                    self.flight.deliver(count);
                    landing
                });
                match &landing {
                    Some(landing) if self.flight.is_alone() => landing.deliver(value),
                    Some(landing) => {
                        landing.deliver(Arc::clone(&value));
                        self.tasks.publish(value);
                    }
                    None => self.tasks.publish(value),
                }
                Landed { unshared: None, wake: Wake { tasks, threads }, landing }
            }
        }
    }

    /// Lands if nobody is there to share the value with `driver`. Returns the waker that it has left, if it has.
    pub(crate) fn land_alone(&mut self, driver: TaskId) -> Option<Option<Waker>> {
        let alone = self.flight.is_alone() && self.flight.land() == Land::Alone;
        // Somebody may hold the flight's waker, and with it the flight, for long.
        alone.then(|| {
            self.tasks.drop_landing();
            self.tasks.take_waker(driver)
        })
    }

    /// Abandons. Says whether the entry must go, and whom to wake.
    pub(crate) fn abandon(&mut self, last: bool) -> (bool, Wake<V>) {
        let abandon = self.flight.abandon(last);
        self.after_abandon(&abandon)
    }

    fn after_abandon(&mut self, abandon: &Abandon) -> (bool, Wake<V>) {
        let (remove, wake) = match abandon {
            Abandon::Remove => (true, Wake::default()),
            Abandon::WakeOne => (false, self.tell_one()),
            Abandon::WakeAll => (false, self.tell_all()),
            Abandon::RemoveAndWakeAll => (true, self.tell_all()),
        };
        if remove {
            self.tasks.drop_landing();
        }
        (remove, wake)
    }

    /// What a waiter finds; it has collected the value if it finds one. `follows`: the value is delivered to it, so it has been
    /// counted out by the time it finds that the flight has landed.
    pub(crate) fn look(&mut self, seat: Seat, follows: bool) -> Sight<V> {
        match self.flight.look(seat) {
            Look::Collect if follows => Sight::Landed,
            Look::Wait => Sight::Wait,
            Look::TakeOver => Sight::TakeOver,
            Look::Abandoned => Sight::Abandoned,
            Look::Collect => {
                let value = match self.flight.collect(seat) {
                    Collect::Share => self.tasks.value().cloned(),
                    Collect::Take => self.tasks.take_value(),
                };
                Sight::Value(value.expect("a flight that landed with waiters holds its value until the last collects"))
            }
        }
    }

    /// The driver gives up its attempt, but stays. Says whether the entry must go, and whom to wake.
    pub(crate) fn step_down(&mut self, driver: TaskId, on_abandon: OnAbandon, last: bool) -> (bool, Wake<V>) {
        let (seat, abandon) = self.flight.step_down(on_abandon, last);
        self.tasks.sit(driver, seat);
        self.after_abandon(&abandon)
    }

    /// A waiter leaves without looking.
    pub(crate) fn leave(&mut self, seat: Seat) -> Left<V> {
        let (remove, wake) = match self.flight.leave(seat) {
            Leave::Nothing => (false, Wake::default()),
            Leave::WakeOne => (false, self.tell_one()),
            Leave::Remove => {
                self.tasks.drop_landing();
                (true, Wake::default())
            }
        };
        // Those of an attempt that was abandoned will not fetch it either.
        let value = if self.flight.is_alone() { self.tasks.take_value() } else { None };
        Left { remove, wake, value }
    }

    /// How many threads wait.
    fn threads(&self) -> u32 {
        self.flight.waiters() - self.tasks.waiting()
    }

    /// Where to wake so many threads, if any wait.
    fn tell_threads(&self, threads: Threads) -> Option<(Arc<Landing<V>>, Threads)> {
        if self.threads() > 0 { Some((self.tasks.any_landing()?, threads)) } else { None }
    }

    /// Tells a task, and a second one in case that one is not polled; and a thread, which always runs.
    fn tell_one(&mut self) -> Wake<V> {
        let threads = self.tell_threads(Threads::One);
        Wake { tasks: self.tasks.take_two_wakers(), threads }
    }

    fn tell_all(&mut self) -> Wake<V> {
        let threads = self.tell_threads(Threads::All);
        Wake { tasks: self.tasks.take_all_wakers(), threads }
    }
}

/// The value itself: moved out by the last one that holds it, cloned for the others. Outside all locks.
pub(crate) fn own<V: Clone>(value: Arc<V>) -> V {
    Arc::try_unwrap(value).unwrap_or_else(|value| {
        let clone = V::clone(&value);
        // It may be the last hold by now, and the value's destructor may panic: not with the clone on its way out, which would leak.
        drop(value);
        clone
    })
}

/// The flight's own waker, which its work gets.
#[cfg(not(loom))]
pub(crate) fn flight_waker<V: Send + Sync + 'static>(slot: &Arc<Slot<V>>) -> Waker {
    Waker::from(Arc::clone(slot))
}

/// The flight's own waker: wakers want alloc's `Arc`, flights loom's, so the one is wrapped in the other.
#[cfg(loom)]
pub(crate) fn flight_waker<V: Send + Sync + 'static>(slot: &Arc<Slot<V>>) -> Waker {
    struct Wrapped<V>(Arc<Slot<V>>);
    impl<V: Send + Sync + 'static> alloc::task::Wake for Wrapped<V> {
        fn wake(self: alloc::sync::Arc<Self>) {
            self.0.work_wakes();
        }
    }
    Waker::from(alloc::sync::Arc::new(Wrapped(Arc::clone(slot))))
}

#[cfg(not(loom))]
impl<V: Send + Sync + 'static> alloc::task::Wake for Slot<V> {
    fn wake(self: Arc<Self>) {
        self.work_wakes();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.work_wakes();
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
mod tests;

//! What a flight of threads gets when it is joined for the first time.

use crate::flight::{Abandon, Collect, Flight, Land, Leave, Look, Seat};
use crate::primitive::{Arc, Mutex, ThreadNumber, WaitQueue};

#[cfg(all(feature = "deadlock-detection", not(loom)))]
use crate::deadlock::LeaderCell;

/// How many threads a thread wakes when a flight lands. Each of those wakes as many: the leader returns at once, and
/// hundreds are awake as fast as if it had woken them all.
pub(crate) const RELAY: u32 = 2;

/// The shared part of a flight: its state, its value once it has landed, and the threads that wait for it.
pub(crate) struct Slot<V> {
    state: Mutex<Shared<V>>,
    pub(crate) queue: WaitQueue,
    #[cfg(all(feature = "deadlock-detection", not(loom)))]
    pub(crate) leader: Arc<LeaderCell>,
}

struct Shared<V> {
    flight: Flight,
    /// Set once, by `land`; taken by the last one that collects.
    value: Option<Arc<V>>,
}

/// What a waiter sees, with the value if there is one.
pub(crate) enum Sight<V> {
    Wait,
    TakeOver,
    Value(Arc<V>),
    Abandoned,
}

impl<V> Slot<V> {
    /// The slot of a flight that `leader` leads alone.
    pub(crate) fn new(leader: Option<ThreadNumber>) -> Self {
        #[cfg(not(all(feature = "deadlock-detection", not(loom))))]
        let _ = leader;
        Self {
            state: Mutex::new(Shared { flight: Flight::led(), value: None }),
            queue: WaitQueue::new(),
            #[cfg(all(feature = "deadlock-detection", not(loom)))]
            leader: Arc::new(LeaderCell::new(leader)),
        }
    }

    /// One step of the state machine, under the flight's lock.
    pub(crate) fn step<R>(&self, f: impl FnOnce(&mut Flight) -> R) -> R {
        self.state.with(|shared| f(&mut shared.flight))
    }

    /// Lands. Gives the value back if nobody is there to share it.
    pub(crate) fn land(&self, value: Arc<V>) -> Option<Arc<V>> {
        self.state.with(|shared| match shared.flight.land() {
            Land::Alone => Some(value),
            Land::Publish => {
                shared.value = Some(value);
                None
            }
        })
    }

    /// What a waiter finds; it has collected the value if it finds one, and must then relay.
    pub(crate) fn look(&self, seat: Seat) -> Sight<V> {
        self.state.with(|shared| shared.look(seat))
    }

    /// A waiter gives up: it leaves, unless it finds that the flight has landed.
    pub(crate) fn give_up(&self, seat: Seat) -> Result<Leave, Arc<V>> {
        self.state.with(|shared| match shared.look(seat) {
            Sight::Value(value) => Err(value),
            Sight::Wait | Sight::TakeOver | Sight::Abandoned => Ok(shared.flight.leave(seat)),
        })
    }

    /// Wakes whom a leader's leaving concerns. To be called after all locks are released.
    pub(crate) fn wake_abandoned(&self, abandon: &Abandon) {
        match abandon {
            Abandon::Remove => {}
            Abandon::WakeOne => self.queue.notify(1),
            Abandon::WakeAll | Abandon::RemoveAndWakeAll => self.queue.notify(u32::MAX),
        }
    }
}

impl<V> Shared<V> {
    fn look(&mut self, seat: Seat) -> Sight<V> {
        match self.flight.look(seat) {
            Look::Wait => Sight::Wait,
            Look::TakeOver => Sight::TakeOver,
            Look::Abandoned => Sight::Abandoned,
            Look::Collect => {
                let value = match self.flight.collect(seat) {
                    Collect::Share => self.value.clone(),
                    Collect::Take => self.value.take(),
                };
                Sight::Value(value.expect("a flight that landed with waiters holds its value until the last collects"))
            }
        }
    }
}

/// The value itself: moved out by the last one that holds it, cloned for the others. Outside all locks.
pub(crate) fn own<V: Clone>(value: Arc<V>) -> V {
    Arc::try_unwrap(value).unwrap_or_else(|value| (*value).clone())
}

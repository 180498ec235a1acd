//! How the followers of a flight get its value without its lock.

use super::slot::Slot;
use crate::primitive::{Arc, Once, WaitQueue};

/// Where those who follow a flight find its value. They hold it, and the slot gives its own hold up when the flight ends:
/// whoever holds a waker of the flight, and with it the slot, does not keep the value alive.
pub(crate) struct Landing<V> {
    value: Once<Arc<V>>,
    /// Where threads sleep until the value is there, or they must look at the flight.
    pub(crate) queue: WaitQueue,
    /// So that a follower holds one thing, not several: what is shared by a crowd is dear to let go of.
    pub(crate) slot: Arc<Slot<V>>,
}

/// What a task holds of the flight that it is in.
pub(crate) enum Tie<V> {
    Slot(Arc<Slot<V>>),
    /// It follows, and may take over.
    Landing(Arc<Landing<V>>),
}

impl<V> Tie<V> {
    pub(crate) fn slot(&self) -> &Arc<Slot<V>> {
        match self {
            Self::Slot(slot) => slot,
            Self::Landing(landing) => &landing.slot,
        }
    }

    /// Whether the flight has landed, and the value is where the task finds it without the flight's lock.
    pub(crate) fn has_value(&self) -> bool {
        matches!(self, Self::Landing(landing) if landing.has_value())
    }
}

impl<V> Landing<V> {
    pub(crate) fn new(slot: Arc<Slot<V>>) -> Self {
        Self { value: Once::new(), queue: WaitQueue::new(), slot }
    }

    pub(crate) fn has_value(&self) -> bool {
        self.value.with(|_| ()).is_some()
    }

    /// To be called under the flight's lock, or who sees that it has landed may not find the value.
    pub(crate) fn deliver(&self, value: Arc<V>) {
        self.value.set(value);
    }

    /// The value of a flight that has landed: its own if nobody else is to collect, otherwise a clone. Outside all locks.
    #[inline]
    pub(crate) fn collect(this: Arc<Self>) -> V
    where
        V: Clone,
    {
        if Arc::strong_count(&this) == 1 {
            return super::own(Self::collect_shared(this));
        }
        let clone = this.value.with(|value| V::clone(value)).expect(LANDED);
        // As in `own`.
        drop(this);
        clone
    }

    /// The same, without a clone.
    pub(crate) fn collect_shared(this: Arc<Self>) -> Arc<V> {
        let value = match Arc::try_unwrap(this) {
            Ok(last) => last.value.into_inner(),
            Err(landing) => landing.value.with(Arc::clone),
        };
        value.expect(LANDED)
    }
}

const LANDED: &str = "the value is there before the flight has landed";

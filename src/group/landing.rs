//! How the followers of a flight get its value without its lock.

use crate::primitive::{Arc, Once};

/// Where the tasks that follow a flight find its value. They hold it, and the slot gives its own hold up when the flight lands:
/// whoever holds a waker of the flight, and with it the slot, does not keep the value alive.
pub(crate) struct Landing<V>(Once<Arc<V>>);

impl<V> Landing<V> {
    pub(crate) fn new() -> Self {
        Self(Once::new())
    }

    /// To be called under the flight's lock, or who sees that it has landed may not find the value.
    pub(crate) fn deliver(&self, value: Arc<V>) {
        self.0.set(value);
    }

    pub(crate) fn has_value(&self) -> bool {
        self.0.with(|_| ()).is_some()
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
        this.0.with(|value| V::clone(value)).expect(LANDED)
    }

    /// The same, without a clone.
    pub(crate) fn collect_shared(this: Arc<Self>) -> Arc<V> {
        let value = match Arc::try_unwrap(this) {
            Ok(last) => last.0.into_inner(),
            Err(landing) => landing.0.with(Arc::clone),
        };
        value.expect(LANDED)
    }
}

const LANDED: &str = "the value is there before the flight has landed";

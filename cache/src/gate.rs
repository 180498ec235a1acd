//! A bound on how many of something are on at once.

use event_listener::{Event, EventListener, Listener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Lets so many through at once, and turns the others away.
pub(crate) struct Gate {
    max: usize,
    /// `None`: nobody need know how many there are.
    inside: Option<Arc<Inside>>,
}

struct Inside {
    count: AtomicUsize,
    /// Notified when nobody is inside any more, if anybody may ever wait for that.
    empty: Option<Event>,
}

/// One that is inside, until it is dropped.
pub(crate) struct Pass(Option<Arc<Inside>>);

impl Gate {
    pub(crate) fn new(max: usize) -> Self {
        let inside = || Arc::new(Inside { count: AtomicUsize::new(0), empty: None });
        Self { max, inside: (max < usize::MAX).then(inside) }
    }

    /// One that can be waited for until nobody is inside.
    pub(crate) fn awaited(max: usize) -> Self {
        Self { max, inside: Some(Arc::new(Inside { count: AtomicUsize::new(0), empty: Some(Event::new()) })) }
    }

    pub(crate) fn pass(&self) -> Option<Pass> {
        let Some(inside) = &self.inside else { return Some(Pass(None)) };
        let more = |count: usize| (count < self.max).then_some(count + 1);
        // Sequentially consistent, with the listener's: whoever listens and then finds somebody inside is notified.
        inside.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Pass(Some(Arc::clone(inside))))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inside.as_ref().is_none_or(|inside| inside.count.load(Ordering::SeqCst) == 0)
    }

    /// Blocks until nobody is inside, or until `deadline`. Whether it is empty.
    pub(crate) fn wait_until_empty(&self, deadline: Option<Instant>) -> bool {
        loop {
            let empty = self.listen();
            if self.is_empty() {
                return true;
            }
            match deadline {
                None => empty.wait(),
                Some(deadline) if empty.wait_deadline(deadline).is_none() => return self.is_empty(),
                Some(_) => {}
            }
        }
    }

    pub(crate) fn listen(&self) -> EventListener {
        let empty = self.inside.as_ref().and_then(|inside| inside.empty.as_ref());
        empty.expect("it was made to be awaited").listen()
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(inside) = &self.0
            && inside.count.fetch_sub(1, Ordering::SeqCst) == 1
            && let Some(empty) = &inside.empty
        {
            empty.notify(usize::MAX);
        }
    }
}

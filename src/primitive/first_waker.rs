//! A waker that learns later whom it wakes.

use super::Mutex;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::task::{Context, Waker};

/// What a work is polled with for the first time: the waker of its flight is not made before the work has to wait. Each
/// thread keeps one for its next call, so work costs none once there is one.
pub(crate) struct FirstWaker {
    forward: Arc<Forward>,
    waker: Waker,
}

/// A first waker that its work has kept. It is for the next call of whichever thread drops this, unless somebody still has a
/// clone of it by then.
pub(crate) struct Lent {
    #[cfg(all(feature = "std", not(loom)))]
    forward: Arc<Forward>,
}

struct Forward(Mutex<State>);

#[derive(Default)]
struct State {
    has_woken: bool,
    /// Whom it wakes, once that is known.
    target: Option<Waker>,
}

impl Wake for Forward {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let target = self.0.with(|state| {
            state.has_woken = true;
            state.target.clone()
        });
        // Outside the lock: it goes on to wake tasks.
        if let Some(target) = target {
            target.wake();
        }
    }
}

#[cfg(all(feature = "std", not(loom)))]
std::thread_local! {
    static KEPT: core::cell::Cell<Option<FirstWaker>> = const { core::cell::Cell::new(None) };
}

impl FirstWaker {
    #[inline]
    pub(crate) fn new() -> Self {
        // `try_with`: the group may be called from a destructor of another thread-local.
        #[cfg(all(feature = "std", not(loom)))]
        if let Some(kept) = KEPT.try_with(core::cell::Cell::take).ok().flatten() {
            return kept;
        }
        Self::make()
    }

    #[cold]
    fn make() -> Self {
        let forward = Arc::new(Forward(Mutex::new(State::default())));
        Self { waker: Waker::from(Arc::clone(&forward)), forward }
    }

    #[inline]
    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Keeps it for the next call of this thread, unless somebody has a clone of it. It must have no target.
    #[inline]
    pub(crate) fn keep(self) {
        #[cfg(all(feature = "std", not(loom)))]
        if Arc::strong_count(&self.forward) == 2 {
            self.forward.0.with(|state| state.has_woken = false);
            // Not kept if the thread is about to end.
            let _ = KEPT.try_with(|kept| kept.set(Some(self)));
        }
    }

    /// Whether somebody has a clone of it, or may have one.
    fn is_cloned(&self) -> bool {
        cfg!(any(not(feature = "std"), loom)) || Arc::strong_count(&self.forward) > 2
    }

    /// For its call to hold, if the work has kept a clone.
    pub(crate) fn lend(&self) -> Option<Lent> {
        #[cfg(all(feature = "std", not(loom)))]
        return self.is_cloned().then(|| Lent { forward: Arc::clone(&self.forward) });
        #[cfg(not(all(feature = "std", not(loom))))]
        None
    }

    /// From now on it wakes `target`, which must be a waker of ours: it is cloned under a lock. Whether it has woken before,
    /// when there was nobody to wake.
    pub(crate) fn forward_to(&self, target: Waker) -> bool {
        // Without a clone nobody wakes it any more.
        let target = self.is_cloned().then_some(target);
        self.forward.0.with(|state| {
            state.target = target;
            state.has_woken
        })
    }
}

#[cfg(all(feature = "std", not(loom)))]
impl Drop for Lent {
    fn drop(&mut self) {
        if Arc::strong_count(&self.forward) > 1 {
            return;
        }
        // Its flight is dropped outside the lock.
        let target = self.forward.0.with(|state| core::mem::take(state).target);
        drop(target);
        let forward = Arc::clone(&self.forward);
        let waker = Waker::from(Arc::clone(&forward));
        let _ = KEPT.try_with(|kept| kept.set(Some(FirstWaker { forward, waker })));
    }
}

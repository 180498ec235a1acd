//! Work for tasks: it waits, and somebody else says when it can go on.

use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// Shut until it is opened, once. One task may wait for it at a time.
#[derive(Debug, Default)]
pub struct Gate {
    open: AtomicBool,
    waker: AtomicWaker,
}

impl Gate {
    /// Lets through whoever waits or comes.
    pub fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    /// Waits until it is open.
    pub fn passed(self: &Arc<Self>) -> Passed {
        Passed(Arc::clone(self))
    }
}

/// Waits for a [`Gate`].
#[derive(Debug)]
pub struct Passed(Arc<Gate>);

impl Future for Passed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.waker.register(cx.waker());
        if self.0.open.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Wakes [`Steps`].
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<Mutex<Option<Waker>>>);

impl Clock {
    /// Wakes the work, if it waits.
    pub fn tick(&self) {
        let waker = self.0.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Work that waits this often, and then is worth 1.
    #[must_use]
    pub fn steps(&self, left: u32) -> Steps {
        Steps { left, clock: self.clone() }
    }
}

/// Waits for a [`Clock`], again and again.
#[derive(Debug)]
pub struct Steps {
    left: u32,
    clock: Clock,
}

impl Future for Steps {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
        // Polled without having been woken, it goes on waiting.
        let mut waker = self.clock.0.lock();
        let woken = waker.is_none();
        if woken && self.left == 0 {
            return Poll::Ready(1);
        }
        *waker = Some(cx.waker().clone());
        drop(waker);
        self.left -= u32::from(woken);
        Poll::Pending
    }
}

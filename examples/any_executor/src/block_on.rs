//! The smallest executor that deserves the name.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Runs a future to its end on this thread, which sleeps whenever the future waits.
///
/// It polls at first and then only when woken, so a wake-up that got lost would be a thread that sleeps forever.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let sleeper = Arc::new(Sleeper { thread: thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        // `park` may return for no reason, and for an `unpark` that was meant for somebody else on this thread.
        while !sleeper.woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

struct Sleeper {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        // Before the `unpark`, or the thread would look too early and sleep again.
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    fn it_polls_again_when_woken_and_not_when_merely_unparked() {
        let polls = AtomicBool::new(false);
        let woken = Arc::new(AtomicBool::new(false));
        block_on(poll_fn(|cx| {
            if polls.swap(true, Ordering::Relaxed) {
                assert!(woken.load(Ordering::Relaxed), "polled without a wake-up");
                return Poll::Ready(());
            }
            thread::current().unpark();
            let (waker, woken) = (cx.waker().clone(), Arc::clone(&woken));
            thread::spawn(move || {
                woken.store(true, Ordering::Relaxed);
                waker.wake();
            });
            Poll::Pending
        }));
    }

    #[test]
    fn a_wake_up_during_the_poll_is_not_lost() {
        let mut polls = 0;
        block_on(poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
        }));
        assert_eq!(polls, 3);
    }
}

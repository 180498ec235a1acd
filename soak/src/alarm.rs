//! Lets tasks sleep on any executor. It survives wakers that panic, which the timers of executors do not.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// A thread that wakes tasks when their time has come.
#[derive(Clone, Debug)]
pub(crate) struct Alarm(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    sleepers: Mutex<Sleepers>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Sleepers {
    next: u64,
    wakers: BTreeMap<(Instant, u64), Waker>,
}

impl Alarm {
    /// Starts it.
    pub(crate) fn start() -> Self {
        let alarm = Self(Arc::default());
        let shared = Arc::clone(&alarm.0);
        thread::spawn(move || shared.run());
        alarm
    }

    /// Sleeps for `time`.
    pub(crate) async fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut sleeper = Sleeper { shared: &self.0, until, number: None };
        poll_fn(|cx| sleeper.poll(cx.waker())).await;
    }
}

/// Gone from the list when it is dropped.
struct Sleeper<'a> {
    shared: &'a Shared,
    until: Instant,
    number: Option<u64>,
}

impl Sleeper<'_> {
    fn poll(&mut self, waker: &Waker) -> Poll<()> {
        if Instant::now() >= self.until {
            return Poll::Ready(());
        }
        let waker = waker.clone();
        let before = {
            let mut sleepers = self.shared.lock();
            let number = *self.number.get_or_insert_with(|| {
                sleepers.next += 1;
                sleepers.next
            });
            sleepers.wakers.insert((self.until, number), waker)
        };
        drop(before);
        self.shared.more.notify_one();
        Poll::Pending
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        let waker = self.number.and_then(|number| self.shared.lock().wakers.remove(&(self.until, number)));
        drop(waker);
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut sleepers = self.lock();
        loop {
            let now = Instant::now();
            let first = sleepers.wakers.keys().next().copied();
            sleepers = match first {
                Some(key) if key.0 <= now => {
                    let waker = sleepers.wakers.remove(&key);
                    drop(sleepers);
                    // It may be the waker of a flight, which wakes callers whose wakers panic.
                    _ = catch_unwind(AssertUnwindSafe(|| waker.into_iter().for_each(Waker::wake)));
                    self.lock()
                }
                Some((until, _)) => {
                    let waited = self.more.wait_timeout(sleepers, until - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.more.wait(sleepers).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

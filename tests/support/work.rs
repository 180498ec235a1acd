//! What a case has a leader do.
//!
//! Works are closures that may block: they wait at gates, for other callers, for each other. A caller that is a thread just runs
//! them. Of a task they make a future that is honestly pending ([`Work::into_future`]): it wakes itself once and lets others
//! run, then has the closure run in another thread, and ends when that one has woken it. So every work is polled at
//! least three times, followers join while it is pending, and it is woken from outside of the executor.
//!
//! A work that calls its own key must be refused, which goes by the thread that polls it. Such works are made by [`here`]:
//! their last part runs inside the poll. It may call the group, and must not wait for what another task has yet to do.

use super::acting::{Acting, Name, own_name};
use core::future::Future;
use core::mem;
use core::panic::AssertUnwindSafe;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

/// A work: what may block, then what it comes to.
pub(crate) struct Work<V> {
    first: Option<Box<dyn FnOnce() + Send>>,
    last: Last<V>,
}

enum Last<V> {
    MayBlock(Box<dyn FnOnce() -> V + Send>),
    Here(Box<dyn FnOnce() -> V + Send>),
}

/// Work whose last part runs where it is polled.
pub(crate) fn here<V>(last: impl FnOnce() -> V + Send + 'static) -> Work<V> {
    Work { first: None, last: Last::Here(Box::new(last)) }
}

pub(crate) trait IntoWork<V>: Send + 'static {
    fn into_work(self) -> Work<V>;
}

impl<V, F: FnOnce() -> V + Send + 'static> IntoWork<V> for F {
    fn into_work(self) -> Work<V> {
        Work { first: None, last: Last::MayBlock(Box::new(self)) }
    }
}

impl<V: 'static> IntoWork<V> for Work<V> {
    fn into_work(self) -> Work<V> {
        self
    }
}

impl<V: Send + 'static> Work<V> {
    /// The same after something that may block.
    pub(crate) fn after(self, earlier: impl FnOnce() + Send + 'static) -> Self {
        let first: Box<dyn FnOnce() + Send> = match self.first {
            None => Box::new(earlier),
            Some(first) => Box::new(move || {
                earlier();
                first();
            }),
        };
        Self { first: Some(first), last: self.last }
    }

    /// Runs it on this thread.
    pub(crate) fn run(self) -> V {
        if let Some(first) = self.first {
            first();
        }
        match self.last {
            Last::MayBlock(last) | Last::Here(last) => last(),
        }
    }

    /// The same as a future.
    pub(crate) async fn into_future(self) -> V {
        smol::future::yield_now().await;
        let Self { first, last } = self;
        match (first, last) {
            (None, Last::Here(last)) => last(),
            (Some(first), Last::Here(last)) => {
                Aside::new(first).await;
                last()
            }
            (first, last) => Aside::new(Box::new(|| Self { first, last }.run())).await,
        }
    }
}

/// Runs a closure in another thread, from the first poll on, and ends with what it came to, panics included.
struct Aside<T> {
    start: Option<Box<dyn FnOnce() -> T + Send>>,
    end: Arc<Mutex<End<T>>>,
}

enum End<T> {
    Awaited(Option<Waker>),
    Come(thread::Result<T>),
    Taken,
}

impl<T> Aside<T> {
    fn new(start: Box<dyn FnOnce() -> T + Send>) -> Self {
        Self { start: Some(start), end: Arc::new(Mutex::new(End::Awaited(None))) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Send + 'static> Future for Aside<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Cloned and dropped outside the lock, as it should be with wakers.
        let waker = cx.waker().clone();
        let _old = {
            let mut end = lock(&self.end);
            match mem::replace(&mut *end, End::Taken) {
                End::Awaited(old) => {
                    *end = End::Awaited(Some(waker));
                    old
                }
                End::Come(Ok(value)) => return Poll::Ready(value),
                End::Come(Err(payload)) => {
                    drop(end);
                    resume_unwind(payload)
                }
                End::Taken => panic!("polled after it has ended"),
            }
        };
        if let Some(start) = self.start.take() {
            let end = Arc::clone(&self.end);
            // The closure acts for the same caller as this poll.
            let name = own_name();
            in_another_thread(Box::new(move || finish(start, &end, name)));
        }
        Poll::Pending
    }
}

fn finish<T>(start: Box<dyn FnOnce() -> T + Send>, end: &Mutex<End<T>>, name: Name) {
    // The closure and all that it holds are gone before the work has ended.
    let come = catch_unwind(AssertUnwindSafe(|| {
        let _acting = Acting::aside(name);
        start()
    }));
    let awaited = mem::replace(&mut *lock(end), End::Come(come));
    if let End::Awaited(Some(waker)) = awaited {
        waker.wake();
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that have nothing to do. They belong to no executor, and outlive all tests.
static IDLE: Mutex<Vec<mpsc::Sender<Job>>> = Mutex::new(Vec::new());

/// Starts the job at once, however many others are at work.
fn in_another_thread(job: Job) {
    let idle = lock(&IDLE).pop();
    let Some(idle) = idle else {
        thread::spawn(move || {
            let (to_me, jobs) = mpsc::channel();
            let mut next = Ok(job);
            while let Ok(job) = next {
                job();
                lock(&IDLE).push(to_me.clone());
                next = jobs.recv();
            }
        });
        return;
    };
    idle.send(job).expect("a thread that is idle has not ended");
}

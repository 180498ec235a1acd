//! What the models of `AsyncGroup` have in common.

use crate::{KEY, join};
use alloc::boxed::Box;
use alloc::sync::Arc as Shared;
use alloc::task::Wake;
use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex, MutexGuard, Notify};
use loom::thread::{self, JoinHandle};
use oneflight::AsyncGroup;
use std::sync::PoisonError;

/// The group of these models.
pub type Group = AsyncGroup<u32, u32>;

/// A group with the defaults.
#[must_use]
pub fn new_group() -> Arc<Group> {
    Arc::new(AsyncGroup::new())
}

/// A thread that is an executor with one task. The `Arc` around it is alloc's, of which loom need not know.
struct Sleeper(Notify);

impl Wake for Sleeper {
    fn wake(self: Shared<Self>) {
        self.0.notify();
    }

    fn wake_by_ref(self: &Shared<Self>) {
        self.0.notify();
    }
}

/// Polls `future` until it is ready: again only when it was woken, or once for no reason, as loom likes. So a lost wake-up is a
/// deadlock, which loom reports.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let sleeper = Shared::new(Sleeper(Notify::new()));
    let waker = Waker::from(Shared::clone(&sleeper));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        sleeper.0.wait();
    }
}

/// A task that hears nothing: whoever wakes it does so in vain.
struct Deaf;

impl Wake for Deaf {
    fn wake(self: Shared<Self>) {}
}

/// Polls `call` once, in a task of its own that never polls it again by itself.
///
/// # Panics
///
/// If it is ready.
pub fn parked<F: Future>(call: F) -> Pin<Box<F>> {
    let mut call = Box::pin(call);
    assert!(poll(&mut call).is_none(), "the gate is shut");
    call
}

/// Polls a parked call once more.
pub fn poll<F: Future>(call: &mut Pin<Box<F>>) -> Option<F::Output> {
    match call.as_mut().poll(&mut Context::from_waker(&Waker::from(Shared::new(Deaf)))) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Work that waits for a gate, the same for all that the callers of a model make. Loom knows of the gate alone; what is counted
/// is read after everybody has ended.
#[derive(Clone, Debug)]
pub struct Works(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    gate: Mutex<Gate>,
    running: AtomicUsize,
    begun: AtomicUsize,
    ended: AtomicUsize,
    dropped: AtomicUsize,
}

#[derive(Debug, Default)]
struct Gate {
    open: bool,
    waker: Option<Waker>,
}

/// One work.
#[derive(Debug)]
struct Work {
    works: Works,
    value: u32,
    /// What the work changes at each poll, whoever polls it: loom tells if two may do so at once.
    state: UnsafeCell<()>,
}

impl Works {
    /// None has begun, and the gate is shut.
    #[must_use]
    pub fn new() -> Self {
        Self(Shared::new(Inner {
            gate: Mutex::new(Gate::default()),
            running: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
        }))
    }

    /// The work of one caller, which makes `value` once the gate is open.
    pub fn make(&self, value: u32) -> impl FnOnce() -> Pin<Box<dyn Future<Output = u32> + Send>> + 'static {
        let works = self.clone();
        move || {
            works.0.begun.fetch_add(1, Ordering::Relaxed);
            Box::pin(Work { works, value, state: UnsafeCell::new(()) })
        }
    }

    /// The work of a thread, which makes `value` whatever the gate.
    ///
    /// # Panics
    ///
    /// If another runs.
    pub fn run(&self, value: u32) -> u32 {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        self.alone(|| {
            thread::yield_now();
            value
        })
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.wake(true);
    }

    /// Wakes the work, whether or not the gate is open.
    pub fn stir(&self) {
        self.wake(false);
    }

    /// Opens the gate in a thread of its own.
    #[must_use]
    pub fn open_elsewhere(&self) -> JoinHandle<()> {
        let works = self.clone();
        thread::spawn(move || works.open())
    }

    /// How many have begun; have made their value; have been dropped, of those that are futures.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (read(&self.0.begun), read(&self.0.ended), read(&self.0.dropped))
    }

    fn wake(&self, open: bool) {
        let waker = {
            let mut gate = self.gate();
            gate.open |= open;
            gate.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.0.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a part of a work.
    fn alone<R>(&self, part: impl FnOnce() -> R) -> R {
        assert_eq!(self.0.running.fetch_add(1, Ordering::Relaxed), 0, "two works of one key run at the same time");
        let result = part();
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

impl Default for Works {
    fn default() -> Self {
        Self::new()
    }
}

impl Future for Work {
    type Output = u32;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
        let is_open = self.works.alone(|| {
            self.state.with_mut(|_| ());
            let mut gate = self.works.gate();
            let former = if gate.open { None } else { gate.waker.replace(cx.waker().clone()) };
            let is_open = gate.open;
            drop(gate);
            drop(former);
            is_open
        });
        if !is_open {
            return Poll::Pending;
        }
        self.works.0.ended.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(self.value)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.works.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task in a thread of its own that calls [`KEY`] with work that makes `own`.
pub fn call(group: &Arc<Group>, works: &Works, own: u32) -> JoinHandle<u32> {
    let work = works.make(own);
    crate::spawn(group, move |group| block_on(group.do_call(&KEY, work)))
}

/// Like [`call`], but the call joins before this returns, which saves the preemptions that it would take to get it there.
pub fn join_and_go_on(group: &Arc<Group>, works: &Works, own: u32) -> JoinHandle<u32> {
    let (group, work) = (Arc::clone(group), works.make(own));
    let joined = parked(async move { group.do_call(&KEY, work).await });
    thread::spawn(move || block_on(joined))
}

/// Lets the others run until `count` of them wait for [`KEY`]: asleep, or anywhere on their way there.
pub fn until_waiting(group: &Group, count: usize) {
    while group.waiters(&KEY) < count {
        thread::yield_now();
    }
}

/// Checks that `thread` got the value `expected`.
///
/// # Panics
///
/// If it did not.
#[track_caller]
pub fn assert_gets(thread: JoinHandle<u32>, expected: u32) {
    assert_eq!(join(thread), expected);
}

/// Checks that no flight is left, and that the next call of [`KEY`] leads one.
///
/// # Panics
///
/// If it is not so.
#[track_caller]
pub fn assert_nothing_left(group: &Group) {
    assert_eq!((group.in_flight(), group.waiters(&KEY)), (0, 0), "an entry is left behind");
    let mut next = Box::pin(group.do_call(&KEY, || async { 99 }));
    assert_eq!(poll(&mut next), Some(99), "nobody is there to wait for");
    assert_eq!(group.in_flight(), 0);
}

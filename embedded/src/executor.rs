//! An executor for thread mode: it polls a task when it was woken, and sleeps when none was.

use crate::interrupt;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::task::{Context, Waker};

/// How many ticks the executor sleeps before it says that a wake-up was lost.
const PATIENCE: u32 = 1_000;

/// Tasks that may borrow. Dropping the executor drops those that have not ended.
pub(crate) struct Executor<'a> {
    tasks: Vec<Task<'a>>,
}

struct Task<'a> {
    /// `None` once it has ended or was dropped.
    future: Option<Pin<Box<dyn Future<Output = ()> + 'a>>>,
    flag: Arc<Flag>,
    waker: Waker,
    polls: u32,
    parked: bool,
}

/// What a waker sets.
#[derive(Debug, Default)]
struct Flag {
    woken: AtomicBool,
    from_interrupts: AtomicU32,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if interrupt::is_here() {
            self.from_interrupts.fetch_add(1, Ordering::Relaxed);
        }
        self.woken.store(true, Ordering::Release);
    }
}

/// A task, and what it came to.
pub(crate) struct Handle<T> {
    index: usize,
    output: Rc<Cell<Option<T>>>,
}

impl<T> Handle<T> {
    /// What the task ended with. `None` if it has not ended, or was asked before.
    pub(crate) fn take(&self) -> Option<T> {
        self.output.take()
    }
}

impl<'a> Executor<'a> {
    pub(crate) fn new() -> Self {
        Self { tasks: Vec::new() }
    }

    /// Adds a task. It is not polled before the next [`run_woken`](Self::run_woken) or [`run`](Self::run).
    pub(crate) fn spawn<T: 'a>(&mut self, future: impl Future<Output = T> + 'a) -> Handle<T> {
        let output = Rc::new(Cell::new(None));
        let handle = Handle { index: self.tasks.len(), output: Rc::clone(&output) };
        let flag = Arc::new(Flag { woken: AtomicBool::new(true), ..Flag::default() });
        let future = Box::pin(async move { output.set(Some(future.await)) });
        let waker = Waker::from(Arc::clone(&flag));
        self.tasks.push(Task { future: Some(future), flag, waker, polls: 0, parked: false });
        handle
    }

    /// Polls what was woken, until nothing is.
    pub(crate) fn run_woken(&mut self) {
        while self.sweep() {}
    }

    /// Runs until every task has ended that is not parked. Fails if they wait and nobody wakes them.
    pub(crate) fn run(&mut self) {
        let mut slept = 0;
        while self.waiting().next().is_some() {
            if self.sweep() {
                slept = 0;
                continue;
            }
            assert!(
                slept < PATIENCE,
                "no task was woken for {PATIENCE} ticks, and {} of {} wait",
                self.waiting().count(),
                self.tasks.len()
            );
            slept += 1;
            // With interrupts masked: one that comes between the look and the sleep still ends the sleep.
            critical_section::with(|_| {
                if !self.waiting().any(|task| task.flag.woken.load(Ordering::Acquire)) {
                    cortex_m::asm::wfi();
                }
            });
        }
    }

    /// Polls each woken task once. Says whether there was any.
    fn sweep(&mut self) -> bool {
        let mut any = false;
        for task in self.tasks.iter_mut().filter(|task| task.is_waiting()) {
            if task.flag.woken.swap(false, Ordering::AcqRel) {
                any = true;
                task.poll();
            }
        }
        any
    }

    fn waiting(&self) -> impl Iterator<Item = &Task<'a>> {
        self.tasks.iter().filter(|task| task.is_waiting())
    }

    /// Drops the task's future where it is.
    pub(crate) fn cancel<T>(&mut self, handle: &Handle<T>) {
        drop(self.tasks[handle.index].future.take());
    }

    /// Keeps the task's future, but does not poll it any more, woken or not.
    pub(crate) fn park<T>(&mut self, handle: &Handle<T>) {
        self.tasks[handle.index].parked = true;
    }

    pub(crate) fn unpark<T>(&mut self, handle: &Handle<T>) {
        self.tasks[handle.index].parked = false;
    }

    /// How often the task was polled.
    pub(crate) fn polls<T>(&self, handle: &Handle<T>) -> u32 {
        self.tasks[handle.index].polls
    }

    /// Whether the task was woken and has not been polled since.
    pub(crate) fn is_woken<T>(&self, handle: &Handle<T>) -> bool {
        self.tasks[handle.index].flag.woken.load(Ordering::Acquire)
    }

    /// How often the task's waker was called in an interrupt.
    pub(crate) fn wakes_from_interrupts<T>(&self, handle: &Handle<T>) -> u32 {
        self.tasks[handle.index].flag.from_interrupts.load(Ordering::Relaxed)
    }
}

impl Task<'_> {
    fn is_waiting(&self) -> bool {
        self.future.is_some() && !self.parked
    }

    fn poll(&mut self) {
        self.polls += 1;
        let Some(future) = &mut self.future else { return };
        if future.as_mut().poll(&mut Context::from_waker(&self.waker)).is_ready() {
            self.future = None;
        }
    }
}

impl fmt::Debug for Executor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("tasks", &self.tasks.len()).finish()
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("index", &self.index).finish_non_exhaustive()
    }
}

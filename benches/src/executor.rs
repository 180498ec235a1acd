//! Executors to run tasks on: those that users have, and one that counts polls.

use crate::machine::Machine;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use parking_lot::Mutex;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime, RuntimeFlavor};

/// Something that waits for a future.
pub trait BlockOn: Sync {
    /// Runs `main` on this thread until it ends, and tasks meanwhile if there are some and they have no threads of their own.
    fn block_on<T>(&self, main: impl Future<Output = T>) -> T;
}

/// Something that runs tasks.
pub trait Executor: BlockOn {
    /// Runs `task` until it ends.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Whether tasks run on the thread that waits for them.
    fn runs_on_this_thread(&self) -> bool;
}

impl BlockOn for Runtime {
    #[inline]
    fn block_on<T>(&self, main: impl Future<Output = T>) -> T {
        self.block_on(main)
    }
}

impl Executor for Runtime {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.spawn(task));
    }

    fn runs_on_this_thread(&self) -> bool {
        self.handle().runtime_flavor() == RuntimeFlavor::CurrentThread
    }
}

/// A tokio whose tasks run on the thread that waits for them. With a timer, as most users have, and as amalgam-cache insists.
///
/// # Panics
///
/// If the system is out of resources.
#[must_use]
pub fn tokio_on_this_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime without sockets needs next to nothing")
}

/// A tokio with two threads of its own, on a core each.
///
/// # Panics
///
/// If the system is out of resources.
#[must_use]
pub fn tokio_with_two_threads(machine: &Machine) -> Runtime {
    let machine = machine.clone();
    let started = core::sync::atomic::AtomicUsize::new(0);
    let pin = move || machine.pin(started.fetch_add(1, Ordering::Relaxed));
    let runtime = Builder::new_multi_thread().worker_threads(2).on_thread_start(pin).enable_time().build();
    runtime.expect("two threads can be started")
}

/// Polls what is ready at once.
#[derive(Clone, Copy, Debug)]
pub struct ByHand;

impl BlockOn for ByHand {
    #[inline]
    fn block_on<T>(&self, main: impl Future<Output = T>) -> T {
        let mut main = pin!(main);
        loop {
            if let Poll::Ready(value) = main.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return value;
            }
        }
    }
}

/// A smol.
#[derive(Debug)]
pub struct Smol {
    executor: Arc<smol::Executor<'static>>,
    threads: Vec<JoinHandle<()>>,
    stop: smol::channel::Sender<()>,
}

impl Smol {
    /// One whose tasks run on the thread that waits for them.
    #[must_use]
    pub fn on_this_thread() -> Self {
        Self { executor: Arc::default(), threads: Vec::new(), stop: smol::channel::bounded(1).0 }
    }

    /// One with two threads of its own, on a core each.
    #[must_use]
    pub fn with_two_threads(machine: &Machine) -> Self {
        let executor = Arc::new(smol::Executor::new());
        let (stop, stopped) = smol::channel::bounded(1);
        let thread = |number| {
            let (machine, executor, stopped) = (machine.clone(), Arc::clone(&executor), stopped.clone());
            std::thread::spawn(move || {
                machine.pin(number);
                // The channel is closed, not used.
                let _closed = smol::block_on(executor.run(stopped.recv()));
            })
        };
        let threads = (0..2).map(thread).collect();
        Self { executor, threads, stop }
    }
}

impl BlockOn for Smol {
    fn block_on<T>(&self, main: impl Future<Output = T>) -> T {
        if self.runs_on_this_thread() { smol::block_on(self.executor.run(main)) } else { smol::block_on(main) }
    }
}

impl Executor for Smol {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(task).detach();
    }

    fn runs_on_this_thread(&self) -> bool {
        self.threads.is_empty()
    }
}

impl Drop for Smol {
    fn drop(&mut self) {
        self.stop.close();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() && !std::thread::panicking() {
                panic!("a task panicked");
            }
        }
    }
}

/// Tasks that are polled in the order in which they were woken, on this thread, and whose polls are counted.
#[derive(Default)]
pub struct Counting<'a> {
    tasks: Vec<Task<'a>>,
    queue: Arc<Queue>,
}

struct Task<'a> {
    future: Option<Pin<Box<dyn Future<Output = u64> + 'a>>>,
    bell: Arc<Bell>,
    waker: Waker,
    polls: u32,
}

type Queue = Mutex<VecDeque<usize>>;

struct Bell {
    number: usize,
    rung: AtomicBool,
    queue: Arc<Queue>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            self.queue.lock().push_back(self.number);
        }
    }
}

impl<'a> Counting<'a> {
    /// Adds a task, which [`run`](Self::run) polls. Returns its number.
    pub fn add(&mut self, future: impl Future<Output = u64> + 'a) -> usize {
        let number = self.tasks.len();
        let bell = Arc::new(Bell { number, rung: AtomicBool::new(false), queue: Arc::clone(&self.queue) });
        let waker = Waker::from(Arc::clone(&bell));
        waker.wake_by_ref();
        self.tasks.push(Task { future: Some(Box::pin(future)), bell, waker, polls: 0 });
        number
    }

    /// Polls whoever has been woken, until nobody is.
    pub fn run(&mut self) {
        while let Some(number) = self.next() {
            let task = &mut self.tasks[number];
            task.bell.rung.store(false, Ordering::SeqCst);
            let Some(future) = &mut task.future else { continue };
            task.polls += 1;
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&task.waker)) {
                core::hint::black_box(value);
                task.future = None;
            }
        }
    }

    fn next(&self) -> Option<usize> {
        self.queue.lock().pop_front()
    }

    /// Drops a task that has not ended.
    pub fn cancel(&mut self, number: usize) {
        self.tasks[number].future = None;
    }

    /// How many tasks have neither ended nor been dropped.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.tasks.iter().filter(|task| task.future.is_some()).count()
    }

    /// How often each task has been polled.
    pub fn polls(&self) -> impl Iterator<Item = u32> {
        self.tasks.iter().map(|task| task.polls)
    }
}

impl fmt::Debug for Counting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counting").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

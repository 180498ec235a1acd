//! What drives tasks: four executors at once, on the same keys.

use crate::bomb::Blast;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

pub(crate) type BoxTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Which executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Smol,
    TokioOne,
    TokioMany,
    ByHand,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Smol, Self::TokioOne, Self::TokioMany, Self::ByHand];
}

/// All of them, for the whole run.
#[derive(Clone, Debug)]
pub(crate) struct Executors {
    smol: Arc<smol::Executor<'static>>,
    tokio_one: tokio::runtime::Handle,
    tokio_many: tokio::runtime::Handle,
}

impl Executors {
    /// Starts them.
    pub(crate) fn start() -> Self {
        let smol = Arc::new(smol::Executor::new());
        for _ in 0..2 {
            let smol = Arc::clone(&smol);
            thread::spawn(move || smol::block_on(smol.run(pending::<()>())));
        }
        let one = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be built");
        let many =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime can be built");
        let executors = Self { smol, tokio_one: one.handle().clone(), tokio_many: many.handle().clone() };
        thread::spawn(move || one.block_on(pending::<()>()));
        thread::spawn(move || many.block_on(pending::<()>()));
        executors
    }

    /// Has `task` driven to its end. With `faulty` wakers, those of the executor by hand panic now and then.
    pub(crate) fn spawn(&self, kind: Kind, faulty: bool, task: BoxTask) {
        match kind {
            Kind::Smol => self.smol.spawn(task).detach(),
            Kind::TokioOne => drop(self.tokio_one.spawn(task)),
            Kind::TokioMany => drop(self.tokio_many.spawn(task)),
            Kind::ByHand => drop(thread::spawn(move || block_on(task, faulty))),
        }
    }
}

/// Wakes a thread that polls one future.
#[derive(Debug)]
struct Parker {
    thread: thread::Thread,
    woken: AtomicBool,
    faulty: bool,
    wakes: AtomicU32,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.thread.unpark();
        // The thread is woken all the same: a waker that does not wake would be another thing.
        let wakes = self.wakes.fetch_add(1, Ordering::Relaxed);
        if self.faulty && wakes % 41 == 40 && !thread::panicking() {
            Blast::Wake.go();
        }
    }
}

/// Polls a future on this thread, only when it was woken.
pub(crate) fn block_on<T>(future: impl Future<Output = T>, faulty: bool) -> T {
    let mut future = pin!(future);
    let parker =
        Arc::new(Parker { thread: thread::current(), woken: AtomicBool::new(false), faulty, wakes: AtomicU32::new(0) });
    let waker = Waker::from(Arc::clone(&parker));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        while !parker.woken.swap(false, Ordering::SeqCst) {
            thread::park();
        }
    }
}

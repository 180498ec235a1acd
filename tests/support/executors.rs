//! The executors that the calls of tasks are driven by, and how a thread waits for such a call.
//!
//! | executor | where its tasks are polled |
//! |---|---|
//! | [`SmolOne`](Kind::SmolOne), [`TokioOne`](Kind::TokioOne) | all on one thread |
//! | [`SmolMany`](Kind::SmolMany), [`TokioMany`](Kind::TokioMany) | on three threads, whichever is free |
//! | [`ByHand`](Kind::ByHand) | on the calling thread, each time when it was woken and never otherwise |
//! | [`InWake`](Kind::InWake) | wherever they are woken, inside `wake`, however deep in the group's code that is |

#[path = "../tasks/by_hand.rs"]
#[allow(dead_code, reason = "the rest of it is for `tests/tasks.rs`")]
mod by_hand;

use super::acting::{Acting, Name, is_on_the_spot, own_name};
use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Wake;
use std::thread;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    SmolOne,
    SmolMany,
    TokioOne,
    TokioMany,
    ByHand,
    InWake,
    /// For calls that no executor drives.
    None,
}

/// Where tasks are spawned.
#[derive(Clone)]
pub(crate) enum Executor {
    Smol(Arc<smol::Executor<'static>>),
    Tokio(tokio::runtime::Handle),
    ByHand,
    InWake,
    None,
}

/// Runs the threads of an executor until it is dropped. Waits for none of them then: if a test fails they may be stuck.
#[expect(dead_code, reason = "to be dropped")]
pub(crate) struct Running(smol::channel::Sender<()>, Option<Background>);

struct Background(Option<tokio::runtime::Runtime>);

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

const MANY: usize = 3;

/// Starts an executor.
pub(crate) fn start(kind: Kind) -> (Executor, Running) {
    let (running, stop) = smol::channel::bounded::<()>(1);
    let mut background = None;
    let executor = match kind {
        Kind::SmolOne | Kind::SmolMany => {
            let executor = Arc::new(smol::Executor::new());
            for _ in 0..if matches!(kind, Kind::SmolOne) { 1 } else { MANY } {
                let (executor, stop) = (Arc::clone(&executor), stop.clone());
                thread::spawn(move || smol::block_on(executor.run(stop.recv())));
            }
            Executor::Smol(executor)
        }
        Kind::TokioOne => {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("tokio can be started");
            let handle = runtime.handle().clone();
            thread::spawn(move || runtime.block_on(stop.recv()));
            Executor::Tokio(handle)
        }
        Kind::TokioMany => {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(MANY).build();
            let runtime = runtime.expect("tokio can be started");
            let handle = runtime.handle().clone();
            background = Some(Background(Some(runtime)));
            Executor::Tokio(handle)
        }
        Kind::ByHand => Executor::ByHand,
        Kind::InWake => Executor::InWake,
        Kind::None => Executor::None,
    };
    (executor, Running(running, background))
}

impl Executor {
    /// Drives `call` to its end, and blocks the thread for as long. A panic of the call goes on here.
    pub(crate) fn run<T: Send + 'static>(&self, call: BoxFuture<T>) -> T {
        let ended = Arc::new(Ended { result: Mutex::new(None), condvar: Condvar::new() });
        let task = Task { name: own_name(), call: Some(call), ended: Arc::clone(&ended) };
        // A call from inside a poll must not wait for the executor that it holds up, and one from a destructor is to be
        // made in this destructor.
        if is_on_the_spot() || thread::panicking() {
            block_on(task)
        } else {
            self.drive(task)
        }
        ended.wait().unwrap_or_else(|payload| resume_unwind(payload))
    }

    fn drive(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Smol(executor) => executor.spawn(task).detach(),
            Self::Tokio(runtime) => drop(runtime.spawn(task)),
            Self::ByHand => block_on(task),
            Self::InWake => drop(by_hand::PollsInWake::spawn(task)),
            Self::None => panic!("no executor was chosen"),
        }
    }
}

/// A call as a task, which tells its caller when all of it is gone.
struct Task<T> {
    name: Name,
    call: Option<BoxFuture<T>>,
    ended: Arc<Ended<T>>,
}

struct Ended<T> {
    result: Mutex<Option<thread::Result<T>>>,
    condvar: Condvar,
}

impl<T> Ended<T> {
    fn tell(&self, result: thread::Result<T>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.condvar.notify_all();
    }

    fn wait(&self) -> thread::Result<T> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        let told = self.condvar.wait_while(result, |result| result.is_none());
        told.unwrap_or_else(PoisonError::into_inner).take().expect("it was waited for")
    }
}

impl<T> Future for Task<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let _acting = Acting::on_the_spot(this.name);
        let Some(call) = &mut this.call else { panic!("polled after it has ended") };
        let result = match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(value)) => Ok(value),
            Err(payload) => Err(payload),
        };
        // What the call holds is dropped before its caller goes on.
        let dropped = catch_unwind(AssertUnwindSafe(|| this.call = None));
        this.ended.tell(result.and_then(|value| dropped.map(|()| value)));
        Poll::Ready(())
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if self.call.is_some() {
            self.ended.tell(Err(Box::new("the executor has dropped a task that had not ended")));
        }
    }
}

/// Drives `future` on this thread: polls it when it was woken, and never otherwise.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let woken = Arc::new(Woken { woken: Mutex::new(false), condvar: Condvar::new() });
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        woken.wait();
    }
}

struct Woken {
    woken: Mutex<bool>,
    condvar: Condvar,
}

impl Woken {
    fn wait(&self) {
        let woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = self.condvar.wait_while(woken, |woken| !*woken);
        *woken.unwrap_or_else(PoisonError::into_inner) = false;
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condvar.notify_one();
    }
}

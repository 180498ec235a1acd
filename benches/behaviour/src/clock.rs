//! Time as the cases see it: a number that only they move on. No case waits for luck, and a round of work takes no time.

use crate::values::{Answer, Failure, Value};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};

struct State {
    now: u32,
    /// Those of the tasks that wait for the next tick.
    wakers: Vec<Waker>,
}

static STATE: Mutex<State> = Mutex::new(State { now: 0, wakers: Vec::new() });
static TICKED: Condvar = Condvar::new();
static RUNS: AtomicUsize = AtomicUsize::new(0);
static ALIVE: AtomicUsize = AtomicUsize::new(0);

fn state<R>(look: impl FnOnce(&mut State) -> R) -> R {
    look(&mut STATE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Moves the time on by one, and wakes whoever waits for that.
pub(crate) fn tick() {
    let wakers = state(|state| {
        state.now += 1;
        std::mem::take(&mut state.wakers)
    });
    TICKED.notify_all();
    wakers.into_iter().for_each(Waker::wake);
}

/// Waits for the next tick.
pub(crate) async fn next_tick() {
    let start = state(|state| state.now);
    poll_fn(|cx| {
        state(|state| {
            if state.now > start {
                return Poll::Ready(());
            }
            if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.wakers.push(cx.waker().clone());
            }
            Poll::Pending
        })
    })
    .await;
}

/// Blocks the thread until the time has moved on.
pub(crate) fn sleep_until_next_tick() {
    let guard = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let start = guard.now;
    drop(TICKED.wait_while(guard, |state| state.now == start));
}

/// How many works were started.
pub(crate) fn runs() -> usize {
    RUNS.load(Ordering::SeqCst)
}

/// How many of them have neither ended nor been dropped.
pub(crate) fn works_alive() -> usize {
    ALIVE.load(Ordering::SeqCst)
}

/// The work of a task.
pub(crate) type Work = Box<dyn FnOnce() -> WorkFuture + Send>;
pub(crate) type WorkFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;
/// The work of a thread.
pub(crate) type Labour = Box<dyn FnOnce() -> Answer + Send>;

/// What a work does: takes some ticks, and ends.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    ticks: u32,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    Value(u64),
    Failure,
    Panic,
}

/// Ends at once with this value.
pub(crate) const fn value(number: u64) -> Plan {
    Plan { ticks: 0, end: End::Value(number) }
}

/// Ends at once with an error.
pub(crate) const fn failure() -> Plan {
    Plan { ticks: 0, end: End::Failure }
}

/// Panics at once.
pub(crate) const fn panic() -> Plan {
    Plan { ticks: 0, end: End::Panic }
}

impl Plan {
    /// Does so after so many ticks, each of which it waits for in turn.
    pub(crate) const fn after(self, ticks: u32) -> Self {
        Self { ticks, ..self }
    }

    /// As the work of a task.
    pub(crate) fn task(self) -> Work {
        Box::new(move || {
            Box::pin(async move {
                // Not before: some peers make the future of every caller, and poll one.
                let _begun = Begun::new();
                for _ in 0..self.ticks {
                    next_tick().await;
                }
                self.end.answer()
            })
        })
    }

    /// As the work of a thread.
    pub(crate) fn thread(self) -> Labour {
        Box::new(move || {
            let _begun = Begun::new();
            for _ in 0..self.ticks {
                sleep_until_next_tick();
            }
            self.end.answer()
        })
    }
}

impl End {
    fn answer(self) -> Answer {
        match self {
            Self::Value(number) => Ok(Value(number)),
            Self::Failure => Err(Failure),
            Self::Panic => panic!("a work that panics, as the case wants it"),
        }
    }
}

/// A work that was started and has not ended yet.
pub(crate) struct Begun(());

impl Begun {
    pub(crate) fn new() -> Self {
        RUNS.fetch_add(1, Ordering::SeqCst);
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

//! Tasks, polled by hand: each one when it was woken, unless the case has parked it.

use super::asleep::wait_until_others_sleep;
use super::{Crowd, End};
use crate::clock::{Begun, Plan, Work, next_tick, value};
use crate::peers::{Call, OnTasks, Peer, Side};
use crate::values::{Failure, Got, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::yield_now;

pub(crate) struct Tasks {
    peer: &'static dyn Peer<OnTasks>,
    tasks: Vec<Task>,
    /// What some peers spawn on. It runs when the case settles, on this thread.
    runtime: Runtime,
}

struct Task {
    call: Option<Call>,
    woken: Arc<Woken>,
    parked: bool,
    polls: usize,
    end: Option<End>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Task {
    fn is_due(&self) -> bool {
        self.call.is_some() && !self.parked && self.woken.0.load(Ordering::SeqCst)
    }
}

/// How often everybody gets a turn before nothing more is expected: tasks of some peers yield, or wake themselves all the time.
const TURNS: usize = 32;

impl Tasks {
    pub(crate) fn new(make: fn() -> Box<dyn Peer<OnTasks>>) -> Self {
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime of one thread needs next to nothing");
        let peer = {
            let _inside = runtime.enter();
            make()
        };
        // For as long as the process lives, like all that its cases start.
        Self { peer: Box::leak(peer), tasks: Vec::new(), runtime }
    }

    /// What the peers spawn on.
    pub(crate) fn runtime(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Does something where the peers find their runtime.
    pub(crate) fn inside<T>(&self, act: impl FnOnce() -> T) -> T {
        let _inside = self.runtime.enter();
        act()
    }

    fn poll(&mut self, number: usize) {
        let _inside = self.runtime.enter();
        let task = &mut self.tasks[number];
        let Some(call) = &mut task.call else { return };
        task.woken.0.store(false, Ordering::SeqCst);
        task.polls += 1;
        let waker = Waker::from(Arc::clone(&task.woken));
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(&mut Context::from_waker(&waker))));
        task.end = match polled {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(got)) => Some(End::Got(got)),
            Err(_) => Some(End::Panicked),
        };
        task.call = None;
    }

    /// Never polls the task again, and keeps it.
    pub(crate) fn park(&mut self, number: usize) {
        self.tasks[number].parked = true;
    }

    /// Drops the task's call.
    pub(crate) fn leave(&mut self, number: usize) {
        let _inside = self.runtime.enter();
        self.tasks[number].call = None;
    }

    /// Forgets those that are out.
    pub(crate) fn clear(&mut self) {
        self.tasks.retain(|task| task.call.is_some());
    }

    pub(crate) fn polls(&self, number: usize) -> usize {
        self.tasks[number].polls
    }

    /// Lets the spawned tasks of the peer do what they can.
    pub(crate) fn turn(&self) {
        self.runtime.block_on(async {
            for _ in 0..TURNS {
                yield_now().await;
            }
        });
        wait_until_others_sleep();
    }
}

impl Crowd for Tasks {
    type Side = OnTasks;

    fn peer(&self) -> &'static dyn Peer<OnTasks> {
        self.peer
    }

    fn work(&self, plan: Plan) -> Work {
        plan.task()
    }

    fn nested_work(&self, key: u64) -> Work {
        let peer = self.peer;
        Box::new(move || {
            Box::pin(async move {
                let _begun = Begun::new();
                next_tick().await;
                match peer.call(key, value(0).task()).await {
                    Got::Value(number) => Ok(Value(number)),
                    Got::Failure | Got::Refused => Err(Failure),
                }
            })
        })
    }

    fn many_work(&self, given: &'static Mutex<Vec<Vec<u64>>>) -> <OnTasks as Side>::ManyWork {
        Box::new(move |keys| {
            Box::pin(async move {
                given.lock().expect("nothing panics here").push(keys.clone());
                next_tick().await;
                keys
            })
        })
    }

    fn join(&mut self, call: Call) -> usize {
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        self.tasks.push(Task { call: Some(call), woken, parked: false, polls: 0, end: None });
        self.poll(self.tasks.len() - 1);
        self.tasks.len() - 1
    }

    fn settle(&mut self) {
        for _ in 0..TURNS {
            let due: Vec<usize> = (0..self.tasks.len()).filter(|&number| self.tasks[number].is_due()).collect();
            due.iter().for_each(|&number| self.poll(number));
            self.turn();
            if due.is_empty() && !self.tasks.iter().any(Task::is_due) {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.tasks.iter().all(|task| task.call.is_none() || task.parked)
    }

    fn end(&self, number: usize) -> Option<End> {
        self.tasks[number].end
    }
}

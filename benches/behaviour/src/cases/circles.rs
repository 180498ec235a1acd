//! Works that call for what they are to make.

use super::{Case, Found, KEY, found};
use crate::clock::{Work, value};
use crate::crowd::{Crowd, End, Tasks, Threads, pass_time_until};
use crate::peers::{Call, OnTasks, Peer};
use crate::values::{Failure, Got, Value};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "own-key",
        row: "The work calls for its own key",
        right: "panic or error",
        tasks: Some(own_key),
        threads: Some(own_key),
    },
    Case {
        id: "circle",
        row: "Two works call for each other's key, on two threads",
        right: "panic or error",
        tasks: Some(circle_of_tasks),
        threads: Some(circle_of_threads),
    },
];

fn told(ends: &[Option<End>]) -> Found {
    let is_any = |end| ends.contains(&Some(end));
    let text = if is_any(End::Panicked) {
        "panic"
    } else if is_any(End::Got(Got::Failure)) || is_any(End::Got(Got::Refused)) {
        "error"
    } else {
        "runs again"
    };
    found(text != "runs again", text)
}

fn own_key<C: Crowd>(crowd: &mut C) -> Found {
    let call = crowd.peer().call(KEY, crowd.nested_work(KEY));
    told(&[crowd.complete(call)])
}

fn circle_of_threads(crowd: &mut Threads) -> Found {
    let first = crowd.peer().call(KEY, crowd.nested_work(KEY + 1));
    let second = crowd.peer().call(KEY + 1, crowd.nested_work(KEY));
    let callers = [crowd.join(first), crowd.join(second)];
    crowd.finish();
    told(&crowd.ends(callers))
}

/// Each task is polled by a thread of its own, and both at the same time when they call: the worst that can happen. On one
/// thread, where one is polled inside the other, some peers notice.
fn circle_of_tasks(crowd: &mut Tasks) -> Found {
    let meeting = Arc::new(Meeting::default());
    let start = |own: u64, other: u64| {
        let (peer, runtime) = (crowd.peer(), crowd.runtime());
        let call = peer.call(own, work_that_meets(peer, other, Arc::clone(&meeting)));
        thread::spawn(move || {
            let _inside = runtime.enter();
            block_on(call)
        })
    };
    let threads = [start(KEY, KEY + 1), start(KEY + 1, KEY)];
    pass_time_until(|| {
        crowd.turn();
        // One that is told is enough: the other may wait for it no more.
        threads.iter().any(thread::JoinHandle::is_finished)
    });
    let ends = threads.map(|thread| thread.is_finished().then(|| thread.join().map_or(End::Panicked, End::Got)));
    told(&ends)
}

fn work_that_meets(peer: &'static dyn Peer<OnTasks>, other: u64, meeting: Arc<Meeting>) -> Work {
    Box::new(move || {
        Box::pin(async move {
            meeting.meet();
            match peer.call(other, value(0).task()).await {
                Got::Value(number) => Ok(Value(number)),
                Got::Failure | Got::Refused => Err(Failure),
            }
        })
    })
}

/// Where two threads wait for each other.
#[derive(Default)]
struct Meeting {
    here: Mutex<usize>,
    all_here: Condvar,
}

/// After that one goes on alone: some peers poll both works on the same thread.
const PATIENCE: Duration = Duration::from_secs(1);

impl Meeting {
    fn meet(&self) {
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        *here += 1;
        self.all_here.notify_all();
        drop(self.all_here.wait_timeout_while(here, PATIENCE, |here| *here < 2));
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on(call: Call) -> Got {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut call = pin!(call);
    loop {
        if let Poll::Ready(got) = call.as_mut().poll(&mut Context::from_waker(&waker)) {
            return got;
        }
        thread::park();
    }
}

//! Who is woken, and what executors may do in a wake-up.

use super::{Case, FOLLOWERS, Found, KEY, found, is_value, tally};
use crate::clock::{self, value};
use crate::crowd::{Crowd, End, Tasks, pass_time_until};
use crate::peers::{Call, OnTasks, Peer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub(super) const CASES: &[Case] = &[
    Case {
        id: "polls",
        row: "Polls of a waiting task while the work awaits 50 times, 200 wait",
        right: "4 at most",
        tasks: Some(polls),
        threads: None,
    },
    Case {
        id: "on-the-spot",
        row: "An executor that polls inside a wake-up, four callers",
        right: "4 served",
        tasks: Some(on_the_spot),
        threads: None,
    },
    Case {
        id: "waker-drop",
        row: "A waker that calls the same key when it is dropped",
        right: "1 served",
        tasks: Some(waker_drop),
        threads: None,
    },
];

const WAITING: usize = 200;

fn polls(crowd: &mut Tasks) -> Found {
    crowd.enter(KEY, value(0).after(50));
    let others: Vec<usize> = (0..WAITING).map(|_| crowd.enter(KEY, value(1).after(50))).collect();
    crowd.finish();
    let polls: usize = others.into_iter().map(|number| crowd.polls(number)).sum();
    let each = (polls as f64 / WAITING as f64).round();
    // Those who are woken all the time are woken as often as there is time.
    let text = if each > 100.0 { "more than 100".to_owned() } else { format!("{each}") };
    found(each <= 4.0, text)
}

/// A task that is polled by whoever wakes it, there and then.
struct OnTheSpot {
    call: Mutex<Option<Call>>,
    polling: AtomicBool,
    again: AtomicBool,
    end: Mutex<Option<End>>,
}

impl OnTheSpot {
    fn start(call: Call) -> Arc<Self> {
        let task = Arc::new(Self {
            call: Mutex::new(Some(call)),
            polling: AtomicBool::new(false),
            again: AtomicBool::new(false),
            end: Mutex::new(None),
        });
        Arc::clone(&task).wake();
        task
    }

    fn end(&self) -> Option<End> {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = call.as_mut() else { return };
        let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(&mut Context::from_waker(&waker))));
        let end = match polled {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(got)) => End::Got(got),
            Err(_) => End::Panicked,
        };
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        *call = None;
    }
}

impl Wake for OnTheSpot {
    fn wake(self: Arc<Self>) {
        self.again.store(true, Ordering::SeqCst);
        // A task that is woken while it is polled is polled again after that, by whoever polls it.
        while self.again.load(Ordering::SeqCst) && !self.polling.swap(true, Ordering::SeqCst) {
            self.again.store(false, Ordering::SeqCst);
            self.poll();
            self.polling.store(false, Ordering::SeqCst);
        }
    }
}

fn on_the_spot(crowd: &mut Tasks) -> Found {
    let peer = crowd.peer();
    let tasks: Vec<_> = crowd.inside(|| {
        let call = |caller| OnTheSpot::start(peer.call(KEY, value(caller).after(1).task()));
        (0..FOLLOWERS).map(call).collect()
    });
    crowd.turn();
    crowd.inside(clock::tick);
    pass_time_until(|| {
        crowd.turn();
        tasks.iter().all(|task| task.end().is_some())
    });
    let ends: Vec<_> = tasks.iter().map(|task| task.end()).collect();
    found(ends.iter().all(is_value), tally(&ends))
}

/// Calls the peer when the last clone of it is dropped.
struct CallsWhenDropped {
    peer: &'static dyn Peer<OnTasks>,
    armed: AtomicBool,
}

impl Wake for CallsWhenDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for CallsWhenDropped {
    fn drop(&mut self) {
        if self.armed.swap(false, Ordering::SeqCst) {
            let mut call = self.peer.call(KEY, value(2).after(1).task());
            // Whatever it comes to: it is about those who wait.
            let _polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

fn waker_drop(crowd: &mut Tasks) -> Found {
    let peer = crowd.peer();
    crowd.enter(KEY, value(0).after(1));
    let mut call = crowd.call(KEY, value(1).after(1));
    crowd.inside(|| {
        let waker = Waker::from(Arc::new(CallsWhenDropped { peer, armed: AtomicBool::new(true) }));
        let polled = call.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "the work takes a tick");
    });
    // With the crowd's own waker, for which the peer gives the other one up.
    let other = crowd.join(call);
    crowd.finish();
    let ends = crowd.ends([other]);
    found(is_value(&ends[0]), tally(&ends))
}

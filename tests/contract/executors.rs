//! The executors of the suite are what they are said to be, or its matrix would say nothing.

use crate::support::executors::{Executor, Kind, start};
use crate::support::limits::within_limit;
use crate::support::work::{IntoWork, Work};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::Poll;
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::thread::{self, ThreadId};

/// Where a call was polled that was woken from other threads a few times, and which threads those were. Fails if it was polled
/// without having been woken.
fn polls_and_wakes(executor: &Executor) -> (Vec<ThreadId>, Vec<ThreadId>) {
    let woken = Arc::new(AtomicUsize::new(0));
    executor.run(Box::pin(async move {
        let (mut polls, mut wakes) = (Vec::new(), Vec::new());
        poll_fn(|cx| {
            assert_eq!(woken.load(Ordering::SeqCst), polls.len(), "as many polls as wake-ups, after the first one");
            polls.push(thread::current().id());
            if polls.len() == 5 {
                return Poll::Ready(());
            }
            let (woken, waker) = (Arc::clone(&woken), cx.waker().clone());
            let wakes_it = thread::spawn(move || {
                woken.fetch_add(1, Ordering::SeqCst);
                waker.wake();
            });
            wakes.push(wakes_it.thread().id());
            Poll::Pending
        })
        .await;
        (polls, wakes)
    }))
}

#[test]
fn one_thread_polls_all_tasks_and_is_no_callers() {
    for kind in [Kind::SmolOne, Kind::TokioOne] {
        within_limit(move || {
            let (executor, _running) = start(kind);
            let polled_on = |executor: &Executor| BTreeSet::from_iter(name_all(polls_and_wakes(executor).0));
            let callers: Vec<_> = (0..4)
                .map(|_| {
                    let executor = executor.clone();
                    thread::spawn(move || polled_on(&executor))
                })
                .collect();
            let all: BTreeSet<_> = callers.into_iter().flat_map(|caller| caller.join().expect("no panic")).collect();
            assert_eq!(all.len(), 1, "{kind:?}");
            assert!(!all.contains(&format!("{:?}", thread::current().id())));
        });
    }
}

/// `ThreadId` has no order.
fn name_all(threads: Vec<ThreadId>) -> impl Iterator<Item = String> {
    threads.into_iter().map(|thread| format!("{thread:?}"))
}

#[test]
fn many_threads_poll_several_tasks_at_once() {
    for kind in [Kind::SmolMany, Kind::TokioMany] {
        within_limit(move || {
            let (executor, _running) = start(kind);
            // Each waits, inside its poll, for another's.
            let both_are_polled = Arc::new(Barrier::new(2));
            let callers: Vec<_> = (0..2)
                .map(|_| {
                    let (executor, both) = (executor.clone(), Arc::clone(&both_are_polled));
                    thread::spawn(move || {
                        executor.run(Box::pin(async move {
                            both.wait();
                        }));
                    })
                })
                .collect();
            callers.into_iter().for_each(|caller| caller.join().expect("no panic"));
        });
    }
}

#[test]
fn by_hand_a_call_is_polled_in_its_callers_thread() {
    within_limit(|| {
        let (executor, _running) = start(Kind::ByHand);
        let (polls, _) = polls_and_wakes(&executor);
        assert!(polls.into_iter().all(|thread| thread == thread::current().id()));
    });
}

#[test]
fn in_wake_a_call_is_polled_where_it_is_woken() {
    within_limit(|| {
        let (executor, _running) = start(Kind::InWake);
        let (polls, wakes) = polls_and_wakes(&executor);
        assert_eq!(polls[0], thread::current().id());
        for (pair, woken_by) in polls.windows(2).zip(wakes) {
            // One that is woken during a poll is polled again by who is at it.
            assert!(pair[1] == woken_by || pair[1] == pair[0]);
        }
    });
}

/// How often a work is pending before it ends.
fn times_pending(work: Work<u32>) -> usize {
    let (executor, _running) = start(Kind::ByHand);
    executor.run(Box::pin(async move {
        let mut work = pin!(work.into_future());
        let mut times = 0;
        poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            times += usize::from(polled.is_pending());
            polled
        })
        .await;
        times
    }))
}

#[test]
fn the_work_of_a_task_is_pending() {
    within_limit(|| {
        let here = || crate::support::work::here(|| 1);
        assert_eq!(times_pending((|| 1).into_work()), 2);
        assert_eq!(times_pending(here()), 1);
        assert_eq!(times_pending(here().after(|| ())), 2);
    });
}

//! E2: threads that wait for each other in a circle, with feature `deadlock-detection`.

use crate::support::callers::{Blown, Caller, Callers, blow, error_of};
use crate::support::in_time::in_time;
use crate::support::limits::{until, within_limit};
use crate::support::way::{AnyGroup, Options, Way, group};
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use oneflight::{AsyncGroup, CallError, SyncGroup};
use smol::future::yield_now;
use std::future::{Future, poll_fn};
use std::panic::catch_unwind;
use std::sync::{Arc, Barrier};
use std::thread;

/// What a call inside the work of another came to: its value, or why there was none.
type Inner = Result<u32, CallError>;

/// Leads `own`, waits for the others to lead theirs, then calls `next` from inside the work. What came of that is the
/// flight's value.
fn link<G: AnyGroup<u32, Inner>>(group: &G, all_lead: &Arc<Barrier>, own: u32, next: u32) -> Caller<Inner> {
    let (inner, all_lead) = (group.clone(), Arc::clone(all_lead));
    group.caller(own, move || {
        all_lead.wait();
        let called = catch_unwind(AssertUnwindSafe(|| inner.call(next, Options::none(), || Ok(0))));
        match error_of(&called) {
            Some(error) => Err(error),
            None => Ok(own),
        }
    })
}

fn a_circle_of<W: Way>(size: u32) {
    let group = group::<W, u32, Inner>();
    let all_lead = Arc::new(Barrier::new(size as usize));
    let links: Vec<_> = (0..size).map(|own| link(&group, &all_lead, own, (own + 1) % size)).collect();
    let results: Vec<Inner> = links.into_iter().map(|link| link.value()).collect();
    let refused: Vec<_> = results.iter().filter(|result| result.is_err()).collect();
    assert!(!refused.is_empty(), "somebody must have closed the circle");
    assert!(refused.iter().all(|result| **result == Err(CallError::WouldDeadlock)));
    // The one that is refused goes on, and lets the others go on: no more than one is needed.
    assert_eq!(refused.len(), 1);
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.caller(0, || Ok(7)).value(), Ok(7));
}

/// E2.
pub(crate) fn e2_of_two_threads_that_would_wait_for_each_other_one_is_refused<W: Way>() {
    for _ in 0..20 {
        a_circle_of::<W>(2);
    }
}

/// E2.
pub(crate) fn e2_of_three_threads_in_a_circle_one_is_refused<W: Way>() {
    for _ in 0..20 {
        a_circle_of::<W>(3);
    }
}

/// E2.
pub(crate) fn e2_a_diamond_is_no_circle<W: Way>() {
    let group = group::<W, u32, Inner>();
    let bottom = group.leader(3, || Ok(3));
    // 1 -> 3 and 2 -> 3, then 0 -> 1 and once more 0 -> 2 by another caller.
    let one = Arc::new(Barrier::new(1));
    let sides = [1, 2].map(|own| link(&group, &one, own, 3));
    until("both sides wait", || group.waiters(&3) == 2);
    let tops = [(10, 1), (20, 2)].map(|(own, next)| link(&group, &one, own, next));
    until("the tops wait", || group.waiters(&1) == 1 && group.waiters(&2) == 1);
    let beside = group.follower(1, || Ok(0));
    assert_eq!(bottom.value(), Ok(3));
    assert_eq!(sides.map(|side| side.value()), [Ok(1), Ok(2)]);
    assert_eq!(tops.map(|top| top.value()), [Ok(10), Ok(20)]);
    assert_eq!(beside.value(), Ok(1));
    assert_eq!(group.in_flight(), 0);
}

/// E2: whoever was refused has left. It is the one that begins to wait last, and either may.
pub(crate) fn e2_a_refused_call_leaves_no_waiter_behind<W: Way>() {
    /// Calls `next` from inside a work: the value, or `refused`.
    fn call_next<W: Way>(group: &W::Group<u32, Inner>, next: u32, refused: u32) -> Inner {
        let called = catch_unwind(AssertUnwindSafe(|| group.call(next, Options::none(), || Ok(0))));
        if error_of(&called) == Some(CallError::WouldDeadlock) {
            assert_eq!(group.waiters(&next), 0);
            return Ok(refused);
        }
        called.expect("it is refused or served").expect("it is refused or served").value
    }
    let group = group::<W, u32, Inner>();
    let first = group.leader(1, {
        let group = group.clone();
        move || call_next::<W>(&group, 2, 10)
    });
    let second = group.caller(2, {
        let group = group.clone();
        move || {
            until("the first one joins", || group.waiters(&2) == 1);
            call_next::<W>(&group, 1, 20)
        }
    });
    until("the second one leads", || group.flight_info(&2).is_some());
    let values = (first.value(), second.value());
    assert!(values == (Ok(10), Ok(10)) || values == (Ok(20), Ok(20)), "one is refused: {values:?}");
    assert_eq!(group.in_flight(), 0);
}

/// E2: a circle may also be closed by a caller that takes over, since it begins to lead.
pub(crate) fn e2_a_circle_that_a_take_over_makes_possible_is_refused_too<W: Way>() {
    // Which of the two waiters takes over is up to the scheduler: mostly both happen, and nobody hangs in either case.
    for _ in 0..50 {
        let group = group::<W, u32, Inner>();
        let first = group.leader(2, || blow(Blown));
        let waits = group.caller(1, {
            let group = group.clone();
            move || group.call(2, Options::none(), || Ok(1)).map_or_else(Err, |answer| answer.value)
        });
        until("the leader of 1 waits for 2", || group.waiters(&2) == 1);
        let heir = group.follower(2, {
            let group = group.clone();
            move || {
                let called = catch_unwind(AssertUnwindSafe(|| group.call(1, Options::none(), || Ok(0))));
                error_of(&called).map_or(Ok(2), Err)
            }
        });
        assert_eq!(first.panic::<Blown>(), Blown);
        // If the heir took over, it closes the circle with its call of 1, or the leader of 1 does by waiting on for 2: whoever
        // comes last is told, and the other one gets an answer.
        let _ = (heir.ended(), waits.ended());
        assert_eq!(group.in_flight(), 0);
    }
}

/// E2: a wait that ends by itself is no deadlock, neither for who waits so nor for the others in the circle.
#[test]
fn e2_a_circle_with_a_bounded_wait_in_it_is_not_reported() {
    within_limit(|| {
        in_time([50], |limit| is_circle_with_a_bounded_wait(limit, false));
        in_time([50, 1_000, 10_000], |limit| is_circle_with_a_bounded_wait(limit, true));
    });
}

/// Whether two threads waited for each other, one of them for `limit` at most. If that one begins, the other may come too late.
fn is_circle_with_a_bounded_wait(limit: Duration, bounded_begins: bool) -> bool {
    let group: &SyncGroup<u32, Inner> = &SyncGroup::new();
    let both_lead = &Barrier::new(2);
    let timed_out = Err(CallError::TimedOut);
    let unbounded = thread::scope(|scope| {
        let bounded = scope.spawn(|| {
            group.do_call(&1, || {
                both_lead.wait();
                if !bounded_begins {
                    until("the other one waits", || group.waiters(&1) == 1);
                }
                group.do_call_wait_timeout(&2, limit, || Ok(0)).unwrap_or_else(Err)
            })
        });
        let unbounded = group.do_call(&2, || {
            both_lead.wait();
            if bounded_begins {
                until("the other one waits, or has", || group.waiters(&2) == 1 || bounded.is_finished());
            }
            group.call(&1).run(|| Ok(0)).map_or_else(Err, |outcome| outcome.value)
        });
        assert_eq!(bounded.join().expect("it does not panic"), timed_out);
        unbounded
    });
    assert_eq!(group.in_flight(), 0);
    let is_late = bounded_begins && unbounded == Ok(0);
    assert!(is_late || unbounded == timed_out, "it got the other's value: {unbounded:?}");
    !is_late
}

/// E2: who leads several keys is waited for through each of them.
#[test]
fn e2_a_circle_through_a_batch_of_threads_is_refused() {
    within_limit(|| {
        let group: &SyncGroup<u32, Inner> = &SyncGroup::new();
        let both_lead = &Barrier::new(2);
        let call = |key| {
            both_lead.wait();
            group.call(&key).run(|| Ok(0)).map_or_else(Err, |outcome| outcome.value)
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| group.do_call(&3, || call(2)));
            let values = group.do_many(&[1, 2], |keys| vec![call(3); keys.len()]);
            // One is refused, and its error is the other's value.
            assert_eq!(values, [Err(CallError::WouldDeadlock); 2]);
            assert_eq!(other.join().expect("it does not panic"), Err(CallError::WouldDeadlock));
        });
        assert_eq!(group.in_flight(), 0);
    });
}

/// E2: a batch that waits closes a circle as well, whichever of its keys it is, and the keys that it leads itself have landed.
#[test]
fn e2_a_batch_that_would_close_a_circle_is_refused() {
    for keys in [[2, 4], [4, 2]] {
        // Whoever has joined is seen before its wait is noted, so the other one may be the last to be noted, and be refused.
        within_limit(move || while !is_the_batch_refused(&keys) {});
    }
}

/// Whether a batch was refused, of these keys, one of which is led by another thread that waits for this one, or that other thread.
fn is_the_batch_refused(keys: &[u32; 2]) -> bool {
    let group: &SyncGroup<u32, Inner> = &SyncGroup::new();
    let lead = &Barrier::new(2);
    let refused = thread::scope(|scope| {
        let other = scope.spawn(|| {
            group.do_call(&2, || {
                lead.wait();
                group.call(&1).run(|| Ok(0)).map_or_else(Err, |outcome| outcome.value)
            })
        });
        let value = group.do_call(&1, || {
            lead.wait();
            until("the other one waits for this", || group.waiters(&1) == 1);
            let called = group.run_many(keys, None, |keys| keys.into_iter().map(|key| Ok(*key)).collect());
            assert!(group.flight_info(&4).is_none());
            called.map(|_| 1)
        });
        let other = other.join().expect("it does not panic");
        assert!([Ok(1), Err(CallError::WouldDeadlock)].contains(&value));
        assert_eq!(other, if value.is_ok() { Err(CallError::WouldDeadlock) } else { value });
        value.is_err()
    });
    assert_eq!(group.in_flight(), 0);
    refused
}

/// E2: a batch belongs to the thread that polls it, which need not be the one that polled it before.
#[test]
fn e2_a_circle_through_a_batch_is_refused() {
    within_limit(|| {
        let group: &AsyncGroup<u32, Inner> = &AsyncGroup::new();
        let both_lead = &Barrier::new(2);
        let load = |keys: Vec<&u32>| {
            let count = keys.len();
            let mut polls = 0..2;
            async move {
                poll_fn(|_| if polls.next() == Some(0) { Poll::Pending } else { Poll::Ready(()) }).await;
                both_lead.wait();
                let called = group.call(&3).run_blocking(|| Ok(0));
                vec![called.map_or_else(Err, |outcome| outcome.value); count]
            }
        };
        let mut many = pin!(group.do_many(&[1, 2], load));
        let mut poll = || many.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let first = thread::scope(|scope| scope.spawn(&mut poll).join().expect("it does not panic"));
        assert!(first.is_pending());
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                group.do_call_blocking(&3, || {
                    both_lead.wait();
                    group.call(&2).run_blocking(|| Ok(0)).map_or_else(Err, |outcome| outcome.value)
                })
            });
            let Poll::Ready(values) = poll() else { panic!("its work blocks") };
            // One is refused, and its error is the other's value.
            assert_eq!(values, [Err(CallError::WouldDeadlock); 2]);
            assert_eq!(other.join().expect("it does not panic"), Err(CallError::WouldDeadlock));
        });
        assert_eq!(group.in_flight(), 0);
    });
}

/// E2: work that a flight of tasks has taken is run by the thread that polls it, which need not be the one that polled it before.
#[test]
fn e2_a_circle_through_work_that_is_polled_again_is_refused() {
    within_limit(|| {
        let group: &'static AsyncGroup<u32, Inner> = Box::leak(Box::new(AsyncGroup::new()));
        let both_lead = Arc::new(Barrier::new(2));
        let inside = Arc::clone(&both_lead);
        let work = || async move {
            yield_now().await;
            inside.wait();
            group.call(&3).run_blocking(|| Ok(0)).map_or_else(Err, |outcome| outcome.value)
        };
        let mut call = Box::pin(group.do_call(&1, work));
        let mut poll = || call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let first = thread::scope(|scope| scope.spawn(&mut poll).join().expect("it does not panic"));
        assert!(first.is_pending());
        let other = thread::spawn(move || {
            group.do_call_blocking(&3, || {
                both_lead.wait();
                group.call(&1).run_blocking(|| Ok(0)).map_or_else(Err, |outcome| outcome.value)
            })
        });
        let Poll::Ready(value) = poll() else { panic!("its work blocks") };
        // One is refused, and its error is the other's value.
        assert_eq!(value, Err(CallError::WouldDeadlock));
        assert_eq!(other.join().expect("it does not panic"), Err(CallError::WouldDeadlock));
        assert_eq!(group.in_flight(), 0);
    });
}

/// E2: a guard belongs to no thread, so nobody is known to wait for whoever holds it.
#[test]
fn e2_waiting_for_a_guard_is_not_reported() {
    within_limit(|| {
        let group: SyncGroup<u32, Inner> = SyncGroup::new();
        let lead = group.try_lead(&1).expect("no flight is on");
        thread::scope(|scope| {
            let other = scope.spawn(|| group.do_call(&2, || group.do_call(&1, || Ok(0))));
            until("the other thread waits for the guard", || group.waiters(&1) == 1);
            // Held by this thread, which now would wait for the other one: only its own limit ends it.
            let called = group.call(&2).wait_timeout(Duration::from_millis(10)).run(|| Ok(0));
            assert_eq!(called, Err(CallError::TimedOut));
            assert_eq!(lead.land(Ok(1)).value, Ok(1));
            assert_eq!(other.join().expect("it does not panic"), Ok(1));
        });
    });
}

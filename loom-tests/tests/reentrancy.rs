//! Re-entrancy: a call from inside the work of its own flight is told so, and no other is. Threads are told apart by loom's
//! own thread-locals here.

#![cfg(loom)]

use loom::sync::Arc;
use oneflight::CallError;
use oneflight_loom_tests::tasks::{self, block_on, parked};
use oneflight_loom_tests::{KEY, assert_nothing_left, assert_served, check, join, lead, new_group, spawn};
use std::future::poll_fn;
use std::task::Poll;

/// The leader calls its own key, while another thread calls it too: the first is told, the second waits.
#[test]
fn only_the_leader_is_told() {
    check(|| {
        let group = new_group();
        let other = spawn(&group, |group| {
            assert_served(
                group.call(&KEY).run(|| if group.call(&KEY).run(|| 9) == Err(CallError::Reentrant) { 1 } else { 8 }),
                1,
            )
        });
        let mine = group.call(&KEY).run(|| {
            assert_eq!(group.call(&KEY).run(|| 9), Err(CallError::Reentrant));
            2
        });
        assert_served(mine, 2);
        join(other);
        assert_nothing_left(&group);
    });
}

/// Who takes over is told from then on.
#[test]
fn whoever_takes_over_is_told() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let follower = spawn(&group, |group| {
            let work = || {
                assert_eq!(group.call(&KEY).run(|| 9), Err(CallError::Reentrant));
                1
            };
            assert_served(group.call(&KEY).run(work), 1)
        });
        drop(leader);
        join(follower);
        assert_nothing_left(&group);
    });
}

/// A caller that led, and left without a value for the others, is told no more: it waits or leads like anybody else.
#[test]
fn a_former_leader_is_not_told() {
    check(|| {
        let group = new_group();
        let mut follower = None;
        let first = group.call(&KEY).share_if(|_| false).run(|| {
            follower = Some(spawn(&group, |group| assert_served(group.call(&KEY).run(|| 1), 1)));
            0
        });
        assert_served(first, 0);
        assert_served(group.call(&KEY).run(|| 2), 2);
        join(follower.expect("the work has run"));
        assert_nothing_left(&group);
    });
}

/// A call inside the work of a batch is told, whichever thread polls that; one of the thread that polled it before waits.
#[test]
fn whoever_polls_a_batch_is_told() {
    check(|| {
        let group = tasks::new_group();
        let call = |value| {
            let group = Arc::clone(&group);
            async move { group.call(&KEY).run_inline(|| async { value }).await.map(|outcome| outcome.value) }
        };
        let (first, second) = (call(8), call(9));
        let work = async move {
            assert_eq!(first.await, Err(CallError::Reentrant));
            let mut polls = 0..2;
            poll_fn(|_| if polls.next() == Some(0) { Poll::Pending } else { Poll::Ready(()) }).await;
            assert_eq!(second.await, Err(CallError::Reentrant));
            vec![1]
        };
        let mut work = Some(work);
        let batch = {
            let group = Arc::clone(&group);
            parked(async move { group.do_many(&[KEY], |_| work.take().expect("nobody else leads")).await })
        };
        let follower = parked(call(2));
        let other = loom::thread::spawn(move || block_on(batch));
        assert_eq!(block_on(follower), Ok(1));
        assert_eq!(join(other), [1]);
        tasks::assert_nothing_left(&group);
    });
}

//! Tasks, threads and guards on one key.

use crate::by_hand::{Gate, Group, PollsInWake, Runs, Task, until, work};
use oneflight::{CallError, Role};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Waits until this many callers wait for key 1.
fn await_waiters(group: &Group, count: usize) {
    until("all wait", || group.waiters(&1) == count);
}

#[test]
fn h3_every_way_to_call_joins_the_one_flight() {
    let (group, runs, gate) = (Arc::new(Group::new()), Runs::default(), Gate::default());
    let mut leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut inline = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 8)));
    let mut options = Task::waiting(group.call(&1).run(work(&runs, &gate, 9)));
    let mut many = Task::waiting(group.do_many(&[1], |_| async { vec![0] }));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let group = Arc::clone(&group);
            thread::spawn(move || group.do_call_blocking(&1, || 0))
        })
        .collect();
    await_waiters(&group, 6);
    assert!(group.try_lead(&1).is_none());
    gate.open();
    assert_eq!(leader.ready(), 7);
    assert_eq!((inline.ready(), options.ready().map(|outcome| outcome.value), many.ready()), (7, Ok(7), vec![7]));
    assert!(threads.into_iter().all(|thread| thread.join().expect("it does not panic") == 7));
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

#[test]
fn tasks_follow_a_thread_and_a_guard() {
    let (group, runs, gate) = (Arc::new(Group::new()), Runs::default(), Gate::default());
    let guard = group.try_lead(&1).expect("free");
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    guard.land(7);
    assert_eq!(follower.ready(), 7);

    let (open, opened) = std::sync::mpsc::channel::<()>();
    let leader = {
        let group = Arc::clone(&group);
        thread::spawn(move || {
            group.do_call_blocking(&1, || {
                opened.recv().expect("it is opened");
                5
            })
        })
    };
    while group.in_flight() == 0 {
        thread::yield_now();
    }
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    open.send(()).expect("it waits");
    assert_eq!(leader.join().expect("it does not panic"), 5);
    assert_eq!(follower.ready(), 5);
    assert_eq!(runs.started(), 0);
}

/// A follower that is not polled keeps the flight vacant for as long as it takes.
#[test]
fn a_vacant_flight_is_led_on_by_a_guard_and_its_followers_get_what_that_lands_with() {
    let (group, runs, gate) = (Arc::new(Group::new()), Runs::default(), Gate::default());
    let guard = group.try_lead(&1).expect("free");
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    drop(guard);
    let guard = group.try_lead(&1).expect("vacant");
    assert!(group.try_lead(&1).is_none());
    assert_eq!(group.flight_info(&1).map(|flight| flight.attempts), Some(2));
    let landed = guard.land(7);
    assert_eq!((landed.value, landed.role, landed.shared), (7, Role::TookOver, true));
    assert_eq!(follower.ready(), 7);
    assert_eq!((runs.started(), group.in_flight()), (0, 0));
}

#[test]
fn when_the_last_task_leaves_its_work_is_dropped_and_a_thread_runs_its_own() {
    let (group, runs, gate) = (Arc::new(Group::new()), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let group = Arc::clone(&group);
            thread::spawn(move || group.do_call_blocking(&1, || 9))
        })
        .collect();
    await_waiters(&group, 4);
    drop(leader);
    assert_eq!(runs.dropped(), 0);
    drop(follower);
    assert!(threads.into_iter().all(|thread| thread.join().expect("it does not panic") == 9));
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0));
}

#[test]
fn e3_the_timed_form_returns_when_a_thread_blocks_the_task_that_it_waits_for() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let late = group.do_call_blocking_wait_timeout(&1, Duration::from_millis(5), || 0);
    assert_eq!(late, Err(CallError::TimedOut));
    assert_eq!(group.do_call_blocking_wait_timeout(&1, Duration::ZERO, || 0), Err(CallError::TimedOut));
    assert_eq!(group.waiters(&1), 0);
    gate.open();
    assert_eq!(leader.ready(), 7);
    assert_eq!(group.stats().timeouts, 2);
}

#[test]
fn a_threads_call_with_options_and_its_batch_have_a_time_limit_too() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    for limit in [Duration::from_millis(5), Duration::ZERO] {
        let late = group.call(&1).max_attempts(2).run_blocking_wait_timeout(limit, || 0);
        assert_eq!(late, Err(CallError::TimedOut));
        let late = group.run_many_blocking([&1, &2], Some(limit), |keys| {
            assert_eq!(keys, [&2]);
            vec![0]
        });
        assert_eq!(late, Err(CallError::TimedOut));
    }
    assert_eq!((group.waiters(&1), group.in_flight(), group.stats().timeouts), (0, 1, 4));
    gate.open();
    assert_eq!(leader.ready(), 7);
}

/// No work of the batch is running then.
#[test]
fn a_task_that_is_polled_while_a_threads_batch_lands_is_not_taken_for_its_work() {
    let group: &'static Group = Box::leak(Box::new(Group::new()));
    let mut follower = None;
    let values = group.do_many_blocking(&[1, 2], |keys| {
        let follow = || {
            PollsInWake::spawn(async {
                assert_eq!(group.do_call(&1, || async { 0 }).await, 10);
                assert_eq!(group.do_call(&2, || async { 0 }).await, 20);
            })
        };
        follower = Some(thread::spawn(follow).join().expect("it waits"));
        keys.into_iter().map(|key| key * 10).collect()
    });
    assert_eq!(values, [10, 20]);
    assert!(follower.expect("the work has run").has_ended());
    assert_eq!(group.in_flight(), 0);
}

/// One key is a task's, one is new, one is taken over.
#[test]
fn a_threads_batch_meets_the_flights_of_tasks() {
    let (group, runs, gate) = (Arc::new(Group::new()), Runs::default(), Gate::default());
    let mut leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let leaves = Task::waiting(group.do_call(&3, work(&runs, &gate, 8)));
    let batch = {
        let group = Arc::clone(&group);
        thread::spawn(move || {
            let mut loads = Vec::new();
            let values = group.do_many_blocking([&1, &2, &3, &2], |keys| {
                loads.push(keys.clone());
                keys.into_iter().map(|key| key * 10).collect()
            });
            (values, loads == [[&2], [&3]])
        })
    };
    until("the thread waits", || group.waiters(&1) == 1 && group.waiters(&3) == 1);
    drop(leaves);
    gate.open();
    assert_eq!(leader.ready(), 7);
    assert_eq!(batch.join().expect("it does not panic"), (vec![7, 20, 30, 20], true));
    assert_eq!((runs.started(), group.in_flight()), (2, 0));
}

#[test]
fn a_task_that_was_told_to_take_over_and_is_parked_does_not_hold_up_threads() {
    let (group, runs, gate) = (Arc::new(Group::new()), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 7)));
    let mut parked = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    let waits = {
        let group = Arc::clone(&group);
        thread::spawn(move || group.do_call_blocking(&1, || 9))
    };
    await_waiters(&group, 2);
    drop(leader);
    assert_eq!(waits.join().expect("it does not panic"), 9);
    assert_eq!(parked.ready(), 9);
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn many_threads_and_tasks_at_once_lose_nobody() {
    for round in 0..200 {
        let group: Arc<Group> = Arc::new(oneflight::AsyncGroup::builder().shards(1).build());
        let callers: Vec<_> = (0..6)
            .map(|caller| {
                let group = Arc::clone(&group);
                thread::spawn(move || match (caller + round) % 4 {
                    0 => group.do_call_blocking(&1, || 7),
                    1 => smol::block_on(group.do_call(&1, || async {
                        smol::future::yield_now().await;
                        7
                    })),
                    2 => smol::block_on(group.do_call_inline(&1, || async {
                        smol::future::yield_now().await;
                        7
                    })),
                    _ => {
                        // Joins, and leaves after one poll.
                        let call = group.do_call(&1, || async {
                            smol::future::yield_now().await;
                            7
                        });
                        smol::block_on(smol::future::poll_once(call)).unwrap_or(7)
                    }
                })
            })
            .collect();
        assert!(callers.into_iter().all(|caller| caller.join().expect("it does not panic") == 7));
        assert_eq!(group.in_flight(), 0);
    }
}

/// A thread cannot drive what they leave undone.
#[test]
fn a3_a_thread_that_comes_when_leader_and_standby_are_parked_wakes_a_third_task() {
    let (group, runs, gate) = (Arc::new(Group::new()), Runs::default(), Gate::default());
    let mut leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut standby = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    let mut third = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    gate.open();
    assert_eq!((leader.wakes(), standby.wakes(), third.wakes()), (1, 1, 0));
    let comes = {
        let group = Arc::clone(&group);
        thread::spawn(move || group.do_call_blocking(&1, || 0))
    };
    until("the third is woken", || third.wakes() > 0);
    assert_eq!(third.ready(), 7);
    assert_eq!(comes.join().expect("it does not panic"), 7);
    assert_eq!((leader.ready(), standby.ready()), (7, 7));
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

/// The work waits for a task of a runtime that is shut down, and cannot do without it.
#[test]
fn a8_when_the_leaders_runtime_is_gone_a_follower_on_another_executor_runs_its_own_work() {
    let group = Arc::new(Group::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it can be built");
    let (open, opened) = std::sync::mpsc::channel();
    let leads = Arc::clone(&group);
    let leader = runtime.spawn(async move {
        let bound = move || async move {
            let elsewhere = tokio::spawn(std::future::pending());
            open.send(()).expect("the test waits for it");
            elsewhere.await.expect("there is no runtime any more")
        };
        leads.do_call(&1, bound).await
    });
    // Until the work has begun, and waits.
    while opened.try_recv().is_err() {
        runtime.block_on(tokio::task::yield_now());
    }
    let mut follower = Task::waiting(group.do_call(&1, || async { 9 }));
    drop(runtime);
    assert!(leader.is_finished(), "it was dropped with its runtime");
    assert!(follower.wakes() > 0);
    assert_eq!(smol::block_on(std::future::poll_fn(|_| follower.poll())), 9);
    assert_eq!((group.in_flight(), group.stats().take_overs), (0, 1));
}

/// Whoever is told to go on has not been polled yet.
#[test]
fn newcomers_that_lead_a_flight_whose_leader_has_left_are_counted_as_taking_it_over() {
    for is_guard in [false, true] {
        let group = Group::new();
        let lead = group.try_lead(&1).expect("no flight is on");
        let mut follower = Task::waiting(group.do_call(&1, || async { 9 }));
        drop(lead);
        if is_guard {
            group.try_lead(&1).expect("it is vacant").land(7);
        } else {
            assert_eq!(group.do_call_blocking(&1, || 7), 7);
        }
        assert_eq!((follower.ready(), group.stats().take_overs), (7, 1));
    }
}

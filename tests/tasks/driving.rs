//! Work that belongs to the flight goes on with whoever is polled.

use crate::by_hand::{Gate, Group, Runs, Task, Way, Yield, run_woken, work};
use std::task::{Context, Poll};

#[test]
fn a1_after_a_leader_that_was_polled_once_and_dropped_the_next_call_runs_at_once() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    drop(Task::waiting(group.do_call(&1, work(&runs, &gate, 7))));
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0));
    assert_eq!(Task::new(group.do_call(&1, || async { 8 })).ready(), 8);
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn a2_a_dropped_leaders_work_goes_on_with_one_of_the_followers() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut followers: Vec<_> = (0..4).map(|_| Task::waiting(group.do_call(&1, work(&runs, &gate, 9)))).collect();
    assert_eq!(group.waiters(&1), 4);
    drop(leader);
    let woken: Vec<usize> = followers.iter().map(Task::wakes).collect();
    assert_eq!(woken.iter().sum::<usize>(), 1, "exactly one is woken: {woken:?}");
    assert_eq!(group.waiters(&1), 3, "one of them leads");
    let polls = gate.polls();
    assert!(run_woken(&mut followers).iter().all(Option::is_none));
    assert_eq!(gate.polls(), polls + 1, "what would have woken the work may have gone with its leader");
    gate.open();
    assert_eq!(run_woken(&mut followers), vec![Some(7); 4], "all get the one value");
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0));
}

#[test]
fn a2_work_that_wakes_while_its_leader_is_gone_is_not_forgotten() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    gate.open();
    // The leader has taken its wake-up with it, the follower has been told as well.
    drop(leader);
    assert!(follower.wakes() > 0);
    assert_eq!(follower.ready(), 7);
    assert_eq!(runs.started(), 1);
}

#[test]
fn a2_an_heir_that_is_never_polled_holds_up_nobody_once_the_work_wakes() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let one = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    let other = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    drop(leader);
    let (_parked, mut active) = if one.wakes() > 0 { (one, other) } else { (other, one) };
    gate.open();
    assert!(active.wakes() > 0);
    assert_eq!(active.ready(), 7);
    assert_eq!(runs.started(), 1);
}

#[test]
fn a3_a_leader_that_is_never_polled_again_holds_up_nobody() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut parked = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    gate.open();
    assert!(follower.wakes() > 0, "the standby is woken");
    assert_eq!(follower.ready(), 7);
    assert_eq!(runs.started(), 1);
    assert_eq!(parked.ready(), 7, "it gets the value when it is polled after all");
}

#[test]
fn a3_a_parked_leader_in_the_followers_own_task_holds_up_nobody() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let parked = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut follower = Task::beside(&parked, group.do_call(&1, work(&runs, &gate, 9)));
    assert!(follower.poll().is_pending());
    gate.open();
    assert!(follower.wakes() > 0);
    assert_eq!(follower.ready(), 7);
    assert_eq!(runs.started(), 1);
    drop(parked);
}

#[test]
fn a3_a_caller_that_comes_when_all_are_parked_drives_on() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let _leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let _standby = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    gate.open();
    let mut newcomer = Task::new(group.do_call(&1, work(&runs, &gate, 9)));
    assert_eq!(newcomer.ready(), 7);
    assert_eq!(runs.started(), 1);
}

#[test]
fn a4_a_leaked_leader_holds_up_nobody() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    // Leaked with all that it borrows.
    let group: &'static Group = Box::leak(Box::new(group));
    Task::waiting(group.do_call(&1, work(&runs, &gate, 7))).leak();
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    gate.open();
    assert_eq!(follower.ready(), 7);
    assert_eq!(runs.started(), 1);
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn a5_a_leaders_time_limit_is_its_own() {
    for inline in [false, true] {
        let (group, runs, gate, limit) = (Group::new(), Runs::default(), Gate::default(), Gate::default());
        let call = async {
            Some(match inline {
                false => group.do_call(&1, work(&runs, &gate, 7)).await,
                true => group.do_call_inline(&1, work(&runs, &gate, 7)).await,
            })
        };
        let time_is_up = async {
            limit.clone().await;
            None
        };
        let mut leader = Task::waiting(smol::future::or(call, time_is_up));
        let mut followers: Vec<_> = (0..2).map(|_| Task::waiting(group.do_call(&1, work(&runs, &gate, 9)))).collect();
        limit.open();
        assert_eq!(leader.ready(), None);
        // A follower that runs its own work has it made before the gate is open.
        assert!(followers.iter_mut().all(|follower| follower.poll().is_pending()));
        gate.open();
        let (value, starts) = if inline { (9, 2) } else { (7, 1) };
        assert!(followers.iter_mut().all(|follower| follower.ready() == value), "inline: {inline}");
        assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (starts, starts, 0));
    }
}

#[test]
fn a7_a_call_that_is_never_polled_is_no_call() {
    let (group, runs) = (Group::new(), Runs::default());
    let gate = Gate::default();
    let make = || work(&runs, &gate, 7);
    let unpolled = (
        group.do_call(&1, make()),
        group.do_call_inline(&1, make()),
        group.call(&1).run(make()),
        group.call(&1).run_inline(make()),
        group.do_many(&[1], |_| async { unreachable!("it is never polled") }),
    );
    assert_eq!(group.in_flight(), 0);
    assert_eq!(Task::new(group.do_call(&1, || async { 8 })).ready(), 8);
    let lead = group.try_lead(&1).expect("they are not in flight");
    drop(unpolled);
    assert_eq!((runs.started(), group.waiters(&1), group.in_flight()), (0, 0, 1));
    drop(lead);
}

/// As work does whose runtime is gone: nothing wakes it any more, and a poll tells it why.
#[test]
fn a8_work_that_was_handed_over_is_polled_though_it_never_wakes() {
    for panics in [false, true] {
        let group = Group::new();
        let mut is_first = true;
        let work = move |_: &mut Context<'_>| match std::mem::take(&mut is_first) {
            true => Poll::Pending,
            false if panics => panic!("the runtime is gone"),
            false => Poll::Ready(7),
        };
        let leader = Task::waiting(group.do_call(&1, move || std::future::poll_fn(work)));
        let mut follower = Task::waiting(group.do_call(&1, || async { 9 }));
        drop(leader);
        assert!(follower.wakes() > 0);
        assert_eq!(follower.ready(), if panics { 9 } else { 7 });
        assert_eq!(group.in_flight(), 0);
    }
}

#[test]
fn f4_polling_without_progress_changes_nothing_and_the_latest_waker_is_woken() {
    for way in Way::ALL {
        let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
        let _leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
        let mut follower = Task::waiting(way.call(&group, &1, || work(&runs, &gate, 9)()));
        let polls = gate.polls();
        for _ in 0..1_000 {
            assert!(follower.poll().is_pending());
        }
        assert_eq!((gate.polls(), group.waiters(&1)), (polls, 1));
        assert_eq!(follower.holders(), 2, "one waker is stored, beside the task's own: {way:?}");
        // Moved to another task.
        let waker = {
            let wakes = std::sync::Arc::new(Flag::default());
            assert!(follower.poll_with(&std::task::Waker::from(std::sync::Arc::clone(&wakes))).is_pending());
            wakes
        };
        let before = follower.wakes();
        assert_eq!(follower.holders(), 1, "the former one has been dropped: {way:?}");
        gate.open();
        assert!(waker.0.load(std::sync::atomic::Ordering::SeqCst), "the latest waker is woken: {way:?}");
        assert_eq!(follower.wakes(), before, "the former one is not: {way:?}");
    }
}

/// Polled for no reason, and because the work has woken.
#[test]
fn f4_a_lone_call_is_woken_in_the_task_in_which_it_was_polled_last() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut call = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    assert!(call.poll().is_pending());
    assert_eq!((gate.polls(), call.holders()), (1, 2), "the work has not woken");
    call.move_to_itself();
    assert!(call.poll().is_pending());
    gate.stir();
    assert_eq!((gate.polls(), call.wakes()), (1, 1));
    call.move_to_itself();
    assert!(call.poll().is_pending());
    gate.open();
    assert_eq!((gate.polls(), call.wakes()), (2, 1));
    assert_eq!(call.ready(), 7);
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

#[derive(Default)]
struct Flag(std::sync::atomic::AtomicBool);

impl std::task::Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn f7_followers_are_not_polled_at_every_await_of_the_work() {
    for leads in Way::ALL {
        let (group, gate) = (Group::new(), Gate::default());
        let mut tasks = vec![Task::waiting(leads.call(&group, &1, || {
            let start = gate.clone();
            async move {
                start.await;
                Yield(50).await;
                7
            }
        }))];
        let follows = |number: usize| Task::waiting(Way::ALL[number % 3].call(&group, &1, || async { 9 }));
        tasks.extend((0..200).map(follows));
        gate.open();
        assert_eq!(run_woken(&mut tasks), vec![Some(7); 201]);
        let polls: Vec<usize> = tasks[1..].iter().map(|task| task.polls).collect();
        let mean = polls.iter().sum::<usize>() as f64 / 200.0;
        assert!(mean <= 2.5, "{mean} polls a follower: {leads:?}");
        assert!(*polls.iter().max().unwrap() <= 4, "{polls:?}: {leads:?}");
    }
}

#[test]
fn f8_work_that_wakes_itself_is_polled_once_a_poll_of_its_caller() {
    for way in Way::ALL {
        let (group, polls) = (Group::new(), Gate::default());
        let mut task = Task::new(way.call(&group, &1, || {
            let counted = polls.clone();
            async move {
                for _ in 0..5 {
                    // Ready or not, each poll of the work shows here.
                    std::future::poll_fn(|cx| {
                        let _ = std::pin::pin!(counted.clone()).as_mut().poll(cx);
                        Poll::Ready(())
                    })
                    .await;
                    Yield(1).await;
                }
                7
            }
        }));
        for poll in 1..=5 {
            assert!(task.poll().is_pending());
            assert_eq!((polls.polls(), task.wakes()), (poll, poll), "one poll, and woken for the next: {way:?}");
        }
        assert_eq!(task.ready(), 7);
    }
}

use std::future::Future as _;

#[test]
fn f9_a_parked_pair_in_one_task_does_not_hold_up_a_third() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut pair = Task::beside(&leader, group.do_call(&1, work(&runs, &gate, 8)));
    assert!(pair.poll().is_pending());
    let mut third = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    gate.open();
    assert!(third.wakes() > 0, "a standby in the leader's own task would be no standby");
    assert_eq!(third.ready(), 7);
    assert_eq!(runs.started(), 1);
}

/// The one that moves is neither the one that has slept longest nor the last one.
#[test]
fn f9_a_call_that_has_moved_to_another_task_is_a_standby() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut beside: Vec<_> = (0..3).map(|_| Task::beside(&leader, group.do_call(&1, work(&runs, &gate, 8)))).collect();
    for task in &mut beside {
        assert!(task.poll().is_pending());
    }
    let moved = &mut beside[1];
    moved.move_to_itself();
    assert!(moved.poll().is_pending());
    gate.open();
    assert!(moved.wakes() > 0, "the others are all in one task, which may be parked");
    assert_eq!(moved.ready(), 7);
    assert_eq!(runs.started(), 1);
}

#[test]
fn the_standby_is_a_different_one_each_time() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let followers: Vec<_> = (0..3).map(|_| Task::waiting(group.do_call(&1, work(&runs, &gate, 9)))).collect();
    for _ in 0..3 {
        gate.stir();
        assert!(leader.poll().is_pending());
    }
    assert_eq!(followers.iter().map(Task::wakes).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn g1_a_lone_value_is_never_cloned_and_n_callers_cost_n_minus_one_clones() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    struct Counted(Arc<AtomicUsize>);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.0.fetch_add(1, Ordering::SeqCst);
            Self(Arc::clone(&self.0))
        }
    }
    let clones = Arc::new(AtomicUsize::new(0));
    let group: oneflight::AsyncGroup<u32, Counted> = oneflight::AsyncGroup::new();
    let gate = Gate::default();
    let call = || {
        let (gate, clones) = (gate.clone(), Arc::clone(&clones));
        Task::waiting(group.do_call(&1, move || async move {
            gate.await;
            Counted(clones)
        }))
    };
    let mut tasks: Vec<_> = (0..4).map(|_| call()).collect();
    gate.open();
    for task in &mut tasks {
        drop(task.ready());
    }
    assert_eq!(clones.load(Ordering::SeqCst), 3);
    clones.store(0, Ordering::SeqCst);
    drop(
        Task::new(group.do_call(&1, {
            let clones = Arc::clone(&clones);
            move || async { Counted(clones) }
        }))
        .ready(),
    );
    drop(
        Task::new(group.do_call_inline(&1, {
            let clones = Arc::clone(&clones);
            move || async { Counted(clones) }
        }))
        .ready(),
    );
    assert_eq!(clones.load(Ordering::SeqCst), 0);
}

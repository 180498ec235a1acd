//! What belongs to the caller whose closure made the work reaches that caller, whoever drove the work.

use crate::by_hand::{Gate, Group, Runs, Task, message, work};
use oneflight::{AsyncGroup, CallError, OnAbandon, Role};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

fn panic_of<T>(task: &mut Task<'_, T>) -> Box<dyn std::any::Any + Send> {
    catch_unwind(AssertUnwindSafe(|| task.poll().is_ready())).expect_err("it panics")
}

#[test]
fn c1_a_panic_reaches_the_caller_whose_work_it_was_while_it_drives_and_a_follower_takes_over() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let opens = gate.clone();
    let mut maker = Task::waiting(group.do_call(&1, || async move {
        opens.await;
        panic!("the maker's own")
    }));
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    gate.open();
    assert_eq!(message(panic_of(&mut maker)), "the maker's own");
    assert!(follower.wakes() > 0);
    assert_eq!(follower.ready(), 9);
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

#[test]
fn c1_a_panic_of_any_type_is_kept_for_its_caller_when_another_drives() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let opens = gate.clone();
    let mut maker = Task::waiting(group.do_call(&1, || async move {
        opens.await;
        panic_any(vec![1, 2, 3])
    }));
    let mut driver = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    gate.open();
    assert_eq!(driver.ready(), 9, "it sees no panic and goes on with its own work");
    assert!(maker.wakes() > 0, "the maker has been woken, by the work or for this");
    assert_eq!(*panic_of(&mut maker).downcast::<Vec<i32>>().expect("the payload itself"), [1, 2, 3]);
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn a8_inherited_work_that_panics_is_replaced_by_the_followers_own() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let opens = gate.clone();
    let maker = Task::waiting(group.do_call(&1, || async move {
        opens.await;
        panic!("there is no runtime any more")
    }));
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    drop(maker);
    gate.open();
    assert_eq!(follower.ready(), 9);
    assert_eq!((runs.started(), group.in_flight(), group.stats().abandons), (1, 0, 1));
}

/// A newcomer gets the maker's place among the tasks, and nothing else of it.
#[test]
fn who_comes_after_the_maker_has_left_is_not_taken_for_it() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let opens = gate.clone();
    let maker = Task::waiting(group.do_call(&1, || async move {
        opens.await;
        panic!("whose maker has left")
    }));
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    drop(maker);
    let mut newcomer = Task::waiting(group.do_call(&1, || async { 9 }));
    gate.open();
    assert_eq!(follower.ready(), 8);
    assert_eq!(newcomer.ready(), 8);
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

#[test]
fn c3_a_closure_that_panics_before_it_returns_a_future_leaves_the_key_free() {
    let group = Group::new();
    let mut task = Task::new(group.do_call(&1, || -> std::future::Ready<u32> { panic!("no future") }));
    assert_eq!(message(panic_of(&mut task)), "no future");
    assert_eq!(group.in_flight(), 0);
    let mut task = Task::new(group.do_call_inline(&1, || -> std::future::Ready<u32> { panic!("no future") }));
    assert_eq!(message(panic_of(&mut task)), "no future");
    assert_eq!(group.in_flight(), 0);
    assert_eq!(Task::new(group.do_call(&1, || async { 7 })).ready(), 7);
}

#[test]
fn c4_the_cap_counts_starts_of_closures_and_the_rest_are_told() {
    let group = Group::new();
    let runs = Runs::default();
    let gate = Gate::default();
    let call = || {
        let (runs, gate) = (runs.clone(), gate.clone());
        Task::waiting(group.call(&1).max_attempts(3).run(move || {
            let run = runs.start();
            async move {
                let _run = run;
                gate.await;
                panic!("always")
            }
        }))
    };
    let mut tasks: Vec<_> = (0..100).map(|_| call()).collect();
    gate.open();
    let mut panics = 0;
    let mut told = 0;
    while !tasks.is_empty() {
        let before = tasks.len();
        tasks.retain_mut(|task| match catch_unwind(AssertUnwindSafe(|| task.poll())) {
            Err(_) => {
                panics += 1;
                false
            }
            Ok(std::task::Poll::Ready(result)) => {
                assert_eq!(result.map(|outcome| outcome.value), Err(CallError::Abandoned));
                told += 1;
                false
            }
            Ok(std::task::Poll::Pending) => true,
        });
        assert!(tasks.len() < before, "somebody must get on");
    }
    assert_eq!((runs.started(), panics, told), (3, 3, 97));
    assert_eq!((runs.dropped(), group.in_flight()), (3, 0));
}

#[test]
fn an_unshared_value_goes_to_its_maker_when_another_drives() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut maker = Task::waiting(group.call(&1).share_if(|value| *value != 3).run(work(&runs, &gate, 3)));
    let mut driver = Task::waiting(group.call(&1).run(work(&runs, &gate, 9)));
    gate.open();
    let driven = driver.ready().expect("it runs its own");
    assert_eq!((driven.value, driven.role, driven.shared), (9, Role::TookOver, false));
    let made = maker.ready().expect("its own value");
    assert_eq!((made.value, made.role, made.shared), (3, Role::Led, false));
    assert_eq!((runs.started(), group.in_flight()), (2, 0));
}

#[test]
fn an_unshared_value_goes_to_the_driver_if_its_maker_has_left() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let maker = Task::waiting(group.call(&1).share_if(|_| false).run(work(&runs, &gate, 3)));
    let mut driver = Task::waiting(group.call(&1).run(work(&runs, &gate, 9)));
    let mut other = Task::waiting(group.call(&1).run(work(&runs, &gate, 5)));
    drop(maker);
    gate.open();
    let driven = driver.ready().expect("the value that it drove to its end");
    assert_eq!((driven.value, driven.shared), (3, false));
    assert!(other.wakes() > 0);
    assert_eq!(other.ready().map(|outcome| outcome.value), Ok(5));
    assert_eq!((runs.started(), group.in_flight()), (2, 0));
}

/// Nobody is left who could be given it, though one caller has still to hear that it was left. The next caller begins afresh.
#[test]
fn a_value_that_nobody_waits_for_any_more_is_not_asked_about() {
    for inline in [false, true] {
        let group = Group::new();
        let never = |_: &u32| -> bool { panic!("nobody waits for it") };
        let lead = group.try_lead(&1).expect("free");
        let mut fails = Task::waiting(group.call(&1).on_abandon(OnAbandon::Fail).run(|| async { 8 }));
        let call = group.call(&1).share_if(never);
        let mut heir = if inline {
            Task::waiting(call.run_inline(|| async { 9 }))
        } else {
            Task::waiting(call.run(|| async { 9 }))
        };
        drop(lead);
        let outcome = heir.ready().expect("it has taken over");
        assert_eq!((outcome.value, outcome.role, outcome.shared), (9, Role::TookOver, false));
        assert_eq!((group.in_flight(), group.stats().abandons), (0, 1), "only the guard has left a follower");
        let mut next = Task::new(group.call(&1).max_attempts(1).run(|| async { 7 }));
        assert_eq!(next.ready().map(|outcome| outcome.role), Ok(Role::Led));
        assert_eq!(fails.ready().map(|outcome| outcome.value), Err(CallError::Abandoned));
        assert_eq!(group.in_flight(), 0);
    }
}

#[test]
fn an_unshared_value_of_a_maker_that_leaves_without_fetching_it_is_dropped() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let maker = Task::waiting(group.call(&1).share_if(|_| false).run(work(&runs, &gate, 3)));
    let mut driver = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    gate.open();
    assert_eq!(driver.ready(), 9);
    drop(maker);
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (2, 2, 0));
}

#[test]
fn h1_the_last_allowed_attempts_value_is_shared_whatever_the_predicate_says() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let call = || group.call(&1).share_if(|_| false).max_attempts(2).run(work(&runs, &gate, 3));
    let mut tasks: Vec<_> = (0..5).map(|_| Task::waiting(call())).collect();
    gate.open();
    let values: Vec<u32> = tasks.iter_mut().map(|task| task.ready().expect("a value").value).collect();
    assert_eq!(values, [3; 5]);
    assert_eq!((runs.started(), group.in_flight()), (2, 0));
}

#[test]
fn a_maker_that_became_a_follower_still_led() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut maker = Task::waiting(group.call(&1).run(work(&runs, &gate, 7)));
    let mut driver = Task::waiting(group.call(&1).run(work(&runs, &gate, 9)));
    gate.open();
    let driven = driver.ready().expect("a value");
    assert_eq!((driven.value, driven.role, driven.shared), (7, Role::Followed, true));
    let made = maker.ready().expect("a value");
    assert_eq!((made.value, made.role, made.shared), (7, Role::Led, true));
}

#[test]
fn a_panicking_predicate_reaches_its_maker() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut maker = Task::waiting(group.call(&1).share_if(|_| panic!("the predicate")).run(work(&runs, &gate, 3)));
    let mut driver = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    gate.open();
    assert_eq!(driver.ready(), 9);
    assert_eq!(message(panic_of(&mut maker)), "the predicate");
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn do_call_goes_on_in_a_fresh_flight_when_attempts_are_exhausted() {
    let group: Group = oneflight::AsyncGroup::builder().max_attempts(1).build();
    let (runs, gate) = (Runs::default(), Gate::default());
    let opens = gate.clone();
    let mut maker = Task::waiting(group.do_call(&1, || async move {
        opens.await;
        panic!("the only attempt")
    }));
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    let mut inline = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 8)));
    gate.open();
    assert_eq!(message(panic_of(&mut maker)), "the only attempt");
    assert_eq!(follower.ready(), 9);
    assert_eq!(inline.ready(), 8);
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn c5_a_panic_in_clone_concerns_one_follower_only() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    struct Fussy(Arc<AtomicBool>);
    impl Clone for Fussy {
        fn clone(&self) -> Self {
            assert!(!self.0.swap(false, Ordering::SeqCst), "not this time");
            Self(Arc::clone(&self.0))
        }
    }
    let group: oneflight::AsyncGroup<u32, Fussy> = oneflight::AsyncGroup::new();
    let (gate, panics) = (Gate::default(), Arc::new(AtomicBool::new(false)));
    let call = || {
        let (gate, panics) = (gate.clone(), Arc::clone(&panics));
        Task::waiting(group.do_call(&1, move || async move {
            gate.await;
            Fussy(panics)
        }))
    };
    let mut tasks: Vec<_> = (0..4).map(|_| call()).collect();
    gate.open();
    let _leader = tasks[0].ready();
    panics.store(true, Ordering::SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| tasks[1].poll().is_ready())).is_err());
    let _others = (tasks[2].ready(), tasks[3].ready());
    assert_eq!(group.in_flight(), 0);
}

/// Work that panics when it is dropped, ended or not.
struct PanicsWhenDropped<T = u32>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> Future for PanicsWhenDropped<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.0.as_mut().poll(cx)
    }
}

impl<T> Drop for PanicsWhenDropped<T> {
    fn drop(&mut self) {
        panic!("work that panics when it is dropped");
    }
}

#[test]
fn a8_inherited_work_that_panics_when_it_is_dropped_takes_nobody_down() {
    for shared in [true, false] {
        let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
        let make = work(&runs, &gate, 7);
        let call = group.call(&1).share_if(move |_| shared).run(|| PanicsWhenDropped(make()));
        let leader = Task::waiting(call);
        let mut follower = Task::waiting(group.do_call(&1, || async { 9 }));
        drop(leader);
        gate.open();
        assert_eq!(follower.ready(), 7);
        assert_eq!(group.in_flight(), 0);
    }
}

#[test]
fn c8_work_that_panics_when_it_is_dropped_takes_its_maker_down_and_no_follower() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let make = work(&runs, &gate, 7);
    let mut leader = Task::waiting(group.do_call(&1, || PanicsWhenDropped(make())));
    let mut follower = Task::waiting(group.do_call(&1, || async { 9 }));
    gate.open();
    assert_eq!(message(panic_of(&mut leader)), "work that panics when it is dropped");
    assert_eq!(follower.ready(), 7);
    assert_eq!(group.in_flight(), 0);

    let fallible: AsyncGroup<u32, Result<u32, Arc<u32>>> = AsyncGroup::new();
    for is_batch in [false, true] {
        let gate = Gate::default();
        let open = || gate.clone();
        let mut leader = Task::waiting(async {
            let open = open();
            if is_batch {
                let load = |_: Vec<&u32>| {
                    let open = open.clone();
                    PanicsWhenDropped(Box::pin(async { Ok(vec![(open.await, 7).1]) }))
                };
                fallible.try_do_many([&1], load).await.remove(0)
            } else {
                fallible.try_do_call(&1, || PanicsWhenDropped(Box::pin(async { Ok((open.await, 7).1) }))).await
            }
        });
        let mut follower = Task::waiting(fallible.try_do_call(&1, || async { Ok(9) }));
        gate.open();
        assert_eq!(message(panic_of(&mut leader)), "work that panics when it is dropped");
        assert_eq!(follower.ready(), Ok(7), "a batch: {is_batch}");
    }
    assert_eq!(fallible.stats().abandons, 0);
}

#[test]
fn the_groups_predicate_decides_for_calls_with_options_but_not_for_those_with_their_own() {
    let group: Group = Group::builder().share_if(|value| *value != 3).build();
    for is_inline in [false, true] {
        let runs = Runs::default();
        for (own, is_shared) in [(None, false), (Some(false), false), (Some(true), true)] {
            let gate = Gate::default();
            let (call, load) = (group.call(&1).max_attempts(9), work(&runs, &gate, 3));
            let mut leader = match (own, is_inline) {
                (None, false) => Task::waiting(call.run(load)),
                (None, true) => Task::waiting(call.run_inline(load)),
                (Some(shares), false) => Task::waiting(call.share_if(move |_| shares).run(load)),
                (Some(shares), true) => Task::waiting(call.share_if(move |_| shares).run_inline(load)),
            };
            let mut follower = Task::waiting(group.do_call(&1, || async { 7 }));
            gate.open();
            let out = leader.ready().expect("it has led");
            assert_eq!((out.value, out.shared, follower.ready()), (3, is_shared, if is_shared { 3 } else { 7 }));
        }
    }
    assert_eq!(group.in_flight(), 0);
}

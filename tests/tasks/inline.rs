//! Work that runs inside the caller's own future.

use crate::by_hand::{Gate, Group, Runs, Task, message, work};
use oneflight::CallError;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[test]
fn borrowed_and_unsendable_work_is_fine() {
    let group: oneflight::AsyncGroup<u32, Rc<str>> = oneflight::AsyncGroup::new();
    let text = String::from("borrowed");
    let polled = Cell::new(0);
    let mut task = Task::new(group.do_call_inline(&1, || async {
        polled.set(polled.get() + 1);
        Rc::from(text.as_str())
    }));
    assert_eq!(&*task.ready(), "borrowed");
    drop(task);
    assert_eq!(polled.get(), 1);
}

#[test]
fn a2_a_dropped_leaders_work_is_lost_and_a_follower_runs_its_own() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 7)));
    let mut followers: Vec<_> =
        (0..4).map(|_| Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 9)))).collect();
    drop(leader);
    assert_eq!(runs.dropped(), 1);
    assert!(followers.iter().any(|follower| follower.wakes() > 0));
    gate.open();
    assert!(followers.iter_mut().all(|follower| follower.ready() == 9));
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (2, 2, 0));
}

#[test]
fn a3_forget_frees_the_key_of_a_parked_leader() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut parked = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 7)));
    let mut follower = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 8)));
    gate.open();
    assert!(follower.poll().is_pending(), "the documented hazard");
    assert!(group.forget(&1));
    assert_eq!(Task::new(group.do_call_inline(&1, || async { 9 })).ready(), 9);
    assert_eq!((parked.ready(), follower.ready()), (7, 7));
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn an_inline_caller_drives_work_that_the_flight_owns() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let parked = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut inline = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 8)));
    gate.open();
    assert_eq!(inline.ready(), 7);
    assert_eq!(runs.started(), 1);
    drop(parked);
}

#[test]
fn c1_a_panic_frees_the_key_even_if_the_future_is_kept() {
    let (group, gate) = (Group::new(), Gate::default());
    let opens = gate.clone();
    let mut leader = Task::waiting(group.do_call_inline(&1, || async move {
        opens.await;
        panic!("inline")
    }));
    let mut follower = Task::waiting(group.do_call_inline(&1, || async { 9 }));
    gate.open();
    let payload = catch_unwind(AssertUnwindSafe(|| leader.poll().is_ready())).expect_err("it panics");
    assert_eq!(message(payload), "inline");
    assert_eq!(follower.ready(), 9, "though the leader's future is still there");
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn h1_an_unshared_value_stays_and_a_follower_takes_over() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut leader = Task::waiting(group.call(&1).share_if(|_| false).run_inline(work(&runs, &gate, 3)));
    let mut follower = Task::waiting(group.call(&1).run_inline(work(&runs, &gate, 9)));
    gate.open();
    assert_eq!(leader.ready().map(|outcome| outcome.value), Ok(3));
    assert_eq!(follower.ready().map(|outcome| outcome.value), Ok(9));
    assert_eq!((runs.started(), group.in_flight()), (2, 0));
}

#[test]
fn e1_a_call_of_its_own_key_inside_the_work_is_told_so() {
    let group = Group::new();
    let inner = |kind: u32| {
        let group = &group;
        async move {
            let told = match kind {
                0 => group.call(&1).run(|| async { 0 }).await,
                1 => group.call(&1).run_inline(|| async { 0 }).await,
                _ => group.call(&1).run_blocking(|| 0),
            };
            assert_eq!(told.map(|outcome| outcome.value), Err(CallError::Reentrant));
            7
        }
    };
    for kind in 0..3 {
        assert_eq!(Task::new(group.do_call_inline(&1, || inner(kind))).ready(), 7);
    }
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn e1_work_that_has_waited_is_told_so_on_whichever_thread_it_goes_on_and_so_is_its_share_if() {
    let (group, gate) = (Group::new(), Gate::default());
    let called = || group.call(&1).run_blocking_wait_timeout(Duration::ZERO, || 0).map(|outcome| outcome.value);
    let is_refused = || called() == Err(CallError::Reentrant);
    let opens = gate.clone();
    let work = || async {
        opens.await;
        u32::from(is_refused())
    };
    let mut leader = pin!(group.call(&1).share_if(|_| is_refused()).run_inline(work));
    let mut poll = || leader.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    let mut follower = Task::waiting(group.call(&1).run_inline(|| async { 9 }));
    assert!(poll().is_pending());
    assert_eq!(called(), Err(CallError::TimedOut), "outside the work one waits");
    gate.open();
    let polled = std::thread::scope(|threads| threads.spawn(poll).join().expect("it does not panic"));
    let Poll::Ready(Ok(outcome)) = polled else { panic!("{polled:?}") };
    assert_eq!((outcome.value, outcome.shared), (1, true));
    assert_eq!(follower.ready().map(|outcome| outcome.value), Ok(1));
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn c1_work_that_panics_after_it_has_waited_leaves_the_flight_before_its_call_is_dropped() {
    let (group, gate) = (Group::new(), Gate::default());
    let opens = gate.clone();
    let mut leader = Task::waiting(group.do_call_inline(&1, || async {
        opens.await;
        panic!("midway")
    }));
    let mut follower = Task::waiting(group.do_call_inline(&1, || async { 9 }));
    gate.open();
    let mut told = || message(catch_unwind(AssertUnwindSafe(|| leader.poll().is_ready())).expect_err("it panics"));
    assert_eq!(told(), "midway");
    assert_eq!(follower.ready(), 9);
    assert_eq!(told(), "the work is not polled after it has ended");
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn e1_also_in_work_that_the_flight_owns_and_after_it_has_waited() {
    let group: &'static Group = Box::leak(Box::new(Group::new()));
    let gate = Gate::default();
    let opens = gate.clone();
    let mut task = Task::waiting(group.do_call(&1, || async move {
        opens.await;
        let told = group.call(&1).run(|| async { 0 }).await;
        assert_eq!(told.map(|outcome| outcome.value), Err(CallError::Reentrant));
        assert_eq!(group.do_call(&2, || async { 2 }).await, 2, "another key is another matter");
        7
    }));
    gate.open();
    assert_eq!(task.ready(), 7);
    let mut task = Task::new(group.do_call(&1, || async { group.do_call(&1, || async { 0 }).await }));
    let payload = catch_unwind(AssertUnwindSafe(|| task.poll().is_ready())).expect_err("do_call panics");
    assert!(message(payload).contains("inside the work of the same flight"));
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn e1_a_call_joined_outside_and_awaited_inside_is_told_so() {
    let group: &'static Group = Box::leak(Box::new(Group::new()));
    let gate = Gate::default();
    let opens = gate.clone();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut leader = Task::waiting(group.do_call(&1, || async move {
        opens.await;
        let joined: std::pin::Pin<Box<dyn Future<Output = Result<oneflight::Outcome<u32>, CallError>> + Send>> =
            receiver.recv().unwrap();
        assert_eq!(joined.await.map(|outcome| outcome.value), Err(CallError::Reentrant));
        7
    }));
    let mut joined: std::pin::Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(group.call(&1).run(|| async { 0 }));
    let waker = std::task::Waker::noop();
    assert!(joined.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    sender.send(joined).unwrap();
    gate.open();
    assert_eq!(leader.ready(), 7);
}

#[test]
fn e1_a_call_from_another_task_just_waits() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    for inline in [false, true] {
        let gate = gate.clone();
        let mut leader = match inline {
            false => Task::waiting(group.do_call(&1, work(&runs, &gate, 7))),
            true => Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 7))),
        };
        let mut other = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
        assert!(other.poll().is_pending(), "on the same thread, but not inside the work");
        gate.stir();
        assert!(leader.poll().is_pending());
        assert!(other.poll().is_pending());
        drop((leader, other));
    }
    assert_eq!(group.in_flight(), 0);
}

//! Calls that are dropped midway, whose closures and works call the same key, or another of theirs, when they are dropped: by a
//! call that blocks, so the flights must have been left by then.

use crate::by_hand::{Gate, Group, Runs, Task, message, within_a_minute, work};
use oneflight::{AsyncGroup, CallError};
use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

/// Calls a key when it is dropped.
struct Calls<'a>(&'a Group, u32);

impl Drop for Calls<'_> {
    fn drop(&mut self) {
        assert_eq!(self.0.do_call_blocking(&self.1, || 2), 2);
    }
}

/// A run of a batch: that for key `of` holds what calls `calls`. It panics once the gate is open.
fn run<'a>(
    group: &'a Group,
    keys: Vec<&'a u32>,
    of: u32,
    calls: u32,
    gate: &Gate,
) -> impl Future<Output = Vec<u32>> + 'a {
    let held = (*keys[0] == of).then(|| Calls(group, calls));
    let mut gate = gate.clone();
    poll_fn(move |cx| {
        let _held = &held;
        ready!(Pin::new(&mut gate).poll(cx));
        panic!("a run")
    })
}

#[test]
fn c8_an_inline_call_that_leads_leaves_its_flight_before_its_closures_are_dropped() {
    within_a_minute(|| {
        let group = Group::new();
        let calls = Calls(&group, 1);
        let share_if = move |_: &u32| {
            let _held = &calls;
            true
        };
        drop(Task::waiting(group.call(&1).share_if(share_if).run_inline(pending)));
        assert_eq!((group.stats().flights, group.in_flight()), (2, 0));
    });
}

#[test]
fn c8_a_call_that_drives_what_another_has_made_leaves_its_flight_before_its_closures_are_dropped() {
    for inline in [false, true] {
        within_a_minute(move || {
            let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
            let maker = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
            let calls = Calls(&group, 1);
            let unused = move || {
                let _held = calls;
                pending()
            };
            let driver = match inline {
                false => Task::waiting(group.do_call(&1, unused)),
                true => Task::waiting(group.do_call_inline(&1, unused)),
            };
            let mut driver = driver;
            drop(maker);
            assert!(driver.poll().is_pending());
            drop(driver);
            assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0), "inline: {inline}");
        });
    }
}

/// Key 2 is taken over, so it has a run of its own.
fn batch_of_two_runs<'a, F: Future<Output = Vec<u32>> + 'a>(
    group: &'a Group,
    load: impl FnMut(Vec<&'a u32>) -> F + 'a,
) -> Task<'a, Vec<u32>> {
    let lead = group.try_lead(&2).expect("no flight is on");
    let mut batch = Task::waiting(group.do_many(&[1, 2], load));
    drop(lead);
    assert!(batch.poll().is_pending());
    batch
}

#[test]
fn c8_a_batch_leaves_all_its_flights_before_any_of_its_runs_is_dropped() {
    for (of, calls) in [(1, 2), (2, 1), (1, 1), (2, 2)] {
        within_a_minute(move || {
            let (group, gate) = (Group::new(), Gate::default());
            drop(batch_of_two_runs(&group, |keys| run(&group, keys, of, calls, &gate)));
            assert_eq!((group.stats().flights, group.in_flight()), (3, 0), "that of {of} calls {calls}");
        });
    }
}

#[test]
fn c8_a_batch_leaves_flights_whose_work_it_drives_before_any_of_its_runs_is_dropped() {
    within_a_minute(|| {
        let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
        let maker = Task::waiting(group.do_call(&2, work(&runs, &gate, 7)));
        let mut batch = Task::waiting(group.do_many(&[1, 2], |keys| run(&group, keys, 1, 2, &gate)));
        drop(maker);
        assert!(batch.poll().is_pending());
        drop(batch);
        assert_eq!((runs.dropped(), group.in_flight()), (1, 0));
    });
}

#[test]
fn c8_a_batch_leaves_all_its_flights_before_a_run_that_panics_is_dropped() {
    within_a_minute(|| {
        let (group, gate) = (Group::new(), Gate::default());
        let mut batch = batch_of_two_runs(&group, |keys| run(&group, keys, 1, 2, &gate));
        gate.open();
        let payload = catch_unwind(AssertUnwindSafe(|| batch.poll().is_ready())).expect_err("it panics");
        assert_eq!(message(payload), "a run");
        assert_eq!(group.in_flight(), 0);
    });
}

#[test]
fn c8_a_batch_that_has_failed_leaves_all_its_flights_before_its_closure_is_dropped() {
    type Batch<'a> = Pin<Box<dyn Future<Output = Result<Vec<u32>, CallError>> + 'a>>;
    within_a_minute(|| {
        let group = Group::new();
        let inside: RefCell<Option<Batch<'_>>> = RefCell::default();
        let polls_the_batch = poll_fn(|cx| {
            let Some(mut batch) = inside.take() else { return Poll::Pending };
            assert_eq!(batch.as_mut().poll(cx), Poll::Ready(Err(CallError::Reentrant)));
            Poll::Ready(7)
        });
        let mut two = Task::waiting(group.do_call_inline(&2, || polls_the_batch));
        let calls = Calls(&group, 1);
        let load = move |_| {
            let _held = &calls;
            pending()
        };
        let mut batch: Batch<'_> = Box::pin(group.run_many(&[1, 2], load));
        assert!(Task::new(poll_fn(|cx| batch.as_mut().poll(cx))).poll().is_pending());
        inside.replace(Some(batch));
        assert_eq!(two.ready(), 7);
        assert_eq!(group.in_flight(), 0);
    });
}

/// The follower was told to take over and is not polled, so the guard does. Its lead is no thread's but for as long as that.
#[test]
fn c8_what_would_have_made_the_key_of_a_guard_is_told_if_it_calls_the_key_when_it_is_dropped() {
    type Keyed = AsyncGroup<String, u32>;
    struct Calls<'a>(&'a Keyed);
    impl Drop for Calls<'_> {
        fn drop(&mut self) {
            let called = self.0.call("k").run_blocking(|| 5);
            assert_eq!(called.map(|outcome| outcome.value), Err(CallError::Reentrant));
        }
    }
    within_a_minute(|| {
        let group = Keyed::new();
        let lead = group.try_lead("k").expect("no flight is on");
        let mut follower = Task::waiting(group.do_call("k", pending));
        drop(lead);
        let calls = Calls(&group);
        let make_key = move || {
            let _held = &calls;
            "k".to_owned()
        };
        let lead = group.try_lead_with("k", make_key).expect("nobody leads");
        let waits = group.do_call_blocking_wait_timeout("k", Duration::ZERO, || 5);
        assert_eq!(waits, Err(CallError::TimedOut));
        assert_eq!(lead.land(7).value, 7);
        assert_eq!(follower.ready(), 7);
        assert_eq!(group.in_flight(), 0);
    });
}

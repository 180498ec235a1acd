//! Followers leave, everybody leaves: nothing stays behind.

use crate::by_hand::{Gate, Group, Runs, Task, Way, Yield, run_woken, within_a_minute, work};
use oneflight::{AsyncGroup, CallError, OnAbandon};
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

#[test]
fn b1_a_follower_that_leaves_changes_nothing_but_the_count() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let leaving = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    let mut staying = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 9)));
    assert_eq!(group.waiters(&1), 2);
    drop(leaving);
    assert_eq!(group.waiters(&1), 1);
    gate.open();
    assert_eq!((leader.ready(), staying.ready()), (7, 7));
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

#[test]
fn b2_when_the_last_caller_leaves_the_work_is_dropped_and_the_next_call_starts_afresh() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    drop(leader);
    assert_eq!(runs.dropped(), 0, "somebody still waits for it");
    drop(follower);
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0));
    let mut fresh = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    // The old work's wakers are still registered at the gate: they touch nothing of the new flight.
    gate.open();
    assert_eq!(fresh.ready(), 9);
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (2, 2, 0));
}

#[test]
fn b2_callers_may_leave_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
        let mut tasks: Vec<_> = (0..3).map(|_| Some(Task::waiting(group.do_call(&1, work(&runs, &gate, 7))))).collect();
        for index in order {
            assert_eq!(runs.dropped(), 0, "{order:?}");
            tasks[index] = None;
        }
        assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0), "{order:?}");
    }
}

#[test]
fn b4_a_follower_that_was_told_and_leaves_passes_the_message_on() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut followers: Vec<_> = (0..3).map(|_| Task::waiting(group.do_call(&1, work(&runs, &gate, 9)))).collect();
    drop(leader);
    for _ in 0..2 {
        let told = followers.iter().position(|follower| follower.wakes() > 0).expect("one was told");
        drop(followers.remove(told));
        assert!(followers.iter().any(|follower| follower.wakes() > 0), "the next one is told");
    }
    gate.open();
    assert_eq!(run_woken(&mut followers), [Some(7)]);
    assert_eq!(runs.started(), 1);
}

#[test]
fn b4_also_when_inline_work_was_abandoned() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 7)));
    let mut followers: Vec<_> = (0..4).map(|_| Task::waiting(group.do_call(&1, work(&runs, &gate, 9)))).collect();
    drop(leader);
    while followers.len() > 1 {
        let told = followers.iter().position(|follower| follower.wakes() > 0).expect("one was told");
        drop(followers.remove(told));
    }
    assert!(followers[0].poll().is_pending());
    gate.open();
    assert_eq!(followers[0].ready(), 9, "it runs its own work");
    assert_eq!((runs.started(), group.in_flight()), (2, 0));
}

/// A key, a value or what a work holds. Each holds one token, so the count of the tokens tells whether any is left.
#[derive(Clone)]
struct Counted {
    number: u32,
    _token: Arc<()>,
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

#[test]
fn a6_of_a_thousand_keys_left_in_every_way_no_key_closure_or_value_is_left() {
    type Work = Pin<Box<dyn Future<Output = Counted> + Send>>;
    let token = Arc::new(());
    let thing = |number| Counted { number, _token: Arc::clone(&token) };
    let keys: Vec<_> = (0..1_000).map(thing).collect();
    let group: AsyncGroup<Counted, Counted> = AsyncGroup::new();
    let (shut, open) = (Gate::default(), Gate::default());
    let work = |number, gate: &Gate| {
        let (by_closure, by_future, value, gate) = (thing(number), thing(number), thing(number), gate.clone());
        move || -> Work {
            let _held = by_closure;
            Box::pin(async move {
                let _held = by_future;
                gate.await;
                value
            })
        }
    };
    let mut tasks = Vec::new();
    let mut leaders = Vec::new();
    for key in &keys {
        let number = key.number;
        let kind = number % 8;
        match kind {
            // Nobody has polled it.
            0 => tasks.push(Task::new(group.do_call(key, work(number, &shut)))),
            1 | 2 => tasks.push(Task::waiting(group.do_call_inline(key, work(number, &shut)))),
            3 => {
                let mut work = Some(work(number, &shut));
                let mut load = move |_| {
                    let work = work.take().expect("one key");
                    async move { vec![work().await] }
                };
                let batch = &group;
                tasks.push(Task::waiting(async move { batch.do_many([key], &mut load).await.remove(0) }));
            }
            // These land, and their followers do not look.
            4 => leaders.push(Task::waiting(group.do_call(key, work(number, &open)))),
            _ => tasks.push(Task::waiting(group.do_call(key, work(number, &shut)))),
        }
        match kind {
            2 | 4 | 5 => tasks.push(Task::waiting(group.do_call(key, work(number, &shut)))),
            6 => assert!(group.forget(key)),
            _ => {}
        }
    }
    assert_eq!(group.in_flight(), 875);
    open.open();
    assert!(leaders.iter_mut().all(|leader| leader.ready().number % 8 == 4));
    drop(leaders);
    assert_eq!(group.in_flight(), 750);
    drop(tasks);
    // The wakers that the works have left at the gates are there still.
    assert_eq!(group.in_flight(), 0);
    assert_eq!(Arc::strong_count(&token), 1 + keys.len(), "a key, a closure or a value was kept");

    for key in &keys {
        let held = thing(key.number);
        let no_future = move || -> std::future::Ready<Counted> {
            let _held = held;
            panic!("no future")
        };
        let polled = match key.number % 2 {
            0 => catch_unwind(AssertUnwindSafe(|| Task::new(group.do_call(key, no_future)).poll().is_ready())),
            _ => catch_unwind(AssertUnwindSafe(|| Task::new(group.do_call_inline(key, no_future)).poll().is_ready())),
        };
        assert!(polled.is_err());
    }
    assert_eq!((group.in_flight(), Arc::strong_count(&token)), (0, 1 + keys.len()));
    for key in &keys {
        let value = thing(key.number);
        assert!(Task::new(group.do_call(key, || async move { value })).ready() == *key);
    }
    drop(keys);
    assert_eq!((group.in_flight(), Arc::strong_count(&token)), (0, 1));
}

#[test]
fn a_follower_that_does_not_take_over_is_told_that_the_flight_was_abandoned() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 7)));
    let mut fails = Task::waiting(group.call(&1).on_abandon(OnAbandon::Fail).run(work(&runs, &gate, 8)));
    let mut takes_over = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    drop(leader);
    assert!(fails.wakes() > 0 && takes_over.wakes() > 0);
    assert_eq!(fails.ready().map(|outcome| outcome.value), Err(CallError::Abandoned));
    assert!(takes_over.poll().is_pending());
    gate.open();
    assert_eq!(takes_over.ready(), 9);
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn handing_work_over_is_not_abandoning_it() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let leader = Task::waiting(group.call(&1).max_attempts(1).run(work(&runs, &gate, 7)));
    let mut fails = Task::waiting(group.call(&1).on_abandon(OnAbandon::Fail).run(work(&runs, &gate, 8)));
    drop(leader);
    gate.open();
    assert_eq!(fails.ready().map(|outcome| outcome.value), Ok(7));
    assert_eq!((runs.started(), group.stats().abandons), (1, 0));
}

#[test]
fn f6_a_hundred_thousand_followers_are_served_and_leave_in_linear_time() {
    // Bounded by polls; and what would not be linear, a search through the followers at each step, takes minutes.
    for leave in [false, true] {
        within_a_minute(move || {
            // All polls, and all times that somebody was woken.
            let steps = [10_000, 100_000].map(|callers| {
                let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
                // The first one's work belongs to the flight, whose followers call in every way.
                let make = |way: Way| Task::waiting(way.call(&group, &1, || work(&runs, &gate, 7)()));
                let mut tasks: Vec<_> = Way::ALL.into_iter().cycle().map(make).take(callers).collect();
                assert_eq!(group.waiters(&1), callers - 1);
                if !leave {
                    gate.open();
                    assert!(run_woken(&mut tasks).iter().all(|value| *value == Some(7)));
                    assert!(tasks.iter().all(|task| task.polls <= 4));
                }
                // The leader first.
                let steps = tasks.drain(..).map(|task| task.polls + task.wakes()).sum::<usize>();
                assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0));
                steps
            });
            assert!(steps[1] <= 13 * steps[0], "{steps:?}");
        });
    }
}

#[test]
fn f6_a_hundred_thousand_followers_leave_in_linear_time_while_the_work_calls_for_one() {
    within_a_minute(|| {
        // A search through all of them at each step takes minutes.
        let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
        let mut tasks: Vec<_> = (0..100_000).map(|_| Task::waiting(group.do_call(&1, work(&runs, &gate, 7)))).collect();
        gate.stir();
        // From the middle, those at both ends last.
        tasks.rotate_left(50_000);
        while tasks.len() > 2 {
            drop(tasks.pop());
            assert!(tasks.len() % 1_000 != 0 || tasks.iter().any(|task| task.wakes() > 0), "somebody is told");
        }
        gate.open();
        assert_eq!(run_woken(&mut tasks), [Some(7), Some(7)]);
        assert_eq!((runs.started(), group.in_flight()), (1, 0));
    });
}

#[test]
fn f6_a_hundred_thousand_calls_of_one_task_leave_in_linear_time() {
    for told in [false, true] {
        within_a_minute(move || {
            let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
            let mut first = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
            let beside = |_| {
                let mut task = Task::beside(&first, group.do_call(&1, work(&runs, &gate, 8)));
                assert!(task.poll().is_pending());
                task
            };
            let mut tasks: Vec<_> = (0..100_000).map(beside).collect();
            // Of another task, and far back: the standby.
            let mut other = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
            gate.stir();
            assert_eq!(other.wakes(), 1);
            assert!(!told || other.poll().is_pending());
            tasks.reverse();
            drop(tasks);
            gate.open();
            assert_eq!((other.ready(), first.ready()), (7, 7));
            assert_eq!((runs.started(), group.in_flight()), (1, 0));
        });
    }
}

#[test]
fn a_follower_that_waits_for_an_attempt_that_is_over_inherits_no_work() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let first = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 7)));
    let mut fails = Task::waiting(group.call(&1).on_abandon(OnAbandon::Fail).run(work(&runs, &gate, 8)));
    let mut second = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    drop(first);
    assert!(second.poll().is_pending(), "it has taken over");
    drop(second);
    assert_eq!((runs.started(), runs.dropped()), (2, 2), "the work is dropped with the last who wants it");
    assert_eq!(fails.ready().map(|outcome| outcome.value), Err(CallError::Abandoned));
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn d1_a_forgotten_flight_goes_on_for_those_inside_and_cannot_touch_the_new_one() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut old = Task::waiting(group.do_call(&1, work(&runs, &gate, 1)));
    let mut inside = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    assert!(group.forget(&1));
    let other_gate = Gate::default();
    let mut new = Task::waiting(group.do_call(&1, work(&runs, &other_gate, 2)));
    gate.open();
    assert_eq!((old.ready(), inside.ready()), (1, 1));
    let mut joins_new = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    other_gate.open();
    assert_eq!((new.ready(), joins_new.ready()), (2, 2));
    assert_eq!((runs.started(), group.in_flight()), (2, 0));
}

#[test]
fn flights_that_their_tasks_leave_are_counted() {
    let group = Group::new();
    drop(Task::waiting(group.do_call(&1, std::future::pending)));
    assert_eq!(group.stats().abandons, 1);
    let mut panics = Task::waiting(group.do_call(&1, || async {
        Yield(1).await;
        panic!("the work's own panic")
    }));
    assert!(catch_unwind(AssertUnwindSafe(|| panics.poll())).is_err());
    let stats = group.stats();
    assert_eq!((stats.flights, stats.abandons, group.in_flight()), (2, 2, 0));
}

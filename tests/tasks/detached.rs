//! Work that goes on after its last caller has left.

use crate::by_hand::{Gate, Group, Runs, Task, message, until, work};
use oneflight::AsyncGroup;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

type Spawned = Arc<Mutex<Vec<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

/// A group whose spawned work is polled by the test.
fn group_with_spawner() -> (Group, Spawned) {
    let spawned = Spawned::default();
    let keeps = Arc::clone(&spawned);
    let group = AsyncGroup::builder().spawner(move |work| keeps.lock().unwrap().push(work)).build();
    (group, spawned)
}

fn take(spawned: &Spawned) -> Task<'static, ()> {
    let mut spawned = spawned.lock().unwrap();
    assert_eq!(spawned.len(), 1, "spawned once");
    Task::new(spawned.pop().expect("there is one"))
}

#[test]
fn a9_detached_work_goes_on_and_a_later_call_runs_afresh() {
    let (group, spawned) = group_with_spawner();
    let (runs, gate) = (Runs::default(), Gate::default());
    let first = Task::waiting(group.call(&1).detach().run(work(&runs, &gate, 7)));
    let second = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    drop(first);
    assert!(spawned.lock().unwrap().is_empty(), "somebody is still there");
    drop(second);
    let mut driver = take(&spawned);
    assert_eq!((runs.dropped(), group.in_flight()), (0, 1));
    assert!(driver.poll().is_pending());
    gate.open();
    driver.ready();
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0));
    assert_eq!(Task::new(group.do_call(&1, || async { 9 })).ready(), 9, "a group is no cache");
}

#[test]
fn a_caller_that_comes_while_detached_work_goes_on_joins_it() {
    let (group, spawned) = group_with_spawner();
    let (runs, gate) = (Runs::default(), Gate::default());
    drop(Task::waiting(group.call(&1).detach().run(work(&runs, &gate, 7))));
    let mut driver = take(&spawned);
    assert!(driver.poll().is_pending());
    let mut newcomer = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    gate.open();
    assert!(newcomer.wakes() > 0, "a driver that is parked holds up nobody");
    assert_eq!(newcomer.ready(), 7);
    driver.ready();
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

/// Whoever drives the work lands for threads as well.
#[test]
fn a_thread_that_waits_gets_the_value_of_work_that_its_last_task_has_left() {
    let (group, spawned) = group_with_spawner();
    let group = Arc::new(group);
    let (runs, gate) = (Runs::default(), Gate::default());
    let call = Task::waiting(group.call(&1).detach().run(work(&runs, &gate, 7)));
    let waits = {
        let (group, runs) = (Arc::clone(&group), runs.clone());
        std::thread::spawn(move || {
            group.do_call_blocking(&1, || {
                let _run = runs.start();
                9
            })
        })
    };
    until("the thread waits", || group.waiters(&1) == 1);
    drop(call);
    let mut driver = take(&spawned);
    assert!(driver.poll().is_pending());
    assert_eq!((runs.dropped(), group.waiters(&1)), (0, 1));
    gate.open();
    driver.ready();
    assert_eq!(waits.join().expect("it does not panic"), 7);
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0));
}

#[test]
fn a_callers_leaving_again_does_not_spawn_again() {
    let (group, spawned) = group_with_spawner();
    let (runs, gate) = (Runs::default(), Gate::default());
    drop(Task::waiting(group.call(&1).detach().run(work(&runs, &gate, 7))));
    drop(Task::waiting(group.do_call(&1, work(&runs, &gate, 8))));
    let mut driver = take(&spawned);
    gate.open();
    driver.ready();
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

#[test]
fn a_dropped_driver_is_a_leaving_caller() {
    let (group, spawned) = group_with_spawner();
    let (runs, gate) = (Runs::default(), Gate::default());
    drop(Task::waiting(group.call(&1).detach().run(work(&runs, &gate, 7))));
    drop(take(&spawned));
    assert_eq!((runs.dropped(), group.in_flight()), (1, 0));
    // With a caller inside, that one goes on with the work.
    drop(Task::waiting(group.call(&1).detach().run(work(&runs, &gate, 7))));
    let mut caller = Task::waiting(group.do_call(&1, work(&runs, &gate, 8)));
    drop(take(&spawned));
    gate.open();
    assert_eq!(caller.ready(), 7);
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn a_spawner_that_panics_or_drops_the_work_leaves_nothing_behind() {
    let (runs, gate) = (Runs::default(), Gate::default());
    let panics: Group = AsyncGroup::builder().spawner(|_| panic!("no more tasks")).build();
    drop(Task::waiting(panics.call(&1).detach().run(work(&runs, &gate, 7))));
    assert_eq!((runs.dropped(), panics.in_flight()), (1, 0));
    let drops: Group = AsyncGroup::builder().spawner(drop).build();
    drop(Task::waiting(drops.call(&1).detach().run(work(&runs, &gate, 7))));
    assert_eq!((runs.dropped(), drops.in_flight()), (2, 0));
}

#[test]
fn detaching_without_a_spawner_is_refused_at_the_call() {
    let group = Group::new();
    let refused = catch_unwind(AssertUnwindSafe(|| drop(group.call(&1).detach())));
    assert!(message(refused.expect_err("it is refused")).contains("needs a group with a spawner"));
}

/// A group whose work is spawned by default, and polled by the test.
fn group_that_detaches<V: Clone + Send + Sync + 'static>() -> (AsyncGroup<u32, V>, Spawned) {
    let spawned = Spawned::default();
    let keeps = Arc::clone(&spawned);
    let group = AsyncGroup::builder().spawner(move |work| keeps.lock().unwrap().push(work)).detach().build();
    (group, spawned)
}

#[test]
fn a_group_that_detaches_by_default_does_so_with_calls_without_options_and_with_them() {
    let (group, spawned): (Group, _) = group_that_detaches();
    let (fallible, spawned_too) = group_that_detaches::<Result<u32, Arc<String>>>();
    let (runs, gate) = (Runs::default(), Gate::default());
    drop(Task::waiting(group.do_call(&1, work(&runs, &gate, 7))));
    drop(Task::waiting(group.do_call(&1, work(&runs, &gate, 8))));
    let mut drivers = vec![take(&spawned)];
    drop(Task::waiting(group.call(&2).max_attempts(2).run(work(&runs, &gate, 7))));
    drivers.push(take(&spawned));
    let load = work(&runs, &gate, 7);
    drop(Task::waiting(fallible.try_do_call(&3, || async { Ok(load().await) })));
    drivers.push(take(&spawned_too));
    let mut follower = Task::waiting(fallible.try_do_call(&3, || async { Ok(9) }));
    gate.open();
    for driver in &mut drivers {
        driver.ready();
    }
    assert_eq!(follower.ready(), Ok(7));
    assert_eq!((runs.started(), runs.dropped(), group.in_flight() + fallible.in_flight()), (3, 3, 0));
    // What its caller runs itself is not spawned.
    let shut = Gate::default();
    drop(Task::waiting(group.do_call_inline(&4, work(&runs, &shut, 7))));
    assert_eq!((runs.dropped(), spawned.lock().unwrap().len(), group.in_flight()), (4, 0, 0));
}

/// Their work is their callers' own.
#[test]
fn a_group_that_detaches_by_default_detaches_no_batch_and_no_inline_work() {
    let (group, spawned) = group_that_detaches::<u32>();
    drop(Task::waiting(group.do_many(&[1], |_| std::future::pending())));
    drop(Task::waiting(group.do_call_inline(&1, std::future::pending)));
    assert!(spawned.lock().unwrap().is_empty());
    assert_eq!((group.stats().abandons, group.in_flight()), (2, 0));
}

#[test]
fn a_call_that_stays_attached_is_dropped_with_its_last_caller_whatever_the_group_does_by_default() {
    let (group, spawned): (Group, _) = group_that_detaches();
    let (runs, gate) = (Runs::default(), Gate::default());
    let first = Task::waiting(group.call(&1).attach().run(work(&runs, &gate, 7)));
    // What a follower is called with is about work of its own.
    let second = Task::waiting(group.call(&1).run(work(&runs, &gate, 8)));
    drop(first);
    assert_eq!((runs.dropped(), group.in_flight()), (0, 1));
    drop(second);
    assert_eq!((runs.dropped(), spawned.lock().unwrap().len(), group.in_flight()), (1, 0, 0));
    // With options that are made anew.
    drop(Task::waiting(group.call(&1).attach().share_if(|_| true).max_attempts(2).run(work(&runs, &gate, 7))));
    // The later one counts.
    drop(Task::waiting(group.call(&1).detach().attach().run(work(&runs, &gate, 7))));
    assert_eq!((runs.dropped(), spawned.lock().unwrap().len(), group.in_flight()), (3, 0, 0));
    drop(Task::waiting(group.call(&1).attach().detach().run(work(&runs, &gate, 7))));
    let mut driver = take(&spawned);
    gate.open();
    driver.ready();
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (4, 4, 0));
    // A group that does not detach is none the worse for it.
    let plain = Group::new();
    drop(Task::waiting(plain.call(&1).attach().run(work(&runs, &Gate::default(), 7))));
    assert_eq!((runs.dropped(), plain.in_flight()), (5, 0));
}

#[test]
fn a_group_that_is_to_detach_needs_a_spawner_and_its_hasher_before() {
    let builder = AsyncGroup::<u32, u32>::builder;
    let refused = catch_unwind(|| drop(builder().detach().build()));
    assert!(message(refused.expect_err("it is refused")).contains("needs a group with a spawner"));
    let refused = catch_unwind(|| drop(builder().detach().hasher(std::hash::RandomState::new())));
    assert!(message(refused.expect_err("it is refused")).contains("hasher() must come before detach()"));
    let group = builder().hasher(std::hash::RandomState::new()).detach().spawner(drop).build();
    drop(Task::waiting(group.do_call(&1, std::future::pending)));
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn a_panic_that_no_caller_will_hear_of_goes_on_in_the_spawned_task() {
    let (group, spawned) = group_with_spawner();
    let gate = Gate::default();
    let opens = gate.clone();
    drop(Task::waiting(group.call(&1).detach().run(|| async move {
        opens.await;
        panic!("nobody is there")
    })));
    let mut driver = take(&spawned);
    gate.open();
    let payload = catch_unwind(AssertUnwindSafe(|| driver.poll().is_ready())).expect_err("it panics");
    assert_eq!(message(payload), "nobody is there");
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn a_callers_own_work_follows_detached_work_that_panics() {
    let (group, spawned) = group_with_spawner();
    let gate = Gate::default();
    let opens = gate.clone();
    drop(Task::waiting(group.call(&1).detach().run(|| async move {
        opens.await;
        panic!("nobody is there")
    })));
    let mut driver = take(&spawned);
    let mut caller = Task::waiting(group.do_call(&1, || async { 9 }));
    gate.open();
    assert_eq!(caller.ready(), 9);
    driver.ready();
    assert_eq!(group.in_flight(), 0);
}

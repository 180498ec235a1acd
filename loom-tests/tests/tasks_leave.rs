//! Leaving tasks: a call that is dropped leaves nothing behind, no message undelivered and no newcomer in a flight that is doomed.

#![cfg(loom)]

use core::future::Future;
use core::pin::Pin;
use loom::sync::{Arc, Mutex};
use loom::thread;
use oneflight::AsyncGroup;
use oneflight_loom_tests::tasks::{Group, Works, assert_nothing_left, block_on, call, new_group, parked};
use oneflight_loom_tests::{KEY, check, join, spawn};

/// A call that waits.
type Follower = Pin<Box<dyn Future<Output = u32> + Send>>;

/// The last caller leaves while a newcomer joins (B3): that one goes on with the same work, or begins a flight of its own.
#[test]
fn the_last_caller_leaves_while_a_newcomer_joins() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let newcomer = call(&group, &works, 1);
        drop(leader);
        works.open();
        match join(newcomer) {
            0 => assert_eq!((works.counts(), group.stats().flights), ((1, 1, 1), 1)),
            value => assert_eq!((value, works.counts(), group.stats().flights), (1, (2, 1, 2), 2)),
        }
        assert_eq!(group.stats().take_overs, 0);
        assert_nothing_left(&group);
    });
}

/// A task keeps its value for itself, after its only follower has left, while another arrives: that one takes over, or begins a
/// flight of its own.
#[test]
fn a_value_is_kept_while_a_newcomer_joins() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let inside: Arc<Mutex<Option<Follower>>> = Arc::new(Mutex::new(None));
        let leaves = Arc::clone(&inside);
        let leader = parked({
            let (group, work) = (Arc::clone(&group), works.make(0));
            let share_if = move |_: &u32| {
                let follower = leaves.lock().expect("nobody panics").take();
                drop(follower);
                false
            };
            async move { group.call(&KEY).share_if(share_if).run(work).await }
        });
        let (follows, work) = (Arc::clone(&group), works.make(2));
        let follower: Follower = parked(async move { follows.do_call(&KEY, work).await });
        *inside.lock().expect("nobody panics") = Some(follower);
        works.open();
        let newcomer = call(&group, &works, 1);
        let outcome = block_on(leader).map(|outcome| (outcome.value, outcome.shared));
        assert_eq!((outcome, join(newcomer)), (Ok((0, false)), 1));
        assert_eq!(works.counts(), (2, 2, 2));
        assert_nothing_left(&group);
    });
}

/// The leader leaves without a value, and both tasks that are told of it are dropped: the third must hear of it (B4). The leader is
/// one whose work is its own.
#[test]
fn whoever_was_told_to_take_over_leaves() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let told = [1, 2].map(|own| (Arc::clone(&group), works.make(own)));
        let leader = group.try_lead(&KEY).expect("nobody leads");
        let told = told.map(|(group, work)| parked(async move { group.do_call(&KEY, work).await }));
        let follower = spawn(&group, |group| block_on(group.do_call(&KEY, || async { 3 })));
        let leaving = thread::spawn(move || drop(told));
        drop(leader);
        assert_eq!(join(follower), 3);
        join(leaving);
        assert_eq!(works.counts(), (0, 0, 0));
        assert_nothing_left(&group);
    });
}

/// The last caller of work that is to go on without it leaves, while the work wakes and a newcomer joins: the same work comes to
/// its end, and nobody begins another before.
#[test]
fn detached_work_goes_on_while_a_newcomer_joins() {
    check(|| {
        let driver: Arc<loom::sync::Mutex<Option<thread::JoinHandle<()>>>> = Arc::new(loom::sync::Mutex::new(None));
        let spawned = Arc::clone(&driver);
        let spawner = move |work| *spawned.lock().unwrap() = Some(thread::spawn(move || block_on(work)));
        let group: Arc<Group> = Arc::new(AsyncGroup::builder().spawner(spawner).build());
        let works = Works::new();
        let leader = parked(group.call(&KEY).detach().run(works.make(0)));
        let newcomer = {
            let works = works.clone();
            spawn(&group, move |group| {
                works.open();
                let begin = works.make(1);
                let work = || {
                    assert_eq!(works.counts().1, 1, "it goes on");
                    begin()
                };
                block_on(group.do_call(&KEY, work))
            })
        };
        drop(leader);
        let value = join(newcomer);
        let driver = driver.lock().unwrap().take();
        if let Some(driver) = driver {
            join(driver);
        }
        let each = value as usize + 1;
        assert_eq!(works.counts(), (each, each, each));
        assert_eq!(group.stats().take_overs, 0);
        assert_nothing_left(&group);
    });
}

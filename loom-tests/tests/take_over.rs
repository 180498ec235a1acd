//! Rule 3, take-over: while waiters remain, an abandoned flight gets exactly one new leader, and no waiter sees an error
//! that it did not ask for.
//!
//! The first leader is a guard that is dropped: a panic abandons the flight by the same destructor, but loom's mutexes
//! do not survive a thread that unwinds.

#![cfg(loom)]

use loom::sync::Arc;
use oneflight::{CallError, Role, SyncGroup};
use oneflight_loom_tests::{
    KEY, Works, assert_nothing_left, assert_served, check, join, join_all, lead, new_group, spawn, until_waiting,
};

/// Two followers are inside when the leader leaves: one of them leads, and both get what it made.
#[test]
fn one_of_two_followers_takes_over() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = lead(&group);
        let followers = [1, 2].map(|own| {
            let works = Arc::clone(&works);
            spawn(&group, move |group| assert_served(group.call(&KEY).run(|| works.run(own)), own))
        });
        until_waiting(&group, 2);
        drop(leader);
        let [one, two] = join_all(followers);
        assert_eq!(one.value, two.value);
        assert!(one.shared && two.shared);
        assert_ne!(one.role == Role::TookOver, two.role == Role::TookOver);
        assert_eq!((works.runs(), group.stats().take_overs, group.stats().flights), (1, 1, 1));
        assert_nothing_left(&group);
    });
}

/// The leader leaves between any two steps of two followers, which may also come too late and begin a flight of their own.
#[test]
fn a_leader_leaves_while_followers_arrive() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = lead(&group);
        let followers = [1, 2].map(|own| {
            let works = Arc::clone(&works);
            spawn(&group, move |group| assert_served(group.call(&KEY).run(|| works.run(own)), own))
        });
        drop(leader);
        let outcomes = join_all(followers);
        let count = |role| outcomes.iter().filter(|outcome| outcome.role == role).count();
        let stats = group.stats();
        assert_eq!(stats.flights, 1 + count(Role::Led) as u64);
        assert_eq!(stats.take_overs, count(Role::TookOver) as u64);
        assert_eq!(works.runs(), count(Role::Led) + count(Role::TookOver));
        assert!(works.runs() > 0);
        assert_nothing_left(&group);
    });
}

/// A value that is not to be shared stays with its own caller, and the follower makes one for itself.
#[test]
fn an_unshared_value_stays_with_its_caller() {
    check(|| {
        let group = new_group();
        let mut follower = None;
        let led = group.call(&KEY).share_if(|_| false).run(|| {
            follower = Some(spawn(&group, |group| assert_served(group.call(&KEY).run(|| 1), 1)));
            0
        });
        let led = assert_served(led, 0);
        assert!(!led.shared);
        assert_ne!(join(follower.expect("the work has run")).role, Role::Followed);
        assert_nothing_left(&group);
    });
}

/// The last allowed leader leaves without a value: both followers are told so, and nobody takes over.
#[test]
fn everybody_hears_that_the_attempts_are_used_up() {
    check(|| {
        let group: Arc<SyncGroup<u32, u32>> = Arc::new(SyncGroup::builder().max_attempts(1).build());
        let leader = lead(&group);
        let followers = [1, 2].map(|own| spawn(&group, move |group| group.call(&KEY).run(|| own)));
        until_waiting(&group, 2);
        drop(leader);
        for follower in followers {
            assert_eq!(join(follower), Err(CallError::Abandoned));
        }
        assert_eq!((group.stats().flights, group.stats().take_overs), (1, 0));
        assert_nothing_left(&group);
    });
}

/// As above at any moment, for callers that go on in a fresh flight: they may meet there, or in a flight of a newcomer.
#[test]
fn callers_without_a_result_go_on_in_a_fresh_flight() {
    check(|| {
        let group: Arc<SyncGroup<u32, u32>> = Arc::new(SyncGroup::builder().max_attempts(1).build());
        let works = Works::new();
        let leader = lead(&group);
        let callers = [1, 2].map(|own| {
            let works = Arc::clone(&works);
            spawn(&group, move |group| group.do_call(&KEY, || works.run(own)))
        });
        drop(leader);
        for value in join_all(callers) {
            assert!(value == 1 || value == 2);
        }
        assert_eq!(group.stats().flights, 1 + works.runs() as u64);
        assert_eq!(group.stats().take_overs, 0);
        assert_nothing_left(&group);
    });
}

/// The last allowed leader has a value that it would keep for itself: everybody who waits for it gets it.
#[test]
fn the_last_attempts_value_is_for_all() {
    check(|| {
        let group = new_group();
        let mut followers = None;
        let led = group.call(&KEY).max_attempts(1).share_if(|_| false).run(|| {
            let follow = |own| spawn(&group, move |group| assert_served(group.call(&KEY).run(|| own), own));
            followers = Some([1, 2].map(follow));
            until_waiting(&group, 2);
            0
        });
        assert_eq!(led.map(|led| (led.value, led.shared)), Ok((0, true)));
        for follower in followers.expect("the work has run") {
            let followed = join(follower);
            assert_eq!((followed.value, followed.role), (0, Role::Followed));
        }
        assert_nothing_left(&group);
    });
}

/// Two attempts are allowed, and the first leader has left: whoever takes over makes the last attempt, and its value, which
/// it would keep for itself, is for all.
#[test]
fn a_take_over_may_be_the_last_attempt() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = lead(&group);
        let followers = [1, 2].map(|own| {
            let works = Arc::clone(&works);
            spawn(&group, move |group| {
                let call = group.call(&KEY).max_attempts(2).share_if(|_| false);
                assert_served(call.run(|| works.run(own)), own)
            })
        });
        until_waiting(&group, 2);
        drop(leader);
        let [one, two] = join_all(followers);
        assert_eq!(one.value, two.value);
        assert_eq!(works.runs(), 1);
        assert_nothing_left(&group);
    });
}

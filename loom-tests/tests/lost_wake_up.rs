//! Rule 2, no lost wake-up: a waiter listens, looks again, then sleeps; a notifier changes the state, then notifies; whoever
//! is told to take over and leaves instead passes the message on.
//!
//! A lost wake-up shows as a deadlock, which loom reports.

#![cfg(loom)]

use core::time::Duration;
use loom::sync::Arc;
use oneflight::{CallError, OnAbandon, Role};
use oneflight_loom_tests::{
    KEY, Works, assert_nothing_left, assert_served, check, join, join_all, lead, new_group, spawn, until_waiting,
};

/// The leader lands between any two steps of a follower that listens, looks and goes to sleep.
#[test]
fn landing_wakes_a_follower() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let follower = spawn(&group, |group| assert_served(group.call(&KEY).run(|| 1), 1));
        until_waiting(&group, 1);
        assert!(leader.land(0).shared);
        assert_eq!(join(follower).role, Role::Followed);
        assert_nothing_left(&group);
    });
}

/// The leader lands while a follower arrives, which is inside at that moment or comes too late; what the leader says of it
/// is exact.
#[test]
fn landing_meets_an_arrival() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let follower = spawn(&group, |group| assert_served(group.call(&KEY).run(|| 1), 1));
        let led = leader.land(0);
        assert_eq!(led.shared, join(follower).role == Role::Followed);
        assert_nothing_left(&group);
    });
}

/// As above, for a leader that found nobody inside a moment ago: whether it is alone must be looked up and settled in one
/// critical section.
#[test]
fn a_leader_is_not_alone_after_all() {
    check(|| {
        let group = new_group();
        let other = spawn(&group, |group| assert_served(group.call(&KEY).run(|| 1), 1));
        let mine = assert_served(group.call(&KEY).run(|| 2), 2);
        let other = join(other);
        assert_eq!(mine.shared, other.shared);
        assert_nothing_left(&group);
    });
}

/// The leader wakes one sleeper and returns; that one must wake the others.
#[test]
fn landing_reaches_the_third_follower() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let followers =
            [1, 2, 3].map(|own| spawn(&group, move |group| assert_served(group.call(&KEY).run(|| own), own)));
        leader.land(0);
        join_all(followers);
        assert_nothing_left(&group);
    });
}

/// Those that would leave with their attempt look under the lock, and each finds the value.
#[test]
fn landing_reaches_two_that_would_fail() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let followers = [1, 2].map(|own| {
            spawn(&group, move |group| assert_served(group.call(&KEY).on_abandon(OnAbandon::Fail).run(|| own), own))
        });
        leader.land(0);
        join_all(followers);
        assert_nothing_left(&group);
    });
}

/// The leader leaves between any two steps of a follower that listens, looks and goes to sleep.
#[test]
fn abandoning_wakes_a_follower() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let follower = spawn(&group, |group| assert_served(group.call(&KEY).run(|| 1), 1));
        until_waiting(&group, 1);
        drop(leader);
        assert_eq!(join(follower).role, Role::TookOver);
        assert_nothing_left(&group);
    });
}

/// Two leaders in a row leave without a value for the others, and each wakes the next: all of them get a value of their own.
#[test]
fn each_leader_that_leaves_wakes_the_next() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = lead(&group);
        let followers = [1, 2].map(|own| {
            let works = Arc::clone(&works);
            spawn(&group, move |group| group.call(&KEY).share_if(|_| false).run(|| works.run(own)))
        });
        until_waiting(&group, 2);
        drop(leader);
        for (follower, own) in followers.into_iter().zip([1, 2]) {
            let outcome = assert_served(join(follower), own);
            assert_eq!((outcome.role, outcome.shared), (Role::TookOver, false));
        }
        assert_eq!(works.runs(), 2);
        assert_nothing_left(&group);
    });
}

/// A follower that does not take over hears of the first leader's end, whoever leads by then: here the next leader's work
/// does not end before that follower has left.
#[test]
fn a_follower_that_fails_does_not_wait_for_the_next_leader() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let failing = spawn(&group, |group| group.call(&KEY).on_abandon(OnAbandon::Fail).run(|| 1));
        let follower = spawn(&group, move |group| {
            let work = || {
                assert_eq!(join(failing), Err(CallError::Abandoned));
                2
            };
            assert_served(group.call(&KEY).run(work), 2)
        });
        until_waiting(&group, 2);
        drop(leader);
        assert_eq!(join(follower).role, Role::TookOver);
        assert_nothing_left(&group);
    });
}

/// A follower that does not take over may wake only when the next attempt has landed: that value is not for it.
#[test]
fn a_follower_that_fails_gets_no_value_of_the_next_leader() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let failing = spawn(&group, |group| group.call(&KEY).on_abandon(OnAbandon::Fail).run(|| 1));
        let follower = spawn(&group, |group| group.do_call(&KEY, || 2));
        until_waiting(&group, 2);
        drop(leader);
        let mine = group.do_call(&KEY, || 3);
        assert_eq!(join(failing), Err(CallError::Abandoned));
        assert!([2, 3].contains(&mine) && [2, 3].contains(&join(follower)));
        assert_nothing_left(&group);
    });
}

/// One follower gives up at the very moment at which the leader leaves; the other must take over all the same.
#[test]
fn a_follower_that_gives_up_leaves_the_flight_to_the_next() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let impatient = spawn(&group, |group| group.do_call_wait_timeout(&KEY, Duration::ZERO, || 1));
        let follower = spawn(&group, |group| assert_served(group.call(&KEY).run(|| 2), 2));
        drop(leader);
        match join(impatient) {
            Ok(value) => assert!(value == 1 || value == 2),
            Err(error) => assert_eq!(error, CallError::TimedOut),
        }
        join(follower);
        assert_nothing_left(&group);
    });
}

/// One follower gives up at the very moment at which the leader lands: it gets the value after all or is counted out, and
/// the other one gets the value.
#[test]
fn a_follower_gives_up_while_the_leader_lands() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let impatient = spawn(&group, |group| group.call(&KEY).wait_timeout(Duration::ZERO).run(|| 1));
        let led = leader.land(0);
        match join(impatient) {
            Ok(outcome) => {
                assert_served(Ok(outcome), 1);
                assert_eq!(led.shared, outcome.role == Role::Followed);
            }
            Err(error) => {
                assert_eq!(error, CallError::TimedOut);
                assert!(!led.shared, "who was inside when the flight landed has its value");
            }
        }
        assert_nothing_left(&group);
    });
}

//! Rule 4, nothing is left behind: after the last caller has left, in whatever order and by whatever way, the table holds no
//! entry for the flight, the next call of the key succeeds, and nobody has joined a flight that is gone.
//!
//! That no slot outlives its flight is checked by loom itself, which counts its `Arc`s.

#![cfg(loom)]

use core::time::Duration;
use oneflight::{CallError, OnAbandon, Role};
use oneflight_loom_tests::{
    KEY, assert_nothing_left, assert_served, check, join, lead, new_group, spawn, until_waiting,
};

/// The last waiter of a vacant flight leaves while a newcomer arrives (B3): the newcomer leads that flight or a fresh one,
/// nothing between.
#[test]
fn the_last_waiter_leaves_while_a_newcomer_arrives() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let waiter = spawn(&group, |group| group.call(&KEY).on_abandon(OnAbandon::Fail).run(|| 1));
        until_waiting(&group, 1);
        let newcomer = spawn(&group, |group| assert_served(group.call(&KEY).run(|| 2), 2));
        drop(leader);
        assert_eq!(join(waiter), Err(CallError::Abandoned));
        assert_ne!(join(newcomer).role, Role::Followed);
        assert_nothing_left(&group);
    });
}

/// Whoever has the value of a flight, by whatever way it came by it, does not find the flight any more.
#[test]
fn a_follower_that_has_the_value_counts_no_flight() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let follower = spawn(&group, |group| {
            let outcome = assert_served(group.call(&KEY).run(|| 1), 1);
            assert_eq!(group.in_flight(), 0);
            outcome
        });
        until_waiting(&group, 1);
        leader.land(0);
        assert_eq!(join(follower).role, Role::Followed);
        assert_nothing_left(&group);
    });
}

/// A waiter that gives up is counted out: the leader that abandons after that, or before, leaves no vacant flight behind.
#[test]
fn the_only_waiter_gives_up_while_the_leader_leaves() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let waiter = spawn(&group, |group| group.call(&KEY).wait_timeout(Duration::ZERO).run(|| 1));
        drop(leader);
        match join(waiter) {
            Ok(outcome) => assert_ne!(outcome.role, Role::Followed),
            Err(error) => assert_eq!(error, CallError::TimedOut),
        }
        assert_nothing_left(&group);
    });
}

/// The leader leaves, one waiter gives up and another does not take over: whoever of the three is last removes the entry.
#[test]
fn everybody_leaves_at_once() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let impatient = spawn(&group, |group| group.call(&KEY).wait_timeout(Duration::ZERO).run(|| 1));
        let failing = spawn(&group, |group| group.call(&KEY).on_abandon(OnAbandon::Fail).run(|| 2));
        until_waiting(&group, 1);
        drop(leader);
        if let Err(error) = join(impatient) {
            assert_eq!(error, CallError::TimedOut);
        }
        if let Err(error) = join(failing) {
            assert_eq!(error, CallError::Abandoned);
        }
        assert_nothing_left(&group);
    });
}

/// A waiter that gave up is no longer counted, while the flight goes on.
#[test]
fn whoever_gives_up_is_counted_out() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let waiters =
            [1, 2].map(|own| spawn(&group, move |group| group.call(&KEY).wait_timeout(Duration::ZERO).run(|| own)));
        for waiter in waiters {
            assert_eq!(join(waiter), Err(CallError::TimedOut));
        }
        assert_eq!(group.waiters(&KEY), 0);
        assert!(!leader.land(0).shared);
        assert_nothing_left(&group);
    });
}

/// The leader lands, a waiter gives up and the key is forgotten, in every order; the two others may find themselves in a
/// flight of their own.
#[test]
fn land_leave_and_forget_in_every_order() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let waiter = spawn(&group, |group| group.call(&KEY).wait_timeout(Duration::ZERO).run(|| 1));
        let forgetting = spawn(&group, |group| {
            group.forget(&KEY);
            assert_served(group.call(&KEY).run(|| 2), 2)
        });
        leader.land(0);
        if let Err(error) = join(waiter) {
            assert_eq!(error, CallError::TimedOut);
        }
        assert_ne!(join(forgetting).value, 0, "the value of a flight that it had forgotten");
        assert_nothing_left(&group);
    });
}

/// As above with a leader that leaves without a value: the waiter may then also take over the forgotten flight.
#[test]
fn abandon_leave_and_forget_in_every_order() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let waiter = spawn(&group, |group| group.call(&KEY).wait_timeout(Duration::ZERO).run(|| 1));
        let forgetting = spawn(&group, |group| {
            group.forget(&KEY);
            assert_served(group.call(&KEY).run(|| 2), 2)
        });
        drop(leader);
        if let Err(error) = join(waiter) {
            assert_eq!(error, CallError::TimedOut);
        }
        join(forgetting);
        assert_nothing_left(&group);
    });
}

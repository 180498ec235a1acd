//! Hand-over: the work of a leader that leaves goes on with another caller, the same work, and nobody waits in vain.

#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use oneflight_loom_tests::tasks::{
    Works, assert_gets, assert_nothing_left, block_on, call, new_group, parked, until_waiting,
};
use oneflight_loom_tests::{KEY, check, join};

/// The leader is dropped at the very moment at which its work wakes, and between any two steps of its only follower.
#[test]
fn the_leader_leaves_while_its_work_wakes() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let follower = call(&group, &works, 1);
        until_waiting(&group, 1);
        let waking = works.open_elsewhere();
        drop(leader);
        assert_gets(follower, 0);
        join(waking);
        assert_eq!(works.counts(), (1, 1, 1));
        assert_nothing_left(&group);
    });
}

/// Two followers are inside when the leader is dropped: one of them goes on with its work, and both get what that makes.
#[test]
fn one_of_two_followers_goes_on() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let mine = parked(group.do_call(&KEY, works.make(1)));
        let other = call(&group, &works, 2);
        until_waiting(&group, 2);
        drop(leader);
        works.open();
        assert_eq!(block_on(mine), 0);
        assert_gets(other, 0);
        assert_eq!((works.counts(), group.stats().take_overs), ((1, 1, 1), 0));
        assert_nothing_left(&group);
    });
}

/// The leader is dropped, before or after its work wakes, and the one that was told in its place is not polled any more: a third
/// drives.
#[test]
fn whoever_was_told_is_gone_or_parked() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let standby = parked(group.do_call(&KEY, works.make(1)));
        let follower = call(&group, &works, 2);
        let waking = works.open_elsewhere();
        drop(leader);
        assert_gets(follower, 0);
        join(waking);
        drop(standby);
        assert_eq!(works.counts(), (1, 1, 1));
        assert_nothing_left(&group);
    });
}

/// The standby leaves, perhaps after it was told to drive, and the leader is not polled any more: a third drives.
#[test]
fn a_standby_leaves_after_it_was_told() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let standby = parked(group.do_call(&KEY, works.make(1)));
        let follower = call(&group, &works, 2);
        let waking = works.open_elsewhere();
        drop(standby);
        assert_gets(follower, 0);
        join(waking);
        drop(leader);
        assert_eq!(works.counts(), (1, 1, 1));
        assert_nothing_left(&group);
    });
}

/// The leader leaves, and whoever its work was handed to leaves as well, while a newcomer joins: that one goes on with the same
/// work, or begins a flight of its own.
#[test]
fn leader_and_heir_leave_while_a_newcomer_joins() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let heir = {
            let (group, work) = (Arc::clone(&group), works.make(1));
            parked(async move { group.do_call(&KEY, work).await })
        };
        let newcomer = call(&group, &works, 2);
        let leaving = thread::spawn(move || drop(heir));
        drop(leader);
        join(leaving);
        works.open();
        match join(newcomer) {
            0 => assert_eq!((works.counts(), group.stats().flights), ((1, 1, 1), 1)),
            value => assert_eq!((value, works.counts(), group.stats().flights), (2, (2, 1, 2), 2)),
        }
        assert_eq!(group.stats().take_overs, 0);
        assert_nothing_left(&group);
    });
}

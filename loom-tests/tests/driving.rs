//! Driving: work that wakes is polled by one caller, whichever is polled first, and no wake-up of it is lost.

#![cfg(loom)]

use loom::thread;
use oneflight::{OnAbandon, Role};
use oneflight_loom_tests::tasks::{
    Works, assert_gets, assert_nothing_left, block_on, call, join_and_go_on, new_group, parked, poll, until_waiting,
};
use oneflight_loom_tests::{KEY, check, join, spawn};

/// The leader is not polled any more when its work wakes: a standby drives, and everybody is served.
#[test]
fn a_standby_drives_while_the_leader_is_parked() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let mut leader = parked(group.do_call(&KEY, works.make(0)));
        let mine = parked(group.do_call(&KEY, works.make(1)));
        let other = call(&group, &works, 2);
        let waking = works.open_elsewhere();
        assert_eq!(block_on(mine), 0);
        assert!(matches!(join(other), 0 | 2));
        join(waking);
        assert_eq!(poll(&mut leader), Some(0), "it gets its value when it is polled after all");
        assert_nothing_left(&group);
    });
}

/// The work wakes between any two steps of the poll that it is in, twice.
#[test]
fn a_wake_up_during_a_poll_is_not_lost() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let waking = {
            let works = works.clone();
            thread::spawn(move || {
                works.stir();
                works.open();
            })
        };
        assert_eq!(block_on(group.do_call(&KEY, works.make(0))), 0);
        join(waking);
        assert_eq!(works.counts(), (1, 1, 1));
        assert_nothing_left(&group);
    });
}

/// The work has woken, and the leader and its standby are polled at the same time: one of them drives, and the lead may change
/// hands, there and back.
#[test]
fn two_callers_are_polled_at_once() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let follower = call(&group, &works, 1);
        until_waiting(&group, 1);
        works.stir();
        let waking = works.open_elsewhere();
        assert_eq!(block_on(leader), 0);
        join(waking);
        assert!(matches!(join(follower), 0 | 1));
        assert_nothing_left(&group);
    });
}

/// The same with a follower that does not take over, which gets its value under the flight's lock.
#[test]
fn the_leader_and_one_that_would_fail_are_polled_at_once() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let work = works.make(1);
        let follower = spawn(&group, |group| block_on(group.call(&KEY).on_abandon(OnAbandon::Fail).run(work)));
        until_waiting(&group, 1);
        works.stir();
        let waking = works.open_elsewhere();
        assert_eq!(block_on(leader), 0);
        join(waking);
        assert_eq!(join(follower).map(|outcome| outcome.value), Ok(0));
        assert_nothing_left(&group);
    });
}

/// A value that is not to be shared, made by work whose driver may be another than its caller: it goes to that caller, and the
/// other one makes its own.
#[test]
fn an_unshared_value_goes_to_whose_work_made_it() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.call(&KEY).share_if(|_| false).run(works.make(0)));
        let follower = join_and_go_on(&group, &works, 1);
        let waking = works.open_elsewhere();
        let outcome = block_on(leader).expect("its work has made a value");
        assert_eq!((outcome.value, outcome.role, outcome.shared), (0, Role::Led, false));
        assert_gets(follower, 1);
        join(waking);
        assert_eq!(works.counts(), (2, 2, 2));
        assert_nothing_left(&group);
    });
}

/// The leader lands between any two steps of a task that looks, leaves its waker and goes to sleep.
#[test]
fn landing_wakes_a_task() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = group.try_lead(&KEY).expect("nobody leads");
        let follower = call(&group, &works, 1);
        until_waiting(&group, 1);
        assert!(leader.land(0).shared);
        assert_gets(follower, 0);
        assert_eq!(works.counts(), (0, 0, 0));
        assert_nothing_left(&group);
    });
}

/// A task drives its work to its end and lands while another arrives, which is inside at that moment or comes too late.
#[test]
fn landing_meets_a_task_that_arrives() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let mine = parked(group.call(&KEY).run(works.make(0)));
        works.open();
        let other = call(&group, &works, 1);
        let mine = block_on(mine).expect("nobody leaves");
        let other = join(other);
        assert_eq!(mine.shared, mine.value == other);
        assert_eq!(works.counts().0, if mine.shared { 1 } else { 2 });
        assert_nothing_left(&group);
    });
}

//! The lead as a guard.

use crate::support::callers::{Blown, Runs, blow};
use crate::support::limits::{until, within_limit};
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use oneflight::{CallError, OnAbandon, Role, SyncGroup};
use std::panic::catch_unwind;
use std::sync::{Arc, LazyLock};
use std::thread;

#[test]
fn there_is_one_lead_of_a_key_at_a_time_and_trying_never_waits() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        let lead = group.try_lead(&1).expect("no flight is on");
        assert!(group.try_lead(&1).is_none());
        assert!(group.try_lead(&2).is_some(), "another key");
        assert_eq!(group.in_flight(), 1, "the guard of the other key was dropped at once");
        let outcome = lead.land(7);
        assert_eq!((outcome.value, outcome.role, outcome.shared), (7, Role::Led, false));
        assert_eq!(group.in_flight(), 0);
        // Nor while a closure leads.
        group.do_call(&1, || {
            assert!(group.try_lead(&1).is_none());
            7
        });
    });
}

#[test]
fn landing_shares_the_value_whatever_share_if_says() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::builder().share_if(|_| false).build();
        let lead = group.try_lead(&1).expect("no flight is on");
        thread::scope(|scope| {
            let followers: Vec<_> = (0..3).map(|_| scope.spawn(|| group.call(&1).run(|| 2))).collect();
            until("all wait", || group.waiters(&1) == 3);
            let outcome = lead.land(7);
            assert_eq!((outcome.value, outcome.role, outcome.shared), (7, Role::Led, true));
            for follower in followers {
                let outcome = follower.join().expect("no panic").expect("nothing refuses it");
                assert_eq!((outcome.value, outcome.role, outcome.shared), (7, Role::Followed, true));
            }
        });
    });
}

#[test]
fn a_dropped_guard_leaves_the_flight_to_a_follower() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        let runs = Runs::new();
        let lead = group.try_lead(&1).expect("no flight is on");
        let work = || runs.returning(2)();
        thread::scope(|scope| {
            let followers: Vec<_> = (0..3).map(|_| scope.spawn(|| group.do_call(&1, work))).collect();
            until("all wait", || group.waiters(&1) == 3);
            drop(lead);
            assert!(followers.into_iter().all(|follower| follower.join().expect("no panic") == 2));
        });
        assert_eq!(runs.get(), 1);
        assert_eq!(group.in_flight(), 0);
    });
}

#[test]
fn a_guard_dropped_while_unwinding_leaves_the_flight_to_a_follower() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        thread::scope(|scope| {
            let lead = group.try_lead(&1).expect("no flight is on");
            let follower = scope.spawn(|| group.do_call(&1, || 2));
            until("it waits", || group.waiters(&1) == 1);
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                let _lead = lead;
                blow(Blown)
            }));
            assert!(unwound.is_err_and(|payload| payload.is::<Blown>()));
            assert_eq!(follower.join().expect("no panic"), 2);
        });
        assert_eq!(group.in_flight(), 0);
    });
}

#[test]
fn a_guard_may_be_sent_and_lands_from_any_thread() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        for drops in [false, true] {
            let lead = group.try_lead(&1).expect("no flight is on");
            thread::scope(|scope| {
                let follower = scope.spawn(|| group.do_call(&1, || 2));
                until("it waits", || group.waiters(&1) == 1);
                let ended = scope.spawn(move || if drops { None } else { Some(lead.land(7).value) });
                assert_eq!(ended.join().expect("no panic"), (!drops).then_some(7));
                assert_eq!(follower.join().expect("no panic"), if drops { 2 } else { 7 });
            });
            assert_eq!(group.in_flight(), 0);
        }
    });
}

#[test]
fn a_guard_of_a_static_group_may_go_wherever_it_likes() {
    within_limit(|| {
        static GROUP: LazyLock<SyncGroup<u32, u32>> = LazyLock::new(SyncGroup::new);
        let lead = GROUP.try_lead(&1).expect("no flight is on");
        let lands = thread::spawn(move || lead.land(7).value);
        assert_eq!(lands.join().expect("no panic"), 7);
        assert_eq!(GROUP.in_flight(), 0);
    });
}

#[test]
fn the_groups_max_attempts_counts_for_guards_and_their_attempts_count() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::builder().max_attempts(1).build();
        let lead = group.try_lead(&1).expect("no flight is on");
        thread::scope(|scope| {
            let followers: Vec<_> = (0..3).map(|_| scope.spawn(|| group.call(&1).run(|| 2))).collect();
            until("all wait", || group.waiters(&1) == 3);
            drop(lead);
            for follower in followers {
                assert_eq!(follower.join().expect("no panic"), Err(CallError::Abandoned));
            }
        });
        assert_eq!(group.in_flight(), 0);
    });
}

#[test]
fn a_follower_that_fails_on_abandon_fails_when_a_guard_is_dropped() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::builder().on_abandon(OnAbandon::Fail).build();
        let lead = group.try_lead(&1).expect("no flight is on");
        thread::scope(|scope| {
            let follower = scope.spawn(|| group.do_call_wait_timeout(&1, Duration::MAX, || 2));
            until("it waits", || group.waiters(&1) == 1);
            drop(lead);
            assert_eq!(follower.join().expect("no panic"), Err(CallError::Abandoned));
        });
        assert_eq!(group.in_flight(), 0);
    });
}

/// A guard belongs to no thread.
#[test]
fn a_call_by_the_holder_of_the_guard_is_not_reported_but_waits() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        let lead = group.try_lead(&1).expect("no flight is on");
        let called = group.call(&1).wait_timeout(Duration::from_millis(5)).run(|| 2);
        assert_eq!(called, Err(CallError::TimedOut));
        assert_eq!(lead.land(7).value, 7);
    });
}

#[test]
fn a_forgotten_guard_still_lands_for_those_inside_and_for_nobody_else() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        let old = group.try_lead(&1).expect("no flight is on");
        thread::scope(|scope| {
            let inside = scope.spawn(|| group.do_call(&1, || 2));
            until("it waits", || group.waiters(&1) == 1);
            assert!(group.forget(&1));
            let new = group.try_lead(&1).expect("the key is free");
            assert_eq!(group.in_flight(), 2);
            assert_eq!(old.land(7).value, 7);
            assert_eq!(inside.join().expect("no panic"), 7);
            assert!(group.try_lead(&1).is_none(), "the old one has not taken the new one away");
            drop(new);
        });
        assert_eq!(group.in_flight(), 0);
    });
}

#[test]
fn forget_frees_the_key_of_a_leaked_guard() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        core::mem::forget(group.try_lead(&1));
        assert!(group.try_lead(&1).is_none());
        assert!(group.forget(&1));
        assert_eq!(group.do_call(&1, || 2), 2);
        assert_eq!(group.in_flight(), 1, "it is still on, where nobody finds it");
    });
}

#[test]
fn keys_that_to_owned_cannot_make_come_from_a_closure_that_only_a_leader_needs() {
    within_limit(|| {
        let group: SyncGroup<Arc<str>, u32> = SyncGroup::new();
        let made = Runs::new();
        let make_key = || {
            made.add();
            Arc::from("k")
        };
        let lead = group.try_lead_with("k", make_key).expect("no flight is on");
        assert_eq!(made.get(), 1);
        let other = group.call_with("l", || Arc::from("l")).run(|| 2);
        assert_eq!(other.map(|outcome| outcome.value), Ok(2));
        for _ in 0..3 {
            assert!(group.try_lead_with("k", make_key).is_none());
            let called = group.call_with("k", make_key).wait_timeout(Duration::ZERO).run(|| 3);
            assert_eq!(called, Err(CallError::TimedOut));
        }
        // In a shard that is not empty, one who finds a flight makes no key.
        assert_eq!(made.get(), 1);
        drop(lead);
    });
}

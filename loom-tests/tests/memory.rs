//! Rule 6, memory: what the leader wrote before it returned is visible to every follower that returns.
//!
//! Loom lets a relaxed load return any value that no edge rules out, so a missing edge shows as a stale read.

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use oneflight::SyncGroup;
use oneflight_loom_tests::{KEY, check, join_all, spawn, until_waiting};

/// Two things that the work writes are read by each follower, be it asleep, awake or just arriving: one beside the value, one
/// inside of it.
#[test]
fn followers_see_what_the_leader_wrote() {
    check(|| {
        let group: Arc<SyncGroup<u32, Arc<AtomicUsize>>> = Arc::new(SyncGroup::new());
        let beside = Arc::new(AtomicUsize::new(0));
        let work = |beside: &AtomicUsize| {
            beside.fetch_add(1, Relaxed);
            let value = Arc::new(AtomicUsize::new(0));
            value.store(1, Relaxed);
            value
        };
        let leader = group.try_lead(&KEY).expect("nobody leads");
        let followers = [(); 2].map(|()| {
            let beside = Arc::clone(&beside);
            spawn(&group, move |group| {
                let value = group.do_call(&KEY, || work(&beside));
                assert_ne!(beside.load(Relaxed), 0);
                assert_eq!(value.load(Relaxed), 1);
            })
        });
        until_waiting(&group, 1);
        leader.land(work(&beside));
        join_all(followers);
        assert_eq!(group.in_flight(), 0);
    });
}

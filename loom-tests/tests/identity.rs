//! Rule 5, identity: an entry is removed by the identity of its flight, never by its key alone.

#![cfg(loom)]

use core::sync::atomic::Ordering;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use oneflight::Role;
use oneflight_loom_tests::{
    KEY, Works, assert_nothing_left, assert_served, check, join, join_all, lead, new_group, spawn, until_waiting,
};

/// The key of a running flight is forgotten and a newer flight begins; then the old leader lands, while a third caller
/// arrives (D1). If the old one removed the newer entry, the third would begin a third flight beside the second.
#[test]
fn an_old_leader_lands_beside_a_newer_flight() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let old = lead(&group);
        assert!(group.forget(&KEY));
        let newer = [1, 2].map(|own| {
            let works = Arc::clone(&works);
            spawn(&group, move |group| assert_served(group.call(&KEY).run(|| works.run(own)), own))
        });
        assert_eq!(old.land(0).value, 0);
        for outcome in join_all(newer) {
            assert_ne!(outcome.value, 0, "the value of a flight that was forgotten before the call");
        }
        assert_nothing_left(&group);
    });
}

/// As above with a follower inside the old flight, which its leader leaves: the follower takes over the old flight, and its
/// work may run beside that of the newer one, but neither gets the other's value.
#[test]
fn an_old_leader_leaves_beside_a_newer_flight() {
    check(|| {
        let group = new_group();
        let old = lead(&group);
        let follower = spawn(&group, |group| assert_served(group.call(&KEY).run(|| 1), 1));
        until_waiting(&group, 1);
        assert!(group.forget(&KEY));
        let newer = spawn(&group, |group| assert_served(group.call(&KEY).run(|| 2), 2));
        drop(old);
        assert_eq!(join(follower).role, Role::TookOver);
        assert_eq!(join(newer).role, Role::Led);
        assert_nothing_left(&group);
    });
}

/// `forget_unshared` races a join (D3): never does it answer that nobody shares the flight while a follower is inside.
#[test]
fn forget_unshared_races_a_join() {
    check(|| {
        let group = new_group();
        let leader = lead(&group);
        let follower = spawn(&group, |group| assert_served(group.call(&KEY).run(|| 1), 1));
        let unshared = group.forget_unshared(&KEY);
        let led = leader.land(0);
        let followed = join(follower);
        assert!(!(unshared && followed.value == 0), "nobody shares it, and somebody follows");
        assert_eq!(led.shared, followed.value == 0);
        assert_nothing_left(&group);
    });
}

/// A write, then `forget_all`, then a call: it never gets what a flight read before the write, though writer and reader have no
/// lock in common but those of the group.
#[test]
fn forget_all_races_a_flight_that_begins() {
    check(|| {
        let (group, written) = (new_group(), Arc::new(AtomicU32::new(1)));
        let other = {
            let written = Arc::clone(&written);
            spawn(&group, move |group| group.do_call(&KEY, || written.load(Ordering::Relaxed)))
        };
        written.store(2, Ordering::Relaxed);
        group.forget_all();
        assert_eq!(group.do_call(&KEY, || written.load(Ordering::Relaxed)), 2);
        join(other);
        assert_nothing_left(&group);
    });
}

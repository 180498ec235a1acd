//! Rule 1, one leader: at any moment at most one caller runs the work of a flight.
//!
//! Nothing here forgets a key, so all flights of a key come one after another, and no two works may ever overlap.

#![cfg(loom)]

use loom::sync::Arc;
use oneflight::{Role, SyncGroup};
use oneflight_loom_tests::{
    KEY, Works, assert_nothing_left, assert_served, check, join, join_all, lead, new_group, spawn, until_waiting,
};

/// Callers that race for a key which nobody leads: each of them finds either no flight, or one that it can join. The end of
/// one flight and the beginning of the next may fall between any two steps of a third caller.
#[test]
fn callers_race_for_a_free_key() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let others = [1, 2].map(|own| {
            let works = Arc::clone(&works);
            spawn(&group, move |group| assert_served(group.call(&KEY).run(|| works.run(own)), own))
        });
        let mut outcomes = vec![assert_served(group.call(&KEY).run(|| works.run(0)), 0)];
        outcomes.extend(join_all(others));

        let led = outcomes.iter().filter(|outcome| outcome.role == Role::Led).count();
        assert_eq!(led, works.runs());
        assert_eq!(led as u64, group.stats().flights);
        assert_eq!(3 - led as u64, group.stats().joins);
        assert_nothing_left(&group);
    });
}

/// A key on the heap is made between two looks into the table, outside its lock: whoever was faster meanwhile must be found
/// by the second look. (Such a key is made at once if the table is empty, so a flight of another key is on.)
#[test]
fn callers_race_while_they_make_their_keys() {
    check(|| {
        let group: Arc<SyncGroup<String, u32>> = Arc::new(SyncGroup::new());
        let works = Works::new();
        let other_key = group.try_lead("other").expect("nobody leads");
        let other = {
            let works = Arc::clone(&works);
            spawn(&group, move |group| assert_served(group.call("key").run(|| works.run(1)), 1))
        };
        assert_served(group.call("key").run(|| works.run(0)), 0);
        join(other);
        drop(other_key);
        assert_eq!(group.in_flight(), 0);
    });
}

/// The leader leaves one follower behind, and newcomers arrive, one that would wait and one that would not: of the three,
/// whoever is first leads.
#[test]
fn newcomers_find_the_flight_vacant() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = lead(&group);
        let follower = {
            let works = Arc::clone(&works);
            spawn(&group, move |group| assert_served(group.call(&KEY).run(|| works.run(1)), 1))
        };
        until_waiting(&group, 1);
        let newcomer = {
            let works = Arc::clone(&works);
            spawn(&group, move |group| assert_served(group.call(&KEY).run(|| works.run(2)), 2))
        };
        drop(leader);
        if let Some(lead) = group.try_lead(&KEY) {
            assert_eq!(lead.land(works.run(3)).value, 3);
        }
        assert_ne!(join(follower).role, Role::Led, "it was inside the vacant flight");
        join(newcomer);
        assert_nothing_left(&group);
    });
}

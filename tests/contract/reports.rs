//! What a group tells about itself.

use crate::support::callers::{Blown, Callers, Runs, blow};
use crate::support::in_time::in_time;
use crate::support::limits::{until, within_limit};
use crate::support::way::{AnyGroup, Options, Way, group};
use core::time::Duration;
use oneflight::{CallError, OnAbandon, Stats, SyncGroup};
use std::thread;
use std::time::Instant;

/// What a way can show of the numbers.
pub(crate) fn the_counters_tell_what_happened<W: Way>() {
    let group = group::<W, u32, u32>();
    assert_eq!(group.stats(), Stats::default());
    assert!(group.flight_info(&1).is_none());

    let runs = Runs::new();
    let leader = group.leader(1, runs.panicking());
    let info = group.flight_info(&1).expect("it is on");
    assert_eq!((info.waiters, info.attempts, info.forgotten, info.age), (0, 1, false, None));
    let followers = group.followers(4, 1, |_| runs.returning(2));
    let info = group.flight_info(&1).expect("it is on");
    assert_eq!((info.waiters, info.attempts, info.forgotten, info.age), (4, 1, false, None));
    assert_eq!(leader.panic::<Blown>(), Blown);
    assert!(followers.into_iter().all(|follower| follower.value() == 2));
    assert_eq!(group.caller(1, runs.returning(3)).value(), 3);

    let stats = group.stats();
    assert_eq!((stats.flights, stats.joins, stats.take_overs, stats.abandons), (2, 4, 1, 1));
    assert_eq!((stats.timeouts, stats.forgets), (0, 0));
    assert_eq!(u64::from(runs.get()), stats.flights + stats.take_overs, "as documented");
}

/// A second attempt, and a follower that joined it.
pub(crate) fn the_attempts_of_a_flight_are_counted<W: Way>() {
    let group = group::<W, u32, u32>();
    let work = || {
        let group = group.clone();
        move || {
            let attempts = group.flight_info(&1).map_or(0, |flight| flight.attempts);
            if attempts < 4 { blow(Blown) } else { attempts }
        }
    };
    let leader = group.leader(1, work());
    let followers = group.followers(5, 1, |_| work());
    assert_eq!(leader.panic::<Blown>(), Blown);
    let ended: Vec<_> = followers.into_iter().map(|follower| follower.ended()).collect();
    assert_eq!(ended.iter().filter(|ended| ended.is_err()).count(), 2);
    assert!(ended.into_iter().flatten().all(|answer| answer.is_ok_and(|answer| answer.value == 4)));
    assert_eq!(group.stats().take_overs, 3);
    assert_eq!(group.stats().abandons, 3);
}

/// Counters of what only options and guards can cause.
#[test]
fn timeouts_forgets_and_guards_are_counted() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        let lead = group.try_lead(&1).expect("no flight is on");
        for _ in 0..3 {
            assert_eq!(group.do_call_wait_timeout(&1, Duration::ZERO, || 2), Err(CallError::TimedOut));
        }
        assert!(group.forget(&1));
        assert!(group.forget_unshared(&1), "there is nothing any more");
        drop(lead);
        let stats = group.stats();
        assert_eq!((stats.flights, stats.joins, stats.take_overs), (1, 3, 0));
        assert_eq!((stats.abandons, stats.timeouts, stats.forgets), (1, 3, 1));

        let lead = group.try_lead(&2).expect("no flight is on");
        assert!(group.forget_unshared(&2));
        assert_eq!(lead.land(1).value, 1);
        let stats = group.stats();
        assert_eq!((stats.flights, stats.abandons, stats.forgets), (2, 1, 2));

        // A value that is not shared is an abandonment, if there was somebody to share it with.
        let lone = group.call(&3).share_if(|_| false).run(|| 1).expect("nobody is there");
        assert!(!lone.shared);
        assert_eq!(group.stats().abandons, 1);
        // Nor is an error other than a time limit's counted as one.
        let lead = group.try_lead(&4).expect("no flight is on");
        thread::scope(|scope| {
            let failing = scope.spawn(|| group.call(&4).on_abandon(OnAbandon::Fail).run(|| 1));
            until("it waits", || group.waiters(&4) == 1);
            drop(lead);
            assert_eq!(failing.join().expect("no panic"), Err(CallError::Abandoned));
        });
        assert_eq!((group.stats().abandons, group.stats().timeouts), (2, 3));
    });
}

#[test]
fn a_snapshot_shows_all_flights_forgotten_ones_included() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        assert!(group.snapshot().is_empty());
        let leads: Vec<_> = (0..100).map(|key| group.try_lead(&key)).collect();
        assert!((0..10).all(|key| group.forget(&key)));
        thread::scope(|scope| {
            let followers: Vec<_> =
                (0..3).map(|_| scope.spawn(|| group.call(&50).run(|| 0).map(|out| out.value))).collect();
            until("all wait", || group.waiters(&50) == 3);
            let flights = group.snapshot();
            assert_eq!(flights.len(), 100);
            assert_eq!(group.in_flight(), 100);
            assert_eq!(flights.iter().filter(|flight| flight.forgotten).count(), 10);
            let shared: Vec<_> = flights.iter().filter(|flight| flight.waiters > 0).collect();
            assert_eq!(shared.len(), 1);
            assert_eq!(shared[0].waiters, 3);
            assert!(flights.iter().all(|flight| flight.attempts == 1 && flight.age.is_none()));
            leads.into_iter().flatten().for_each(|lead| assert_eq!(lead.land(1).value, 1));
            assert!(followers.into_iter().all(|follower| follower.join().expect("no panic") == Ok(1)));
        });
        assert!(group.snapshot().is_empty());
    });
}

#[test]
fn an_age_is_known_where_ages_are_limited() {
    within_limit(|| {
        in_time([2_000, 20_000], |limit| {
            let group: SyncGroup<u32, u32> = SyncGroup::builder().max_flight_age(limit).build();
            // Measured to a 64th of the limit, at both ends.
            let tick = limit / 64;
            let before = Instant::now();
            let _lead = group.try_lead(&1).expect("no flight is on");
            // Real time is the subject.
            thread::sleep(4 * tick);
            let (info, elapsed) = (group.flight_info(&1), before.elapsed());
            let (flights, forgotten) = (group.snapshot(), group.forget(&1));
            if before.elapsed() + 2 * tick >= limit {
                // Then there may be no flight of the key any more.
                return false;
            }
            let age = info.and_then(|flight| flight.age).expect("it is known");
            assert!((2 * tick..=elapsed + 2 * tick).contains(&age), "{age:?}");
            assert_eq!(flights.len(), 1);
            assert!(flights[0].age.is_some_and(|later| later >= age));
            assert!(forgotten);
            assert_eq!(group.snapshot()[0].age, None, "as documented");
            true
        });
    });
}

/// Whoever asks about a key does not have to own one, nor to wait.
pub(crate) fn waiters_are_counted_while_they_wait<W: Way>() {
    let group = group::<W, u32, u32>();
    assert_eq!(group.waiters(&1), 0);
    let leader = group.leader(1, || 1);
    assert_eq!(group.waiters(&1), 0, "a leader does not wait");
    let mut followers = Vec::new();
    for count in 1..=3 {
        followers.push(group.follower(1, || 2));
        assert_eq!(group.waiters(&1), count);
    }
    assert_eq!(group.waiters(&2), 0);
    let late = group.call(2, Options::none(), || 3);
    assert_eq!(late.map(|answer| answer.value), Ok(3));
    assert_eq!(leader.value(), 1);
    assert_eq!(group.waiters(&1), 0);
    assert!(followers.into_iter().all(|follower| follower.value() == 1));
    assert_eq!(group.in_flight(), 0);
}

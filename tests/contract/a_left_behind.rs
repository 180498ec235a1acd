//! A and B: what is left of a flight whose callers ended, failed or left. (The rows that need a caller to be dropped
//! while it waits concern futures: a thread that waits leaves by its time limit.)

use crate::support::callers::{Blown, Callers, Runs, blow};
use crate::support::gate::Gate;
use crate::support::limits::{until, within_limit};
use crate::support::things::{Census, Counted};
use crate::support::way::{AnyGroup, Options, Way, group};
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use oneflight::{CallError, OnAbandon, Role, SyncGroup};
use std::panic::catch_unwind;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

const KEYS: u32 = 1_000;

type Results = Result<Counted, Counted>;

/// A6. Work that ends in one of the ways there are, by the number of its key, and holds and makes things that are counted.
fn work_that_ends_somehow<G: AnyGroup<Counted, Results>>(
    group: &G,
    census: &Census,
    number: u32,
) -> impl FnOnce() -> Results + Send + 'static + use<G> {
    let group = group.clone();
    let (held, key, value) = (census.thing(number), census.thing(number), census.thing(number));
    move || {
        let _held = held;
        if [3, 4].contains(&(number % 5)) {
            group.forget(&key);
        }
        match number % 5 {
            0 | 3 => Ok(value),
            1 => Err(value),
            _ => blow(Blown),
        }
    }
}

/// A6.
pub(crate) fn a6_of_1_000_lone_leaders_none_leaves_anything_behind_however_it_ends<W: Way>() {
    let census = Census::new();
    let group = group::<W, Counted, Results>();
    for number in 0..KEYS {
        let key = census.thing(number);
        let work = work_that_ends_somehow(&group, &census, number);
        let ended = catch_unwind(AssertUnwindSafe(|| group.call(key, Options::none(), work)));
        match number % 5 {
            0 | 3 => assert!(ended.is_ok_and(|answer| answer.is_ok_and(|answer| answer.value.is_ok()))),
            1 => assert!(ended.is_ok_and(|answer| answer.is_ok_and(|answer| answer.value.is_err()))),
            _ => assert!(ended.is_err_and(|payload| payload.is::<Blown>())),
        }
    }
    assert_eq!(group.in_flight(), 0);
    assert_eq!(census.alive(), 0, "a key, a closure or a value was kept");
}

/// A6, with others about: four threads ask for the same keys in the same order.
pub(crate) fn a6_of_1_000_leaders_in_company_none_leaves_anything_behind_however_it_ends<W: Way>() {
    let census = Census::new();
    let group = group::<W, Counted, Results>();
    let start = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (group, census, start) = (group.clone(), census.clone(), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                for number in 0..KEYS {
                    let key = census.thing(number);
                    let work = work_that_ends_somehow(&group, &census, number);
                    // Only what is left is the subject: who led and who followed is up to the scheduler.
                    let _ = catch_unwind(AssertUnwindSafe(|| group.call(key, Options::none(), work)));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("every panic of a work was caught");
    }
    assert_eq!(group.in_flight(), 0);
    assert_eq!(census.alive(), 0, "a key, a closure or a value was kept");
}

/// A6.
#[test]
fn a6_of_1_000_guards_none_leaves_anything_behind_landed_dropped_or_forgotten() {
    within_limit(|| {
        let census = Census::new();
        let group: SyncGroup<Counted, Counted> = SyncGroup::new();
        let guards: Vec<_> = (0..KEYS).map(|number| group.try_lead(&census.thing(number))).collect();
        assert_eq!(group.in_flight(), KEYS as usize);
        for (number, guard) in (0..KEYS).zip(guards) {
            let guard = guard.expect("no flight of this key was on");
            match number % 4 {
                0 => drop(guard.land(census.thing(number))),
                1 => drop(guard),
                2 => {
                    assert!(group.forget(&census.thing(number)));
                    drop(guard);
                }
                _ => {
                    assert!(group.forget(&census.thing(number)));
                    drop(guard.land(census.thing(number)));
                }
            }
        }
        assert_eq!(group.in_flight(), 0);
        assert_eq!(census.alive(), 0, "a key or a value was kept");
    });
}

/// A9.
pub(crate) fn a9_the_next_call_after_a_landing_runs_afresh<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let leader = group.leader(1, runs.returning(1));
    let followers = group.followers(2, 1, |_| runs.returning(0));
    assert_eq!(leader.value(), 1);
    assert!(followers.into_iter().all(|follower| follower.value() == 1));
    assert_eq!(runs.get(), 1);

    assert_eq!(group.caller(1, runs.returning(2)).value(), 2);
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// B1.
pub(crate) fn b1_a_follower_that_leaves_changes_nothing_but_the_count_of_waiters<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let leader = group.leader(1, runs.returning(1));
    let followers = group.followers(3, 1, |_| runs.returning(0));

    let leaving = group.caller_with(1, Options::wait_timeout(Duration::from_millis(1)), runs.returning(0));
    assert_eq!(leaving.error(), CallError::TimedOut);
    assert_eq!(group.waiters(&1), 3);
    assert_eq!(group.in_flight(), 1);

    assert_eq!(leader.value(), 1);
    for follower in followers {
        let answer = follower.answer();
        assert_eq!(answer.value, 1);
        assert!(answer.may_be(Role::Followed));
    }
    assert_eq!(runs.get(), 1);
    assert_eq!(group.in_flight(), 0);
}

/// B4. Whoever is told to take over may be about to leave: then the message must go on to the one that stays.
pub(crate) fn b4_a_follower_that_is_told_to_take_over_and_leaves_passes_it_on<W: Way>() {
    let group = group::<W, u32, u32>();
    for round in 0..u64::from(W::rounds(50)) {
        let leader = group.leader(1, || blow(Blown));
        let staying = group.follower(1, || 1);
        let limit = Duration::from_micros(500 + 100 * (round % 10));
        let begun = Instant::now();
        let leaving: Vec<_> = (0..3).map(|_| group.caller_with(1, Options::wait_timeout(limit), || 1)).collect();
        // The leader panics at about the moment when their limits are up: some leave before it, some are told and leave,
        // some take over. The one that stays has its value in any case.
        until("their limits are up", || begun.elapsed() >= limit);
        assert_eq!(leader.panic::<Blown>(), Blown);
        assert_eq!(staying.value(), 1);
        for caller in leaving {
            match caller.ended() {
                Ok(Ok(answer)) => assert_eq!(answer.value, 1),
                Ok(Err(error)) => assert_eq!(error, CallError::TimedOut),
                Err(_) => panic!("the panic reached another caller than the one whose work it was"),
            }
        }
        assert_eq!(group.in_flight(), 0);
    }
}

/// B4, and rule 2: the last one to leave a vacant flight takes it away.
#[test]
fn b4_when_all_followers_leave_a_vacant_flight_the_key_is_free() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        for round in 0..200 {
            let lead = group.try_lead(&1).expect("the key is free");
            let start = Gate::new();
            thread::scope(|scope| {
                for _ in 0..3 {
                    let (group, start) = (&group, &start);
                    scope.spawn(move || {
                        start.wait();
                        // It leaves by its limit, or because it was told that the leader has left.
                        let call = group.call(&1).on_abandon(OnAbandon::Fail);
                        match call.wait_timeout(Duration::from_micros(round)).run(|| 1) {
                            Ok(outcome) => assert_eq!(outcome.value, 1),
                            Err(error) => assert!([CallError::TimedOut, CallError::Abandoned].contains(&error)),
                        }
                    });
                }
                start.open();
                drop(lead);
            });
            assert_eq!(group.in_flight(), 0, "round {round}");
        }
    });
}

//! G: what becomes of the value. (G2 is in `compile_fail.rs`, G3 in `allocations.rs`.)

use crate::support::acting::acts_for;
use crate::support::callers::{Blown, CALLER, Callers, Runs, blow};
use crate::support::things::{Census, Hook, Hooked, Sites};
use crate::support::way::{AnyGroup, Options, Setup, Way, group, group_with};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use oneflight::{CallError, Role};
use std::sync::{Arc, Mutex, PoisonError};

/// G1.
pub(crate) fn g1_a_lone_callers_value_is_moved_out<W: Way>() {
    let census = Census::new();
    let group = group::<W, u32, _>();
    let thing = census.thing(1);
    let answer = group.call(1, Options::none(), move || thing).expect("nothing refuses it");
    assert_eq!(census.clones(), 0);
    assert!(answer.shared.is_none_or(|shared| !shared));
    drop(answer);
    assert_eq!(census.alive(), 0);
}

/// G1: nor is it cloned for those who are not there any more.
pub(crate) fn g1_the_value_is_moved_out_too_when_all_followers_have_left<W: Way>() {
    let census = Census::new();
    let group = group::<W, u32, _>();
    let (thing, unused) = (census.thing(1), census.thing(2));
    let leader = group.leader(1, move || thing);
    let leaving = group.caller_with(1, Options::wait_timeout(Duration::from_millis(1)), move || unused);
    assert_eq!(leaving.error(), CallError::TimedOut);
    let answer = leader.answer();
    assert_eq!(answer.value.number, 1);
    assert_eq!(census.clones(), 0);
    assert!(answer.shared.is_none_or(|shared| !shared), "nobody else got it");
    drop(answer);
    assert_eq!(census.alive(), 0);
}

/// G1: N callers, N - 1 clones; one more where the last two collect at the very same time.
pub(crate) fn g1_four_callers_cost_three_clones<W: Way>() {
    // That they collect one after another is up to the scheduler, and is what it nearly always does.
    for _ in 0..1_000 {
        let census = Census::new();
        let group = group::<W, u32, _>();
        let thing = census.thing(1);
        let leader = group.leader(1, move || thing);
        let followers = group.followers(3, 1, |_| {
            let unused = census.thing(2);
            move || unused
        });
        let answer = leader.answer();
        assert!(answer.shared.is_none_or(|shared| shared));
        let answers: Vec<_> = followers.into_iter().map(|follower| follower.answer()).collect();
        assert!(answers.iter().all(|answer| answer.value.number == 1));
        assert!(answers.iter().all(|answer| answer.shared.is_none_or(|shared| shared)));
        let clones = census.clones();
        drop((answer, answers));
        assert_eq!(census.alive(), 0, "a value was kept");
        if clones == 3 {
            return;
        }
        assert_eq!(clones, 4);
    }
    panic!("never did four callers collect one after another");
}

/// G1: a value that is not shared costs none.
pub(crate) fn g1_a_value_that_is_not_shared_is_moved_out<W: Way>() {
    let census = Census::new();
    let group = group::<W, u32, _>();
    let (kept, shared) = (census.thing(1), census.thing(2));
    let leader = group.leader_with(1, Options::share_if(|_| false), move || kept);
    let follower = group.follower(1, move || shared);
    let answer = leader.answer();
    assert_eq!(answer.value.number, 1);
    assert_eq!(answer.role, Some(Role::Led));
    assert_eq!(answer.shared, Some(false));
    let answer = follower.answer();
    assert_eq!(answer.value.number, 2);
    assert_eq!(answer.role, Some(Role::TookOver));
    assert_eq!(answer.shared, Some(false));
    assert_eq!(census.clones(), 0);
}

/// The group's own predicate, for ways that have no option.
pub(crate) fn a_groups_share_if_decides_for_every_way_to_call<W: Way>() {
    let group = group_with::<W, u32, u32>(Setup::default().share_if(|value| *value >= 10));
    let runs = Runs::new();
    let leader = group.leader(1, runs.returning(1));
    let followers = group.followers(4, 1, |_| runs.returning(10));
    assert_eq!(leader.value(), 1, "it stays with its own caller");
    assert!(followers.into_iter().all(|follower| follower.value() == 10));
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.caller(1, || 2).value(), 2, "a lone caller's value has nobody to be shared with");
}

/// H2: a flight takes no newcomer from the moment of its landing, not from the moment when all have their value. The call
/// comes while a follower clones the value: somebody has it, and has not got it yet.
pub(crate) fn h2_a_call_after_the_landing_runs_its_own_work_though_followers_still_collect<W: Way>() {
    const ERROR: Sites = ["clone of an error", "drop of an error"];
    type Results = Result<u32, Hooked>;
    let group = group::<W, u32, Results>();
    let (runs, hook) = (Runs::new(), Hook::new());
    let (begun, late) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
    hook.set({
        let (group, runs, begun, late) = (group.clone(), runs.clone(), begun, Arc::clone(&late));
        move |site| {
            if site == ERROR[0] && acts_for(CALLER) && !begun.swap(true, Ordering::Relaxed) {
                assert_eq!(group.in_flight(), 0);
                let answer = group.call(1, Options::none(), runs.returning(Ok(2)));
                *late.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            }
        }
    });
    let leader = group.leader(1, runs.returning(Err(hook.thing(ERROR, 1))));
    let followers = group.followers(2, 1, |_| runs.returning(Ok(0)));
    let values: Vec<_> = [leader.release()].into_iter().chain(followers).map(|caller| caller.value()).collect();
    assert!(values.into_iter().all(|value| value.is_err_and(|error| error.number == 1)));
    // Of two followers one at most gets the value without a clone.
    let late = late.lock().unwrap_or_else(PoisonError::into_inner).take();
    let late = late.expect("a follower cloned the value").expect("nothing refuses it");
    assert_eq!(late.value, Ok(2));
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// H1, sharing: errors are values.
pub(crate) fn h1_an_error_that_is_shared_is_everybodys_after_one_execution<W: Way>() {
    let group = group::<W, u32, Result<u32, u32>>();
    let runs = Runs::new();
    let leader = group.leader(1, runs.returning(Err(1)));
    let followers = group.followers(4, 1, |_| runs.returning(Err(2)));
    assert_eq!(leader.value(), Err(1));
    assert!(followers.into_iter().all(|follower| follower.value() == Err(1)));
    assert_eq!(runs.get(), 1);
    assert_eq!(group.in_flight(), 0);
}

/// H1, not sharing, two attempts at most: never one after another.
pub(crate) fn h1_an_error_that_is_not_shared_costs_two_executions_where_two_are_allowed<W: Way>() {
    let setup = Setup::max_attempts(2).share_if(Result::is_ok);
    let group = group_with::<W, u32, Result<u32, u32>>(setup);
    let runs = Runs::new();
    let leader = group.leader(1, runs.returning(Err(1)));
    let followers = group.followers(4, 1, |_| runs.returning(Err(2)));
    assert_eq!(leader.value(), Err(1));
    assert!(followers.into_iter().all(|follower| follower.value() == Err(2)), "the last one is everybody's");
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// H1, without a limit: as documented, each that fails leaves the flight to the next.
pub(crate) fn h1_without_a_limit_errors_that_are_not_shared_go_on_until_one_succeeds<W: Way>() {
    let group = group_with::<W, u32, Result<u32, u32>>(Setup::default().share_if(Result::is_ok));
    let runs = Runs::new();
    let work = || {
        let runs = runs.clone();
        move || match runs.add() {
            number @ 1..=3 => Err(number),
            number => Ok(number),
        }
    };
    let leader = group.leader(1, work());
    let followers = group.followers(6, 1, |_| work());
    assert_eq!(leader.value(), Err(1));
    let mut values: Vec<_> = followers.into_iter().map(|follower| follower.value()).collect();
    values.sort_unstable();
    assert_eq!(values, [Ok(4), Ok(4), Ok(4), Ok(4), Err(2), Err(3)]);
    assert_eq!(group.in_flight(), 0);
}

/// Rule 3, with what `Outcome` says of it.
pub(crate) fn a_value_made_after_a_take_over_is_shared_with_those_who_are_left<W: Way>() {
    let group = group::<W, u32, u32>();
    let leader = group.leader(1, || blow(Blown));
    let one = group.follower(1, || 10);
    assert_eq!(leader.panic::<Blown>(), Blown);
    let answer = one.answer();
    assert_eq!(answer.value, 10);
    assert!(answer.may_be(Role::TookOver));
    assert!(answer.shared.is_none_or(|shared| !shared), "it was alone by then");
}

//! C: panics, in works and in what keys and values do.

use crate::support::acting::acts_for;
use crate::support::callers::{Blown, CALLER, Callers, Runs, blow, error_of};
use crate::support::limits::until;
use crate::support::things::{Mood, Moody};
use crate::support::way::{AnyGroup, Options, Setup, Way, group, group_with};
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU32, Ordering};
use oneflight::{CallError, Role};
use std::panic::catch_unwind;
use std::sync::Arc;

/// A payload of a type that nobody else knows.
#[derive(Debug, PartialEq)]
struct Payload {
    code: u32,
    parts: Vec<&'static str>,
}

/// C1.
pub(crate) fn c1_a_leaders_panic_reaches_its_caller_alone_and_one_follower_takes_over<W: Way>() {
    let payload = || Payload { code: 7, parts: vec!["of", "any", "type"] };
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let elsewhere = group.leader(2, || 20);
    let elsewhere_follower = group.follower(2, || 21);
    let leader = group.leader(1, move || blow(payload()));
    let followers = group.followers(4, 1, |_| runs.returning(10));

    assert_eq!(leader.panic::<Payload>(), payload());
    let answers: Vec<_> = followers.into_iter().map(|follower| follower.answer()).collect();
    assert!(answers.iter().all(|answer| answer.value == 10));
    assert_eq!(runs.get(), 1, "one execution after the one that panicked");
    if answers[0].role.is_some() {
        let took_over = answers.iter().filter(|answer| answer.role == Some(Role::TookOver)).count();
        let followed = answers.iter().filter(|answer| answer.role == Some(Role::Followed)).count();
        assert_eq!((took_over, followed), (1, 3));
    }

    assert_eq!(group.caller(1, runs.returning(11)).value(), 11, "the key is usable");
    assert_eq!(group.in_flight(), 1, "the other key's flight is still on");
    assert_eq!(elsewhere.value(), 20);
    assert_eq!(elsewhere_follower.value(), 20);
    assert_eq!(group.in_flight(), 0);
}

/// C1.
pub(crate) fn c1_a_lone_leaders_panic_frees_the_key<W: Way>() {
    let group = group::<W, u32, u32>();
    assert_eq!(group.caller(1, || blow("payload")).panic::<&str>(), "payload");
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.caller(1, || 2).value(), 2);
    assert_eq!(group.stats().abandons, 1);
}

/// C2.
pub(crate) fn c2_followers_that_do_not_take_over_get_a_typed_error<W: Way>() {
    let group = group_with::<W, u32, u32>(Setup::fail_on_abandon());
    let runs = Runs::new();
    let leader = group.leader(1, || blow(Blown));
    let followers = group.followers(4, 1, |_| runs.returning(10));
    assert_eq!(leader.panic::<Blown>(), Blown);
    for follower in followers {
        assert_eq!(follower.error(), CallError::Abandoned);
    }
    assert_eq!(runs.get(), 0, "n == 1: the one that panicked");
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.caller(1, || 2).value(), 2);
}

/// C2, where there is no `Result` to tell it.
pub(crate) fn c2_where_there_is_no_result_they_go_on_in_a_fresh_flight<W: Way>() {
    let group = group_with::<W, u32, u32>(Setup::fail_on_abandon());
    let leader = group.leader(1, || blow(Blown));
    let followers = group.followers(4, 1, |_| || 10);
    assert_eq!(leader.panic::<Blown>(), Blown);
    assert!(followers.into_iter().all(|follower| follower.value() == 10));
    assert_eq!(group.in_flight(), 0);
}

/// C3, of a thread: the owned key is made before the work can be.
pub(crate) fn c3_a_panic_in_the_making_of_the_owned_key_reaches_that_caller_and_leaves_the_key_free<W: Way>() {
    let group = group_with::<W, Moody, u32>(Setup::one_shard());
    let runs = Runs::new();
    let caller = group.caller(Moody::new(1, Mood::Clone), runs.returning(1));
    assert_eq!(caller.panic::<Blown>(), Blown);
    assert_eq!(runs.get(), 0);
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.caller(Moody::new(1, Mood::Calm), || 2).value(), 2);

    // A follower needs no key of its own.
    let leader = group.leader(Moody::new(1, Mood::Calm), || 3);
    let follower = group.caller(Moody::new(1, Mood::Clone), || 4);
    until("the follower waits", || group.waiters(&Moody::new(1, Mood::Calm)) == 1);
    assert_eq!(leader.value(), 3);
    assert_eq!(follower.value(), 3);
    assert_eq!(group.in_flight(), 0);
}

/// C3, likewise: the predicate runs after the work, and still on behalf of its caller.
pub(crate) fn c3_a_panic_in_share_if_reaches_that_caller_and_a_follower_takes_over<W: Way>() {
    let group = group::<W, u32, u32>();
    let leader = group.leader_with(1, Options::share_if(|_| blow(Blown)), || 1);
    let followers = group.followers(2, 1, |_| || 2);
    assert_eq!(leader.panic::<Blown>(), Blown);
    assert!(followers.into_iter().all(|follower| follower.value() == 2));
    assert_eq!(group.in_flight(), 0);
}

/// C4.
pub(crate) fn c4_work_that_always_panics_is_run_as_often_as_allowed_and_the_rest_get_a_typed_error<W: Way>() {
    let group = group_with::<W, u32, u32>(Setup::max_attempts(3));
    let runs = Runs::new();
    let leader = group.leader(1, runs.panicking());
    let followers = group.followers(100, 1, |_| runs.panicking());
    let (mut panicked, mut refused) = (0, 0);
    for caller in followers.into_iter().chain([leader.release()]) {
        match caller.ended() {
            Ok(Ok(answer)) => panic!("there is no value to get: {answer:?}"),
            Ok(Err(error)) => {
                assert_eq!(error, CallError::Abandoned);
                refused += 1;
            }
            Err(payload) => {
                assert!(payload.is::<Blown>());
                panicked += 1;
            }
        }
    }
    assert_eq!((runs.get(), panicked, refused), (3, 3, 98));
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.caller(1, || 2).value(), 2);
}

/// C4, where there is no `Result` to tell it.
pub(crate) fn c4_where_there_is_no_result_they_go_on_in_a_fresh_flight_after_the_last_attempt<W: Way>() {
    const FOLLOWERS: usize = 100;
    let group = group_with::<W, u32, u32>(Setup::max_attempts(3));
    let runs = Runs::new();
    let work = || {
        let (group, runs) = (group.clone(), runs.clone());
        move || match runs.add() {
            1..=3 => blow(Blown),
            number => {
                // The first flight's last leader has panicked; all who are left meet in the second flight.
                until("all others wait again", || group.waiters(&1) == FOLLOWERS - 3);
                number
            }
        }
    };
    let leader = group.leader(1, work());
    let followers = group.followers(FOLLOWERS, 1, |_| work());
    assert_eq!(leader.panic::<Blown>(), Blown);
    let ended: Vec<_> = followers.into_iter().map(|follower| follower.ended()).collect();
    assert_eq!(ended.iter().filter(|ended| ended.is_err()).count(), 2);
    assert!(ended.into_iter().flatten().all(|answer| answer.is_ok_and(|answer| answer.value == 4)));
    assert_eq!(runs.get(), 4);
    assert_eq!(group.stats().flights, 2);
    assert_eq!(group.in_flight(), 0);
}

/// A value whose first clone in a follower's thread panics.
#[derive(Debug)]
struct Fragile {
    number: u32,
    clones: Arc<AtomicU32>,
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        if acts_for(CALLER) && self.clones.fetch_add(1, Ordering::Relaxed) == 0 {
            blow(Blown);
        }
        Self { number: self.number, clones: Arc::clone(&self.clones) }
    }
}

/// C5.
pub(crate) fn c5_a_panic_in_clone_for_one_follower_is_that_followers_alone<W: Way>() {
    let clones = Arc::new(AtomicU32::new(0));
    let fragile = |number| Fragile { number, clones: Arc::clone(&clones) };
    let group = group::<W, u32, Fragile>();
    let runs = Runs::new();
    let leader = group.leader(1, runs.returning(fragile(1)));
    let followers = group.followers(4, 1, |_| runs.returning(fragile(2)));
    assert_eq!(leader.value().number, 1);
    let ended: Vec<_> = followers.into_iter().map(|follower| follower.ended()).collect();
    // Of four followers one at most gets the value without a clone.
    let (panicked, served): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_err);
    assert_eq!(panicked.len(), 1);
    assert!(panicked.into_iter().all(|ended| ended.is_err_and(|payload| payload.is::<Blown>())));
    assert!(served.into_iter().flatten().all(|answer| answer.is_ok_and(|answer| answer.value.number == 1)));
    assert_eq!(runs.get(), 1);
    assert_eq!(group.in_flight(), 0);
}

/// C6.
pub(crate) fn c6_a_panic_in_hash_or_eq_is_that_calls_alone_and_flights_in_progress_finish<W: Way>() {
    // One shard: were its lock still held, or its table half changed, all keys would notice.
    let group = group_with::<W, Moody, u32>(Setup::one_shard());
    let calm = |number| Moody::new(number, Mood::Calm);
    let leaders = [1, 2].map(|number| group.leader(calm(number), move || number));
    let followers = [1, 2].map(|number| group.follower(calm(number), || 0));
    for mood in [Mood::Hash, Mood::Eq] {
        let moody = Moody::new(1, mood);
        let called = catch_unwind(AssertUnwindSafe(|| group.call(Moody::new(1, mood), Options::none(), || 3)));
        assert!(called.is_err_and(|payload| payload.is::<Blown>()), "{mood:?}");
        let asked = [
            catch_unwind(AssertUnwindSafe(|| group.waiters(&moody))).is_err(),
            catch_unwind(AssertUnwindSafe(|| group.flight_info(&moody))).is_err(),
            catch_unwind(AssertUnwindSafe(|| group.forget(&moody))).is_err(),
            catch_unwind(AssertUnwindSafe(|| group.forget_unshared(&moody))).is_err(),
        ];
        assert_eq!(asked, [true; 4], "{mood:?}");
        assert_eq!(group.caller(calm(4), || 4).value(), 4);
    }
    assert_eq!(group.waiters(&calm(1)), 1, "nobody joined, nobody left, nothing was forgotten");
    for (number, (leader, follower)) in (1..).zip(leaders.into_iter().zip(followers)) {
        assert_eq!(leader.value(), number);
        assert_eq!(follower.value(), number);
    }
    assert_eq!(group.in_flight(), 0);
}

/// C6, for a key that is in flight: it takes its own flight's callers down, and nobody else's.
pub(crate) fn c6_a_key_in_flight_whose_eq_panics_still_lands_and_goes<W: Way>() {
    let group = group_with::<W, Moody, u32>(Setup::one_shard());
    let leader = group.leader(Moody::new(1, Mood::Eq), || 1);
    let other = catch_unwind(AssertUnwindSafe(|| group.call(Moody::new(1, Mood::Calm), Options::none(), || 2)));
    assert!(other.is_err());
    assert_eq!(error_of(&other), None);
    assert_eq!(leader.value(), 1, "a flight is ended by its identity: `Eq` is not asked again");
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.caller(Moody::new(1, Mood::Calm), || 3).value(), 3);
}

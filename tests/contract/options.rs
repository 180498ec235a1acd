//! Whose options count (DESIGN 10): `share_if` and `max_attempts` travel with the work of the caller that asked for them,
//! `wait_timeout` and `on_abandon` are each caller's own, a call's own win over the group's.

use crate::support::callers::{Blown, Callers, Runs, blow};
use crate::support::limits::{until, within_limit};
use crate::support::way::{AnyGroup, Options, Setup, Way, group, group_with};
use core::time::Duration;
use oneflight::{CallError, OnAbandon, Role, SyncGroup};
use std::sync::Arc;
use std::thread;

/// `on_abandon`.
pub(crate) fn a_follower_that_fails_on_abandon_is_the_only_one_to_get_an_error<W: Way>() {
    let group = group::<W, u32, u32>();
    let leader = group.leader(1, || blow(Blown));
    let patient = group.followers(3, 1, |_| || 10);
    let failing = group.follower_with(1, Options::on_abandon(OnAbandon::Fail), || 20);
    assert_eq!(leader.panic::<Blown>(), Blown);
    assert_eq!(failing.error(), CallError::Abandoned);
    assert!(patient.into_iter().all(|follower| follower.value() == 10));
    assert_eq!(group.in_flight(), 0);
}

/// `on_abandon`: it is about being left, not about waiting.
pub(crate) fn a_follower_that_fails_on_abandon_gets_the_value_if_there_is_one<W: Way>() {
    let group = group::<W, u32, u32>();
    let leader = group.leader(1, || 1);
    let failing = group.follower_with(1, Options::on_abandon(OnAbandon::Fail), || 20);
    assert_eq!(leader.value(), 1);
    let answer = failing.answer();
    assert_eq!((answer.value, answer.role), (1, Some(Role::Followed)));
    // Alone, it leads, and there is nobody to be left by.
    let alone = group.call(1, Options::on_abandon(OnAbandon::Fail), || 2);
    assert_eq!(alone.map(|answer| answer.value), Ok(2));
}

/// `on_abandon`: a value that is not shared leaves the followers just as a panic does.
pub(crate) fn a_value_that_is_not_shared_abandons_its_followers<W: Way>() {
    let group = group::<W, u32, u32>();
    let leader = group.leader_with(1, Options::share_if(|_| false), || 1);
    let failing = group.follower_with(1, Options::on_abandon(OnAbandon::Fail), || 20);
    assert_eq!(leader.value(), 1);
    assert_eq!(failing.error(), CallError::Abandoned);
    assert_eq!(group.in_flight(), 0);
}

/// `max_attempts`: the cap is that of the work that has just ended.
pub(crate) fn the_cap_of_the_leader_that_panics_counts_not_that_of_its_followers<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let leader = group.leader_with(1, Options::max_attempts(1), runs.panicking());
    let followers: Vec<_> =
        (0..3).map(|_| group.follower_with(1, Options::max_attempts(5), runs.returning(2))).collect();
    assert_eq!(leader.panic::<Blown>(), Blown);
    for follower in followers {
        assert_eq!(follower.error(), CallError::Abandoned);
    }
    assert_eq!(runs.get(), 1);
    assert_eq!(group.in_flight(), 0);
}

/// `max_attempts`, likewise.
pub(crate) fn the_cap_of_the_caller_that_took_over_counts_once_it_has_panicked<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let leader = group.leader_with(1, Options::max_attempts(5), runs.panicking());
    let followers: Vec<_> =
        (0..4).map(|_| group.follower_with(1, Options::max_attempts(2), runs.panicking())).collect();
    assert_eq!(leader.panic::<Blown>(), Blown);
    let ended: Vec<_> = followers.into_iter().map(|follower| follower.ended()).collect();
    assert_eq!(ended.iter().filter(|ended| ended.is_err()).count(), 1, "one took over");
    let refused = ended.iter().filter(|ended| matches!(ended, Ok(Err(CallError::Abandoned))));
    assert_eq!(refused.count(), 3, "and the two attempts that it allows were made");
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// `max_attempts`: a cap that was passed before this caller led makes its own attempt the last.
pub(crate) fn a_caller_that_takes_over_past_its_own_cap_makes_the_last_attempt<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let leader = group.leader(1, runs.panicking());
    let followers: Vec<_> =
        (0..3).map(|_| group.follower_with(1, Options::max_attempts(1), runs.panicking())).collect();
    assert_eq!(leader.panic::<Blown>(), Blown);
    let ended: Vec<_> = followers.into_iter().map(|follower| follower.ended()).collect();
    assert_eq!(ended.iter().filter(|ended| ended.is_err()).count(), 1);
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// `share_if`: the maker's own decides about its value, for each work anew.
pub(crate) fn share_if_travels_with_the_work_of_its_caller<W: Way>() {
    let group = group::<W, u32, u32>();
    let asked = Runs::new();
    let predicate = |approves: bool| {
        let asked = asked.clone();
        Options::share_if(move |_: &u32| {
            asked.add();
            approves
        })
    };
    // The leader approves: that its followers would not is no matter.
    let leader = group.leader_with(1, predicate(true), || 1);
    let followers: Vec<_> = (0..3).map(|_| group.follower_with(1, predicate(false), || 2)).collect();
    assert_eq!(leader.value(), 1);
    assert!(followers.into_iter().all(|follower| follower.value() == 1));
    assert_eq!(asked.get(), 1);
    // The leader does not approve, the one that takes over does.
    let leader = group.leader_with(1, predicate(false), || 1);
    let followers: Vec<_> = (0..3).map(|_| group.follower_with(1, predicate(true), || 2)).collect();
    let answer = leader.answer();
    assert_eq!((answer.value, answer.shared), (1, Some(false)));
    assert!(followers.into_iter().all(|follower| follower.value() == 2));
    assert_eq!(asked.get(), 3);
    assert_eq!(group.in_flight(), 0);
}

/// `share_if`, `max_attempts`: the last allowed value is everybody's.
pub(crate) fn the_value_of_the_last_allowed_attempt_is_shared_whatever_share_if_says<W: Way>() {
    let group = group::<W, u32, u32>();
    let last = Options { max_attempts: Some(1), ..Options::share_if(|_| panic!("there is nothing to decide")) };
    let leader = group.leader_with(1, last, || 1);
    let followers = group.followers(3, 1, |_| || 2);
    let answer = leader.answer();
    assert_eq!((answer.value, answer.shared), (1, Some(true)));
    for follower in followers {
        let answer = follower.answer();
        assert_eq!((answer.value, answer.role), (1, Some(Role::Followed)));
    }
    assert_eq!(group.in_flight(), 0);
}

/// `share_if`: with nobody to share with there is nothing to ask.
pub(crate) fn share_if_is_not_asked_about_a_lone_callers_value<W: Way>() {
    let group = group::<W, u32, u32>();
    let answer = group.call(1, Options::share_if(|_| panic!("there is nobody to share with")), || 1);
    assert_eq!(answer.map(|answer| (answer.value, answer.shared)), Ok((1, Some(false))));
}

/// The group's defaults, and a call's own.
pub(crate) fn a_calls_own_options_win_over_the_groups<W: Way>() {
    let setup = Setup { on_abandon: Some(OnAbandon::Fail), ..Setup::max_attempts(1) }.share_if(|_| false);
    let group = group_with::<W, u32, u32>(setup);
    let runs = Runs::new();

    // One attempt: its value is shared; and its panic is final.
    let leader = group.leader(1, runs.returning(1));
    let follower = group.follower(1, runs.returning(2));
    assert_eq!([leader.value(), follower.value()], [1, 1]);
    let leader = group.leader(1, runs.panicking());
    let follower = group.follower(1, runs.returning(2));
    assert_eq!(leader.panic::<Blown>(), Blown);
    assert_eq!(follower.error(), CallError::Abandoned);

    // More attempts, by the leader's own wish, and a follower that takes over.
    let own = || Options { max_attempts: Some(9), ..Options::on_abandon(OnAbandon::TakeOver) };
    let leader = group.leader_with(1, own(), runs.panicking());
    let [failing, patient] = [None, Some(OnAbandon::TakeOver)]
        .map(|on_abandon| group.follower_with(1, Options { on_abandon, ..Options::none() }, runs.returning(2)));
    assert_eq!(leader.panic::<Blown>(), Blown);
    assert_eq!(failing.error(), CallError::Abandoned);
    assert_eq!(patient.value(), 2);

    // The group's predicate keeps a value that is not the last; the call's own shares it.
    let leader = group.leader_with(1, Options { max_attempts: Some(9), ..Options::share_if(|_| true) }, || 5);
    let follower = group.follower(1, || 6);
    assert_eq!([leader.value(), follower.value()], [5, 5]);
    let leader = group.leader_with(1, own(), || 5);
    let follower = group.follower_with(1, own(), || 6);
    assert_eq!([leader.value(), follower.value()], [5, 6]);
    assert_eq!(group.in_flight(), 0);
}

/// `share_if`: it is not asked about a value that nobody waits for, also if somebody did.
#[test]
fn a_value_whose_only_follower_has_left_is_not_asked_about() {
    let group: SyncGroup<u32, u32> = SyncGroup::new();
    let work = || {
        thread::scope(|scope| {
            let follower = scope.spawn(|| group.do_call_wait_timeout(&1, Duration::ZERO, || 2));
            assert_eq!(follower.join().expect("no panic"), Err(CallError::TimedOut));
        });
        1
    };
    let never = |_: &u32| -> bool { panic!("nobody waits for it") };
    let outcome = group.call(&1).share_if(never).run(work).expect("it leads");
    assert_eq!((outcome.value, outcome.role, outcome.shared), (1, Role::Led, false));
    assert_eq!((group.in_flight(), group.stats().abandons), (0, 0));
}

/// `wait_timeout` of the group: for the methods that can tell of it.
#[test]
fn a_groups_time_limit_is_for_the_calls_that_can_tell_and_have_none_of_their_own() {
    within_limit(|| {
        type Results = Result<u32, Arc<u32>>;
        let group: SyncGroup<u32, Results> = SyncGroup::builder().wait_timeout(Duration::ZERO).build();
        let stuck = group.try_lead(&1).expect("no flight is on");
        assert_eq!(group.call(&1).run(|| Ok(2)), Err(CallError::TimedOut));
        assert_eq!(group.call_with(&1, || 1).run(|| Ok(2)), Err(CallError::TimedOut));
        let limit = Duration::from_secs(3_600);
        thread::scope(|scope| {
            let waiting = [
                scope.spawn(|| group.do_call(&1, || Ok(2))),
                scope.spawn(|| group.try_do_call(&1, || Ok(2))),
                scope.spawn(|| group.do_call_wait_timeout(&1, limit, || Ok(2)).expect("it has a limit of its own")),
                scope.spawn(|| group.call(&1).wait_timeout(limit).run(|| Ok(2)).expect("likewise").value),
            ];
            until("all four wait", || group.waiters(&1) == waiting.len());
            drop(stuck.land(Ok(1)));
            assert!(waiting.into_iter().all(|caller| caller.join().expect("no panic") == Ok(1)));
        });
    });
}

/// `try_do_call`: errors are shared like values, though they cannot be cloned.
#[test]
fn try_do_call_shares_the_leaders_error_in_an_arc() {
    within_limit(|| {
        #[derive(Debug, PartialEq)]
        struct NotClone(u32);
        let group: SyncGroup<u32, Result<u32, Arc<NotClone>>> = SyncGroup::new();
        let lead = group.try_lead(&1).expect("no flight is on");
        thread::scope(|scope| {
            let callers: Vec<_> = (0..3).map(|_| scope.spawn(|| group.try_do_call(&1, || Err(NotClone(2))))).collect();
            until("all wait", || group.waiters(&1) == 3);
            let landed = lead.land(Err(Arc::new(NotClone(1)))).value.expect_err("it landed with an error");
            for caller in callers {
                let error = caller.join().expect("no panic").expect_err("it is the leader's");
                assert!(Arc::ptr_eq(&error, &landed), "one error for all");
            }
        });
        assert_eq!(group.try_do_call(&1, || Err(NotClone(4))), Err(Arc::new(NotClone(4))));
    });
}

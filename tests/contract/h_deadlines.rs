//! H: time limits, the age of flights, and all ways to call on one key. (H1 and H2 are in `g_values.rs`.)

use crate::support::callers::{Blown, Callers, Runs, blow};
use crate::support::gate::Gate;
use crate::support::in_time::in_time;
use crate::support::limits::{until, within_limit};
use crate::support::way::{AnyGroup, Options, Setup, Way, group, group_with};
use core::num::ParseIntError;
use core::time::Duration;
use oneflight::{CallError, OnAbandon, Role, SyncGroup};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Where a limit must have been kept, but the machine may have been busy.
const GENEROUS: Duration = Duration::from_secs(20);

/// H3.
#[test]
fn h3_all_ways_to_call_meet_in_one_flight() {
    within_limit(|| {
        type Results = Result<u32, Arc<ParseIntError>>;
        let group: SyncGroup<String, Results> = SyncGroup::new();
        let runs = Runs::new();
        let (begun, end) = (Gate::new(), Gate::new());
        let work = || {
            runs.add();
            Ok(2)
        };
        let fallible = || {
            runs.add();
            "2".parse()
        };
        let limit = Duration::from_secs(3_600);
        let outcome = |called: Result<oneflight::Outcome<Results>, CallError>| {
            let outcome = called.expect("nothing refuses it");
            assert_eq!((outcome.role, outcome.shared), (Role::Followed, true));
            outcome.value
        };
        thread::scope(|scope| {
            let leader = scope.spawn(|| {
                group.do_call("k", || {
                    runs.add();
                    begun.open();
                    end.wait();
                    Ok(1)
                })
            });
            begun.wait();
            let followers = [
                scope.spawn(|| group.do_call("k", work)),
                scope.spawn(|| group.try_do_call("k", fallible)),
                scope.spawn(|| group.do_call_wait_timeout("k", limit, work).expect("nothing refuses it")),
                scope.spawn(|| outcome(group.call("k").run(work))),
                scope.spawn(|| outcome(group.call("k").share_ok().max_attempts(2).wait_timeout(limit).run(work))),
                scope.spawn(|| outcome(group.call_with("k", || "k".to_owned()).run(work))),
                scope.spawn(|| group.do_many(["k"], |_| vec![work()]).remove(0)),
                scope.spawn(|| {
                    group.run_many(["k"], Some(limit), |_| vec![work()]).expect("nothing refuses it").remove(0)
                }),
            ];
            until("all wait", || group.waiters("k") == followers.len());
            assert!(group.try_lead("k").is_none());
            assert_eq!(group.in_flight(), 1);
            end.open();
            assert_eq!(leader.join().expect("no panic"), Ok(1));
            assert!(followers.into_iter().all(|follower| follower.join().expect("no panic") == Ok(1)));
        });
        assert_eq!(runs.get(), 1);
        assert_eq!(group.in_flight(), 0);
    });
}

/// H4.
pub(crate) fn h4_a_time_limit_ends_its_callers_wait_and_disturbs_nobody_else<W: Way>() {
    const LIMIT: Duration = Duration::from_millis(50);
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let leader = group.leader(1, runs.returning(1));
    let patient = group.follower(1, runs.returning(2));
    let begun = Instant::now();
    let called = group.call(1, Options::wait_timeout(LIMIT), runs.returning(3));
    let waited = begun.elapsed();
    assert_eq!(called, Err(CallError::TimedOut));
    assert!((LIMIT..GENEROUS).contains(&waited), "{waited:?}");
    assert_eq!(group.waiters(&1), 1);
    assert!(group.timeouts().is_none_or(|timeouts| timeouts == 1));
    assert_eq!(leader.value(), 1);
    assert_eq!(patient.value(), 1);
    assert_eq!(runs.get(), 1);
    assert_eq!(group.in_flight(), 0);
}

/// H4, A5: a limit concerns waiting, never one's own work, first or taken over.
pub(crate) fn h4_a_leaders_own_limit_does_not_interrupt_its_work<W: Way>() {
    const LIMIT: Duration = Duration::from_millis(5);
    // The work takes longer than the limit: real time is the subject.
    let long = || {
        thread::sleep(4 * LIMIT);
        1
    };
    let group = group::<W, u32, u32>();
    for limit in [Duration::ZERO, LIMIT] {
        let answer = group.call(1, Options::wait_timeout(limit), long).expect("nobody had to be waited for");
        assert!(answer.may_be(Role::Led));
    }
    assert_eq!(group.in_flight(), 0);
}

/// H4, A5: the same after a take-over.
pub(crate) fn h4_a_caller_that_takes_over_is_not_interrupted_by_its_limit<W: Way>() {
    // Long enough to join in, on a busy machine.
    in_time([100, 1_000, 10_000], |limit| {
        let group = group::<W, u32, u32>();
        let leader = group.leader(1, || blow(Blown));
        let follower = group.caller_with(1, Options::wait_timeout(limit), move || {
            thread::sleep(limit);
            2
        });
        until("the follower waits or has given up", || group.stats().joins == 1);
        let _ = leader.release().ended();
        match follower.ended().expect("the panic is the leader's alone") {
            Ok(answer) => {
                assert_eq!(answer.value, 2);
                assert!(answer.may_be(Role::TookOver));
                true
            }
            Err(error) => {
                assert_eq!(error, CallError::TimedOut);
                false
            }
        }
    });
}

/// H6.
pub(crate) fn h6_with_a_limit_of_zero_a_call_leads_or_returns_at_once<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let answer = group.call(1, Options::wait_timeout(Duration::ZERO), runs.returning(1));
    assert_eq!(answer.map(|answer| answer.value), Ok(1));
    let leader = group.leader(1, runs.returning(2));
    for _ in 0..100 {
        let called = group.call(1, Options::wait_timeout(Duration::ZERO), runs.returning(3));
        assert_eq!(called, Err(CallError::TimedOut));
    }
    assert_eq!(group.waiters(&1), 0);
    assert_eq!(leader.value(), 2);
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// H6.
pub(crate) fn h6_a_limit_too_long_for_the_clock_is_none<W: Way>() {
    let group = group::<W, u32, u32>();
    for limit in [Duration::MAX, Duration::MAX / 2, Duration::from_secs(u64::MAX / 4), Duration::from_secs(1 << 40)] {
        let leader = group.leader(1, || 1);
        let follower = group.follower_with(1, Options::wait_timeout(limit), || 2);
        assert_eq!(leader.value(), 1);
        assert_eq!(follower.value(), 1);
        let alone = group.call(1, Options::wait_timeout(limit), || 3);
        assert_eq!(alone.map(|answer| answer.value), Ok(3));
    }
    assert_eq!(group.in_flight(), 0);
}

/// H5. Real time is the subject: the flight has to grow old.
pub(crate) fn h5_from_its_age_limit_on_a_flight_takes_no_newcomer_and_touches_no_newer_one<W: Way>() {
    // A follower has to join while the flight is young.
    in_time([200, 1_000, 5_000], |age| {
        let group = group_with::<W, u32, u32>(Setup::max_flight_age(age));
        let old = group.leader(1, || 1);
        let follower = group.caller(1, || 2);
        until("the follower waits or leads", || group.stats().joins == 1 || group.stats().flights == 2);
        if group.stats().joins == 0 {
            let _ = (old.value(), follower.value());
            return false;
        }
        // Ages are measured to a 64th of the limit, at both ends.
        let joined = Instant::now();
        until("the flight is too old", || joined.elapsed() > age + age / 16);
        assert!(group.flight_info(&1).is_none(), "there is no flight that a newcomer would join");
        let new = group.leader(1, || 3);
        assert_eq!(group.in_flight(), 2);
        assert_eq!(old.value(), 1);
        assert_eq!(follower.value(), 1, "those inside are served");
        assert_eq!(group.in_flight(), 1, "the old leader took away its own flight only");
        assert_eq!(new.value(), 3);
        assert_eq!(group.in_flight(), 0);
        true
    });
}

/// H5: too old is too old for good.
#[test]
fn h5_a_flight_that_is_too_old_stays_so() {
    within_limit(|| {
        let ages = [Duration::ZERO, Duration::from_nanos(1), Duration::from_micros(1)];
        let groups: [SyncGroup<u32, u32>; 3] = ages.map(|age| SyncGroup::builder().max_flight_age(age).build());
        let _stuck: Vec<_> = groups.iter().map(|group| group.try_lead(&1)).collect();
        // Nanoseconds in 32 bits go round after 4.3 s, and look negative after half of that. Real time is the subject.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(2_300) {
            thread::sleep(Duration::from_millis(20));
            for (age, group) in ages.iter().zip(&groups) {
                let called = group.call(&1).wait_timeout(Duration::ZERO).run(|| 2);
                let called = called.map(|outcome| (outcome.value, outcome.role));
                assert_eq!(called, Ok((2, Role::Led)), "{age:?}: joined after {:?}", begun.elapsed());
            }
        }
    });
}

/// H5: not even in a flight that began after the call, while its key was being made, nor in a group's first moment.
#[test]
fn h5_with_an_age_limit_of_zero_nobody_ever_joins() {
    within_limit(|| {
        for _ in 0..200 {
            let group: SyncGroup<u32, u32> = SyncGroup::builder().max_flight_age(Duration::ZERO).build();
            let mut faster = None;
            let make_key = || {
                faster = group.try_lead(&1);
                1
            };
            let called = group.call_with(&1, make_key).wait_timeout(Duration::ZERO).run(|| 2);
            assert_eq!(called.map(|outcome| (outcome.value, outcome.role)), Ok((2, Role::Led)));
            assert!(faster.is_some());
        }
    });
}

/// H5: an age that is never reached changes nothing.
pub(crate) fn h5_a_young_flight_is_joined<W: Way>() {
    for age in [Duration::from_secs(3_600), Duration::MAX] {
        let group = group_with::<W, u32, u32>(Setup::max_flight_age(age));
        let leader = group.leader(1, || 1);
        let follower = group.follower(1, || 2);
        assert!(group.flight_info(&1).is_some_and(|flight| flight.age.is_some()));
        assert_eq!([leader.value(), follower.value()], [1, 1]);
    }
}

/// H4 for several keys: the limit concerns all waiting together, and the batch's own keys have landed when it is told.
#[test]
fn h4_a_batch_waits_no_longer_than_its_limit() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        let ten_times = |keys: Vec<&u32>| keys.into_iter().map(|key| key * 10).collect();
        let leaders = [1, 2].map(|key| group.try_lead(&key).expect("it is free"));
        for (limit, least) in [(Duration::ZERO, Duration::ZERO), (Duration::from_millis(30), Duration::from_millis(30))]
        {
            let begun = Instant::now();
            let mut asked = Vec::new();
            let called = group.run_many(&[1, 3, 2, 3], Some(limit), |keys| {
                asked.extend(keys.iter().map(|key| **key));
                ten_times(keys)
            });
            assert_eq!((called, asked), (Err(CallError::TimedOut), vec![3]));
            assert!((least..GENEROUS).contains(&begun.elapsed()));
            assert_eq!((group.in_flight(), group.waiters(&1), group.waiters(&2)), (2, 0, 0));
        }
        // One that is taken over needs no limit.
        drop(leaders);
        assert_eq!(group.run_many(&[1, 2], Some(Duration::ZERO), ten_times), Ok(vec![10, 20]));
        assert_eq!(group.run_many(&[1], Some(Duration::MAX), ten_times), Ok(vec![10]));
        assert_eq!(group.in_flight(), 0);
    });
}

/// H4 for several keys: what the batch itself works for keys that it takes over is no waiting.
#[test]
fn h4_the_limit_of_a_batch_bounds_waiting_and_not_its_own_work() {
    // The first key has to be given up, and the second one to land, before the batch's time is up.
    let round = |on_abandon, limit: Duration| {
        let group: SyncGroup<u32, u32> = SyncGroup::builder().on_abandon(on_abandon).build();
        let [first, second] = [1, 2].map(|key| group.try_lead(&key).expect("it is free"));
        let runs = Runs::new();
        thread::scope(|threads| {
            let batch = threads.spawn(|| {
                group.run_many(&[1, 2], Some(limit), |keys| {
                    thread::sleep(limit);
                    runs.add();
                    keys.into_iter().map(|key| key * 10).collect()
                })
            });
            until("it waits", || batch.is_finished() || group.waiters(&1) == 1 && group.waiters(&2) == 1);
            drop(first);
            until("it has worked, or has ended", || batch.is_finished() || runs.get() == 1);
            // A moment for it to look at the second key, and to give up if it is to.
            thread::sleep(limit / 4);
            assert_eq!(second.land(5).value, 5);
            match batch.join().expect("it does not panic") {
                Ok(values) => {
                    assert_eq!(values, [10, 5]);
                    true
                }
                Err(error) => {
                    assert_eq!(error, CallError::TimedOut);
                    false
                }
            }
        })
    };
    for on_abandon in [OnAbandon::TakeOver, OnAbandon::Fail] {
        within_limit(move || in_time([300, 3_000, 12_000], |limit| round(on_abandon, limit)));
    }
}

/// E1 for several keys: an error in place of a panic, and nothing has happened.
#[test]
fn e1_a_batch_with_the_key_of_the_work_around_it_is_told() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        let value = group.do_call(&1, || {
            for keys in [[1, 2], [2, 1]] {
                let called = group.run_many(&keys, None, |_| unreachable!("nothing is loaded"));
                assert_eq!(called, Err(CallError::Reentrant));
                assert_eq!(group.in_flight(), 1, "the other key is free");
            }
            7
        });
        assert_eq!((value, group.in_flight()), (7, 0));
    });
}

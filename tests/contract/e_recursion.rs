//! E: calls from inside the work.

use crate::support::callers::{Blown, Callers, Runs, blow, error_of};
use crate::support::gate::Gate;
use crate::support::limits::{until, within_limit};
use crate::support::things::Colliding;
use crate::support::way::{AnyGroup, Key, Options, Value, Way, group};
use crate::support::work::here;
use core::fmt::Debug;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use oneflight::{CallError, Role, SyncGroup};
use std::collections::VecDeque;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Why a call on this thread is refused.
#[track_caller]
fn refusal<K: Key, V: Value + Debug>(group: &impl AnyGroup<K, V>, key: K, unused: V) -> CallError {
    let called = catch_unwind(AssertUnwindSafe(|| group.call(key, Options::none(), move || unused)));
    error_of(&called).unwrap_or_else(|| panic!("it was not refused: {called:?}"))
}

/// E1.
pub(crate) fn e1_a_call_of_its_own_key_inside_the_work_is_refused_at_once<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let work = |value| {
        let (group, runs) = (group.clone(), runs.clone());
        here(move || {
            runs.add();
            assert_eq!(refusal(&group, 1, 0), CallError::Reentrant);
            value
        })
    };
    assert_eq!(group.caller(1, work(1)).value(), 1, "the work goes on with the error");
    // The same with followers inside.
    let leader = group.leader(1, work(2));
    let followers = group.followers(2, 1, |_| work(3));
    assert_eq!(leader.value(), 2);
    assert!(followers.into_iter().all(|follower| follower.value() == 2));
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// E1, where there is no `Result`: what is not caught goes up like any panic of the work.
pub(crate) fn e1_where_there_is_no_result_the_refusal_is_a_panic_of_the_work<W: Way>() {
    let group = group::<W, u32, u32>();
    let leader = group.leader(1, {
        let group = group.clone();
        here(move || group.call(1, Options::none(), || 0).map_or(0, |answer| answer.value))
    });
    let follower = group.follower(1, || 2);
    let told = leader.panic::<String>();
    assert_eq!(told, format!("oneflight: cannot wait for the flight: {}", CallError::Reentrant));
    assert_eq!(follower.value(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// E1: also from the predicate, which belongs to the work.
pub(crate) fn e1_a_call_of_its_own_key_inside_share_if_is_refused<W: Way>() {
    let group = group::<W, u32, u32>();
    let share_if = {
        let group = group.clone();
        move |_: &u32| refusal(&group, 1, 0) == CallError::Reentrant
    };
    let leader = group.leader_with(1, Options::share_if(share_if), || 1);
    let follower = group.follower(1, || 2);
    assert_eq!(leader.value(), 1);
    assert_eq!(follower.value(), 1, "the predicate approved");
}

/// E1.
pub(crate) fn e1_a_call_of_its_own_key_is_refused_however_many_other_keys_lie_between<W: Way>() {
    let group = group::<W, u32, u32>();
    fn nest<G: AnyGroup<u32, u32>>(group: &G, key: u32) -> u32 {
        if key == 5 {
            return (0..5).filter(|key| refusal(group, *key, 0) == CallError::Reentrant).count() as u32;
        }
        let inner = group.clone();
        let answer = group.call(key, Options::none(), here(move || nest(&inner, key + 1)));
        answer.expect("another key").value
    }
    assert_eq!(nest(&group, 0), 5);
    assert_eq!(group.in_flight(), 0);
}

/// E1: a different thread at that moment just waits, though the work itself has started it.
pub(crate) fn e1_a_call_from_another_thread_during_the_work_just_waits<W: Way>() {
    let group = group::<W, u32, u32>();
    let follower = Arc::new(Mutex::new(None));
    let start_follower = {
        let (group, follower) = (group.clone(), Arc::clone(&follower));
        move || {
            let waiting = group.follower(1, || 2);
            *follower.lock().unwrap_or_else(PoisonError::into_inner) = Some(waiting);
        }
    };
    let call_again = {
        let group = group.clone();
        move || {
            assert_eq!(refusal(&group, 1, 0), CallError::Reentrant);
            1
        }
    };
    let leader = group.caller(1, here(call_again).after(start_follower));
    assert_eq!(leader.value(), 1);
    let follower = follower.lock().unwrap_or_else(PoisonError::into_inner).take();
    assert_eq!(follower.expect("the work started it").value(), 1);
}

/// E1: who leads is noted anew at each take-over.
pub(crate) fn e1_a_caller_that_took_over_is_refused_and_the_one_that_panicked_just_waits<W: Way>() {
    let group = group::<W, u32, u32>();
    let [begun, joined, taken_over, end] = [(); 4].map(|()| Gate::new());
    let first = thread::spawn({
        let (group, begun, joined, taken_over) = (group.clone(), begun.clone(), joined.clone(), taken_over.clone());
        move || {
            let work = move || {
                begun.open();
                joined.wait();
                blow(Blown)
            };
            let panicked = catch_unwind(AssertUnwindSafe(|| group.call(1, Options::none(), work)));
            assert!(panicked.is_err_and(|payload| payload.is::<Blown>()));
            taken_over.wait();
            group.call(1, Options::none(), || 3)
        }
    });
    begun.wait();
    let await_end = {
        let (taken_over, end) = (taken_over.clone(), end.clone());
        move || {
            taken_over.open();
            end.wait();
        }
    };
    let call_again = {
        let group = group.clone();
        move || {
            assert_eq!(refusal(&group, 1, 0), CallError::Reentrant);
            2
        }
    };
    let heir = group.follower(1, here(call_again).after(await_end));
    joined.open();
    taken_over.wait();
    until("the first caller waits", || group.waiters(&1) == 1);
    end.open();
    assert_eq!(heir.value(), 2);
    let first = first.join().expect("it caught its panic").expect("it is not refused");
    assert_eq!(first.value, 2);
    assert!(first.may_be(Role::Followed));
    assert_eq!(group.in_flight(), 0);
}

/// E1: as in a pool whose threads run other jobs while they wait: whoever leads meets a job that calls its key.
pub(crate) fn e1_a_thread_that_runs_other_jobs_while_it_leads_is_refused_its_own_keys_only<W: Way>() {
    type Job = Box<dyn FnOnce(&Pool) + Send>;
    #[derive(Clone, Default)]
    struct Pool(Arc<Mutex<VecDeque<Job>>>);
    impl Pool {
        fn push(&self, job: impl FnOnce(&Pool) + Send + 'static) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(Box::new(job));
        }
        /// What a waiting thread of the pool does.
        fn help(&self) {
            let job = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            if let Some(job) = job {
                job(self);
            }
        }
    }

    let group = group::<W, u32, u32>();
    let results = Arc::new(Mutex::new(Vec::new()));
    let pool = Pool::default();
    for key in [2, 1, 3, 2] {
        let (group, results) = (group.clone(), Arc::clone(&results));
        pool.push(move |pool| {
            let pool = pool.clone();
            // The work of key 2 waits for something too, and so runs the jobs that come after it.
            let work = move || {
                if key == 2 {
                    (0..3).for_each(|_| pool.help());
                }
                key
            };
            let called = catch_unwind(AssertUnwindSafe(|| group.call(key, Options::none(), here(work))));
            let result = (key, error_of(&called));
            results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        });
    }
    let help = move || {
        pool.help();
        1
    };
    let answer = group.call(1, Options::none(), here(help));
    assert_eq!(answer.map(|answer| answer.value), Ok(1));
    let results = results.lock().unwrap_or_else(PoisonError::into_inner);
    let refused = Some(CallError::Reentrant);
    assert_eq!(*results, [(1, refused), (3, None), (2, refused), (2, None)]);
    assert_eq!(group.in_flight(), 0);
}

/// E4.
pub(crate) fn e4_keys_that_all_have_one_hash_neither_wait_for_each_other_nor_mix<W: Way>() {
    let group = group::<W, Colliding, u32>();
    let leaders: Vec<_> = (0..10).map(|number| group.leader(Colliding(number), move || number)).collect();
    let followers: Vec<_> = (0..10).map(|number| group.follower(Colliding(number), || 99)).collect();
    assert_eq!(group.caller(Colliding(10), || 10).value(), 10, "it does not wait for the others");
    // From the middle outwards, so that entries before and after are still there.
    let mut flights: Vec<_> = (0..10).zip(leaders.into_iter().zip(followers)).collect();
    while !flights.is_empty() {
        let (number, (leader, follower)) = flights.remove(flights.len() / 2);
        assert_eq!(leader.value(), number);
        assert_eq!(follower.value(), number);
        assert_eq!(group.in_flight(), flights.len());
    }
}

/// E4.
pub(crate) fn e4_nested_calls_of_keys_that_all_have_one_hash_work<W: Way>() {
    let group = group::<W, Colliding, u32>();
    assert_eq!(nested(&group, 20, Colliding), 20);
    assert_eq!(group.in_flight(), 0);
}

/// How deep it went.
fn nested<K: Key, G: AnyGroup<K, u32>>(group: &G, depth: u32, key: fn(u32) -> K) -> u32 {
    if depth == 0 {
        return 0;
    }
    let inner = group.clone();
    let answer = group.call(key(depth), Options::none(), move || nested(&inner, depth - 1, key) + 1);
    let answer = answer.expect("another key at each step");
    assert!(answer.may_be(Role::Led));
    answer.value
}

/// E5, without the suite's own frames in between: in a debug build they take as much as the group's.
#[test]
fn e5_1_000_nested_calls_of_any_kind_fit_into_2_mib_of_stack() {
    type Group = SyncGroup<u32, Result<u32, Arc<u32>>>;
    type Nested = fn(&Group, u32) -> Result<u32, Arc<u32>>;
    fn do_call(group: &Group, depth: u32) -> Result<u32, Arc<u32>> {
        group.do_call(&depth, || if depth == 0 { Ok(0) } else { Ok(do_call(group, depth - 1)? + 1) })
    }
    fn try_do_call(group: &Group, depth: u32) -> Result<u32, Arc<u32>> {
        group.try_do_call(&depth, || {
            if depth == 0 {
                Ok(0)
            } else {
                try_do_call(group, depth - 1).map(|value| value + 1).map_err(|error| *error)
            }
        })
    }
    fn timeout(group: &Group, depth: u32) -> Result<u32, Arc<u32>> {
        let work = || if depth == 0 { Ok(0) } else { Ok(timeout(group, depth - 1)? + 1) };
        group.do_call_wait_timeout(&depth, Duration::from_secs(1), work).expect("another key at each step")
    }
    fn call(group: &Group, depth: u32) -> Result<u32, Arc<u32>> {
        let work = || if depth == 0 { Ok(0) } else { Ok(call(group, depth - 1)? + 1) };
        group.call(&depth).share_ok().max_attempts(2).run(work).expect("another key at each step").value
    }
    fn guard(group: &Group, depth: u32) -> Result<u32, Arc<u32>> {
        let lead = group.try_lead(&depth).expect("another key at each step");
        let value = if depth == 0 { Ok(0) } else { Ok(guard(group, depth - 1)? + 1) };
        lead.land(value).value
    }
    fn do_many(group: &Group, depth: u32) -> Result<u32, Arc<u32>> {
        let work = || if depth == 0 { Ok(0) } else { Ok(do_many(group, depth - 1)? + 1) };
        group.do_many(&[depth], |_| vec![work()]).remove(0)
    }
    within_limit(|| {
        for nested in [do_call as Nested, try_do_call, timeout, call, guard, do_many] {
            let thread = thread::Builder::new().stack_size(2 << 20);
            let deepest = thread.spawn(move || nested(&SyncGroup::new(), 1_000)).expect("a thread can be started");
            assert_eq!(deepest.join().expect("it does not panic"), Ok(1_000));
        }
    });
}

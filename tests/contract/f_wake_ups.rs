//! F: crowds, time limits that race with landings, wake-ups that were not meant for who gets them.

use crate::support::callers::{Blown, Callers, Runs, blow};
use crate::support::limits::{until, within_limit};
use crate::support::way::{AnyGroup, Options, Setup, Way, group, group_with};
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use oneflight::{CallError, SyncGroup};
use std::panic::catch_unwind;
use std::sync::{Arc, Barrier};
use std::thread;

/// Rule 2: the leader wakes a few, who wake the others.
pub(crate) fn all_of_500_waiters_are_served<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let leader = group.leader(1, runs.returning(1));
    let followers = group.followers(500, 1, |_| runs.returning(2));
    let answer = leader.answer();
    assert_eq!(answer.value, 1);
    assert!(answer.shared.is_none_or(|shared| shared));
    assert!(followers.into_iter().all(|follower| follower.value() == 1));
    assert_eq!(runs.get(), 1);
    assert_eq!(group.in_flight(), 0);
}

/// Rules 2 and 3: a crowd in which one leader after the other panics.
pub(crate) fn all_of_100_waiters_are_served_though_20_leaders_panic_before<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let work = || {
        let runs = runs.clone();
        move || match runs.add() {
            0..=20 => blow(Blown),
            number => number,
        }
    };
    let leader = group.leader(1, work());
    let followers = group.followers(100, 1, |_| work());
    assert_eq!(leader.panic::<Blown>(), Blown);
    let ended: Vec<_> = followers.into_iter().map(|follower| follower.ended()).collect();
    let served = ended.iter().flatten().filter(|answer| answer.as_ref().is_ok_and(|answer| answer.value == 21));
    assert_eq!(served.count(), 81);
    assert_eq!(runs.get(), 21);
    assert_eq!(group.in_flight(), 0);
}

/// F5: a wait without limit has nothing to go by but the state.
#[test]
fn f5_wake_ups_for_nothing_do_not_end_a_wait_without_limit() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        thread::scope(|scope| {
            let lead = group.try_lead(&1).expect("no flight is on");
            let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| group.do_call(&1, || 1))).collect();
            until("all wait", || group.waiters(&1) == 3);
            let mut lead = Some(lead);
            for _ in 0..1_000 {
                drop(lead.take());
                lead = group.try_lead(&1);
                if lead.is_none() {
                    // One of them was faster, and its value is the flight's.
                    break;
                }
            }
            // Where one of them has landed meanwhile, the guard is that of another flight.
            let landed = lead.map(|lead| lead.land(2)).is_some_and(|outcome| outcome.shared);
            let expected = if landed { 2 } else { 1 };
            assert!(waiters.into_iter().all(|waiter| waiter.join().expect("no panic") == expected));
        });
        assert_eq!(group.in_flight(), 0);
    });
}

/// A small generator: the suite needs variety, not randomness.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// H4 and F5 under load: each follower gets the value or its time limit, and nothing stays behind.
pub(crate) fn f_time_limits_that_race_with_a_landing_end_in_a_value_or_in_timed_out<W: Way>() {
    const FOLLOWERS: usize = 4;
    let rounds = u64::from(W::rounds(300));
    let group = group::<W, u64, u64>();
    let start = Arc::new(Barrier::new(FOLLOWERS + 1));
    let threads: Vec<_> = (0..FOLLOWERS)
        .map(|seed| {
            let (group, start) = (group.clone(), Arc::clone(&start));
            thread::spawn(move || {
                let mut numbers = Numbers(seed as u64);
                let mut timed_out = 0;
                for round in 0..rounds {
                    start.wait();
                    let limit = Duration::from_micros(numbers.below(120));
                    // Whoever comes too late leads a flight of its own, whose value is the same.
                    match group.call(round, Options::wait_timeout(limit), move || round) {
                        Ok(answer) => assert_eq!(answer.value, round),
                        Err(error) => {
                            assert_eq!(error, CallError::TimedOut);
                            timed_out += 1;
                        }
                    }
                }
                timed_out
            })
        })
        .collect();
    let mut numbers = Numbers(99);
    for round in 0..rounds {
        // A new key each round: whoever is late from the last one is no part of it.
        let spins = numbers.below(4_000);
        let leader = group.leader(round, move || {
            (0..spins).for_each(|_| core::hint::spin_loop());
            round
        });
        start.wait();
        assert_eq!(leader.value(), round);
    }
    let timed_out: u64 = threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum();
    assert_eq!(group.in_flight(), 0);
    assert!((0..rounds).all(|round| group.waiters(&round) == 0));
    assert!(group.timeouts().is_none_or(|timeouts| timeouts == timed_out));
}

/// As above, with leaders that panic: whoever is told to take over does, or leaves and passes it on.
pub(crate) fn f_time_limits_that_race_with_a_panic_end_in_a_value_or_in_timed_out<W: Way>() {
    const FOLLOWERS: usize = 4;
    let group = group_with::<W, u32, u32>(Setup::one_shard());
    let mut numbers = Numbers(7);
    for _ in 0..W::rounds(60) {
        let leader = group.leader(1, || blow(Blown));
        let spins = numbers.below(4_000);
        let followers: Vec<_> = (0..FOLLOWERS)
            .map(|_| group.caller_with(1, Options::wait_timeout(Duration::from_micros(numbers.below(200))), || 1))
            .collect();
        (0..spins).for_each(|_| core::hint::spin_loop());
        assert_eq!(leader.panic::<Blown>(), Blown);
        for follower in followers {
            match follower.ended().expect("the panic is the leader's alone") {
                Ok(answer) => assert_eq!(answer.value, 1),
                Err(error) => assert_eq!(error, CallError::TimedOut),
            }
        }
        assert_eq!(group.in_flight(), 0);
    }
}

/// Rule 6. What a leader writes without any ordering of its own is there for whoever has its value. (The loom models show
/// it for all interleavings; this is for the machine's own memory, and for the thread sanitizer.)
pub(crate) fn rule_6_what_the_leader_wrote_is_visible_to_every_follower<W: Way>() {
    let rounds = u64::from(W::rounds(300));
    let group = group::<W, u64, Arc<Vec<u64>>>();
    let cells: Arc<Vec<AtomicU64>> = Arc::new((0..64).map(|_| AtomicU64::new(0)).collect());
    let start = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (group, cells, start) = (group.clone(), Arc::clone(&cells), Arc::clone(&start));
            thread::spawn(move || {
                for round in 1..=rounds {
                    start.wait();
                    let written = Arc::clone(&cells);
                    let answer = group.call(round, Options::none(), move || {
                        written.iter().for_each(|cell| cell.store(round, Ordering::Relaxed));
                        Arc::new(vec![round; 64])
                    });
                    let answer = answer.expect("nothing refuses it");
                    assert!(answer.value.iter().all(|number| *number == round));
                    assert!(cells.iter().all(|cell| cell.load(Ordering::Relaxed) == round));
                    // Nobody writes for the next round while others still read.
                    start.wait();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("every follower saw what was written");
    }
    assert_eq!(group.in_flight(), 0);
}

/// Rule 1, with panics and take-overs.
pub(crate) fn rule_1_no_two_leaders_of_one_key_run_at_once<W: Way>() {
    const KEYS: u64 = 3;
    let group = group::<W, u64, u64>();
    let running: Arc<Vec<AtomicBool>> = Arc::new((0..KEYS).map(|_| AtomicBool::new(false)).collect());
    let threads: Vec<_> = (0..6)
        .map(|seed| {
            let (group, running) = (group.clone(), Arc::clone(&running));
            thread::spawn(move || {
                let mut numbers = Numbers(seed);
                for _ in 0..W::rounds(200) {
                    let key = numbers.below(KEYS);
                    let panics = numbers.below(4) == 0;
                    let running = Arc::clone(&running);
                    let work = move || {
                        let one = &running[key as usize];
                        assert!(!one.swap(true, Ordering::SeqCst), "two leaders at once");
                        thread::yield_now();
                        one.store(false, Ordering::SeqCst);
                        if panics { blow(Blown) } else { key }
                    };
                    let called = catch_unwind(AssertUnwindSafe(|| group.call(key, Options::none(), work)));
                    match called {
                        Ok(answer) => assert_eq!(answer.map(|answer| answer.value), Ok(key)),
                        Err(payload) => assert!(panics && payload.is::<Blown>()),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no two leaders at once");
    }
    assert_eq!(group.in_flight(), 0);
}

//! D: forgotten flights, and whom newcomers find.

use crate::support::callers::{Blown, Caller, Callers, Leader, Runs, blow, error_of};
use crate::support::gate::Gate;
use crate::support::limits::until;
use crate::support::way::{AnyGroup, Options, Way, group};
use crate::support::work::here;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::{Arc, Barrier};
use std::thread;

/// D1, as it is written: t1 runs, forget, t2 starts, t1 ends, t3 arrives while t2 runs.
pub(crate) fn d1_an_old_flight_that_ends_does_not_take_the_newer_one_away<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let first = group.leader(1, runs.returning(1));
    assert!(group.forget(&1));
    let second = group.leader(1, runs.returning(2));
    assert_eq!(first.value(), 1);
    let third = group.follower(1, runs.returning(3));
    assert_eq!(second.value(), 2);
    assert_eq!(third.value(), 2);
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// D1: three flights of one key, each forgotten before the next one begins, that end in every order. In each order each of
/// them ends once by a value and once by a panic, and the orders differ in how these meet.
pub(crate) fn d1_newcomers_join_the_newest_flight_in_whatever_order_three_end<W: Way>() {
    for (panicking, order) in (0..8_u32).zip(ORDERS) {
        for panicking in [panicking, !panicking] {
            three_flights::<W>(order, |flight| panicking >> flight & 1 == 1);
        }
    }
}

fn three_flights<W: Way>(order: [usize; 3], panics: impl Fn(usize) -> bool) {
    const NEWEST: usize = 2;
    let group = group::<W, u32, usize>();
    // A flight's leader returns its number, its follower a tenfold.
    let begin = |flight: usize| -> (Leader<usize>, Caller<usize>) {
        let panics = panics(flight);
        let leader = group.leader(1, move || if panics { blow(Blown) } else { flight });
        let follower = group.follower(1, move || 10 + flight);
        assert!(group.forget(&1));
        (leader, follower)
    };
    let mut flights = vec![Some(begin(0)), Some(begin(1))];
    let panics_newest = panics(NEWEST);
    let newest = group.leader(1, move || if panics_newest { blow(Blown) } else { NEWEST });
    let follower = group.follower(1, || 10 + NEWEST);
    flights.push(Some((newest, follower)));

    let mut newest_ended = false;
    let mut late = Vec::new();
    for (ended, flight) in order.into_iter().enumerate() {
        assert_eq!(group.in_flight(), 3 - ended);
        if newest_ended {
            // The older ones that are still on are not found.
            assert_eq!(group.waiters(&1), 0);
            assert_eq!(group.caller(1, || 77).value(), 77);
        } else {
            late.push(group.follower(1, || 10 + NEWEST));
        }
        let (leader, follower) = flights[flight].take().expect("each ends once");
        if panics(flight) {
            assert_eq!(leader.panic::<Blown>(), Blown);
            assert_eq!(follower.value(), 10 + flight, "it takes over inside its own flight");
        } else {
            assert_eq!(leader.value(), flight);
            assert_eq!(follower.value(), flight);
        }
        newest_ended |= flight == NEWEST;
    }
    for caller in late {
        assert_eq!(caller.value(), if panics_newest { 10 + NEWEST } else { NEWEST });
    }
    assert_eq!(group.in_flight(), 0);
}

/// D2.
pub(crate) fn d2_a_work_may_forget_its_own_key<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let (forgotten, end) = (Gate::new(), Gate::new());
    let first = group.caller(1, {
        let (group, runs, forgotten, end) = (group.clone(), runs.clone(), forgotten.clone(), end.clone());
        move || {
            assert!(group.forget(&1));
            assert!(!group.forget(&1), "there is nothing more to forget");
            forgotten.open();
            end.wait();
            runs.returning(1)()
        }
    });
    forgotten.wait();
    let second = group.leader(1, runs.returning(2));
    end.open();
    assert_eq!(first.value(), 1);
    let third = group.follower(1, runs.returning(3));
    assert_eq!(second.value(), 2);
    assert_eq!(third.value(), 2);
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// D2: a thread's cancellation is a panic.
pub(crate) fn d2_a_forgotten_flight_that_is_abandoned_is_taken_over_inside_and_touches_no_other<W: Way>() {
    let group = group::<W, u32, u32>();
    let first = group.leader(1, || blow(Blown));
    let inside = group.follower(1, || 10);
    assert!(group.forget(&1));
    let second = group.leader(1, || 2);
    let with_second = group.follower(1, || 20);
    assert_eq!(first.panic::<Blown>(), Blown);
    assert_eq!(inside.value(), 10);
    assert_eq!(group.in_flight(), 1);
    assert_eq!(group.waiters(&1), 1);
    assert_eq!(second.value(), 2);
    assert_eq!(with_second.value(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// D2, with E1: re-entrancy goes by the flight, not by the key.
pub(crate) fn d2_a_work_that_forgot_its_own_key_may_call_it<W: Way>() {
    let group = group::<W, u32, u32>();
    let runs = Runs::new();
    let called = group.caller(1, {
        let (group, runs) = (group.clone(), runs.clone());
        here(move || {
            runs.add();
            assert!(group.forget(&1));
            let fresh = {
                let (group, runs) = (group.clone(), runs.clone());
                here(move || {
                    let again = catch_unwind(AssertUnwindSafe(|| group.call(1, Options::none(), || 0)));
                    assert!(error_of(&again).is_some(), "the fresh flight's own work is another matter");
                    runs.returning(1)()
                })
            };
            let fresh = group.call(1, Options::none(), fresh);
            fresh.expect("it leads a flight of its own").value + 1
        })
    });
    assert_eq!(called.value(), 2);
    assert_eq!(runs.get(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// What `forget` and `forget_unshared` answer.
pub(crate) fn d_forget_answers_whether_there_was_a_flight_and_forget_unshared_whether_nobody_shares_it<W: Way>() {
    let group = group::<W, u32, u32>();
    assert!(!group.forget(&1));
    assert!(group.forget_unshared(&1), "nobody shares what is not there");

    let leader = group.leader(1, || 1);
    assert!(group.forget_unshared(&1));
    assert!(group.forget_unshared(&1), "it is gone from view");
    assert!(!group.forget(&1));
    assert!(group.flight_info(&1).is_none());
    assert_eq!(leader.value(), 1);

    let leader = group.leader(1, || 2);
    let follower = group.follower(1, || 3);
    assert!(!group.forget_unshared(&1));
    let joins_still = group.follower(1, || 4);
    assert!(group.forget(&1));
    assert_eq!(group.waiters(&1), 0, "only the flight that newcomers would join is counted");
    assert_eq!(group.caller(1, || 5).value(), 5);
    assert_eq!(leader.value(), 2);
    assert_eq!([follower.value(), joins_still.value()], [2, 2]);
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.stats().forgets, 2);
}

/// Of each key; those inside end as if nothing had happened.
pub(crate) fn d_forget_all_closes_every_flight_to_newcomers<W: Way>() {
    let group = group::<W, u32, u32>();
    group.forget_all();
    assert_eq!(group.stats().forgets, 0);
    let old: Vec<_> = (0..20)
        .map(|key| (group.leader(key, move || key), group.follower(key, || unreachable!("it follows"))))
        .collect();
    group.forget_all();
    group.forget_all();
    assert_eq!((group.in_flight(), group.stats().forgets), (20, 20));
    for (key, (leader, follower)) in (0..20).zip(old) {
        assert!(group.flight_info(&key).is_none());
        assert_eq!(group.caller(key, move || 100 + key).value(), 100 + key);
        assert_eq!([leader.value(), follower.value()], [key, key]);
    }
    assert_eq!(group.in_flight(), 0);
}

/// D3. Never: "nobody shares it" was answered and a follower is inside.
pub(crate) fn d3_forget_unshared_racing_a_join_never_leaves_a_follower_in_what_nobody_shares<W: Way>() {
    let rounds = W::rounds(250);
    let group = group::<W, u32, u32>();
    let start = Arc::new(Barrier::new(2));
    let end = Arc::new(Barrier::new(2));
    let joining = thread::spawn({
        let (group, start, end) = (group.clone(), Arc::clone(&start), Arc::clone(&end));
        move || {
            let mut values = Vec::new();
            for _ in 0..rounds {
                start.wait();
                let answer = group.call(1, Options::none(), || 2).expect("nothing refuses it");
                values.push(answer.value);
                end.wait();
            }
            values
        }
    });
    let mut expected = Vec::new();
    for round in 0..rounds {
        let leader = group.leader(1, || 1);
        start.wait();
        // Shifts the moments against each other, from well before the join to well after it.
        for _ in 0..round % 40 * 20 {
            core::hint::spin_loop();
        }
        let unshared = group.forget_unshared(&1);
        if unshared {
            // The other one runs its own work, without waiting for this leader.
            end.wait();
            assert_eq!(leader.value(), 1);
        } else {
            assert_eq!(leader.value(), 1);
            end.wait();
        }
        expected.push(if unshared { 2 } else { 1 });
        assert_eq!(group.in_flight(), 0);
    }
    assert_eq!(joining.join().expect("it does not panic"), expected);
    until("the last flight has gone", || group.in_flight() == 0);
}

//! Callers that leave, or stop: what tasks do when they are dropped.

use super::{Case, FOLLOWERS, Found, KEY, found, is_value, runs, tally};
use crate::clock::{self, panic, value};
use crate::crowd::{Crowd, End, Tasks, Threads};
use crate::values::{Got, Key};

pub(super) const CASES: &[Case] = &[
    Case {
        id: "left",
        row: "The first caller is dropped, four wait",
        right: "4 served",
        tasks: Some(left),
        threads: None,
    },
    Case { id: "progress", row: "... and its work", right: "1 run", tasks: Some(progress), threads: None },
    Case {
        id: "instant",
        row: "... and the others' work is instant",
        right: "2 runs at most",
        tasks: Some(instant),
        threads: None,
    },
    Case {
        id: "parked",
        row: "The first caller is not polled any more, another waits",
        right: "1 served",
        tasks: Some(parked),
        threads: None,
    },
    Case {
        id: "last",
        row: "The last caller is dropped: its work, and the next call",
        right: "dropped; fresh",
        tasks: Some(last),
        threads: None,
    },
    Case {
        id: "abandoned",
        row: "Left of 1,000 keys whose only caller was dropped, or panicked",
        right: "nothing",
        tasks: Some(dropped_keys),
        threads: Some(panicked_keys),
    },
];

/// The first caller leaves while its work has one of two ticks to go; says what the others come to.
fn leave(crowd: &mut Tasks, others_ticks: u32) -> Vec<Option<End>> {
    let leader = crowd.enter(KEY, value(0).after(2));
    let others: Vec<usize> =
        (1..=FOLLOWERS).map(|caller| crowd.enter(KEY, value(caller).after(others_ticks))).collect();
    crowd.settle();
    clock::tick();
    crowd.settle();
    crowd.leave(leader);
    crowd.finish();
    crowd.ends(others)
}

fn left(crowd: &mut Tasks) -> Found {
    let ends = leave(crowd, 2);
    found(ends.iter().all(is_value), tally(&ends))
}

fn progress(crowd: &mut Tasks) -> Found {
    leave(crowd, 2);
    found(clock::runs() == 1, runs(clock::runs()))
}

fn instant(crowd: &mut Tasks) -> Found {
    leave(crowd, 0);
    found(clock::runs() <= 2, runs(clock::runs()))
}

fn parked(crowd: &mut Tasks) -> Found {
    let leader = crowd.enter(KEY, value(0).after(1));
    crowd.park(leader);
    let other = crowd.enter(KEY, value(1).after(1));
    crowd.finish();
    let ends = crowd.ends([other]);
    found(is_value(&ends[0]), tally(&ends))
}

fn last(crowd: &mut Tasks) -> Found {
    let only = crowd.enter(KEY, value(0).after(3));
    crowd.settle();
    clock::tick();
    crowd.settle();
    crowd.leave(only);
    crowd.settle();
    let is_dropped = clock::works_alive() == 0;
    let next = crowd.enter(KEY, value(1).after(1));
    crowd.finish();
    let is_fresh = crowd.end(next) == Some(End::Got(Got::Value(1)));
    let work = if is_dropped { "dropped" } else { "kept" };
    found(is_dropped && is_fresh, format!("{work}; {}", if is_fresh { "fresh" } else { "gets the old one" }))
}

const MANY: u64 = 1_000;

/// What is left: keys, or where those are text, blocks of memory. Exact counts: an entry that stays has one key or two.
fn abandon<C: Crowd>(crowd: &mut C, mut abandon_all: impl FnMut(&mut C)) -> Found {
    let (keys, works) = (Key::alive(), clock::works_alive());
    let memory = allocation_counter::measure(|| abandon_all(crowd));
    let works = clock::works_alive() - works;
    if works > 0 {
        return found(false, format!("{works} works"));
    }
    if crowd.peer().counts_keys() {
        let keys = Key::alive() - keys;
        return found(keys == 0, if keys == 0 { "nothing".to_owned() } else { format!("{keys} keys") });
    }
    // Tables that have grown are a few blocks; an entry that stays is one at least.
    let is_right = memory.count_current < MANY as i64 / 2;
    found(is_right, if is_right { "nothing" } else { "all of them" })
}

fn dropped_keys(crowd: &mut Tasks) -> Found {
    abandon(crowd, |crowd| {
        for key in 0..MANY {
            let only = crowd.enter(key, value(key).after(1));
            crowd.leave(only);
        }
        crowd.settle();
        crowd.clear();
    })
}

fn panicked_keys(crowd: &mut Threads) -> Found {
    let peer = crowd.peer();
    abandon(crowd, |_| {
        for key in 0..MANY {
            let call = peer.call(key, panic().thread());
            // On this thread, or its memory would not be counted.
            let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
            drop(called);
        }
    })
}

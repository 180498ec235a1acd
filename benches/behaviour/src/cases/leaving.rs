//! Callers that leave, or are polled no more.

use super::{Case, FOLLOWERS, Found, KEY, found, is_value, runs, tally};
use crate::clock::{self, panic, value};
use crate::crowd::{Crowd, End, Tasks, Threads};
use crate::values::{Got, Key};
use std::panic::{AssertUnwindSafe, catch_unwind};

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
        id: "late",
        row: "A call that begins when the work has ended, and another has not fetched its value yet",
        right: "fresh",
        tasks: Some(late),
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
        row: "1,000 keys whose only caller is dropped, or panics: what stays",
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

/// What it gets was read before it asked. A cache is there for that.
fn late(crowd: &mut Tasks) -> Found {
    if crowd.peer().stores() {
        return None;
    }
    let leader = crowd.enter(KEY, value(0).after(1));
    let follower = crowd.enter(KEY, value(1).after(1));
    crowd.settle();
    crowd.park(follower);
    clock::tick();
    crowd.settle();
    if !is_value(&crowd.end(leader)) {
        return found(false, "the first caller waits for the other");
    }
    let newcomer = crowd.enter(KEY, value(2).after(1));
    crowd.finish();
    let end = crowd.end(newcomer);
    match end {
        Some(End::Got(Got::Value(2))) => found(true, "fresh"),
        Some(End::Got(Got::Value(_))) => found(false, "gets the old one"),
        end => found(false, tally(&[end])),
    }
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
/// So often, once in advance: some peers have something over for a while, but no more of it after more callers.
const TIMES: u64 = 3;

/// What is left of each thousand: works, keys, or where those are text, blocks of memory.
fn abandon<C: Crowd>(crowd: &mut C, mut abandon: impl FnMut(&mut C, u64)) -> Found {
    (0..MANY).for_each(|key| abandon(crowd, key));
    crowd.settle();
    let (keys, works) = (Key::alive(), clock::works_alive());
    let memory = allocation_counter::measure(|| {
        (MANY..(1 + TIMES) * MANY).for_each(|key| abandon(crowd, key));
        crowd.settle();
    });
    let works = thousands(clock::works_alive() as i64 - works as i64);
    let keys = thousands(Key::alive() as i64 - keys as i64);
    if works > 0 {
        return found(false, format!("{works},000 works"));
    }
    if crowd.peer().counts_keys() {
        return found(keys == 0, if keys == 0 { "nothing".to_owned() } else { format!("{keys},000 keys") });
    }
    // How many blocks there are for a key says nothing to anybody.
    let is_right = thousands(memory.count_current) == 0;
    found(is_right, if is_right { "nothing" } else { "1,000 keys" })
}

/// Of each thousand, to the nearest.
fn thousands(grown_by: i64) -> i64 {
    (grown_by as f64 / (TIMES * MANY) as f64).round() as i64
}

fn dropped_keys(crowd: &mut Tasks) -> Found {
    abandon(crowd, |crowd, key| {
        let only = crowd.enter(key, value(key).after(1));
        crowd.leave(only);
        crowd.clear();
    })
}

fn panicked_keys(crowd: &mut Threads) -> Found {
    abandon(crowd, |crowd, key| {
        let call = crowd.call(key, panic());
        // On this thread, or its memory would not be counted.
        let panicked = catch_unwind(AssertUnwindSafe(call)).is_err();
        assert!(panicked, "there is no other caller who could have been served");
    })
}

//! Code of the user's that panics.

use super::{Case, FOLLOWERS, Found, KEY, found, is_value, runs, tally};
use crate::clock::{self, panic, value};
use crate::crowd::{Crowd, End};
use crate::values::{Got, Value};

pub(super) const CASES: &[Case] = &[
    Case {
        id: "panic",
        row: "The work panics, four wait",
        right: "4 served",
        tasks: Some(others),
        threads: Some(others),
    },
    Case { id: "panic-own", row: "... and its own caller", right: "panics", tasks: Some(own), threads: Some(own) },
    Case { id: "panic-next", row: "... and the next call", right: "1 served", tasks: Some(next), threads: Some(next) },
    Case {
        id: "clone-panic",
        row: "The first clone of the value panics, three wait",
        right: "1 run",
        tasks: Some(clone_panic),
        threads: Some(clone_panic),
    },
];

/// The first caller, and what the others come to.
fn panicked<C: Crowd>(crowd: &mut C) -> (usize, Vec<Option<End>>) {
    let leader = crowd.enter(KEY, panic().after(1));
    let others: Vec<usize> = (1..=FOLLOWERS).map(|caller| crowd.enter(KEY, value(caller).after(1))).collect();
    crowd.finish();
    (leader, crowd.ends(others))
}

fn others<C: Crowd>(crowd: &mut C) -> Found {
    let (_, ends) = panicked(crowd);
    found(ends.iter().all(is_value), tally(&ends))
}

/// Alone, so that no other caller can be in its way.
fn own<C: Crowd>(crowd: &mut C) -> Found {
    let leader = crowd.enter(KEY, panic().after(1));
    crowd.finish();
    let end = crowd.end(leader);
    let text = match end {
        Some(End::Panicked) => "panics",
        Some(End::Got(Got::Value(_))) => "gets a value",
        _ => "gets an error",
    };
    found(end == Some(End::Panicked), text)
}

fn next<C: Crowd>(crowd: &mut C) -> Found {
    // Without others: a take-over would have mended it.
    crowd.enter(KEY, panic().after(1));
    crowd.finish();
    let call = crowd.call(KEY, value(9).after(1));
    let ends = [crowd.complete(call)];
    found(is_value(&ends[0]), tally(&ends))
}

fn clone_panic<C: Crowd>(crowd: &mut C) -> Found {
    if !crowd.peer().counts_values() {
        return None;
    }
    for caller in 0..FOLLOWERS {
        crowd.enter(KEY, value(caller).after(1));
    }
    Value::next_clone_panics();
    crowd.finish();
    found(clock::runs() == 1, runs(clock::runs()))
}

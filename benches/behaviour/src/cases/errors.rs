//! Works that fail.

use super::{Case, FOLLOWERS, Found, KEY, found, runs};
use crate::clock::{self, failure};
use crate::crowd::{Crowd, End};
use crate::values::Got;

pub(super) const CASES: &[Case] = &[Case {
    id: "errors",
    row: "All five works fail after a round",
    right: "2 runs and rounds at most, the error to all",
    tasks: Some(errors),
    threads: Some(errors),
}];

fn errors<C: Crowd>(crowd: &mut C) -> Found {
    let callers: Vec<usize> = (0..=FOLLOWERS).map(|_| crowd.enter(KEY, failure().after(1))).collect();
    let rounds = crowd.finish();
    let ends = crowd.ends(callers);
    let told = ends.iter().filter(|end| **end == Some(End::Got(Got::Failure))).count();
    let mut text = format!("{}, {rounds} round{}", runs(clock::runs()), if rounds == 1 { "" } else { "s" });
    if told < ends.len() {
        text += &format!(", {} do not learn the error", ends.len() - told);
    }
    found(clock::runs() <= 2 && rounds <= 2 && told == ends.len(), text)
}

//! The cases: each is a row of the table, and what one child process does.

mod batches;
mod circles;
mod errors;
mod forgetting;
mod leaving;
mod panics;
mod parallel;
mod refresh;
mod values;
mod wakers;
mod writes;

use crate::crowd::{End, Tasks, Threads};
use crate::values::Got;
use std::fmt::Write as _;

/// What a case has found.
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) is_right: bool,
}

/// What is found if the peer can be asked at all.
pub(crate) type Found = Option<Outcome>;

pub(crate) struct Case {
    /// As a child process is told which one to run.
    pub(crate) id: &'static str,
    /// The row, in the words of the table.
    pub(crate) row: &'static str,
    /// The right outcome, in the words of the table.
    pub(crate) right: &'static str,
    pub(crate) tasks: Option<fn(&mut Tasks) -> Found>,
    pub(crate) threads: Option<fn(&mut Threads) -> Found>,
}

/// All cases, in the order of the table.
pub(crate) fn all() -> impl Iterator<Item = &'static Case> {
    let files: [&'static [Case]; 11] = [
        parallel::CASES,
        leaving::CASES,
        wakers::CASES,
        panics::CASES,
        errors::CASES,
        forgetting::CASES,
        circles::CASES,
        writes::CASES,
        refresh::CASES,
        batches::CASES,
        values::CASES,
    ];
    files.into_iter().flatten()
}

/// The key of most cases.
const KEY: u64 = 7;
/// The callers beside the first one, in most cases.
const FOLLOWERS: u64 = 4;

fn found(is_right: bool, text: impl Into<String>) -> Found {
    Some(Outcome { text: text.into(), is_right })
}

/// `1 run`, `2 runs`.
fn runs(count: usize) -> String {
    format!("{count} run{}", if count == 1 { "" } else { "s" })
}

fn is_value(end: &Option<End>) -> bool {
    matches!(end, Some(End::Got(Got::Value(_))))
}

/// What several callers came to, the number of each: `4 served`, `3 served, 1 panics`.
fn tally(ends: &[Option<End>]) -> String {
    let mut text = String::new();
    let mut count = |what: &str, is_it: fn(&Option<End>) -> bool| {
        let count = ends.iter().filter(|end| is_it(end)).count();
        if count > 0 {
            let comma = if text.is_empty() { "" } else { ", " };
            write!(text, "{comma}{count} {what}").expect("a string takes everything");
        }
    };
    count("served", is_value);
    count("get an error", |end| matches!(end, Some(End::Got(Got::Failure | Got::Refused))));
    count("panic", |end| matches!(end, Some(End::Panicked)));
    text
}

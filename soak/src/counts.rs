//! How often each operation ran, and how it ended.

use std::collections::BTreeMap;
use std::fmt;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// With a value of its own work, or with nothing to get.
    Value,
    /// With a value of somebody else's work.
    Followed,
    Refused,
    Panicked,
    Dropped,
}

const ENDINGS: usize = 5;

/// By operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(BTreeMap<&'static str, [u64; ENDINGS]>);

impl Counts {
    pub(crate) fn add(&mut self, operation: &'static str, ending: Ending) {
        self.0.entry(operation).or_default()[ending as usize] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (operation, counts) in &other.0 {
            let sums = self.0.entry(operation).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.values().flatten().sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["value", "followed", "refused", "panicked", "dropped"];
        let mut line = |name: &str, cells: [String; ENDINGS]| {
            write!(f, "{name:<34}")?;
            cells.iter().try_for_each(|cell| write!(f, " {cell:>11}"))?;
            writeln!(f)
        };
        line("operation", heads.map(str::to_owned))?;
        self.0.iter().try_for_each(|(operation, counts)| line(operation, counts.map(|count| count.to_string())))
    }
}

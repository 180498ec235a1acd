//! Figures, targets, the tables that come of them, and the exit code.

use crate::options::Options;
use crate::rounds::{Samples, Spread};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use std::process::ExitCode;

/// What a target asks of a figure or a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

/// All that a bench has found out.
#[derive(Debug)]
pub struct Report {
    check: bool,
    figures: Vec<[String; 5]>,
    targets: Vec<[String; 5]>,
    missed: usize,
}

impl Bound {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::AtLeast(least) => write!(f, ">= {least}"),
        }
    }
}

impl Report {
    /// Nothing yet.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self { check: options.check, figures: Vec::new(), targets: Vec::new(), missed: 0 }
    }

    /// A figure of a contender.
    pub fn figure(&mut self, workload: &str, contender: &str, unit: &str, spread: Spread) {
        let Spread { low, median, high } = spread;
        let quartiles = if low == high { String::new() } else { format!("{} .. {}", short(low), short(high)) };
        self.figures.push([workload, contender, &short(median), &quartiles, unit].map(ToString::to_string));
    }

    /// One figure of all contenders, divided by `scale`.
    pub fn figures<const N: usize>(
        &mut self,
        workload: &str,
        samples: &Samples<N>,
        figure: usize,
        unit: &str,
        scale: f64,
    ) {
        for (contender, spread) in samples.spreads(figure) {
            self.figure(workload, contender, unit, spread.map(|value| value / scale));
        }
    }

    /// A target: what it asks, and what came out.
    pub fn target(&mut self, what: &str, bound: Bound, got: Spread) {
        let met = bound.is_met_by(got.median);
        self.missed += usize::from(!met);
        let quartiles =
            if got.low == got.high { String::new() } else { format!("{} .. {}", short(got.low), short(got.high)) };
        let verdict = if met { "met" } else { "**missed**" };
        self.targets.push([what, &bound.to_string(), &short(got.median), &quartiles, verdict].map(ToString::to_string));
    }

    /// Prints the tables. The exit code says whether a target was missed, if the command line asked for that.
    #[must_use]
    pub fn finish(self) -> ExitCode {
        if !self.figures.is_empty() {
            print_table(["workload", "contender", "median", "quartiles", "unit"], &self.figures);
        }
        if !self.targets.is_empty() {
            print_table(["target", "asked", "got", "quartiles", ""], &self.targets);
            println!("{} of {} targets met", self.targets.len() - self.missed, self.targets.len());
        }
        if self.check && self.missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// Three digits that count.
fn short(value: f64) -> String {
    let digits = if value == 0.0 || value >= 100.0 || value.fract() == 0.0 {
        0
    } else if value >= 10.0 {
        1
    } else if value >= 0.1 {
        2
    } else {
        4
    };
    format!("{value:.digits$}")
}

/// As Markdown, with columns that also line up where nobody renders it.
fn print_table<const N: usize>(head: [&str; N], rows: &[[String; N]]) {
    let widths: Vec<usize> = (0..N)
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0).max(head[column].len()))
        .collect();
    let line = |cells: [&str; N]| {
        let cells: Vec<_> = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        println!("| {} |", cells.join(" | "));
    };
    println!();
    line(head);
    println!("|{}|", widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("|"));
    for row in rows {
        line(core::array::from_fn(|column| row[column].as_str()));
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_met_at_the_bound() {
        assert!(Bound::AtMost(1.5).is_met_by(1.5) && !Bound::AtMost(1.5).is_met_by(1.6));
        assert!(Bound::AtLeast(1.5).is_met_by(1.5) && !Bound::AtLeast(1.5).is_met_by(1.4));
    }

    #[test]
    fn three_digits_count() {
        let shown = [0.0, 0.01234, 0.355, 1.278, 22.345, 1234.5, 72.0].map(short);
        assert_eq!(shown, ["0", "0.0123", "0.35", "1.28", "22.3", "1234", "72"]);
    }
}

//! Figures and targets, what is printed of them, and the exit code.

pub mod lines;
pub mod picture;
pub mod table;

use crate::contender::Kind;
use crate::options::Options;
use crate::rounds::{Id, Samples, Spread, Who};
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

/// A figure of a contender.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Whose it is.
    pub who: Who,
    /// The figure.
    pub spread: Spread,
    /// The same as a multiple of the first of ours, if that makes sense.
    pub ratio: Option<Spread>,
}

/// The same figure of all who took part in a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The part of the benches that it belongs to.
    pub part: String,
    /// What was done.
    pub workload: String,
    /// What was counted.
    pub unit: String,
    /// The contenders, in the order in which they were added.
    pub cells: Vec<Cell>,
    /// Whether this is a comparison of speed that a target rests on: those are drawn.
    pub is_drawn: bool,
}

/// A target, and what came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Of what.
    pub what: String,
    /// What is asked.
    pub bound: Bound,
    /// What came out.
    pub got: Spread,
}

/// All that a bench has found out.
#[derive(Debug, Default)]
pub struct Report {
    part: String,
    rows: Vec<Row>,
    targets: Vec<Target>,
}

impl Target {
    /// Whether the median is within the bound.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.got.median <= most,
            Bound::AtLeast(least) => self.got.median >= least,
        }
    }
}

/// As it is written in the source, or, if it was measured, not much longer.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {}", rounded(*most)),
            Self::AtLeast(least) => write!(f, ">= {}", rounded(*least)),
        }
    }
}

impl Report {
    /// What comes now is of this part.
    pub fn begin(&mut self, part: &str) {
        self.part = part.to_string();
    }

    /// The part that was begun last.
    #[must_use]
    pub fn part(&self) -> &str {
        &self.part
    }

    /// A figure of a contender, beside those of others in the same workload. Its ratio is taken of the medians.
    pub fn figure(&mut self, workload: &str, name: &str, kind: Kind, unit: &str, spread: Spread) {
        let row = self.row(workload, unit);
        let ours = row.cells.iter().find(|cell| cell.who.kind == Kind::Ours).map(|cell| cell.spread.median);
        let ratio = ours.filter(|&ours| ours > 0.0).map(|ours| Spread::exact(spread.median / ours));
        row.cells.push(Cell { who: Who::new(name, kind), spread, ratio });
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
        let everybody: Vec<Id> = samples.everybody().collect();
        self.figures_of(&everybody, workload, samples, figure, unit, scale);
    }

    /// One figure of these contenders, divided by `scale`.
    pub fn figures_of<const N: usize>(
        &mut self,
        whose: &[Id],
        workload: &str,
        samples: &Samples<N>,
        figure: usize,
        unit: &str,
        scale: f64,
    ) {
        let ours = whose.iter().copied().find(|&id| samples.who(id).kind == Kind::Ours);
        // Of nothing there is no multiple.
        let ours = ours.filter(|&id| samples.spread(id, figure).median > 0.0);
        let cells = whose.iter().map(|&id| Cell {
            who: samples.who(id).clone(),
            spread: samples.spread(id, figure).map(|value| value / scale),
            ratio: ours.map(|ours| samples.ratio(id, ours, figure)),
        });
        self.row(workload, unit).cells.extend(cells);
    }

    fn row(&mut self, workload: &str, unit: &str) -> &mut Row {
        let found =
            self.rows.iter().position(|row| (&*row.part, &*row.workload, &*row.unit) == (&*self.part, workload, unit));
        let place = found.unwrap_or_else(|| {
            self.rows.push(Row {
                part: self.part.clone(),
                workload: workload.to_string(),
                unit: unit.to_string(),
                cells: Vec::new(),
                is_drawn: false,
            });
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }

    /// A target: what it asks, and what came out.
    pub fn target(&mut self, what: &str, bound: Bound, got: Spread) {
        self.targets.push(Target { what: format!("{}: {what}", self.part), bound, got });
    }

    /// A target for one of ours, as a multiple of what another contender takes.
    pub fn ratio<const N: usize>(
        &mut self,
        workload: &str,
        samples: &Samples<N>,
        figure: usize,
        bound: Bound,
        [of, to]: [Id; 2],
    ) {
        let what = format!("{workload}: {} / {}", samples.who(of).name, samples.who(to).name);
        self.target(&what, bound, samples.ratio(of, to, figure));
    }

    /// The target of being first: the best of `ours` takes no longer than the best of `crates`. The comparison is drawn.
    pub fn first<const N: usize>(
        &mut self,
        workload: &str,
        samples: &Samples<N>,
        figure: usize,
        ours: &[Id],
        crates: &[Id],
    ) {
        self.draw(workload);
        if let (Some(of), Some(to)) = (samples.least(ours, figure), samples.least(crates, figure)) {
            let what = format!("{workload}: {} / the best crate, {}", samples.who(of).name, samples.who(to).name);
            self.target(&what, Bound::AtMost(1.0), samples.ratio(of, to, figure));
        }
    }

    /// The same for figures that do not vary, and may be 0: the best of ours is no more than the best crate's.
    pub fn least(&mut self, workload: &str) {
        let best = |kind| {
            let row = self.rows.iter().rfind(|row| row.workload == workload)?;
            let cells = row.cells.iter().filter(|cell| cell.who.kind == kind);
            let least = cells.min_by(|a, b| a.spread.median.total_cmp(&b.spread.median))?;
            Some((least.who.name.clone(), least.spread))
        };
        if let (Some((of, ours)), Some((to, theirs))) = (best(Kind::Ours), best(Kind::Crate)) {
            let what = format!("{workload}: {of}, beside the best crate, {to}");
            self.target(&what, Bound::AtMost(theirs.median), ours);
        }
    }

    /// Draws the comparison.
    pub fn draw(&mut self, workload: &str) {
        for row in self.rows.iter_mut().filter(|row| row.part == self.part && row.workload == workload) {
            row.is_drawn = true;
        }
    }

    /// All rows.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// All targets.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Prints every figure, every ratio and every target. The exit code says whether a target was missed, unless nothing was to
    /// be measured.
    #[must_use]
    pub fn finish(self, options: &Options) -> ExitCode {
        println!("{}", table::everything(&self));
        let missed = self.targets.iter().filter(|target| !target.is_met()).count();
        println!("{} of {} targets met", self.targets.len() - missed, self.targets.len());
        for target in self.targets.iter().filter(|target| !target.is_met()) {
            println!("missed: {}, asked {}, got {}", target.what, target.bound, table::short(target.got.median));
        }
        if options.bench && missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_met_at_the_bound() {
        let is_met = |bound, got| {
            let target = Target { what: String::new(), bound, got: Spread::exact(got) };
            target.is_met()
        };
        assert!(is_met(Bound::AtMost(1.5), 1.5) && !is_met(Bound::AtMost(1.5), 1.6));
        assert!(is_met(Bound::AtLeast(1.5), 1.5) && !is_met(Bound::AtLeast(1.5), 1.4));
    }

    #[test]
    fn the_least_of_ours_is_held_against_the_least_of_the_crates_even_if_that_is_nothing() {
        let mut report = Report::default();
        report.begin("memory");
        for (name, kind, value) in [
            ("ours", Kind::Ours, 49.0),
            ("ours, inline", Kind::Ours, 44.0),
            ("lists through its callers", Kind::Crate, 0.0),
            ("other", Kind::Crate, 25.0),
            ("floor", Kind::Floor, -1.0),
        ] {
            report.figure("heap", name, kind, "bytes", Spread::exact(value));
        }
        report.least("heap");
        let target = &report.targets()[0];
        assert_eq!(target.what, "memory: heap: ours, inline, beside the best crate, lists through its callers");
        assert_eq!((target.bound, target.got, target.is_met()), (Bound::AtMost(0.0), Spread::exact(44.0), false));
        assert_eq!(report.rows()[0].cells[1].ratio, Some(Spread::exact(44.0 / 49.0)));
    }
}

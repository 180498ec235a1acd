//! A report as lines of text, so that one program can tell another what it has found out.

use super::{Bound, Cell, Report, Row, Target};
use crate::contender::Kind;
use crate::rounds::{Spread, Who};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

const ROW: &str = "row";
const CELL: &str = "cell";
const TARGET: &str = "target";

/// Rows, each followed by its cells, and targets; words are set apart by tabs.
#[must_use]
pub fn write(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |words: &[&str]| text += &format!("{}\n", words.join("\t"));
    for row in &report.rows {
        line(&[ROW, &row.part, &row.workload, &row.unit, &row.is_drawn.to_string()]);
        for cell in &row.cells {
            let ratio = cell.ratio.map(three).unwrap_or_default();
            line(&[CELL, &cell.who.name, kind_name(cell.who.kind), &three(cell.spread), &ratio]);
        }
    }
    for target in &report.targets {
        let (word, bound) = match target.bound {
            Bound::AtMost(most) => ("most", most),
            Bound::AtLeast(least) => ("least", least),
        };
        line(&[TARGET, &target.what, word, &format!("{bound:?}"), &three(target.got)]);
    }
    text
}

/// Adds what these lines say to a report. `None` if they are not what [`write()`] writes.
#[must_use]
pub fn read(lines: &str, into: &mut Report) -> Option<()> {
    for line in lines.lines() {
        match *line.split('\t').collect::<Vec<_>>() {
            [ROW, part, workload, unit, is_drawn] => into.rows.push(Row {
                part: part.to_string(),
                workload: workload.to_string(),
                unit: unit.to_string(),
                cells: Vec::new(),
                is_drawn: is_drawn.parse().ok()?,
            }),
            [CELL, name, kind, spread, ratio] => {
                let kind =
                    [Kind::Ours, Kind::Crate, Kind::Floor].into_iter().find(|&known| kind_name(known) == kind)?;
                let ratio = if ratio.is_empty() { None } else { Some(spread_of(ratio)?) };
                let cell = Cell { who: Who::new(name, kind), spread: spread_of(spread)?, ratio };
                into.rows.last_mut()?.cells.push(cell);
            }
            [TARGET, what, word, bound, got] => {
                let bound = bound.parse().ok()?;
                let bound = if word == "most" { Bound::AtMost(bound) } else { Bound::AtLeast(bound) };
                into.targets.push(Target { what: what.to_string(), bound, got: spread_of(got)? });
            }
            _ => return None,
        }
    }
    Some(())
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Ours => "ours",
        Kind::Crate => "crate",
        Kind::Floor => "floor",
    }
}

fn three(Spread { low, median, high }: Spread) -> String {
    format!("{low:?} {median:?} {high:?}")
}

fn spread_of(text: &str) -> Option<Spread> {
    let numbers: Vec<f64> = text.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [low, median, high] = *numbers else { return None };
    Some(Spread { low, median, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut report = Report::default();
        report.begin("memory");
        report.figure("heap", "ours", Kind::Ours, "bytes", Spread { low: 0.1, median: 1.0 / 3.0, high: 7.0 });
        report.figure("heap", "floor", Kind::Floor, "bytes", Spread::exact(3.0));
        report.draw("heap");
        report.target("heap", Bound::AtMost(72.0), Spread::exact(0.3));
        report.target("throughput", Bound::AtLeast(1.5), Spread::exact(2.0));
        let mut again = Report::default();
        assert_eq!(read(&write(&report), &mut again), Some(()));
        assert_eq!((again.rows, again.targets), (report.rows, report.targets));
        assert_eq!(read("nonsense", &mut Report::default()), None);
    }
}

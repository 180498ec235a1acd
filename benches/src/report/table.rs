//! The tables: long ones for the terminal, with every ratio, and wide ones for a page.

use super::{Report, Row};
use crate::rounds::Spread;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

/// Every figure with its quartiles and its ratio, a line each, and every target.
#[must_use]
pub fn everything(report: &Report) -> String {
    let mut text = String::new();
    let figures: Vec<_> = report.rows().iter().flat_map(lines_of).collect();
    if !figures.is_empty() {
        let head = ["part", "workload", "contender", "median", "quartiles", "unit", "/ ours", "quartiles"];
        text += &markdown(&head.map(String::from), &figures);
    }
    text + &targets(report)
}

fn lines_of(row: &Row) -> impl Iterator<Item = Vec<String>> {
    row.cells.iter().map(|cell| {
        let (ratio, spread) = cell.ratio.map_or_else(Default::default, |ratio| (short(ratio.median), quartiles(ratio)));
        let median = short(cell.spread.median);
        [&row.part, &row.workload, &cell.who.name, &median, &quartiles(cell.spread), &row.unit, &ratio, &spread]
            .map(ToString::to_string)
            .to_vec()
    })
}

/// For each part a table with a row a workload and a column a contender, and then the targets. A cell is a median, and behind it the
/// multiple of the first of ours; one who could not take part has an empty cell.
#[must_use]
pub fn page(report: &Report) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for row in report.rows() {
        if !parts.contains(&&*row.part) {
            parts.push(&row.part);
        }
    }
    let mut text = String::new();
    for part in parts {
        let rows: Vec<&Row> = report.rows().iter().filter(|row| row.part == part).collect();
        text += &format!("## {part}\n\n{}", wide(&rows));
    }
    text + "## targets\n\n" + &targets(report)
}

fn wide(rows: &[&Row]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for cell in rows.iter().flat_map(|row| &row.cells) {
        if !names.contains(&&*cell.who.name) {
            names.push(&cell.who.name);
        }
    }
    let head: Vec<_> = ["workload", "unit"].iter().chain(&names).map(ToString::to_string).collect();
    let line = |row: &&Row| {
        let cells = names.iter().map(|name| {
            let cell = row.cells.iter().find(|cell| cell.who.name == *name);
            cell.map_or_else(String::new, |cell| match cell.ratio {
                Some(ratio) => format!("{} ({})", short(cell.spread.median), short(ratio.median)),
                None => short(cell.spread.median),
            })
        });
        [row.workload.clone(), row.unit.clone()].into_iter().chain(cells).collect()
    };
    markdown(&head, &rows.iter().map(line).collect::<Vec<_>>())
}

fn targets(report: &Report) -> String {
    let lines: Vec<_> = report
        .targets()
        .iter()
        .map(|target| {
            let verdict = if target.is_met() { "met" } else { "**missed**" };
            let (asked, got) = (target.bound.to_string(), short(target.got.median));
            [&*target.what, &asked, &got, &quartiles(target.got), verdict].map(String::from).to_vec()
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    markdown(&["target", "asked", "got", "quartiles", ""].map(String::from), &lines)
}

fn quartiles(Spread { low, high, .. }: Spread) -> String {
    if low == high { String::new() } else { format!("{} .. {}", short(low), short(high)) }
}

/// Three digits that count, and all of a whole number that a bound may be.
pub(super) fn short(value: f64) -> String {
    let digits = if value.abs() >= 100.0 || value.fract() == 0.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else if value.abs() >= 0.1 {
        2
    } else {
        4
    };
    format!("{value:.digits$}")
}

/// As Markdown, with columns that also line up where nobody renders it.
fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let width_of = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0).max(head[column].len());
    let widths: Vec<usize> = (0..head.len()).map(width_of).collect();
    let line = |cells: &[String]| {
        let cells: Vec<_> = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("|");
    let body: String = rows.iter().map(|row| line(row)).collect();
    format!("{}|{rule}|\n{body}\n", line(head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Kind;

    #[test]
    fn three_digits_count() {
        let shown = [0.0, 0.01234, 0.355, 1.278, 22.345, 1234.5, 72.0, -0.5].map(short);
        assert_eq!(shown, ["0", "0.0123", "0.35", "1.28", "22.3", "1234", "72", "-0.50"]);
    }

    #[test]
    fn one_who_did_not_take_part_has_an_empty_cell() {
        let mut report = Report::default();
        report.begin("threads");
        report.figure("numbers", "ours", Kind::Ours, "ns", Spread::exact(2.0));
        report.figure("text", "ours", Kind::Ours, "ns", Spread::exact(4.0));
        report.figure("text", "other", Kind::Crate, "ns", Spread::exact(8.0));
        let page = page(&report);
        assert!(page.contains("| numbers  | ns   | 2    |       |"), "{page}");
        assert!(page.contains("| text     | ns   | 4    | 8 (2) |"), "{page}");
    }
}

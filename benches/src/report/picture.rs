//! The picture: for each workload a bar for each contender, as a multiple of oneflight, on a logarithmic scale. To the right of
//! the line of oneflight are those that take longer, to the left those that take less.

use super::table::short;
use super::{Cell, Report, Row};
use crate::contender::Kind;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, IntoDrawingArea as _, IntoFont as _, PathElement, Rectangle, SVGBackend, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, RGBColor, WHITE};

const COLUMNS: usize = 3;
const COLUMN: i32 = 560;
const MARGIN: i32 = 20;
/// Above the columns: the heading, the legend and the scale.
const TOP: i32 = 96;
/// Within a column: names, then bars, then room for the figure behind the longest bar.
const NAMES: i32 = 130;
const BARS: i32 = 350;
const BAR: i32 = 14;
const TITLE: i32 = 20;
const GAP: i32 = 10;
const PART: i32 = 26;

/// What lies outside is cut off; the figure at the bar is not.
const SCALE: [f64; 2] = [0.1, 1_000.0];

const INK: RGBColor = RGBColor(30, 30, 30);
const GRID: RGBColor = RGBColor(215, 215, 215);
const OURS: RGBColor = RGBColor(31, 122, 77);
const CRATE: RGBColor = RGBColor(70, 110, 180);
const FLOOR: RGBColor = RGBColor(165, 165, 165);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the comparisons that are to be drawn. `None` if there are none.
///
/// # Panics
///
/// Never: nothing fails that is drawn into memory.
#[must_use]
pub fn draw(report: &Report, caption: &str) -> Option<String> {
    let groups: Vec<Group<'_>> = report.rows().iter().filter_map(Group::of).collect();
    if groups.is_empty() {
        return None;
    }
    let columns = columns(&groups);
    let height = columns.iter().map(|column| column.iter().map(Item::height).sum::<i32>()).max().unwrap_or(0);
    let size = (COLUMN * columns.len() as i32 + 2 * MARGIN, TOP + height + MARGIN + GAP);
    let mut picture = String::new();
    {
        let area = SVGBackend::with_string(&mut picture, (size.0 as u32, size.1 as u32)).into_drawing_area();
        area.fill(&WHITE).expect("it is drawn into memory");
        heading(&area, caption);
        for (number, items) in columns.iter().enumerate() {
            draw_column(&area, items, MARGIN + COLUMN * number as i32, size.1 - MARGIN);
        }
        area.present().expect("it is drawn into memory");
    }
    Some(picture)
}

/// A workload: its title, and a bar for each contender but the first of ours, which is the line.
struct Group<'a> {
    part: &'a str,
    title: String,
    bars: Vec<(&'a Cell, f64)>,
}

enum Item<'g, 'a> {
    Part(String),
    Group(&'g Group<'a>),
}

impl<'a> Group<'a> {
    fn of(row: &'a Row) -> Option<Self> {
        let ours = row.cells.iter().find(|cell| cell.who.kind == Kind::Ours)?;
        // Who does not coalesce does something else.
        let others = row.cells.iter().filter(|cell| !core::ptr::eq(*cell, ours) && cell.who.name != "no coalescing");
        let mut bars: Vec<_> = others.filter_map(|cell| Some((cell, cell.ratio?.median))).collect();
        bars.sort_by(|a, b| a.1.total_cmp(&b.1));
        let unit = row.unit.split(' ').next().unwrap_or("");
        let title = format!("{}: {} {} {unit}", row.workload, ours.who.name, short(ours.spread.median));
        (row.is_drawn && !bars.is_empty()).then_some(Self { part: &row.part, title, bars })
    }
}

impl Item<'_, '_> {
    fn height(&self) -> i32 {
        match self {
            Self::Part(_) => PART,
            Self::Group(group) => TITLE + BAR * group.bars.len() as i32 + GAP,
        }
    }
}

/// Groups in their order, in columns of about the same height, with the name of the part where one begins or goes on.
fn columns<'g, 'a>(groups: &'g [Group<'a>]) -> Vec<Vec<Item<'g, 'a>>> {
    let total: i32 = groups.iter().map(|group| Item::Group(group).height()).sum();
    let full = total / COLUMNS as i32;
    let (mut columns, mut height, mut part) = (vec![Vec::new()], 0, "");
    for group in groups {
        let item = Item::Group(group);
        let is_new = columns.len() < COLUMNS && height + item.height() / 2 > full;
        if is_new {
            columns.push(Vec::new());
            height = 0;
        }
        let column = columns.last_mut().expect("there is always one");
        if group.part != part {
            column.push(Item::Part(group.part.to_string()));
        } else if is_new {
            column.push(Item::Part(format!("{part}, continued")));
        }
        part = group.part;
        height += item.height();
        column.push(item);
    }
    columns
}

fn heading(area: &Area<'_>, caption: &str) {
    text(
        area,
        "Time as a multiple of oneflight's: to the right slower, to the left faster",
        (MARGIN, 22),
        18,
        HPos::Left,
    );
    text(area, &format!("medians of interleaved rounds; {caption}"), (MARGIN, 44), 12, HPos::Left);
    let mut x = MARGIN;
    for (color, what) in [(OURS, "oneflight"), (CRATE, "other crates"), (FLOOR, "hand-written")] {
        rectangle(area, [(x, 57), (x + 12, 69)], color);
        text(area, what, (x + 18, 63), 12, HPos::Left);
        x += 130;
    }
}

fn draw_column(area: &Area<'_>, items: &[Item<'_, '_>], left: i32, bottom: i32) {
    let bars = left + NAMES;
    let mut power = SCALE[0];
    while power <= SCALE[1] {
        let x = bars + place(power);
        let color = if power == 1.0 { OURS } else { GRID };
        let line = PathElement::new(vec![(x, TOP - 6), (x, bottom)], color.stroke_width(1));
        area.draw(&line).expect("it is drawn into memory");
        text(area, &format!("{power}x"), (x, TOP - 14), 11, HPos::Center);
        // By division: the powers stay exact.
        power = (power * 10.0 * 10.0).round() / 10.0;
    }
    let mut y = TOP;
    for item in items {
        match item {
            Item::Part(name) => text(area, name, (left, y + PART / 2), 15, HPos::Left),
            Item::Group(group) => {
                // The grid stays behind the words.
                rectangle(area, [(left, y + 2), (left + COLUMN - GAP, y + TITLE - 2)], WHITE);
                text(area, &group.title, (left, y + TITLE / 2), 12, HPos::Left);
                for (number, (cell, ratio)) in group.bars.iter().enumerate() {
                    bar(area, cell, *ratio, (bars, y + TITLE + BAR * number as i32));
                }
            }
        }
        y += item.height();
    }
}

fn bar(area: &Area<'_>, cell: &Cell, ratio: f64, (x, y): (i32, i32)) {
    let color = match cell.who.kind {
        Kind::Ours => OURS,
        Kind::Crate => CRATE,
        Kind::Floor => FLOOR,
    };
    let (one, end) = (x + place(1.0), x + place(ratio));
    text(area, &cell.who.name, (x - 6, y + BAR / 2), 11, HPos::Right);
    rectangle(area, [(one.min(end), y + 2), (one.max(end), y + BAR - 2)], color);
    text(area, &format!("{}x", short(ratio)), (one.max(end) + 4, y + BAR / 2), 11, HPos::Left);
}

/// How far to the right of the beginning of the scale a ratio is.
fn place(ratio: f64) -> i32 {
    let part = (ratio.clamp(SCALE[0], SCALE[1]) / SCALE[0]).log10() / (SCALE[1] / SCALE[0]).log10();
    (part * f64::from(BARS)).round() as i32
}

fn rectangle(area: &Area<'_>, corners: [(i32, i32); 2], color: RGBColor) {
    area.draw(&Rectangle::new(corners, color.filled())).expect("it is drawn into memory");
}

fn text(area: &Area<'_>, words: &str, at: (i32, i32), size: i32, side: HPos) {
    let style = ("sans-serif", size).into_font().color(&INK).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(words, at, style)).expect("it is drawn into memory");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::Spread;

    fn report(workloads: usize) -> Report {
        let mut report = Report::default();
        report.begin("threads");
        for workload in 0..workloads {
            let name = format!("workload {workload}");
            report.figure(&name, "oneflight", Kind::Ours, "ns a call", Spread::exact(20.0));
            report.figure(&name, "another", Kind::Crate, "ns a call", Spread::exact(200.0));
            report.figure(&name, "floor", Kind::Floor, "ns a call", Spread::exact(10.0));
            report.draw(&name);
        }
        report
    }

    #[test]
    fn every_contender_but_the_line_has_a_bar_and_a_figure() {
        let picture = draw(&report(7), "a machine").expect("there is something to draw");
        assert_eq!(picture.matches("10x\n").count() - COLUMNS, 7, "{picture}");
        assert_eq!((picture.matches("another\n").count(), picture.matches("floor\n").count()), (7, 7));
        assert_eq!(picture.matches("oneflight 20 ns").count(), 7);
        assert!(draw(&Report::default(), "a machine").is_none());
    }

    #[test]
    fn columns_are_of_about_the_same_height() {
        let report = report(30);
        let groups: Vec<Group<'_>> = report.rows().iter().filter_map(Group::of).collect();
        let heights: Vec<i32> = columns(&groups).iter().map(|items| items.iter().map(Item::height).sum()).collect();
        assert_eq!(heights.len(), COLUMNS);
        let spread = heights.iter().max().expect("three") - heights.iter().min().expect("three");
        assert!(spread <= 2 * Item::Group(&groups[0]).height(), "{heights:?}");
    }

    #[test]
    fn the_scale_is_logarithmic_and_ends() {
        assert_eq!([0.01, 0.1, 1.0, 1_000.0, 5_000.0].map(place), [0, 0, BARS / 4 + 1, BARS, BARS]);
    }
}

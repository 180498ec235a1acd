//! The result as an SVG picture for a README: a panel for each way, all with the same axes.

use core::fmt::{Display, Write as _};
use core::time::Duration;

use crate::catalogue::PRODUCTS;
use crate::measure::{Figures, Run};
use crate::options::Options;
use crate::report::{count, milliseconds};
use crate::schedule::Schedule;

const WIDTH: f64 = 960.0;
const HEADER: f64 = 96.0;
const PANEL: f64 = 200.0;
const FOOTER: f64 = 24.0;
// The plot within a panel; the figures stand to the right of it.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 690.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 176.0;
const FIGURES: f64 = 722.0;

const INK: &str = "#1f2328";
const MUTED: &str = "#656d76";
const GRID: &str = "#e4e8ec";
const COLOURS: [&str; 5] = ["#cf3a3a", "#1a7f52", "#2a66c8", "#8a4fbf", "#b86a00"];

/// Draws the picture.
pub(crate) fn svg(options: &Options, schedule: &Schedule, runs: &[Run], figures: &[Figures]) -> String {
    let length = runs.iter().map(Run::length).fold(options.seconds, Duration::max);
    let slot = Duration::from_secs_f64(round_step(length.as_secs_f64() / 120.0));
    let slots = length.div_duration_f64(slot).ceil() as usize;
    let timelines: Vec<_> = runs.iter().map(|run| run.timeline(slot, slots)).collect();
    let peak = timelines.iter().flatten().max().copied().unwrap_or_default();
    let axes = Axes { seconds: slots as f64 * slot.as_secs_f64(), peak: f64::from(peak.max(1)) * 1.04 };

    let height = HEADER + PANEL * runs.len() as f64 + FOOTER;
    let mut picture = Picture(String::new());
    picture.line(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif">"#
    ));
    picture.line(format_args!("<title>Database queries over time, by way of protecting a cache</title>"));
    // A card of its own colour, so that it can be read on a light page and on a dark one.
    picture.line(format_args!(
        r##"<rect x="0.5" y="0.5" width="{}" height="{}" rx="10" fill="#ffffff" stroke="#d0d7de"/>"##,
        WIDTH - 1.0,
        height - 1.0
    ));
    header(&mut picture, options, schedule, slot);
    for (number, (run, timeline)) in runs.iter().zip(&timelines).enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        picture.line(format_args!(r#"<g transform="translate(0 {})">"#, HEADER + PANEL * number as f64));
        picture.text(LEFT, 22.0, &Font { size: 16, weight: 600, colour, anchor: "start" }, run.title);
        plot(&mut picture, &axes, timeline, slot, colour);
        key_figures(&mut picture, &figures[number], colour);
        picture.line(format_args!("</g>"));
    }
    let foot = HEADER + PANEL * (runs.len() as f64 - 1.0) + BOTTOM;
    time_axis(&mut picture, &axes, foot);
    picture.line(format_args!("</svg>"));
    picture.0
}

fn header(picture: &mut Picture, options: &Options, schedule: &Schedule, slot: Duration) {
    let title = Font { size: 21, weight: 700, colour: INK, anchor: "start" };
    picture.text(32.0, 42.0, &title, "Database queries when cached pages expire");
    let setting = format!(
        "{} requests/s from {} threads to {} of {} products in SQLite. A page is cached for {} s.",
        count(options.rate as usize),
        options.threads,
        count(options.keys as usize),
        count(PRODUCTS as usize),
        options.ttl.as_secs_f64(),
    );
    picture.text(32.0, 65.0, &Font::MUTED, setting);
    let reading = format!(
        "Bars: queries begun in each {} s, on the same scale for all. Hot: the {} pages that get half of the requests.",
        slot.as_secs_f64(),
        schedule.hot.len(),
    );
    picture.text(32.0, 84.0, &Font::MUTED, reading);
}

fn plot(picture: &mut Picture, axes: &Axes, timeline: &[u32], slot: Duration, colour: &str) {
    let labels = Font { anchor: "end", ..Font::MUTED };
    for tick in axes.ticks(axes.peak, 3.0) {
        let y = axes.y(tick);
        picture.line(format_args!(r#"<path d="M{LEFT} {y:.1}H{RIGHT}" stroke="{GRID}"/>"#));
        picture.text(LEFT - 8.0, y + 4.0, &labels, tick);
    }
    // One path for all bars: a fifth of the size of one element each.
    let mut bars = String::new();
    for (number, &queries) in timeline.iter().enumerate().filter(|(_, queries)| **queries > 0) {
        let start = axes.x(slot.as_secs_f64() * number as f64);
        let width = axes.x(slot.as_secs_f64()) - LEFT - 0.6;
        // A single query must be seen beside a stampede.
        let height = (BOTTOM - axes.y(f64::from(queries))).max(2.0);
        let _ = write!(bars, "M{start:.1} {BOTTOM}v-{height:.1}h{width:.1}v{height:.1}z");
    }
    picture.line(format_args!(r#"<path d="{bars}" fill="{colour}"/>"#));
    picture.line(format_args!(r##"<path d="M{LEFT} {BOTTOM}H{RIGHT}" stroke="#8c959f"/>"##));
}

fn key_figures(picture: &mut Picture, way: &Figures, colour: &str) {
    let big = Font { size: 38, weight: 700, colour, anchor: "start" };
    picture.text(FIGURES, 66.0, &big, format_args!("{:.2}", way.queries_per_expiry_mean));
    picture.text(FIGURES, 87.0, &Font { colour: INK, ..Font::MUTED }, "queries per expiry of a hot page");
    let value = Font { weight: 600, colour: INK, anchor: "end", ..Font::MUTED };
    let rows = [
        ("database queries", count(way.queries)),
        ("most at once", count(way.most_queries_at_once)),
        ("waited at an expiry", count(way.waited_at_expiry)),
        ("latency p99", milliseconds(way.p99_ms)),
    ];
    for ((label, figure), number) in rows.into_iter().zip(0_u8..) {
        let y = 115.0 + 20.0 * f64::from(number);
        picture.text(FIGURES, y, &Font::MUTED, label);
        picture.text(WIDTH - 32.0, y, &value, figure);
    }
}

fn time_axis(picture: &mut Picture, axes: &Axes, y: f64) {
    let labels = Font { anchor: "middle", ..Font::MUTED };
    for tick in axes.ticks(axes.seconds, 8.0) {
        let x = axes.x(tick);
        picture.line(format_args!(r##"<path d="M{x:.1} {y}v5" stroke="#8c959f"/>"##));
        picture.text(x, y + 20.0, &labels, format_args!("{tick} s"));
    }
}

/// From values to places.
struct Axes {
    seconds: f64,
    peak: f64,
}

impl Axes {
    fn x(&self, seconds: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * seconds / self.seconds
    }

    fn y(&self, queries: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * queries / self.peak
    }

    /// Round numbers from 0 to `end`, about as many as wanted.
    fn ticks(&self, end: f64, wanted: f64) -> impl Iterator<Item = f64> + use<> {
        let step = round_step(end / wanted);
        (0..).map(move |number| f64::from(number) * step).take_while(move |tick| *tick <= end)
    }
}

/// The next of 1, 2, 5, 10, 20, 50 and so on (and of 0.5, 0.2, 0.1).
fn round_step(least: f64) -> f64 {
    let magnitude = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * magnitude >= least);
    factor.unwrap_or(10.0) * magnitude
}

struct Font<'a> {
    size: u8,
    weight: u16,
    colour: &'a str,
    anchor: &'a str,
}

impl Font<'_> {
    const MUTED: Font<'static> = Font { size: 13, weight: 400, colour: MUTED, anchor: "start" };
}

struct Picture(String);

impl Picture {
    fn line(&mut self, element: core::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{element}");
    }

    fn text(&mut self, x: f64, y: f64, font: &Font<'_>, text: impl Display) {
        let text = text.to_string().replace('&', "&amp;").replace('<', "&lt;");
        let Font { size, weight, colour, anchor } = font;
        self.line(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" font-weight="{weight}" fill="{colour}" text-anchor="{anchor}">{text}</text>"#
        ));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::lives::Generation;
    use crate::measure::Query;

    fn draw(titles: &[&'static str], queries: u64) -> String {
        let options = Options::parse_from(["stampede", "--seconds", "10"]);
        let schedule = Schedule::new(1, 10, options.seconds, 5);
        let run = |title: &&'static str| Run {
            name: "test",
            title,
            requests: Vec::new(),
            queries: (0..queries)
                .map(|number| Query {
                    product: 1,
                    seen: Generation(1),
                    begun: Duration::from_millis(100 * number),
                    ended: Duration::from_millis(100 * number + 1),
                })
                .collect(),
        };
        let runs: Vec<Run> = titles.iter().map(run).collect();
        let figures: Vec<Figures> = runs.iter().map(|run| Figures::of(run, &schedule.hot)).collect();
        svg(&options, &schedule, &runs, &figures)
    }

    #[test]
    fn the_picture_is_well_formed_and_has_a_panel_for_each_way() {
        let svg = draw(&["One", "R&D <b>"], 50);
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        assert!(document.root_element().has_tag_name(("http://www.w3.org/2000/svg", "svg")));
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"One") && texts.contains(&"R&D <b>"), "{texts:?}");
        let figures = |node: &roxmltree::Node<'_, '_>| node.text() == Some("queries per expiry of a hot page");
        assert_eq!(document.descendants().filter(|node| node.is_text() && figures(node)).count(), 2);
    }

    #[test]
    fn a_run_without_queries_still_gives_a_picture() {
        let svg = draw(&["One"], 0);
        assert!(roxmltree::Document::parse(&svg).is_ok());
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn every_bar_lies_within_its_plot() {
        let svg = draw(&["One"], 100);
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        let bars =
            document.descendants().find(|node| node.attribute("fill") == Some(COLOURS[0]) && node.has_tag_name("path"));
        let bars = bars.and_then(|node| node.attribute("d")).expect("has bars");
        assert_eq!(bars.matches('M').count(), 100);
        for bar in bars.split('M').skip(1) {
            let start: f64 = bar.split(' ').next().and_then(|x| x.parse().ok()).expect("a number");
            assert!((LEFT..RIGHT).contains(&start), "{bar}");
        }
    }

    #[test]
    fn steps_are_round() {
        for (least, step) in [(0.07, 0.1), (0.1, 0.1), (1.1, 2.0), (21.0, 50.0), (51.0, 100.0)] {
            assert!((round_step(least) / step - 1.0).abs() < 1e-9, "{least}: {}", round_step(least));
        }
    }
}

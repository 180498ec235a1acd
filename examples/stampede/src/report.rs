//! The figures for people and for scripts, and progress meanwhile.

use core::fmt::Write as _;
use core::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::catalogue::PRODUCTS;
use crate::chart;
use crate::measure::{Figures, Run};
use crate::options::Options;
use crate::schedule::Schedule;

const CHART_COLUMNS: u32 = 72;

/// A progress bar on standard error; nothing if that is not a terminal.
pub(crate) fn progress(name: &'static str, steps: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:>9} [{bar:40}] {human_pos} of {human_len}, {elapsed}")
        .expect("the template is valid")
        .progress_chars("=> ");
    ProgressBar::new(steps as u64).with_style(style).with_prefix(name)
}

/// The figures as one line of JSON.
pub(crate) fn json(ways: &[Figures]) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Report<'a> {
        ways: &'a [Figures],
    }
    Ok(serde_json::to_string(&Report { ways })? + "\n")
}

/// The figures as a table with a column for each way, and a chart of each.
pub(crate) fn text(options: &Options, schedule: &Schedule, runs: &[Run], figures: &[Figures]) -> String {
    let mut text = format!(
        "{} products in SQLite, {} of them asked for {} times a second by {} threads.\n\
         A page is cached for {} s. The {} hottest pages get half of the requests. Seed {}.\n\n",
        count(PRODUCTS as usize),
        count(options.keys as usize),
        count(options.rate as usize),
        options.threads,
        options.ttl.as_secs_f64(),
        schedule.hot.len(),
        options.seed,
    );
    table(&mut text, runs, figures);
    charts(&mut text, options, runs);
    for run in runs {
        if let Some(error) = run.requests.iter().find_map(|request| request.error.as_ref()) {
            let _ = writeln!(text, "\n{}: the first failed request: {error}", run.title);
        }
    }
    if figures.iter().all(|way| way.expiries == 0) {
        text.push_str("\nNo hot page expired and was asked for again: make --seconds longer than --ttl.\n");
    }
    text
}

fn table(text: &mut String, runs: &[Run], figures: &[Figures]) {
    let mut row = |label: &str, cells: Vec<String>| {
        let _ = write!(text, "{label:<36}");
        for cell in cells {
            let _ = write!(text, "{cell:>17}");
        }
        text.push('\n');
    };
    row("", runs.iter().map(|run| run.title.to_owned()).collect());
    let mut figure = |label, cell: &dyn Fn(&Figures) -> String| row(label, figures.iter().map(cell).collect());
    figure("requests", &|way| count(way.requests));
    figure("failed requests", &|way| count(way.failed));
    figure("database queries", &|way| count(way.queries));
    figure("expiries of hot pages", &|way| count(way.expiries));
    figure("queries per expiry, mean", &|way| format!("{:.2}", way.queries_per_expiry_mean));
    figure("queries per expiry, worst", &|way| count(way.queries_per_expiry_max));
    figure("most queries at once, all pages", &|way| count(way.most_queries_at_once));
    figure("requests that waited at an expiry", &|way| count(way.waited_at_expiry));
    figure("latency, p50", &|way| milliseconds(way.p50_ms));
    figure("latency, p99", &|way| milliseconds(way.p99_ms));
    figure("latency, max", &|way| milliseconds(way.max_ms));
}

fn charts(text: &mut String, options: &Options, runs: &[Run]) {
    // The same axes for all, or the eye could not compare them.
    let length = runs.iter().map(Run::length).fold(options.seconds, Duration::max);
    let slot = length / CHART_COLUMNS;
    let timelines: Vec<_> = runs.iter().map(|run| run.timeline(slot, CHART_COLUMNS as usize)).collect();
    let peak = timelines.iter().flatten().max().copied().unwrap_or_default();
    for (run, timeline) in runs.iter().zip(&timelines) {
        let _ = write!(text, "\n{}: queries begun in each {:.2} s\n", run.title, slot.as_secs_f64());
        text.push_str(&chart::bars(timeline, peak));
    }
    let end = format!("{:.0} s", length.as_secs_f64());
    let width = CHART_COLUMNS as usize;
    let _ = writeln!(text, "{:>8}└{}\n{:>9}0 s{end:>pad$}", "", "─".repeat(width), "", pad = width - 3);
}

/// A number with a comma after the thousands.
pub(crate) fn count(number: usize) -> String {
    HumanCount(number as u64).to_string()
}

/// A latency with as many digits as are of interest.
pub(crate) fn milliseconds(milliseconds: f64) -> String {
    match milliseconds {
        ..10.0 => format!("{milliseconds:.2} ms"),
        ..1000.0 => format!("{milliseconds:.0} ms"),
        _ => format!("{:.2} s", milliseconds / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &'static str) -> Figures {
        Figures {
            name,
            requests: 32_000,
            failed: 0,
            queries: 2_000,
            expiries: 8,
            queries_per_expiry_mean: 47.25,
            queries_per_expiry_max: 64,
            most_queries_at_once: 64,
            waited_at_expiry: 3_000,
            p50_ms: 0.1,
            p99_ms: 640.5,
            max_ms: 1_000.0,
        }
    }

    #[test]
    fn the_json_is_one_line_of_the_documented_shape() {
        let json =
            json(&[figures("none"), figures("flight"), figures("early")]).expect("figures have no key that JSON lacks");
        let way = |name| {
            format!(
                "{{\"name\":\"{name}\",\"requests\":32000,\"failed\":0,\"queries\":2000,\"expiries\":8,\
                 \"queries_per_expiry_mean\":47.25,\"queries_per_expiry_max\":64,\"most_queries_at_once\":64,\
                 \"waited_at_expiry\":3000,\"p50_ms\":0.1,\"p99_ms\":640.5,\"max_ms\":1000.0}}"
            )
        };
        assert_eq!(json, format!("{{\"ways\":[{},{},{}]}}\n", way("none"), way("flight"), way("early")));
    }

    #[test]
    fn the_table_has_a_column_for_each_way() {
        let run = |title| Run { name: "test", title, requests: Vec::new(), queries: Vec::new() };
        let mut text = String::new();
        table(&mut text, &[run("One"), run("Other")], &[figures("one"), figures("other")]);
        assert!(text.starts_with(&format!("{:36}{:>17}{:>17}\n", "", "One", "Other")), "{text}");
        let mean = text.lines().find(|line| line.starts_with("queries per expiry, mean"));
        assert_eq!(mean.map(|line| line.matches("47.25").count()), Some(2));
    }

    #[test]
    fn latencies_are_short() {
        assert_eq!(milliseconds(0.123), "0.12 ms");
        assert_eq!(milliseconds(123.4), "123 ms");
        assert_eq!(milliseconds(1234.5), "1.23 s");
    }
}

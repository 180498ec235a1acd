//! The program as its users and their scripts meet it.

mod support;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::story;
use tempfile::TempDir;

// Slow enough for a debug build, in which SQLite is not optimised either.
const SMALL: [&str; 10] = ["--threads", "16", "--rate", "300", "--keys", "3", "--ttl", "0.5", "--seconds", "1.5"];

fn stampede(arguments: &[&str], temporary: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stampede"))
        .args(arguments)
        .env("TMPDIR", temporary)
        .output()
        .expect("the program starts")
}

fn figure<'a>(way: &'a Value, name: &str) -> &'a Value {
    way.get(name).unwrap_or_else(|| panic!("{way} has no {name}"))
}

fn number(way: &Value, name: &str) -> f64 {
    figure(way, name).as_f64().unwrap_or_else(|| panic!("{name} of {way} is not a number"))
}

/// The ways in the JSON of a run that must succeed.
fn ways(arguments: &[&str], temporary: &Path) -> Vec<Value> {
    let output = stampede(arguments, temporary);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Nothing but the JSON: it would not parse otherwise.
    let report: Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    figure(&report, "ways").as_array().expect("a list of ways").clone()
}

fn every_expiry_costs_exactly_one_query(api: &str) {
    let temporary = TempDir::new().expect("a temporary directory");
    let picture = TempDir::new().expect("a temporary directory");
    let file = picture.path().join("picture.svg");
    let mut arguments = SMALL.to_vec();
    arguments.extend(["--api", api, "--json", "--svg", file.to_str().expect("UTF-8")]);
    let tell = || {
        let ways: [Value; 4] = ways(&arguments, temporary.path()).try_into().expect("four ways");
        for way in &ways {
            let none = &ways[0];
            assert_eq!(number(way, "failed"), 0.0, "{way}");
            assert_eq!(number(way, "requests"), number(none, "requests"), "not the same traffic: {way}, {none}");
            // The hottest page, cached for 0.31 s at first, is asked for all the time until 1.5 s.
            assert!(number(way, "expiries") >= 1.0, "{way}");
            assert!(number(way, "most_queries_at_once") >= 1.0, "{way}");
            assert!(number(way, "queries") >= number(way, "expiries"), "{way}");
            assert!(number(way, "p50_ms") <= number(way, "p99_ms"), "{way}");
            assert!(number(way, "p99_ms") <= number(way, "max_ms"), "{way}");
        }
        ways
    };
    story(tell, |[none, flight, early, stale]| {
        let queries = |way| ["queries_per_expiry_mean", "queries_per_expiry_max"].map(|name| number(way, name));
        let waited = |way| number(way, "waited_at_expiry");
        let share = [flight, early, stale].into_iter().all(|way| queries(way) == [1.0, 1.0]);
        let wait = [none, flight].into_iter().all(|way| waited(way) >= number(way, "expiries"));
        // With early refresh that is likely, and no more: a query of a debug build takes long for so short a life.
        let nobody_waits = waited(stale) == 0.0;
        let is_as_it_should_be =
            share && wait && nobody_waits && queries(none).into_iter().all(|queries| queries >= 1.0);
        !is_as_it_should_be
    });

    let svg = std::fs::read_to_string(&file).expect("the picture is there");
    assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
    let left_behind: Vec<_> = std::fs::read_dir(temporary.path()).expect("is readable").collect();
    assert!(left_behind.is_empty(), "{left_behind:?}");
}

#[test]
fn with_threads_every_expiry_costs_exactly_one_query() {
    every_expiry_costs_exactly_one_query("sync");
}

#[test]
fn with_tasks_every_expiry_costs_exactly_one_query() {
    every_expiry_costs_exactly_one_query("async");
}

#[test]
fn strategy_says_which_ways_are_compared() {
    let temporary = TempDir::new().expect("a temporary directory");
    for (strategy, names) in [
        (&[] as &[&str], &["none", "flight", "early", "stale"] as &[&str]),
        (&["--strategy", "all"], &["none", "flight", "early", "stale"]),
        (&["--strategy", "none"], &["none"]),
        (&["--strategy", "flight"], &["flight"]),
        (&["--strategy", "early", "--api", "async"], &["early"]),
        (&["--strategy", "stale"], &["stale"]),
    ] {
        let tiny = ["--threads", "2", "--rate", "50", "--keys", "2", "--seconds", "0.1", "--json"];
        let ways = ways(&[&tiny, strategy].concat(), temporary.path());
        assert!(ways.iter().map(|way| figure(way, "name")).eq(names), "{strategy:?}: {ways:?}");
    }
}

#[test]
fn nonsense_ends_with_a_message_and_exit_code_2() {
    let temporary = TempDir::new().expect("a temporary directory");
    for (arguments, word) in [
        (["--api", "none"], "--api"),
        (["--strategy", "sync"], "--strategy"),
        (["--threads", "0"], "--threads"),
        (["--ttl", "0"], "--ttl"),
        (["--keys", "50001"], "--keys"),
        (["--svg", "no/such/directory/picture.svg"], "--svg"),
    ] {
        let output = stampede(&arguments, temporary.path());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(word) && !message.contains("panicked"), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

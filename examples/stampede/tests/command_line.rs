//! The program as its users and their scripts meet it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
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

#[test]
fn with_either_group_every_expiry_costs_exactly_one_query() {
    let temporary = TempDir::new().expect("a temporary directory");
    let picture = TempDir::new().expect("a temporary directory");
    let file = picture.path().join("picture.svg");
    let mut arguments = SMALL.to_vec();
    arguments.extend(["--api", "all", "--json", "--svg", file.to_str().expect("UTF-8")]);
    let ways = ways(&arguments, temporary.path());
    let [none, coalesced @ ..] = ways.as_slice() else { panic!("no way at all") };

    for way in &ways {
        assert_eq!(number(way, "failed"), 0.0, "{way}");
        assert_eq!(number(way, "requests"), number(none, "requests"), "not the same traffic: {way}, {none}");
        // The hottest page, cached for 0.31 s at first, is asked for all the time until 1.5 s.
        assert!(number(way, "expiries") >= 1.0, "{way}");
        assert!(number(way, "most_queries_at_once") >= 1.0, "{way}");
        assert!(number(way, "queries") >= number(way, "expiries"), "{way}");
        assert!(number(way, "waited_at_expiry") >= number(way, "expiries"), "{way}");
        assert!(number(way, "p50_ms") <= number(way, "p99_ms"), "{way}");
        assert!(number(way, "p99_ms") <= number(way, "max_ms"), "{way}");
    }

    assert_eq!(coalesced.len(), 2);
    for way in coalesced {
        for name in ["queries_per_expiry_mean", "queries_per_expiry_max"] {
            assert_eq!(number(way, name), 1.0, "{way}");
            assert!(number(none, name) >= 1.0, "{none}");
        }
    }

    let svg = std::fs::read_to_string(&file).expect("the picture is there");
    assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
    let left_behind: Vec<_> = std::fs::read_dir(temporary.path()).expect("is readable").collect();
    assert!(left_behind.is_empty(), "{left_behind:?}");
}

#[test]
fn api_says_which_ways_are_compared() {
    let temporary = TempDir::new().expect("a temporary directory");
    for (api, names) in [
        (&[] as &[&str], &["none", "sync"] as &[&str]),
        (&["--api", "sync"], &["none", "sync"]),
        (&["--api", "async"], &["none", "async"]),
        (&["--api", "all"], &["none", "sync", "async"]),
    ] {
        let tiny = ["--threads", "2", "--rate", "50", "--keys", "2", "--seconds", "0.1", "--json"];
        let ways = ways(&[&tiny, api].concat(), temporary.path());
        assert!(ways.iter().map(|way| figure(way, "name")).eq(names), "{api:?}: {ways:?}");
    }
}

#[test]
fn nonsense_ends_with_a_message_and_exit_code_2() {
    let temporary = TempDir::new().expect("a temporary directory");
    for (arguments, word) in [
        (["--api", "none"], "--api"),
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

//! A group on one thread, step by step, against a reference that says who has to get what: sequences of operations from a seed,
//! shrunk to the few that matter.
//!
//! A test run takes the same few hundred sequences each time. `ONEFLIGHT_FUZZ_SECONDS` makes it go on with others for so long,
//! from the seed `ONEFLIGHT_FUZZ_SEED` on.

mod operation;
mod reference;
mod subject;
mod work;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

#[test]
fn a_group_does_what_the_reference_says() {
    let seed = number("ONEFLIGHT_FUZZ_SEED").unwrap_or(1);
    let Some(seconds) = number("ONEFLIGHT_FUZZ_SECONDS") else { return check(seed, 400) };
    let (begun, time) = (Instant::now(), Duration::from_secs(seconds));
    let mut told = begun;
    let mut seeds = seed..;
    while begun.elapsed() < time {
        check(seeds.next().expect("there are enough seeds"), 2_000);
        if told.elapsed() > Duration::from_secs(60) {
            told = Instant::now();
            println!(
                "{} min: seeds {seed} to {}, 2000 sequences each",
                begun.elapsed().as_secs() / 60,
                seeds.start - 1
            );
        }
    }
    println!("seeds {seed} to {}, 2000 sequences each: clean", seeds.start - 1);
}

/// Tries so many sequences.
fn check(seed: u64, cases: u32) {
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 100_000,
        ..Config::default()
    };
    let tried = TestRunner::new(config).run(&operation::sequence(), |operations| {
        // A panic of the group's is a finding like any other.
        let run = catch_unwind(AssertUnwindSafe(|| subject::run(&operations)));
        run.unwrap_or_else(|_| Err(TestCaseError::fail("a panic outside of all works")))
    });
    if let Err(TestError::Fail(reason, operations)) = tried {
        let lines: Vec<String> = operations.iter().map(|operation| format!("    {operation:?}")).collect();
        panic!("seed {seed}: {reason}\nminimal failing sequence:\n{}", lines.join("\n"));
    }
    tried.expect("all sequences were tried");
}

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

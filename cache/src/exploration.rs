//! Every sequence of steps of a few calls of one key, on the [`Cache`](crate::Cache) that ships, with its store in memory.
//!
//! What a cache in memory does between two waits it does under locks, in one step as far as others can tell (that this is so, the
//! loom models check). All that it ever waits for are loaders. So the steps that matter are few: a call begins, a loader ends in
//! one way or another, whoever was woken is polled, a call is dropped, the key is written, time goes on. All sequences of these
//! are run, each from a new cache on, as deep as there is anything left to do. Loaders wait for the explorer's word, the clock is its
//! own, and the policy needs no luck. A task is polled when it was woken, and not before, so that a wake-up that is lost shows.
//!
//! Beside it runs the [`Oracle`](oracle::Oracle), which knows what must come of each step:
//!
//! 1. No call gets, and the store never holds, what was loaded before a write that had returned by then.
//! 2. What is in the store is what was put, or loaded last and not void, with its times.
//! 3. One loader at a time, but beside a flight that a write has made void; none where there is a value that will do.
//! 4. Each call gets the value, the old value, the error or the panic that is due to it, told from the right source.
//! 5. As long as nobody is woken, each who waits has a loader to wait for that has not ended.
//! 6. Nothing is served after its end, but by the settings that allow it, and as long as they do.
//! 7. As many flights are on as there are loads, and at the end nothing is: no flight, no mark, no memory of a key but its back-off;
//!    and the statistics are right.
//!
//! The [`blocking::Cache`](crate::blocking::Cache) goes the same way, with a [thread](threads) for each call and fewer steps: threads
//! need nobody to poll them, and are not dropped.
//!
//! With `EXPLORE_FURTHER` in the environment there is more of everything, as `ci/explore.sh` runs it; that takes minutes, and a build
//! for release. `ci/explore.sh mutants` shows that faults are found.

mod oracle;
mod rules;
mod search;
mod site;
mod threads;
mod world;

use rules::{Budget, Rules};
use search::{Subject, explore, shortest};
use threads::Threads;
use world::World;

const NOTHING: Budget = Budget { reads: 0, asks: 0, writes: 0, ticks: 0, drops: 0, odd: 0, pokes: 0 };

const RULES: Rules = Rules {
    early: false,
    spawner: false,
    stale_while_revalidate: false,
    stale_if_error: false,
    coalescing: true,
    is_cached: false,
    budget: NOTHING,
    depth: usize::MAX,
};

/// There is a value, and each read of it in the second half of its life would refresh it.
const EARLY: Rules = Rules { early: true, is_cached: true, ..RULES };

/// Nothing goes wrong, within the first budget or, if there is time for it, the second.
#[track_caller]
fn assert_sound(name: &str, rules: Rules, budgets: [Budget; 2]) {
    assert_subject_sound::<World>(name, rules, budgets);
}

#[track_caller]
fn assert_subject_sound<S: Subject>(name: &str, rules: Rules, budgets: [Budget; 2]) {
    let budget = budgets[usize::from(std::env::var_os("EXPLORE_FURTHER").is_some())];
    let rules = Rules { budget, ..rules };
    let found = explore::<S>(&rules);
    if let Some(fault) = found.fault {
        let fault = shortest::<S>(&rules).unwrap_or(fault);
        panic!("{name}: {} after {:?}", fault.what, fault.steps);
    }
    let (sequences, steps, seen) = (found.sequences, found.steps, found.seen);
    println!(
        "explored: memory, {name}: {budget}: {sequences} sequences, {steps} steps; {} joined, {} void, {} failed, {} refreshes",
        seen.joins, seen.invalidated, seen.load_errors, seen.refreshes
    );
    let has_happened = [
        sequences > 300,
        seen.joins > 0 || !rules.coalescing,
        seen.invalidated > 0 || budget.writes == 0,
        seen.load_errors > 0 || budget.odd == 0,
        seen.refreshes > 0 || !(rules.early || rules.stale_while_revalidate),
    ];
    assert_eq!(has_happened, [true; 5], "{name}: this is not what was to be explored");
}

#[test]
fn exploration_of_loads_and_writes() {
    let near = Budget { reads: 3, writes: 1, odd: 1, ..NOTHING };
    assert_sound("loads and writes", RULES, [near, Budget { writes: 2, drops: 1, ..near }]);
}

#[test]
fn exploration_of_loads_on_demand() {
    let near = Budget { reads: 1, asks: 1, writes: 1, drops: 1, odd: 1, ..NOTHING };
    assert_sound("loads on demand", RULES, [near, Budget { reads: 2, ..near }]);
}

#[test]
fn exploration_of_leaving() {
    let near = Budget { reads: 3, drops: 2, odd: 1, ..NOTHING };
    assert_sound("leaving", RULES, [near, Budget { reads: 5, drops: 3, ..near }]);
    let near = Budget { reads: 3, drops: 1, odd: 2, ..NOTHING };
    assert_sound("leaving", RULES, [near, Budget { reads: 4, drops: 2, ..near }]);
}

#[test]
fn exploration_of_polls_for_no_reason() {
    let near = Budget { reads: 2, writes: 1, odd: 1, pokes: 1, ..NOTHING };
    assert_sound("polls for no reason", RULES, [near, Budget { reads: 3, drops: 1, ..near }]);
}

#[test]
fn exploration_of_early_refreshes() {
    let near = Budget { reads: 3, writes: 1, ticks: 2, ..NOTHING };
    let far = Budget { drops: 1, odd: 1, ..near };
    assert_sound("early refreshes", EARLY, [near, far]);
    assert_sound("refreshes beside the call", Rules { spawner: true, ..EARLY }, [Budget { reads: 2, ..near }, far]);
}

#[test]
fn exploration_of_early_refreshes_and_loads_on_demand() {
    let near = Budget { reads: 1, asks: 1, ticks: 2, odd: 1, ..NOTHING };
    for spawner in [false, true] {
        let far = Budget { reads: 2, writes: 1, ..near };
        assert_sound("early refreshes and loads on demand", Rules { spawner, ..EARLY }, [near, far]);
    }
}

#[test]
fn exploration_of_stale_values() {
    let near = Budget { reads: 2, writes: 1, ticks: 2, odd: 1, ..NOTHING };
    let far = Budget { reads: 3, ticks: 3, ..near };
    let revalidated = Rules { stale_while_revalidate: true, is_cached: true, ..RULES };
    assert_sound("stale while revalidated", revalidated, [near, far]);
    assert_sound("stale while revalidated beside the call", Rules { spawner: true, ..revalidated }, [near, far]);
    assert_sound("stale if the load fails", Rules { stale_if_error: true, is_cached: true, ..RULES }, [near, far]);
    let all = Rules { early: true, stale_if_error: true, ..revalidated };
    assert_sound("all at once", all, [Budget { ticks: 3, odd: 0, ..near }, far]);
}

#[test]
fn exploration_without_coalescing() {
    let near = Budget { reads: 2, writes: 1, ticks: 1, ..NOTHING };
    let rules = Rules { coalescing: false, ..RULES };
    assert_sound("without coalescing", rules, [near, Budget { drops: 1, odd: 1, ..near }]);
}

#[test]
fn exploration_of_threads() {
    let near = Budget { reads: 3, writes: 1, odd: 1, ..NOTHING };
    assert_subject_sound::<Threads>("threads", RULES, [near, Budget { asks: 1, ..near }]);
}

#[test]
fn exploration_of_threads_that_refresh() {
    let near = Budget { reads: 2, asks: 1, writes: 1, ticks: 1, ..NOTHING };
    assert_subject_sound::<Threads>("threads, early refreshes", EARLY, [near, Budget { ticks: 2, odd: 1, ..near }]);
    let near = Budget { reads: 2, writes: 1, ticks: 3, ..NOTHING };
    let all = Rules { stale_while_revalidate: true, stale_if_error: true, ..EARLY };
    assert_subject_sound::<Threads>("threads, all at once", all, [near, Budget { reads: 3, odd: 1, ..near }]);
}

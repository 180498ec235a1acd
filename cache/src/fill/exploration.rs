//! Every order of steps of a few fills, two writes, leases that run out, and whatever else may go wrong, over a model of the
//! store.
//!
//! A caller must not get what is older than an invalidation that had ended before it began. While no write is under way, the
//! store must hold nothing older than the database. From everywhere there must be a way to where everybody has ended. Who ends
//! gives the lease up, unless it is killed or the store fails.
//!
//! Schemes that are known not to keep to this are explored too: that they are found out shows that the exploration can tell.
//!
//! With `EXPLORE_FURTHER` in the environment more may go wrong in one run, as `ci/explore.sh` does it.

mod machine;
mod others;
mod rules;
mod search;
mod store;
mod world;

use super::{Config, Fallback, OnStale};
use core::time::Duration;
use rules::{Budget, Fault, Rules, Scheme};
use search::explore;

const CONFIG: Config = Config {
    lease: Duration::from_secs(1),
    max_hold: Duration::from_secs(1),
    wait: Duration::from_secs(1),
    max_take_overs: 0,
    // The same at each look, or the same state would look different.
    first_poll: Duration::from_secs(1),
    longest_poll: Duration::from_secs(1),
    listening_poll: Duration::from_secs(1),
    epoch_life: Duration::from_secs(9),
    on_stale: OnStale::Serve,
    on_deadline: Fallback::LoadUncached,
    on_store_error: Fallback::LoadUncached,
    stale_if_load_fails: false,
    reload_invalidated: false,
};

const NOTHING: Budget = Budget { expiries: 0, errors: 0, failures: 0, deadlines: 0, kills: 0, losses: 0 };

const RULES: Rules = Rules {
    scheme: Scheme::Ours,
    config: CONFIG,
    reads: 0,
    refreshes: 0,
    writes: 0,
    puts: false,
    is_cached: false,
    long_loads: false,
    counts_loads: false,
    budget: NOTHING,
};

/// One more, if there is time for it.
fn further() -> u8 {
    u8::from(std::env::var_os("EXPLORE_FURTHER").is_some())
}

/// Everything is in order, and more than a few states were looked at.
#[track_caller]
fn assert_sound(name: &str, rules: &Rules) {
    let found = explore(rules);
    println!("explored: {name}: {rules}: {} states, {} steps, {} ends", found.states, found.steps, found.ends);
    assert_eq!(found.fault, None, "{name}");
    assert!(found.states > 1_000 && found.ends > 0 && found.stores > 0, "{name}: {found:?}");
}

/// A caller or the store comes to a stale value.
#[track_caller]
fn assert_unsafe(rules: &Rules) {
    let (fault, steps) = explore(rules).fault.expect("it is unsafe");
    println!("control: {:?}: {rules}: {fault:?} after {steps} steps", rules.scheme);
    assert!(matches!(fault, Fault::StaleStore | Fault::StaleResult), "{:?}: {fault:?}", rules.scheme);
}

#[test]
fn exploration_two_fills() {
    let config = Config { reload_invalidated: true, ..CONFIG };
    let budget = Budget { expiries: 1 + further(), deadlines: further(), kills: 1, ..NOTHING };
    assert_sound("loads once more", &Rules { config, reads: 2, writes: 2, budget, ..RULES });
}

#[test]
fn exploration_three_fills() {
    // No renewals: that one finds the lease lost makes no difference to the others, and to the next step none either.
    let config = Config { max_hold: Duration::ZERO, ..CONFIG };
    let budget = Budget { expiries: 1 + 2 * further(), ..NOTHING };
    assert_sound("no renewal", &Rules { config, reads: 3, writes: 2, budget, ..RULES });
    let budget = Budget { expiries: 1, losses: 1 + further(), ..NOTHING };
    assert_sound("no renewal", &Rules { config, reads: 3, writes: 1, budget, ..RULES });
}

#[test]
fn exploration_refreshes() {
    let budget = Budget { expiries: 2, losses: further(), ..NOTHING };
    assert_sound("refresh", &Rules { reads: 1, refreshes: 2, writes: 2, is_cached: true, budget, ..RULES });
    let config = Config {
        on_stale: OnStale::Replace,
        on_deadline: Fallback::ServeStale,
        on_store_error: Fallback::ServeStale,
        stale_if_load_fails: true,
        ..CONFIG
    };
    let budget = Budget { expiries: 1, errors: 1, failures: 1, deadlines: 1, losses: further(), ..NOTHING };
    let rules = Rules { config, reads: 1, refreshes: 1, writes: 2, is_cached: true, budget, ..RULES };
    assert_sound("keeps the stale value", &rules);
}

#[test]
fn exploration_of_how_many_load() {
    for (name, reads, refreshes) in [("3 reads", 3, 0), ("3 refreshes of a value", 0, 3)] {
        let found = explore(&Rules { reads, refreshes, is_cached: refreshes > 0, counts_loads: true, ..RULES });
        println!("explored: {name}, nothing goes wrong: {} states, {} load", found.states, found.loads);
        assert_eq!((found.fault, found.loads), (None, 1), "{name}");
    }
}

#[test]
fn exploration_failures() {
    let budget = Budget { expiries: 1, errors: 1 + further(), failures: 1, ..NOTHING };
    assert_sound("failures", &Rules { reads: 2, writes: 2, budget, ..RULES });
}

#[test]
fn exploration_of_a_store_that_forgets() {
    let budget = Budget { expiries: 1, errors: 1, losses: 1 + further(), ..NOTHING };
    assert_sound("forgets", &Rules { reads: 2, writes: 2, budget, ..RULES });
    let budget = Budget { expiries: further(), kills: 1, losses: 1 + further(), ..NOTHING };
    assert_sound("forgets", &Rules { reads: 2, writes: 2, budget, ..RULES });
}

#[test]
fn exploration_puts() {
    let budget = Budget { expiries: 1, errors: 1, losses: 1, ..NOTHING };
    assert_sound("puts", &Rules { reads: 2, writes: 2, puts: true, budget, ..RULES });
    let budget = Budget { expiries: 1 + further(), losses: 1, ..NOTHING };
    let rules = Rules { reads: 1, refreshes: 1, writes: 2, puts: true, is_cached: true, budget, ..RULES };
    assert_sound("puts over a value that is refreshed", &rules);
}

#[test]
fn exploration_controls() {
    let one_expiry = Rules { reads: 2, writes: 1, budget: Budget { expiries: 1, ..NOTHING }, ..RULES };
    for scheme in [Scheme::NoToken, Scheme::TokenOnRelease, Scheme::LateWithoutEpoch] {
        assert_unsafe(&Rules { scheme, ..one_expiry.clone() });
    }
    let kill = Budget { kills: 1, ..NOTHING };
    let found = explore(&Rules { scheme: Scheme::NoExpiry, reads: 2, budget: kill, ..RULES });
    let (fault, steps) = found.fault.expect("somebody waits for ever");
    println!("control: NoExpiry: {fault:?} after {steps} steps");
    assert_eq!(fault, Fault::NeverEnds);
}

#[test]
fn exploration_of_other_epochs() {
    let rules = Rules { scheme: Scheme::EpochOfWrites, reads: 2, writes: 2, ..RULES };
    let budget = Budget { expiries: 2, ..NOTHING };
    assert_sound("an epoch of writes, while none is lost", &Rules { budget, ..rules.clone() });
    assert_unsafe(&Rules { reads: 1, writes: 1, budget: Budget { losses: 1, ..NOTHING }, ..rules });
    let repeat = Rules { scheme: Scheme::EpochsRepeat, reads: 2, writes: 1, ..RULES };
    assert_unsafe(&repeat);
    assert_eq!(explore(&Rules { scheme: Scheme::Ours, ..repeat }).fault, None);
}

#[test]
fn exploration_of_loads_longer_than_the_lease() {
    let config = Config { max_hold: Duration::ZERO, ..CONFIG };
    let strict = Rules { scheme: Scheme::HolderOnly, config, reads: 3, long_loads: true, ..RULES };
    let found = explore(&strict);
    assert_eq!((found.fault, found.stores, found.cached_ends), (None, 0, 0), "it is safe and useless");
    println!(
        "control: HolderOnly: nothing is ever stored in {} states; everybody has ended after {} steps",
        found.states, found.nearest_end
    );
    let ours = explore(&Rules { scheme: Scheme::Ours, ..strict });
    assert_eq!((ours.fault, ours.cached_ends), (None, ours.ends));
    println!("explored: 3 long loads, no renewal: {} states, stored in all {} ends", ours.states, ours.ends);
    assert!(ours.ends > 0);
}

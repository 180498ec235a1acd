//! Every order of steps of a few fills, two writes, and leases that run out, over a model of the store.
//!
//! A caller must not get what is older than an invalidation that had ended before it began. While no write is under way, the
//! store must hold nothing older than the database. From everywhere there must be a way to where everybody has ended.
//! Schemes that are known not to keep to this are explored too: that they are found out shows that the exploration can tell.

mod machine;
mod rules;
mod store;
mod world;

use super::{Config, Fallback, OnStale};
use core::time::Duration;
use machine::Machine;
use rules::{Budget, Fault, Rules, Scheme};
use std::collections::HashMap;
use world::World;

/// What an exploration comes to.
#[derive(Debug)]
struct Found {
    states: usize,
    steps: usize,
    /// How many of the states are ends, and how many of these leave a value in the store.
    ends: usize,
    cached_ends: usize,
    /// How often anything was stored.
    stores: usize,
    /// The most that any order of steps leads to, if they are counted.
    loads: u8,
    /// The least number of steps to a fault.
    fault: Option<(Fault, usize)>,
    /// The least number of steps to an end.
    nearest_end: usize,
}

/// Breadth first, so that the first fault is one of the nearest.
fn explore(rules: &Rules) -> Found {
    let mut machine = Machine::new(rules.config);
    let first = World::new(rules);
    let mut numbers = HashMap::from([(first.code(), 0)]);
    // With the number of steps to each.
    let mut worlds = Vec::from([(first, 0)]);
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut ends = Vec::new();
    let mut after = Vec::new();
    let mut fault = None;
    let mut current = 0;
    while let Some(&(world, depth)) = worlds.get(current) {
        if world.is_stale() {
            fault = Some((Fault::StaleStore, depth));
            break;
        }
        if world.is_over() {
            ends.push(current);
        }
        if let Err(found) = world.steps(rules, &mut machine, &mut after) {
            fault = Some((found, depth + 1));
            break;
        }
        for next in after.drain(..) {
            let number = *numbers.entry(next.code()).or_insert_with(|| {
                worlds.push((next, depth + 1));
                worlds.len() - 1
            });
            edges.push((current as u32, number as u32));
        }
        current += 1;
    }
    if fault.is_none() {
        let stuck = first_without_end(worlds.len(), &edges, &ends);
        fault = stuck.map(|number| (Fault::NeverEnds, worlds[number].1));
    }
    Found {
        states: worlds.len(),
        steps: edges.len(),
        ends: ends.len(),
        cached_ends: ends.iter().filter(|end| worlds[**end].0.is_cached()).count(),
        stores: machine.stores,
        loads: worlds.iter().map(|(world, _)| world.loads).max().unwrap_or(0),
        fault,
        nearest_end: ends.first().map_or(0, |end| worlds[*end].1),
    }
}

/// Goes back along all edges from the ends, and returns the first state that this does not come to.
fn first_without_end(states: usize, edges: &[(u32, u32)], ends: &[usize]) -> Option<usize> {
    // The edges into each state, one state after the other: where they begin, and where they come from.
    let mut begins = vec![0_u32; states + 2];
    edges.iter().for_each(|(_, to)| begins[*to as usize + 2] += 1);
    (2..states + 2).for_each(|state| begins[state] += begins[state - 1]);
    let mut sources = vec![0_u32; edges.len()];
    for (from, to) in edges {
        let begin = &mut begins[*to as usize + 1];
        sources[*begin as usize] = *from;
        *begin += 1;
    }
    let mut can_end = vec![false; states];
    ends.iter().for_each(|end| can_end[*end] = true);
    let mut to_visit = ends.to_vec();
    while let Some(state) = to_visit.pop() {
        for source in &sources[begins[state] as usize..begins[state + 1] as usize] {
            if !core::mem::replace(&mut can_end[*source as usize], true) {
                to_visit.push(*source as usize);
            }
        }
    }
    can_end.iter().position(|can| !can)
}

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

const RULES: Rules = Rules {
    scheme: Scheme::Ours,
    config: CONFIG,
    reads: 0,
    refreshes: 0,
    writes: 0,
    is_cached: false,
    long_loads: false,
    counts_loads: false,
    budget: Budget { expiries: 0, errors: 0, failures: 0, deadlines: 0, kills: 0 },
};

/// Everything is in order, and more than a few states were looked at.
#[track_caller]
fn assert_sound(name: &str, rules: &Rules) {
    let found = explore(rules);
    println!("explored: {name}: {} states, {} steps, {} ends", found.states, found.steps, found.ends);
    assert_eq!(found.fault, None, "{name}");
    assert!(found.states > 1_000 && found.ends > 0 && found.stores > 0, "{name}: {found:?}");
}

#[test]
fn exploration_two_fills() {
    let config = Config { reload_invalidated: true, ..CONFIG };
    let budget = Budget { expiries: 3, deadlines: 1, kills: 1, ..Budget::default() };
    let rules = Rules { config, reads: 2, writes: 2, budget, ..RULES };
    assert_sound("2 reads, 2 writes, 3 expiries, 1 kill, 1 deadline, reload", &rules);
}

#[test]
fn exploration_three_fills() {
    // No renewals: that one finds the lease lost makes no difference to the others, and to the next step none either.
    let config = Config { max_hold: Duration::ZERO, ..CONFIG };
    let rules = Rules { config, reads: 3, writes: 2, budget: Budget { expiries: 3, ..Budget::default() }, ..RULES };
    assert_sound("3 reads, 2 writes, 3 expiries", &rules);
}

#[test]
fn exploration_refreshes() {
    let budget = Budget { expiries: 2, ..Budget::default() };
    let rules = Rules { reads: 1, refreshes: 2, writes: 2, is_cached: true, budget, ..RULES };
    assert_sound("1 read, 2 refreshes, 2 writes, 2 expiries", &rules);
    let config = Config {
        on_stale: OnStale::Replace,
        on_deadline: Fallback::ServeStale,
        on_store_error: Fallback::ServeStale,
        stale_if_load_fails: true,
        ..CONFIG
    };
    let budget = Budget { expiries: 1, errors: 1, failures: 1, deadlines: 1, ..Budget::default() };
    let rules = Rules { config, reads: 1, refreshes: 1, writes: 2, is_cached: true, budget, ..RULES };
    assert_sound("1 read that keeps the stale value, 1 refresh, 2 writes, each kind of failure", &rules);
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
    let budget = Budget { expiries: 1, errors: 2, failures: 1, ..Budget::default() };
    let rules = Rules { reads: 2, writes: 2, budget, ..RULES };
    assert_sound("2 reads, 2 writes, 1 expiry, 2 store errors, 1 loader failure", &rules);
}

#[test]
fn exploration_controls() {
    for scheme in [Scheme::NoToken, Scheme::TokenOnRelease, Scheme::LateWithoutEpoch] {
        let rules = Rules { scheme, reads: 2, writes: 1, budget: Budget { expiries: 1, ..Budget::default() }, ..RULES };
        let found = explore(&rules);
        let (fault, steps) = found.fault.expect("it is unsafe");
        println!("control: {scheme:?}: {fault:?} after {steps} steps");
        assert!(matches!(fault, Fault::StaleStore | Fault::StaleResult), "{scheme:?}: {fault:?}");
    }
    let kill = Budget { kills: 1, ..Budget::default() };
    let found = explore(&Rules { scheme: Scheme::NoExpiry, reads: 2, budget: kill, ..RULES });
    let (fault, steps) = found.fault.expect("somebody waits for ever");
    println!("control: NoExpiry: {fault:?} after {steps} steps");
    assert_eq!(fault, Fault::NeverEnds);
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

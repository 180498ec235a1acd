//! Visits every state that steps lead to.

use super::machine::Machine;
use super::rules::{Fault, Rules};
use super::world::World;
use std::collections::HashMap;

/// What an exploration comes to.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) states: usize,
    pub(super) steps: usize,
    /// How many of the states are ends, and how many of these leave a value in the store.
    pub(super) ends: usize,
    pub(super) cached_ends: usize,
    /// How often anything was stored.
    pub(super) stores: usize,
    /// The most that any order of steps leads to, if they are counted.
    pub(super) loads: u8,
    /// The least number of steps to a fault.
    pub(super) fault: Option<(Fault, usize)>,
    /// The least number of steps to an end.
    pub(super) nearest_end: usize,
}

/// Breadth first, so that the first fault is one of the nearest.
pub(super) fn explore(rules: &Rules) -> Found {
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
        if world.has_left_lease(rules) {
            fault = Some((Fault::LeaseLeft, depth));
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

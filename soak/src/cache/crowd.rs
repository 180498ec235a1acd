//! A million keys, of which the memory keeps a thousand.

use super::threads::only;
use super::world::{self, Datum, Fault, Read, World};
use crate::breach::Breach;
use crate::executors::block_on;
use oneflight_cache::{Cache, Error, Fetched};
use std::sync::Arc;
use std::thread;

const KEYS: u32 = 1_000_000;
const THREADS: u32 = 16;
const CAPACITY: usize = 1_000;

/// Before the rounds: a cache of either kind, and nothing that stays.
pub(crate) fn crowd() {
    let world = Arc::new(World::new(KEYS));
    let cache = Cache::builder().capacity(CAPACITY).build_blocking();
    ask_for_all(&world, |read, key| {
        let (world, call) = (Arc::clone(&world), read.number);
        cache.get_or_load(&key, move || Ok(only(world.found(&[key], call, world.load()))))
    });
    check_what_is_left(cache.in_flight());
    drop(cache);
    let cache = Cache::builder().capacity(CAPACITY).build();
    ask_for_all(&world, |read, key| {
        let (world, call) = (Arc::clone(&world), read.number);
        let load = async move || Ok(only(world.found(&[key], call, world.load())));
        block_on(cache.get_or_load(&key, load), false)
    });
    check_what_is_left(cache.in_flight());
}

/// Two threads ask for each key, at about the same time.
fn ask_for_all(world: &World, ask: impl Fn(&Read, u32) -> Result<Fetched<Datum>, Error<Fault>> + Sync) {
    let share = KEYS / (THREADS / 2);
    let ask_for = |key| {
        let read = world.read(&[key]);
        match ask(&read, key) {
            Ok(fetched) => read.got([fetched].iter(), Default::default()),
            Err(error) => Breach::Failed(error.to_string()).raise(key),
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (ask_for, first) = (&ask_for, thread / 2 * share);
            scope.spawn(move || (first..first + share).for_each(ask_for));
        }
    });
}

fn check_what_is_left(in_flight: usize) {
    if in_flight != 0 {
        Breach::Left { what: "loads", count: in_flight as i64 }.raise(None);
    }
    // The memory is divided, and rounds up what it shares out.
    let most = CAPACITY + CAPACITY / 10;
    if world::alive() > most as i64 {
        Breach::Left { what: "values", count: world::alive() }.raise(None);
    }
}

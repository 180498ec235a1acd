//! What stores keep and give up, what happens when they fail, and when values are dropped.

use crate::support::limits::{until, within_limit};
use crate::support::run::{failure, loading, refreshing, run, told, uncalled};
use crate::support::stores::{Map, Request};
use crate::support::task_ways::{Executor, Tasks};
use crate::support::thread_way::Threads;
use crate::support::way::{AnyCache, AnyStore, Fail, SECOND, TTL, Way, cache, cache_in};
use oneflight_cache::test_util::FaultyStore;
use oneflight_cache::{Error, Memory, Policy, Source};
use std::sync::{Arc, Mutex};

pub(crate) fn a_full_memory_gives_up_entries_and_counts_them<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder.capacity(10));
    for key in 0..100_u32 {
        cache.put(&key.to_string(), key).unwrap();
    }
    assert!(cache.store().len() <= 10);
    let there = (0..100).filter(|key: &u32| cache.get(&key.to_string()).unwrap().is_some()).count();
    assert_eq!(cache.stats().evictions, 100 - there as u64);
}

/// I7.
pub(crate) fn i7_what_is_too_large_is_served_and_not_kept_and_nothing_older_is_either<W: Way>() {
    let memory = Memory::weighted(100_000, |_: &String, &weight: &u32| u64::from(weight));
    let (cache, _) = cache::<W, u32>(|builder| builder.memory(memory));
    cache.put("k", 10).unwrap();
    assert_eq!(told(cache.refresh("k", || Ok(1_000_000))), (1_000_000, Source::Loaded));
    assert!(cache.get("k").unwrap().is_none(), "neither the new one nor the old one");
    cache.put("k", 20).unwrap();
    assert_eq!(cache.store().weight(), 20);
    cache.put("k", 2_000_000).unwrap();
    assert!(cache.get("k").unwrap().is_none());
    assert_eq!(cache.store().weight(), 0);
}

/// I7.
pub(crate) fn i7_a_store_that_fails_on_writes_costs_no_caller_its_value<W: Way>() {
    a_store_that_fails_on_writes_costs_no_caller_its_value_in::<W, _>(Memory::new(100));
    a_store_that_fails_on_writes_costs_no_caller_its_value_in::<W, _>(Map::new().0);
}

fn a_store_that_fails_on_writes_costs_no_caller_its_value_in<W: Way, S: AnyStore<u32>>(store: S) {
    let (store, faults) = FaultyStore::new(store);
    let (cache, _) = cache_in::<W, u32, _>(store, |builder| builder);
    cache.put("old", 7).unwrap();
    faults.fail_writes(true);
    let first = loading(&cache, "k", || Ok(1));
    let second = crate::support::run::joining(&cache, "k", uncalled());
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(second.end()), (1, Source::Joined));
    assert_eq!(cache.stats().store_errors, 1);
    for failed in [cache.put("k", 2), cache.invalidate("k"), cache.invalidate_all()] {
        let Err(Error::Store(error)) = failed else { panic!("{failed:?}") };
        assert_eq!(error.to_string(), "a fault that was asked for");
    }
    let values = cache.get_or_load_many(&["k"], |_| Ok(vec![3])).unwrap();
    assert_eq!((values[0].value, values[0].source), (3, Source::Loaded));
    // The put is one; and as that has failed, so is the removal of what is there. The same is so of the refresh.
    assert_eq!(cache.stats().store_errors, 6);
    assert_eq!(told(cache.refresh("old", || Ok(8))), (8, Source::Loaded));
    assert_eq!(cache.stats().store_errors, 8);
    faults.fail_writes(false);
    assert_eq!(told(cache.get_or_load("k", || Ok(4))), (4, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (4, Source::Hit));
    assert_eq!(cache.stats().store_errors, 8);
}

/// I7.
pub(crate) fn i7_what_the_store_refuses_leaves_nothing_older<W: Way>() {
    what_the_store_refuses_leaves_nothing_older_in::<W, _>(Memory::new(100));
    what_the_store_refuses_leaves_nothing_older_in::<W, _>(Map::new().0);
}

fn what_the_store_refuses_leaves_nothing_older_in<W: Way, S: AnyStore<u32>>(store: S) {
    let (store, faults) = FaultyStore::new(store);
    let (cache, _) = cache_in::<W, u32, _>(store, |builder| builder);
    let refuses = |refused: &dyn Fn()| {
        cache.put("k", 1).unwrap();
        faults.fail_puts(true);
        refused();
        faults.fail_puts(false);
        assert!(cache.get("k").unwrap().is_none());
    };
    refuses(&|| assert!(matches!(cache.put("k", 2), Err(Error::Store(_)))));
    refuses(&|| assert_eq!(told(cache.refresh("k", || Ok(2))), (2, Source::Loaded)));
    assert_eq!(cache.stats().store_errors, 2);
}

/// A flight looks first whether another has stored a value meanwhile; whoever asks for a new one, and joins it, is not served with that.
pub(crate) fn a_refresh_on_demand_that_joins_a_call_that_finds_a_value_loads<W: Way>() {
    let (store, stops) = Map::new();
    let (cache, _) = cache_in::<W, u32, _>(store, |builder| builder);
    // It has read that there is nothing.
    let missed = stops.next(Request::Get);
    let first = {
        let cache = cache.clone();
        run(move || cache.get_or_load("k", uncalled()))
    };
    missed.reached.wait();
    cache.put("k", 1).unwrap();
    let looks_again = stops.next(Request::Get);
    missed.go_on.open();
    looks_again.reached.wait();
    let asked = {
        let cache = cache.clone();
        run(move || cache.refresh("k", || Ok(2)))
    };
    until("it has joined", || cache.waiters("k") == 1);
    looks_again.go_on.open();
    assert_eq!(told(first.end()), (1, Source::Hit));
    assert_eq!(told(asked.end()), (2, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
}

pub(crate) fn a_refresh_that_the_store_refuses_backs_off<W: Way>() {
    a_refresh_that_the_store_refuses_backs_off_in::<W, _>(Memory::new(100));
    a_refresh_that_the_store_refuses_backs_off_in::<W, _>(Map::new().0);
}

fn a_refresh_that_the_store_refuses_backs_off_in<W: Way, S: AnyStore<u32>>(store: S) {
    let (store, faults) = FaultyStore::new(store);
    let (cache, clock) = cache_in::<W, u32, _>(store, |builder| builder.early_refresh(Policy::Eager { window: 0.2 }));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND * 5);
    let (refresh, answer) = refreshing(&cache, "k", || Ok(2));
    assert_eq!(told(answer), (1, Source::Early));
    faults.fail_writes(true);
    refresh.0.open();
    until("it was refused", || cache.stats().store_errors == 1);
    for _ in 0..20 {
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit), "it is on, or backs off");
    }
    assert_eq!(cache.stats().refreshes, 1);
}

pub(crate) fn a_refresh_of_a_batch_that_the_store_refuses_backs_off<W: Way>() {
    a_refresh_of_a_batch_that_the_store_refuses_backs_off_in::<W, _>(Memory::new(100));
    a_refresh_of_a_batch_that_the_store_refuses_backs_off_in::<W, _>(Map::new().0);
}

fn a_refresh_of_a_batch_that_the_store_refuses_backs_off_in<W: Way, S: AnyStore<u32>>(store: S) {
    let (store, faults) = FaultyStore::new(store);
    let (cache, clock) = cache_in::<W, u32, _>(store, |builder| builder.early_refresh(Policy::Eager { window: 0.2 }));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND * 5);
    faults.fail_writes(true);
    for _ in 0..5 {
        cache.get_or_load_many(&["k"], |_| Ok(vec![2])).unwrap();
    }
    assert_eq!((cache.stats().refreshes, cache.stats().loads), (1, 1));
}

/// An invalidation that the store refuses still makes void what is on.
pub(crate) fn a_write_that_fails_lets_nobody_join_what_is_on<W: Way>() {
    a_write_that_fails_lets_nobody_join_what_is_on_in::<W, _>(Memory::new(100));
    a_write_that_fails_lets_nobody_join_what_is_on_in::<W, _>(Map::new().0);
}

fn a_write_that_fails_lets_nobody_join_what_is_on_in<W: Way, S: AnyStore<u32>>(store: S) {
    let (store, faults) = FaultyStore::new(store);
    let (cache, _) = cache_in::<W, u32, _>(store, |builder| builder);
    let first = loading(&cache, "k", || Ok(1));
    faults.fail_writes(true);
    assert!(cache.invalidate("k").is_err());
    faults.fail_writes(false);
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
}

pub(crate) fn a_store_that_fails_on_reads_is_as_good_as_empty_to_those_who_load<W: Way>() {
    a_store_that_fails_on_reads_is_as_good_as_empty_to_those_who_load_in::<W, _>(Memory::new(100));
    a_store_that_fails_on_reads_is_as_good_as_empty_to_those_who_load_in::<W, _>(Map::new().0);
}

fn a_store_that_fails_on_reads_is_as_good_as_empty_to_those_who_load_in<W: Way, S: AnyStore<u32>>(store: S) {
    let (store, faults) = FaultyStore::new(store);
    let (cache, _) = cache_in::<W, u32, _>(store, |builder| builder);
    cache.put("k", 1).unwrap();
    faults.fail_reads(true);
    let first = loading(&cache, "k", || Ok(2));
    let second = crate::support::run::joining(&cache, "k", uncalled());
    assert_eq!(told(first.end()), (2, Source::Loaded));
    assert_eq!(told(second.end()), (2, Source::Joined));
    assert!(matches!(cache.get("k"), Err(Error::Store(_))));
    assert_eq!(failure(cache.get_or_load("k", || Err(Fail(3)))), 3);
    assert_eq!(cache.get_or_load_many(&["k"], |_| Ok(vec![4])).unwrap()[0].value, 4);
    faults.fail_reads(false);
    assert!(cache.stats().store_errors >= 4);
    assert_eq!(
        told(cache.get_or_load("k", uncalled())),
        (1, Source::Hit),
        "nothing was stored over what nobody could see"
    );
    // But if that is what was asked for, whatever there is.
    faults.fail_reads(true);
    assert_eq!(told(cache.refresh("k", || Ok(5))), (5, Source::Loaded));
    faults.fail_reads(false);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (5, Source::Hit));
    faults.fail_reads(true);
    faults.fail_puts(true);
    assert_eq!(told(cache.refresh("k", || Ok(6))), (6, Source::Loaded));
    faults.fail_reads(false);
    assert!(cache.get("k").unwrap().is_none(), "nothing older is left");
}

pub(crate) fn a_store_of_ones_own_works_as_well<W: Way>() {
    let (cache, clock) = cache_in::<W, u32, _>(Map::new().0, |builder| {
        builder.early_refresh(Policy::Eager { window: 0.5 }).stale_while_revalidate(TTL)
    });
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    clock.advance(TTL - SECOND);
    let (refresh, read) = refreshing(&cache, "k", || Ok(2));
    assert_eq!(told(read), (1, Source::Early));
    refresh.0.open();
    until("it is stored", || *cache.get("k").unwrap().unwrap() == 2);
    cache.invalidate_all().unwrap();
    assert!(cache.get("k").unwrap().is_none());
}

/// A value that calls its cache when it is dropped. Each clone does.
struct Calls(Arc<dyn Fn() + Send + Sync>);

impl Clone for Calls {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// What values do when they are dropped: write, unless they are dropped by such a write.
fn calls(write: impl Fn() + Send + Sync + 'static) -> impl Fn() -> Calls {
    std::thread_local! {
        static WRITES: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    let write: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
        if !WRITES.replace(true) {
            write();
            WRITES.set(false);
        }
    });
    move || Calls(Arc::clone(&write))
}

fn values_are_dropped_where_no_lock_is_held<W: Way>() {
    let (cache, clock) = cache::<W, Calls>(|builder| builder.capacity(4));
    let there = Arc::new(Mutex::new(Some(cache.clone())));
    let value = calls({
        let there = Arc::clone(&there);
        move || {
            let cache = there.lock().unwrap().clone();
            if let Some(cache) = cache {
                // The locks of the key, and of all keys.
                cache.invalidate("k").unwrap();
                cache.invalidate_all().unwrap();
            }
        }
    });
    let load = || {
        let value = value();
        move || Ok(value)
    };
    let quietly = |what: &dyn Fn()| {
        let cache = there.lock().unwrap().take();
        what();
        *there.lock().unwrap() = cache;
    };
    drop(cache.get_or_load("k", load()));
    // What is there is read and replaced by a refresh, a put, and removals.
    let put = || quietly(&|| cache.put("k", value()).unwrap());
    put();
    drop(cache.refresh("k", load()));
    put();
    cache.put("k", value()).unwrap();
    put();
    cache.invalidate("k").unwrap();
    put();
    cache.invalidate_all().unwrap();
    // What is pushed out, and what has expired.
    quietly(&|| (0..4_u32).for_each(|key| cache.put(&key.to_string(), value()).unwrap()));
    for key in 4..20_u32 {
        cache.put(&key.to_string(), value()).unwrap();
    }
    put();
    clock.advance(TTL);
    drop(cache.get("k"));
    // A load that is void.
    let on = loading(&cache, "k", load());
    put();
    drop(on.end());
    there.lock().unwrap().take();
}

#[test]
fn values_of_threads_are_dropped_where_no_lock_is_held() {
    within_limit(values_are_dropped_where_no_lock_is_held::<Threads>);
}

/// Not on executors: the values block whichever thread they are dropped in.
#[test]
fn values_of_tasks_are_dropped_where_no_lock_is_held() {
    within_limit(|| {
        Executor::BlockOn.choose();
        values_are_dropped_where_no_lock_is_held::<Tasks>();
    });
}

//! Errors, panics, closed caches: whom they reach.

use crate::bench::{AnyCollector, Bench, Calls, CollectorWay, WINDOW, gathering, numbers, values};
use crate::support::limits::until;
use crate::support::model::ModelStore;
use crate::support::run::{failure, joining, run, told, uncalled};
use crate::support::way::{AnyCache, AnyStore, Refreshes, SECOND, TTL, Way, builder, cache, cache_in};
use oneflight_cache::test_util::{FaultyStore, ManualClock};
use oneflight_cache::{Error, Memory, Source};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type InMemory<W> = <W as CollectorWay>::Collector<Memory<String, u32>>;

/// A collector whose loader fails with 7 if it is asked for an odd number of keys.
fn failing<W: CollectorWay>(cache: &<W as Way>::Cache<u32, Memory<String, u32>>) -> (InMemory<W>, Calls) {
    let calls = Calls::default();
    let noted = calls.clone();
    let load = move |keys: Vec<String>| {
        noted.add(&keys);
        if keys.len() % 2 == 1 { Err(7) } else { Ok(numbers(&keys)) }
    };
    (W::collector(cache, WINDOW, 1_000, Arc::new(load)), calls)
}

pub(crate) fn an_error_reaches_the_callers_of_its_batch_and_no_others<W: CollectorWay>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder);
    let (collector, calls) = failing::<W>(&cache);
    cache.put("0", 0).unwrap();
    let fails = ["1", "2", "3"].map(|key| gathering(&collector, key));
    clock.advance(WINDOW);
    let errors = fails.map(|caller| caller.end().unwrap_err());
    let [first, second, _] = errors.each_ref().map(|error| error.load_error().unwrap());
    assert!(Arc::ptr_eq(first, second), "they share it");
    assert_eq!(errors.map(|error| failure::<()>(Err(error))), [7; 3]);
    let succeed = ["1", "2"].map(|key| gathering(&collector, key));
    assert_eq!(told(collector.load("0")), (0, Source::Hit));
    clock.advance(WINDOW);
    assert_eq!(succeed.map(|caller| told(caller.end()).0), [1, 2], "it is not kept");
    let several = run({
        let collector = collector.clone();
        move || collector.load_many(&["1", "3"])
    });
    until("the key is gathered", || collector.gathered() == 1);
    clock.advance(WINDOW);
    assert_eq!(failure(several.end()), 7);
    assert_eq!(calls.get(), [vec!["1", "2", "3"], vec!["1", "2"], vec!["3"]]);
}

/// A collector whose loader returns a result for each key: of 13 an error, of the others numbers.
fn of_each<W: CollectorWay, S: AnyStore<u32>>(cache: &<W as Way>::Cache<u32, S>) -> (W::Collector<S>, Calls) {
    let calls = Calls::default();
    let noted = calls.clone();
    let load = move |keys: Vec<String>| {
        noted.add(&keys);
        let of_one = |number: u32| if number == 13 { Err(number) } else { Ok(number) };
        numbers(&keys).into_iter().map(of_one).collect::<Vec<_>>()
    };
    (W::collector_of(cache, WINDOW, 1_000, Arc::new(load)), calls)
}

/// In memory, and in a store that processes share.
pub(crate) fn an_error_of_one_key_reaches_its_own_callers_and_no_others<W: CollectorWay>() {
    let clock = ManualClock::new();
    one_key_fails::<W, _>(Memory::new(100), &clock);
    one_key_fails::<W, _>(ModelStore::new(clock.clone()), &clock);
}

fn one_key_fails<W: CollectorWay, S: AnyStore<u32>>(store: S, clock: &ManualClock) {
    let cache: <W as Way>::Cache<u32, S> = W::Cache::with(builder(clock).store(store), Refreshes::Beside);
    let (collector, calls) = of_each::<W, S>(&cache);
    let several = run({
        let collector = collector.clone();
        move || collector.load_many(&["1", "13", "2"])
    });
    until("the keys are gathered", || collector.gathered() == 3);
    let joins = ["1", "13"].map(|key| joining(&cache, key, uncalled()));
    let also = run({
        let collector = collector.clone();
        move || collector.load("2")
    });
    until("it waits for the load", || cache.waiters("2") == 1);
    clock.advance(WINDOW);
    assert_eq!(failure(several.end()), 13);
    let [joined, fails] = joins.map(|caller| caller.end());
    assert_eq!([told(joined), told(also.end())], [(1, Source::Joined), (2, Source::Joined)]);
    assert_eq!(failure(fails), 13);
    for (key, value) in [("1", 1), ("2", 2)] {
        assert_eq!(told(cache.get_or_load(key, uncalled())), (value, Source::Hit), "it is stored");
    }
    assert!(cache.get("13").unwrap().is_none());
    assert_eq!(calls.get(), [["1", "13", "2"]]);
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors, stats.joins), (1, 1, 3));
}

pub(crate) fn an_error_of_one_key_holds_up_no_refresh_of_another<W: CollectorWay>() {
    let clock = ManualClock::new();
    one_refresh_fails::<W, _>(Memory::new(100), &clock);
    one_refresh_fails::<W, _>(ModelStore::new(clock.clone()), &clock);
}

fn one_refresh_fails<W: CollectorWay, S: AnyStore<u32>>(store: S, clock: &ManualClock) {
    let set = builder(clock).store(store).stale_while_revalidate(TTL);
    let cache: <W as Way>::Cache<u32, S> = W::Cache::with(set, Refreshes::Beside);
    let (collector, calls) = of_each::<W, S>(&cache);
    for key in ["1", "13"] {
        cache.put(key, 100).unwrap();
    }
    clock.advance(TTL);
    let several = run({
        let collector = collector.clone();
        move || collector.load_many(&["1", "13"])
    });
    until("the keys are gathered", || collector.gathered() == 2);
    clock.advance(WINDOW);
    assert_eq!(values(several.end()), [1, 100]);
    assert_eq!(told(cache.get_or_load("1", uncalled())), (1, Source::Hit));
    assert_eq!(told(cache.get_or_load("13", uncalled())), (100, Source::Stale), "its next refresh waits");
    assert_eq!(calls.get(), [["1", "13"]]);
}

pub(crate) fn an_old_value_is_served_in_place_of_an_error<W: CollectorWay>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.stale_if_error(TTL));
    let (collector, _) = failing::<W>(&cache);
    cache.put("1", 100).unwrap();
    clock.advance(TTL + SECOND);
    let old = gathering(&collector, "1");
    clock.advance(WINDOW);
    assert_eq!(told(old.end()), (100, Source::Stale));
}

pub(crate) fn a_panic_reaches_one_caller_and_the_others_go_on<W: CollectorWay>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder);
    let calls = Calls::default();
    let noted = calls.clone();
    let load = move |keys: Vec<String>| {
        assert!(noted.add(&keys) > 1, "the first call panics");
        Ok(numbers(&keys))
    };
    let collector: InMemory<W> = W::collector(&cache, WINDOW, 1_000, Arc::new(load));
    let callers = ["1", "2", "3"].map(|key| {
        let before = collector.gathered();
        let caller = run({
            let collector = collector.clone();
            move || catch_unwind(AssertUnwindSafe(|| collector.load(key)))
        });
        until("the key is gathered", || collector.gathered() > before);
        caller
    });
    clock.advance(WINDOW);
    let ended = callers.map(|caller| caller.end());
    let mut panics = 0;
    for (ended, value) in ended.into_iter().zip(1..) {
        match ended {
            Ok(loaded) => assert_eq!(told(loaded).0, value),
            Err(_) => panics += 1,
        }
    }
    assert_eq!((panics, calls.get().len()), (1, 2));
    let again = run({
        let collector = collector.clone();
        move || collector.load_many(&["1", "2", "3"])
    });
    until("it has ended or waits for its window", || {
        clock.advance(WINDOW);
        again.has_ended()
    });
    assert_eq!(values(again.end()), [1, 2, 3], "the keys are free");
}

/// Of the whole batch, and the loader is not called again.
pub(crate) fn a_wrong_number_of_values_is_an_error_of_all_who_asked<W: CollectorWay>() {
    for wrong in [0, 1, 3, 4] {
        let (cache, clock) = cache::<W, u32>(|builder| builder.stale_if_error(TTL));
        cache.put("old", 100).unwrap();
        clock.advance(TTL + SECOND);
        let calls = Calls::default();
        let noted = calls.clone();
        let load = move |keys: Vec<String>| {
            noted.add(&keys);
            Ok(vec![0; wrong])
        };
        let collector: InMemory<W> = W::collector(&cache, WINDOW, 1_000, Arc::new(load));
        let one = gathering(&collector, "1");
        let joins = joining(&cache, "1", uncalled());
        let old = gathering(&collector, "old");
        let several = run({
            let collector = collector.clone();
            move || collector.load_many(&["2", "3", "4"])
        });
        until("the keys are gathered", || collector.gathered() == 5);
        clock.advance(WINDOW);
        for error in [one.end().unwrap_err(), joins.end().unwrap_err(), several.end().unwrap_err()] {
            assert_eq!(error.to_string(), format!("the loader returned {wrong} values for 5 keys"));
            assert!(matches!(error, Error::WrongCount { returned, asked: 5 } if returned == wrong));
        }
        assert_eq!(told(old.end()), (100, Source::Stale));
        assert_eq!(calls.get().len(), 1);
        assert_eq!(told(cache.get_or_load("1", || Ok(1))), (1, Source::Loaded), "the key is free");
    }
}

pub(crate) fn a_closed_cache_gathers_nothing_more_and_loads_what_was_gathered<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    bench.cache.put("0", 100).unwrap();
    let gathered = bench.gathering("1");
    assert!(bench.cache.close(SECOND));
    assert!(matches!(bench.collector.load("2"), Err(Error::Closed)));
    assert!(matches!(bench.collector.load_many(&["0", "2"]), Err(Error::Closed)));
    assert_eq!(told(bench.collector.load("0")), (100, Source::Hit));
    assert_eq!(bench.collector.gathered(), 1);
    bench.clock.advance(WINDOW);
    assert_eq!(told(gathered.end()), (1, Source::Loaded));
    assert_eq!(bench.calls.get(), [["1"]]);
}

pub(crate) fn a_store_that_fails_costs_no_caller_its_value<W: CollectorWay>() {
    let (store, faults) = FaultyStore::new(Memory::new(100));
    let (cache, clock): (_, ManualClock) = cache_in::<W, u32, _>(store, |builder| builder);
    let calls = Calls::default();
    let collector = W::collector(&cache, WINDOW, 1_000, calls.numbers());
    faults.fail_reads(true);
    faults.fail_writes(true);
    let callers = ["1", "2"].map(|key| gathering(&collector, key));
    clock.advance(WINDOW);
    assert_eq!(callers.map(|caller| told(caller.end()).0), [1, 2]);
    faults.fail_reads(false);
    faults.fail_writes(false);
    assert!(cache.get("1").unwrap().is_none());
}

//! I: one load for all, where values come from, and what failures do.

use crate::support::run::{Runs, aged, failure, joining, loading, run, told, uncalled};
use crate::support::stores::Map;
use crate::support::way::{AnyCache, AnyStore, Fail, SECOND, TTL, Way, cache, cache_in, share_of};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Error, Source};
use std::sync::{Arc, Barrier};
use std::time::Duration;

pub(crate) fn every_source_is_told_and_the_age_of_its_value<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.stale_while_revalidate(TTL));
    let first = loading(&cache, "k", || Ok(1));
    clock.advance(SECOND * 2);
    let second = joining(&cache, "k", uncalled());
    clock.advance(SECOND);
    let first = first.let_go();
    // Ages count from the begin of the load.
    assert_eq!(aged(first.end()), (1, Source::Loaded, 3));
    assert_eq!(aged(second.end()), (1, Source::Joined, 3));
    clock.advance(SECOND);
    assert_eq!(aged(cache.get_or_load("k", uncalled())), (1, Source::Hit, 4));
    assert_eq!(aged(Ok(cache.get("k").unwrap().unwrap())), (1, Source::Hit, 4));
    clock.advance(TTL);
    assert_eq!(aged(Ok(cache.get("k").unwrap().unwrap())), (1, Source::Stale, 64));
    cache.put("k", 2).unwrap();
    clock.advance(SECOND * 5);
    assert_eq!(aged(cache.get_or_load("k", uncalled())), (2, Source::Hit, 5));
}

pub(crate) fn of_100_callers_of_a_key_one_loads<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let runs = Runs::default();
    let first = loading(&cache, "k", runs.returning(Ok(1)));
    let others: Vec<_> = (0..100)
        .map(|_| {
            let (cache, runs) = (cache.clone(), runs.clone());
            run(move || cache.get_or_load("k", runs.returning(Ok(2))))
        })
        .collect();
    crate::support::limits::until("all wait", || cache.waiters("k") == 100);
    assert_eq!(told(first.end()), (1, Source::Loaded));
    for other in others {
        assert_eq!(told(other.end()), (1, Source::Joined));
    }
    assert_eq!((runs.get(), cache.waiters("k")), (1, 0));
}

/// I5.
pub(crate) fn i5_a_loaders_error_reaches_the_callers_of_its_flight_and_is_not_kept<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let first = loading(&cache, "k", || Err(Fail(7)));
    let second = joining(&cache, "k", uncalled());
    let (Err(Error::Load(first)), Err(Error::Load(second))) = (first.end(), second.end()) else {
        panic!("both get the error")
    };
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(*first, Fail(7));
    assert!(cache.get("k").unwrap().is_none());
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
}

/// I5: a key that has no value is not held up by a back-off.
pub(crate) fn i5_without_an_old_value_each_call_tries_again<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder.stale_if_error(TTL));
    for number in 0..5 {
        assert_eq!(failure(cache.get_or_load("k", move || Err(Fail(number)))), number);
    }
}

pub(crate) fn what_is_looked_for_in_vain_is_a_miss<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder);
    assert!(cache.get("k").unwrap().is_none());
    cache.put("k", 1).unwrap();
    assert!(cache.get("k").unwrap().is_some());
    clock.advance(TTL);
    assert!(cache.get("k").unwrap().is_none());
    let stats = cache.stats();
    assert_eq!((stats.misses, stats.hits), (2, 1));
}

/// The look at the store after the lead was won: whoever missed before another's load was stored does not load again.
pub(crate) fn a_load_that_was_stored_between_the_miss_and_the_lead_is_found<W: Way>() {
    use crate::support::stores::{Map, Request};
    let (map, stops) = Map::new();
    let (cache, clock) = crate::support::way::cache_in::<W, u32, _>(map, |builder| builder);
    let missed = stops.next(Request::Get);
    let late = run({
        let cache = cache.clone();
        move || cache.get_or_load("k", uncalled())
    });
    missed.reached.wait();
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    clock.advance(SECOND);
    missed.go_on.open();
    assert_eq!(aged(late.end()), (1, Source::Hit, 1));
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.misses, stats.hits), (1, 2, 0));
}

/// I9, with fewer keys, all of which are kept. In `crowd` few of them are.
pub(crate) fn i9_20_000_keys_and_16_threads_one_load_a_key_and_nothing_left<W: Way>() {
    const KEYS: usize = 20_000;
    const CALLERS: usize = 16;
    let keys = KEYS / share_of::<W>() as usize;
    let (cache, _) = cache::<W, usize>(|builder| builder.capacity(2 * KEYS));
    let (runs, start) = (Runs::default(), Arc::new(Barrier::new(CALLERS)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (cache, runs, start) = (cache.clone(), runs.clone(), Arc::clone(&start));
            run(move || {
                start.wait();
                for key in 0..keys {
                    assert_eq!(told(cache.get_or_load(&key.to_string(), runs.returning(Ok(key)))).0, key);
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.end());
    let stats = cache.stats();
    assert_eq!((runs.get(), stats.loads), (keys, keys as u64));
    assert_eq!(stats.hits + stats.misses, (keys * CALLERS) as u64);
    assert_eq!(cache.in_flight(), 0);
}

pub(crate) fn without_coalescing_each_caller_loads<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    cache.set_coalescing(false);
    let first = loading(&cache, "k", || Ok(1));
    let second = loading(&cache, "k", || Ok(2));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(second.end()), (2, Source::Loaded));
    cache.invalidate("k").unwrap();
    cache.set_coalescing(true);
    let third = loading(&cache, "k", || Ok(3));
    let fourth = joining(&cache, "k", uncalled());
    assert_eq!(told(third.end()), (3, Source::Loaded));
    assert_eq!(told(fourth.end()), (3, Source::Joined));
}

/// Without coalescing the later one of two loads may end first; the earlier one does not undo it.
pub(crate) fn without_coalescing_an_older_load_does_not_replace_a_newer_value<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder);
    cache.set_coalescing(false);
    let first = loading(&cache, "k", || Ok(1));
    clock.advance(SECOND);
    let second = loading(&cache, "k", || Ok(2));
    assert_eq!(told(second.end()), (2, Source::Loaded));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
}

/// Nor one that is not kept.
pub(crate) fn without_coalescing_an_older_load_does_not_outlive_a_newer_value_that_is_not_kept<W: Way>() {
    fn older_first<W: Way, S: AnyStore<u32>>(cache: &W::Cache<u32, S>, clock: &ManualClock) {
        cache.set_coalescing(false);
        let first = loading(cache, "k", || Ok(1));
        clock.advance(SECOND);
        assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
        assert_eq!(told(first.end()), (1, Source::Loaded));
        assert!(cache.get("k").unwrap().is_none());
        // Nobody knows of them any more.
        assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
        assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Loaded));
        assert_eq!(told(cache.get_or_load("k", uncalled())), (3, Source::Hit));
    }
    fn newer_last<W: Way, S: AnyStore<u32>>(cache: &W::Cache<u32, S>, clock: &ManualClock) {
        cache.invalidate("k").unwrap();
        let first = loading(cache, "k", || Ok(1));
        clock.advance(SECOND);
        let second = loading(cache, "k", || Ok(2));
        assert_eq!(told(first.end()), (1, Source::Loaded));
        assert_eq!(told(second.end()), (2, Source::Loaded));
        assert!(cache.get("k").unwrap().is_none());
    }
    let ttl = |value: &u32| if *value == 2 { Duration::ZERO } else { TTL };
    let (local, clock) = cache::<W, u32>(|builder| builder.ttl_of(ttl));
    older_first::<W, _>(&local, &clock);
    newer_last::<W, _>(&local, &clock);
    // Not at once.
    let (waiting, clock) = cache_in::<W, u32, _>(Map::new().0, |builder| builder.ttl_of(ttl));
    older_first::<W, _>(&waiting, &clock);
    newer_last::<W, _>(&waiting, &clock);
}

pub(crate) fn a_bypass_reads_joins_and_stores_nothing<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    cache.put("stored", 1).unwrap();
    assert_eq!(told(cache.bypass("stored", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(cache.get_or_load("stored", uncalled())), (1, Source::Hit));
    let on = loading(&cache, "on", || Ok(3));
    assert_eq!(told(cache.bypass("on", || Ok(4))), (4, Source::Loaded));
    assert_eq!(failure(cache.bypass("on", || Err(Fail(5)))), 5);
    assert_eq!(told(on.end()), (3, Source::Loaded));
    assert_eq!(told(cache.get_or_load("on", uncalled())), (3, Source::Hit));
}

pub(crate) fn a_bypass_is_counted_as_other_loads_are<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder.max_loads(0));
    assert_eq!(told(cache.bypass("k", || Ok(1))), (1, Source::Loaded));
    assert_eq!(failure(cache.bypass("k", || Err(Fail(2)))), 2);
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors, stats.load_times.count()), (2, 1, 2));
    let caller = run({
        let cache = cache.clone();
        move || cache.bypass("k", || std::panic::panic_any(Fail(3)))
    });
    assert_eq!(*caller.panic().downcast::<Fail>().unwrap(), Fail(3));
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors, stats.overloaded), (3, 2, 0));
}

pub(crate) fn a_refresh_on_demand_loads_whatever_is_there<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder);
    cache.put("k", 1).unwrap();
    clock.advance(SECOND);
    let asked = crate::support::run::held(|| Ok(2), {
        let cache = cache.clone();
        move |loader| cache.refresh("k", loader)
    });
    assert_eq!(aged(cache.get_or_load("k", uncalled())), (1, Source::Hit, 1));
    let before = cache.waiters("k");
    let joined = run({
        let cache = cache.clone();
        move || cache.refresh("k", uncalled())
    });
    crate::support::limits::until("it waits", || cache.waiters("k") > before);
    assert_eq!(aged(asked.end()), (2, Source::Loaded, 0));
    assert_eq!(told(joined.end()), (2, Source::Joined));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    // One that fails leaves the old value in peace.
    assert_eq!(failure(cache.refresh("k", || Err(Fail(3)))), 3);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
}

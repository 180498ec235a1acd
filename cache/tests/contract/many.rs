//! Several keys in one call.

use crate::support::gate::Gate;
use crate::support::limits::until;
use crate::support::model::ModelStore;
use crate::support::run::{failure, joining, loading, run, told, uncalled};
use crate::support::way::{AnyCache, AnyStore, Fail, Refreshes, SECOND, TTL, Way, builder, cache, inline_cache};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Fetched, Memory, Policy, Source};
use std::sync::{Arc, Mutex};

fn values(fetched: &[Fetched<u32>]) -> Vec<u32> {
    fetched.iter().map(|fetched| fetched.value).collect()
}

fn sources(fetched: &[Fetched<u32>]) -> Vec<Source> {
    fetched.iter().map(|fetched| fetched.source).collect()
}

/// A loader that returns the keys as numbers, and notes what it was called with.
fn numbers(
    calls: &Arc<Mutex<Vec<Vec<String>>>>,
) -> impl Fn(Vec<String>) -> Result<Vec<u32>, Fail> + Send + Sync + use<> {
    let calls = Arc::clone(calls);
    move |keys| {
        calls.lock().unwrap().push(keys.clone());
        Ok(keys.iter().map(|key| key.parse().unwrap()).collect())
    }
}

pub(crate) fn values_come_in_the_order_of_the_keys_and_each_is_loaded_once<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    cache.put("1", 100).unwrap();
    let calls = Arc::default();
    let fetched = cache.get_or_load_many(&["3", "1", "2", "3"], numbers(&calls)).unwrap();
    assert_eq!(values(&fetched), [3, 100, 2, 3]);
    assert_eq!(sources(&fetched), [Source::Loaded, Source::Hit, Source::Loaded, Source::Loaded]);
    let mut asked = calls.lock().unwrap().concat();
    asked.sort();
    assert_eq!((calls.lock().unwrap().len(), asked), (1, vec!["2".to_owned(), "3".to_owned()]));
    for (key, value) in [("1", 100), ("2", 2), ("3", 3)] {
        assert_eq!(told(cache.get_or_load(key, uncalled())), (value, Source::Hit));
    }
    assert!(cache.get_or_load_many(&[], |_| unreachable!()).unwrap().is_empty());
}

/// The batch loads its own key while the other one is on: in the time of the longer, not of both.
pub(crate) fn a_batch_joins_what_is_on_and_loads_the_rest_meanwhile<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let single = loading(&cache, "1", || Ok(100));
    let calls = Arc::default();
    let batch = run({
        let (cache, loader) = (cache.clone(), numbers(&calls));
        move || cache.get_or_load_many(&["1", "2"], loader)
    });
    until("it has loaded its own", || cache.get("2").unwrap().is_some());
    until("it waits for the other", || cache.waiters("1") == 1);
    assert_eq!(told(single.end()), (100, Source::Loaded));
    assert_eq!(values(&batch.end().unwrap()), [100, 2]);
    assert_eq!(*calls.lock().unwrap(), [["2"]]);
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.joins), (2, 1));
}

pub(crate) fn a_single_call_joins_a_batch<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let (begun, end) = (Gate::new(), Gate::new());
    let batch = run({
        let (cache, begun, end) = (cache.clone(), begun.clone(), end.clone());
        move || {
            cache.get_or_load_many(&["1", "2"], move |_| {
                begun.open();
                end.wait();
                Ok(vec![1, 2])
            })
        }
    });
    begun.wait();
    let single = joining(&cache, "2", uncalled());
    end.open();
    assert_eq!(told(single.end()), (2, Source::Joined));
    assert_eq!(values(&batch.end().unwrap()), [1, 2]);
}

pub(crate) fn batches_in_opposite_orders_do_not_wait_for_each_other_in_a_circle<W: Way>() {
    for _ in 0..20 {
        let (cache, _) = cache::<W, u32>(|builder| builder);
        let calls: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let batches: Vec<_> = [["1", "2", "3"], ["3", "2", "1"], ["2", "3", "1"]]
            .into_iter()
            .map(|keys| {
                let (cache, loader) = (cache.clone(), numbers(&calls));
                run(move || (keys, cache.get_or_load_many(&keys, loader)))
            })
            .collect();
        for batch in batches {
            let (keys, fetched) = batch.end();
            let expected: Vec<u32> = keys.iter().map(|key| key.parse().unwrap()).collect();
            assert_eq!(values(&fetched.unwrap()), expected);
        }
        assert_eq!(calls.lock().unwrap().concat().len(), 3, "each key is loaded once");
    }
}

pub(crate) fn the_error_of_a_batch_is_its_own_and_is_not_kept<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    cache.put("1", 1).unwrap();
    assert_eq!(failure(cache.get_or_load_many(&["1", "2"], |_| Err(Fail(7)))), 7);
    assert!(cache.get("2").unwrap().is_none());
    assert_eq!(values(&cache.get_or_load_many(&["1", "2"], |_| Ok(vec![2])).unwrap()), [1, 2]);
    assert_eq!(cache.stats().load_errors, 1);
}

pub(crate) fn what_a_batch_that_fails_counts_does_not_depend_on_the_order_of_its_keys<W: Way>() {
    for keys in [["1", "2", "3"], ["3", "2", "1"], ["2", "3", "1"]] {
        let (cache, clock) =
            cache::<W, u32>(|builder| builder.early_refresh(Policy::Eager { window: 0.5 }).stale_if_error(TTL));
        cache.put("3", 3).unwrap();
        clock.advance(TTL / 2);
        cache.put("1", 1).unwrap();
        clock.advance(TTL / 2 + SECOND);
        // One is early, one is old, and one is not there.
        assert_eq!(failure(cache.get_or_load_many(&keys, |_| Err(Fail(7)))), 7);
        let stats = cache.stats();
        assert_eq!((stats.early, stats.stale, stats.misses, stats.hits), (1, 1, 2, 0), "{keys:?}");
    }
}

/// In memory, and in a store that processes share.
pub(crate) fn a_batch_that_fails_is_one_load_that_failed<W: Way>() {
    let clock = ManualClock::new();
    batches_fail::<W, _>(Memory::new(100), &clock);
    batches_fail::<W, _>(ModelStore::new(clock.clone()), &clock);
}

fn batches_fail<W: Way, S: AnyStore<u32>>(store: S, clock: &ManualClock) {
    let cache: <W as Way>::Cache<u32, S> = W::Cache::with(builder(clock).store(store), Refreshes::Beside);
    let counted = || {
        let stats = cache.stats();
        (stats.loads, stats.load_errors)
    };
    assert_eq!(failure(cache.get_or_load_many(&["1", "2", "3"], |_| Err(Fail(7)))), 7);
    assert_eq!(counted(), (1, 1));
    let panics = run({
        let cache = cache.clone();
        move || cache.get_or_load_many(&["4", "5", "6"], |_| panic!("by intention"))
    });
    drop(panics.panic());
    assert_eq!(counted(), (2, 2));
    let miscounts = run({
        let cache = cache.clone();
        move || cache.get_or_load_many(&["7", "8", "9"], |_| Ok(vec![0; 2]))
    });
    drop(miscounts.panic());
    assert_eq!(counted(), (3, 3));
    assert_eq!(values(&cache.get_or_load_many(&["1", "2", "3"], |_| Ok(vec![1, 2, 3])).unwrap()), [1, 2, 3]);
    assert_eq!(counted(), (4, 3));
}

pub(crate) fn a_wrong_number_of_values_is_a_panic_that_says_so<W: Way>() {
    for wrong in [0, 1, 3] {
        let (cache, _) = cache::<W, u32>(|builder| builder);
        let batch = run({
            let cache = cache.clone();
            move || cache.get_or_load_many(&["1", "2"], move |_| Ok(vec![0; wrong]))
        });
        let payload = batch.panic();
        let message = payload.downcast_ref::<String>().expect("it has a message");
        assert!(message.contains(&format!("{wrong} values for 2 keys")), "{message}");
        assert_eq!(told(cache.get_or_load("1", || Ok(1))), (1, Source::Loaded), "the key is free");
    }
}

pub(crate) fn a_batch_refreshes_what_is_early_and_what_is_stale_in_one_load<W: Way>() {
    let (cache, clock) =
        cache::<W, u32>(|builder| builder.early_refresh(Policy::Eager { window: 0.5 }).stale_while_revalidate(TTL));
    cache.put("1", 100).unwrap();
    clock.advance(SECOND * 10);
    cache.put("2", 100).unwrap();
    clock.advance(TTL - SECOND * 5);
    let calls = Arc::default();
    let fetched = cache.get_or_load_many(&["1", "2", "3", "1"], numbers(&calls)).unwrap();
    assert_eq!(calls.lock().unwrap().len(), 1);
    // The key that stands there twice draws one refresh.
    assert_eq!(values(&fetched), [1, 2, 3, 100]);
    assert_eq!(sources(&fetched), [Source::Stale, Source::Early, Source::Loaded, Source::Stale]);
    assert_eq!(told(cache.get_or_load("1", uncalled())), (1, Source::Hit));
    let stats = cache.stats();
    assert_eq!((stats.early, stats.stale, stats.refreshes), (1, 2, 2));
}

pub(crate) fn a_batch_whose_load_fails_serves_the_old_values_that_there_are<W: Way>() {
    let (cache, clock) =
        inline_cache::<W, u32>(|builder| builder.early_refresh(Policy::Eager { window: 0.5 }).stale_if_error(TTL));
    cache.put("1", 100).unwrap();
    clock.advance(TTL - SECOND);
    cache.put("2", 200).unwrap();
    clock.advance(SECOND);
    cache.put("3", 300).unwrap();
    clock.advance(TTL - SECOND * 2);
    // Expired; fresh and to be refreshed; the same.
    let fetched = cache.get_or_load_many(&["1", "2", "3"], |_| Err(Fail(1))).unwrap();
    assert_eq!(values(&fetched), [100, 200, 300]);
    assert_eq!(sources(&fetched), [Source::Stale, Source::Early, Source::Early]);
    // All three are held up.
    let fetched = cache.get_or_load_many(&["1", "2", "3"], |_| unreachable!()).unwrap();
    assert_eq!(sources(&fetched), [Source::Stale, Source::Hit, Source::Hit]);
    clock.advance(SECOND);
    assert_eq!(values(&cache.get_or_load_many(&["1", "2", "3"], |keys| Ok(vec![5; keys.len()])).unwrap()), [5, 5, 5]);
}

pub(crate) fn writes_during_a_batch_win_for_their_keys<W: Way>() {
    for all in [false, true] {
        let (cache, _) = cache::<W, u32>(|builder| builder);
        let (begun, end) = (Gate::new(), Gate::new());
        let batch = run({
            let (cache, begun, end) = (cache.clone(), begun.clone(), end.clone());
            move || {
                cache.get_or_load_many(&["1", "2", "3"], move |keys| {
                    begun.open();
                    end.wait();
                    Ok(keys.iter().map(|key| key.parse().unwrap()).collect())
                })
            }
        });
        begun.wait();
        if all {
            cache.invalidate_all().unwrap();
        } else {
            cache.put("1", 100).unwrap();
            cache.invalidate("2").unwrap();
        }
        let later = loading(&cache, "2", || Ok(200));
        end.open();
        assert_eq!(values(&batch.end().unwrap()), [1, 2, 3]);
        assert_eq!(told(later.end()), (200, Source::Loaded));
        let left = ["1", "2", "3"].map(|key| cache.get(key).unwrap().map(|fetched| fetched.value));
        assert_eq!(left, if all { [None, Some(200), None] } else { [Some(100), Some(200), Some(3)] });
    }
}

pub(crate) fn without_coalescing_a_batch_loads_all_that_it_lacks<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    cache.set_coalescing(false);
    let single = loading(&cache, "1", || Ok(100));
    let calls = Arc::default();
    assert_eq!(values(&cache.get_or_load_many(&["1", "2"], numbers(&calls)).unwrap()), [1, 2]);
    assert_eq!(told(single.end()), (100, Source::Loaded));
}

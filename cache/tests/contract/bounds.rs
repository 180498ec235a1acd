//! Bounds, closing, and the numbers.

use crate::support::limits::until;
use crate::support::run::{failure, joining, loading, refreshing, run, told, uncalled};
use crate::support::way::{AnyCache, Fail, SECOND, TTL, Way, cache, inline_cache};
use oneflight_cache::{Error, Policy, Source};
use std::time::Duration;

const EAGER: Policy = Policy::Eager { window: 0.5 };

pub(crate) fn no_more_loads_at_once_than_allowed<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.max_loads(1).stale_if_error(TTL));
    cache.put("old", 7).unwrap();
    clock.advance(TTL);
    let on = loading(&cache, "a", || Ok(1));
    assert!(matches!(cache.get_or_load("b", uncalled()), Err(Error::Overloaded)));
    assert!(matches!(cache.get_or_load_many(&["b", "c"], |_| unreachable!()), Err(Error::Overloaded)));
    // An old value stands in, and that there was no room is no failure of the loader: it is not held up.
    assert_eq!(told(cache.get_or_load("old", uncalled())), (7, Source::Stale));
    let joined = joining(&cache, "a", uncalled());
    assert_eq!(told(on.end()), (1, Source::Loaded));
    assert_eq!(told(joined.end()), (1, Source::Joined));
    assert_eq!(told(cache.get_or_load("b", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(cache.get_or_load("old", || Ok(8))), (8, Source::Loaded));
    assert_eq!(cache.stats().overloaded, 3);
}

pub(crate) fn no_more_callers_of_a_key_than_allowed<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder.max_waiters(2));
    let first = loading(&cache, "k", || Ok(1));
    let waiting = [joining(&cache, "k", uncalled()), joining(&cache, "k", uncalled())];
    assert!(matches!(cache.get_or_load("k", uncalled()), Err(Error::Overloaded)));
    assert!(matches!(cache.get_or_load_many(&["k"], |_| unreachable!()), Err(Error::Overloaded)));
    assert_eq!(told(cache.get_or_load("other", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    for waiting in waiting {
        assert_eq!(told(waiting.end()), (1, Source::Joined));
    }
    cache.invalidate("k").unwrap();
    assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Loaded));
    assert_eq!(cache.stats().overloaded, 2);
}

/// As a single call would, each of its keys gets what there is for it.
pub(crate) fn a_key_of_a_batch_that_has_too_many_callers_costs_the_others_nothing<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.max_waiters(0).stale_if_error(TTL));
    cache.put("a", 1).unwrap();
    clock.advance(TTL);
    let on = loading(&cache, "a", || Ok(2));
    let load = |keys: Vec<String>| {
        assert_eq!(keys, ["b"]);
        Ok(vec![3])
    };
    let values = cache.get_or_load_many(&["a", "b", "a"], load).unwrap();
    let values: Vec<_> = values.iter().map(|it| (it.value, it.source)).collect();
    assert_eq!(values, [(1, Source::Stale), (3, Source::Loaded), (1, Source::Stale)]);
    assert_eq!(cache.stats().overloaded, 1);
    // Without an old value that is the batch's error, and nothing is loaded.
    clock.advance(TTL);
    assert!(matches!(cache.get_or_load_many(&["c", "a"], |_| unreachable!()), Err(Error::Overloaded)));
    assert_eq!(told(on.end()), (2, Source::Loaded));
}

/// A key that stands in a batch twice is one caller.
pub(crate) fn a_key_that_a_batch_has_twice_counts_once<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder.max_waiters(0));
    let values = cache.get_or_load_many(&["k", "k", "k"], |keys| Ok(vec![1; keys.len()])).unwrap();
    assert_eq!(values.iter().map(|value| value.value).collect::<Vec<_>>(), [1, 1, 1]);
}

pub(crate) fn a_closed_cache_serves_what_it_has_and_loads_nothing<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.early_refresh(EAGER).stale_while_revalidate(TTL));
    cache.put("k", 1).unwrap();
    assert!(cache.close(Duration::from_secs(30)));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    assert!(matches!(cache.get_or_load("other", uncalled()), Err(Error::Closed)));
    assert!(matches!(cache.refresh("k", uncalled()), Err(Error::Closed)));
    assert!(matches!(cache.bypass("k", uncalled()), Err(Error::Closed)));
    assert!(matches!(cache.get_or_load_many(&["k", "other"], |_| unreachable!()), Err(Error::Closed)));
    clock.advance(TTL - SECOND);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Stale));
    assert_eq!(cache.stats().refreshes, 0);
}

/// It waits for refreshes that are on, wherever they are done.
pub(crate) fn closing_waits_for_a_refresh_that_is_on<W: Way>() {
    for beside in [true, false] {
        let set = |builder: crate::support::way::Made<u32>| builder.early_refresh(EAGER);
        let (cache, clock) = if beside { cache::<W, u32>(set) } else { inline_cache::<W, u32>(set) };
        cache.put("k", 1).unwrap();
        clock.advance(TTL - SECOND);
        let drawn = crate::support::run::loading(&cache, "k", || Ok(2));
        let closing = crate::support::run::run({
            let cache = cache.clone();
            move || cache.close(Duration::from_secs(30))
        });
        until("it is closed", || matches!(cache.refresh("other", || Ok(0)), Err(Error::Closed)));
        assert!(!closing.has_ended(), "a refresh is on");
        drawn.end().unwrap();
        assert!(closing.end());
        assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    }
}

pub(crate) fn who_waits_for_a_load_that_fails_has_joined_it_too<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.stale_if_error(TTL));
    let fails = loading(&cache, "k", || Err(Fail(1)));
    let joins = joining(&cache, "k", uncalled());
    let batch = run({
        let cache = cache.clone();
        move || cache.get_or_load_many(&["k"], |_| unreachable!("another loads it"))
    });
    until("the batch waits too", || cache.waiters("k") == 2);
    assert_eq!(failure(fails.end()), 1);
    assert_eq!((failure(joins.end()), failure(batch.end())), (1, 1));
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors, stats.joins), (1, 1, 2));
    cache.put("k", 7).unwrap();
    clock.advance(TTL);
    let fails = loading(&cache, "k", || Err(Fail(2)));
    let joins = joining(&cache, "k", uncalled());
    assert_eq!([fails.end(), joins.end()].map(told), [(7, Source::Stale); 2]);
    let stats = cache.stats();
    assert_eq!((stats.stale, stats.joins), (2, 3));
}

pub(crate) fn the_numbers_tell_what_has_happened<W: Way>() {
    let (cache, clock) = inline_cache::<W, u32>(|builder| {
        builder.early_refresh(EAGER).stale_while_revalidate(SECOND * 10).stale_if_error(SECOND * 20)
    });
    let load = {
        let clock = clock.clone();
        move || {
            clock.advance(Duration::from_millis(3));
            Ok(1)
        }
    };
    let first = loading(&cache, "k", load);
    let joined = joining(&cache, "k", uncalled());
    first.end().unwrap();
    joined.end().unwrap();
    cache.get_or_load("k", uncalled()).unwrap();
    cache.get("k").unwrap().unwrap();
    clock.advance(TTL - SECOND);
    assert_eq!(told(cache.get_or_load("k", || Ok(2))).1, Source::Early);
    clock.advance(TTL);
    assert_eq!(told(cache.get_or_load("k", || Err(Fail(1)))).1, Source::Stale);
    assert_eq!(told(cache.get_or_load("k", uncalled())).1, Source::Stale);
    assert_eq!(failure(cache.get_or_load("other", || Err(Fail(2)))), 2);
    let on = loading(&cache, "other", || Ok(3));
    cache.invalidate("other").unwrap();
    on.end().unwrap();
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.early, stats.stale, stats.joins), (2, 1, 2, 1));
    assert_eq!((stats.loads, stats.load_errors, stats.invalidated), (5, 2, 1));
    assert_eq!((stats.refreshes, stats.ducked, stats.overloaded, stats.store_errors), (2, 0, 0, 0));
    assert_eq!(stats.load_times.count(), 5);
    assert_eq!(stats.load_times.quantile(1.0), Some(Duration::from_micros(4_096)));
    assert_eq!(stats.load_times.quantile(0.5), Some(Duration::from_micros(1)));
}

pub(crate) fn a_refresh_that_never_ends_holds_only_its_own_key<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.early_refresh(EAGER).stale_while_revalidate(TTL));
    cache.put("a", 1).unwrap();
    cache.put("b", 1).unwrap();
    clock.advance(TTL - SECOND);
    let (stuck, _) = refreshing(&cache, "a", || Ok(2));
    assert_eq!(told(cache.get_or_load("b", || Ok(3))), (1, Source::Early));
    until("the other is stored", || *cache.get("b").unwrap().unwrap() == 3);
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("a", uncalled())), (1, Source::Stale));
    stuck.0.open();
}

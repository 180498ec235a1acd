//! Odd settings and odd moments.

use crate::support::model::ModelStore;
use crate::support::run::{failure, joining, loading, refreshing, run, told, uncalled};
use crate::support::way::{
    AnyCache, AnyStore, Fail, Made, Refreshes, SECOND, TTL, Way, builder, cache, cache_in, inline_cache,
};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Error, Memory, Policy, Source};
use std::time::Duration;

const EAGER: Policy = Policy::Eager { window: 0.5 };

/// What a load has found out to be gone is not served for the rest of its old life, fresh, stale, or in place of an error.
pub(crate) fn a_new_value_that_is_not_to_be_stored_removes_the_old_one<W: Way>() {
    let clock = ManualClock::new();
    a_new_value_that_is_not_to_be_stored_removes_the_old_one_in::<W, _>(builder(&clock), &clock);
    let clock = ManualClock::new();
    let server = ModelStore::new(clock.clone());
    a_new_value_that_is_not_to_be_stored_removes_the_old_one_in::<W, _>(builder(&clock).store(server), &clock);
}

fn a_new_value_that_is_not_to_be_stored_removes_the_old_one_in<W: Way, S: AnyStore<Option<u32>>>(
    builder: Made<Option<u32>, S>,
    clock: &ManualClock,
) {
    let builder = builder.negative_ttl(Duration::ZERO).stale_while_revalidate(TTL).stale_if_error(TTL);
    let cache = W::Cache::with(builder, Refreshes::Inline);
    cache.put("asked", Some(1)).unwrap();
    assert_eq!(told(cache.refresh("asked", || Ok(None))), (None, Source::Loaded));
    assert!(cache.get("asked").unwrap().is_none());
    cache.put("stale", Some(1)).unwrap();
    clock.advance(TTL);
    assert_eq!(told(cache.get_or_load("stale", || Ok(None))), (None, Source::Stale));
    assert!(cache.get("stale").unwrap().is_none());
    cache.put("old", Some(1)).unwrap();
    clock.advance(TTL * 2);
    assert_eq!(told(cache.get_or_load("old", || Ok(None))), (None, Source::Loaded));
    assert_eq!(failure(cache.get_or_load("old", || Err(Fail(1)))), 1);
}

/// Those who come after it has been closed get an error, and so does whoever takes over from a load that was on.
pub(crate) fn no_loader_begins_once_it_is_closed<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let first = loading(&cache, "k", || panic!("a loader's panic"));
    let second = joining(&cache, "k", uncalled());
    assert!(cache.close(Duration::ZERO));
    first.let_go().panic();
    assert!(matches!(second.end(), Err(Error::Closed)));
    assert!(matches!(cache.get_or_load("other", uncalled()), Err(Error::Closed)));
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors), (1, 1));
}

pub(crate) fn a_random_number_that_is_none_does_no_harm<W: Way>() {
    let (cache, clock) =
        inline_cache::<W, u32>(|builder| builder.rng(|| f64::NAN).early_refresh(EAGER).ttl_jitter(0.5));
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    clock.advance(TTL - SECOND);
    assert_eq!(told(cache.get_or_load("k", || Err(Fail(1)))), (1, Source::Early));
}

pub(crate) fn a_panic_outside_the_loader_of_a_refresh_backs_off_like_one_inside<W: Way>() {
    let ttl = |value: &u32| if *value == 2 { panic!("a settings' panic") } else { TTL };
    let (cache, clock) = inline_cache::<W, u32>(|builder| builder.ttl_of(ttl).early_refresh(EAGER));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND * 20);
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (1, Source::Early));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit), "it waits a second");
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Early));
}

/// J3, with an upstream that is down for all keys.
pub(crate) fn the_back_off_of_a_key_grows_however_many_others_fail<W: Way>() {
    let (cache, clock) = inline_cache::<W, u32>(|builder| builder.stale_if_error(TTL * 10));
    cache.put("k", 1).unwrap();
    clock.advance(TTL);
    let before = cache.stats().loads;
    let others = 40_u64;
    for second in 0..60_u64 {
        for other in 0..others {
            cache.get_or_load(&format!("{second} {other}"), || Err(Fail(1))).unwrap_err();
        }
        assert_eq!(told(cache.get_or_load("k", || Err(Fail(2)))), (1, Source::Stale));
        clock.advance(SECOND);
    }
    let attempts = cache.stats().loads - before - 60 * others;
    assert!((1..=8).contains(&attempts), "{attempts}");
}

pub(crate) fn a_batch_that_has_values_is_not_refused<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.max_waiters(0).early_refresh(EAGER).load_timeout(SECOND));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND * 20);
    let (refresh, _) = refreshing(&cache, "k", || Ok(2));
    // Whatever holds it up: long enough for a successor to be drawn.
    clock.advance(SECOND / 2);
    let values = cache.get_or_load_many(&["k"], |_| Ok(vec![3])).unwrap();
    assert_eq!(*values[0], 1);
    refresh.0.open();
}

pub(crate) fn a_batch_that_may_not_load_serves_old_values_as_a_single_call_does<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.stale_if_error(TTL * 10));
    cache.put("k", 1).unwrap();
    clock.advance(TTL);
    assert!(cache.close(SECOND));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Stale));
    let values = cache.get_or_load_many(&["k", "k"], |_| panic!("it is closed")).unwrap();
    assert!(values.iter().all(|value| (**value, value.source) == (1, Source::Stale)));
    let refused = cache.get_or_load_many(&["k", "new"], |_| panic!("it is closed"));
    assert!(matches!(refused, Err(Error::Closed)));
}

pub(crate) fn without_coalescing_a_batch_loads_a_key_that_it_has_twice_once<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    cache.set_coalescing(false);
    let load = |keys: Vec<String>| {
        assert_eq!(keys, ["a", "b"]);
        Ok(vec![1, 2])
    };
    let values = cache.get_or_load_many(&["a", "b", "a"], load).unwrap();
    assert_eq!(values.iter().map(|value| **value).collect::<Vec<_>>(), [1, 2, 1]);
}

pub(crate) fn entries_that_weigh_much_fit_into_a_small_memory<W: Way>() {
    let (cache, _) = cache_in::<W, u32, _>(Memory::weighted(100, |_, _| 20), |builder| builder);
    for key in ["a", "b", "c"] {
        cache.put(key, 1).unwrap();
        assert!(cache.get(key).unwrap().is_some(), "{key}");
    }
}

pub(crate) fn a_callers_own_panic_is_counted<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let caller = run({
        let cache = cache.clone();
        move || cache.get_or_load("k", || panic!("a loader's panic"))
    });
    drop(caller.panic());
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors), (1, 1));
}

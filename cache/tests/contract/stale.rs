//! Values that are not fresh any more: served while one refresh is on, or because a load has failed.

use super::leases::{process, server};
use crate::support::limits::until;
use crate::support::run::{Runs, aged, failure, refreshing, told, uncalled};
use crate::support::way::{AnyCache, AnyStore, Fail, Made, SECOND, TTL, Way, cache, inline_cache};
use oneflight_cache::Source;
use oneflight_cache::test_util::ManualClock;

pub(crate) fn a_stale_value_is_served_at_once_while_one_refresh_is_on<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.stale_while_revalidate(SECOND * 10));
    cache.put("k", 1).unwrap();
    clock.advance(TTL);
    let (refresh, first) = refreshing(&cache, "k", || Ok(2));
    assert_eq!(aged(first), (1, Source::Stale, 60));
    for _ in 0..100 {
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Stale));
    }
    refresh.0.open();
    until("the refresh is stored", || *cache.get("k").unwrap().unwrap() == 2);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    let stats = cache.stats();
    assert_eq!((stats.refreshes, stats.loads), (1, 1));
}

pub(crate) fn inline_the_caller_that_draws_a_stale_value_gets_the_new_one<W: Way>() {
    let (cache, clock) = inline_cache::<W, u32>(|builder| builder.stale_while_revalidate(SECOND * 10));
    cache.put("k", 1).unwrap();
    clock.advance(TTL);
    assert_eq!(aged(cache.get_or_load("k", || Err(Fail(1)))), (1, Source::Stale, 60));
    assert_eq!(aged(cache.get_or_load("k", uncalled())), (1, Source::Stale, 60));
    clock.advance(SECOND);
    assert_eq!(aged(cache.get_or_load("k", || Ok(2))), (2, Source::Stale, 0));
    assert_eq!(aged(cache.get_or_load("k", uncalled())), (2, Source::Hit, 0));
}

/// Its age is told as of when it is served, however long the load took that has failed: longer than its window here.
pub(crate) fn an_old_value_that_was_waited_for_has_become_older<W: Way>() {
    for set in [Made::stale_if_error, Made::stale_while_revalidate] {
        for batch in [false, true] {
            let (cache, clock) = inline_cache::<W, u32>(|builder| set(builder, SECOND * 20));
            cache.put("k", 1).unwrap();
            clock.advance(TTL);
            let time = clock.clone();
            let answer = if batch {
                let load = move |_| {
                    time.advance(SECOND * 30);
                    Err(Fail(1))
                };
                cache.get_or_load_many(&["k"], load).map(|mut values| values.remove(0))
            } else {
                cache.get_or_load("k", move || {
                    time.advance(SECOND * 30);
                    Err(Fail(1))
                })
            };
            assert_eq!(aged(answer), (1, Source::Stale, 90));
        }
    }
}

pub(crate) fn past_the_stale_window_a_value_is_gone<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.stale_while_revalidate(SECOND * 10));
    cache.put("k", 1).unwrap();
    clock.advance(TTL + SECOND * 10);
    assert!(cache.get("k").unwrap().is_none());
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
}

/// Whoever finds nothing while a refresh is on waits for it, and loads itself if it comes to nothing.
pub(crate) fn a_miss_joins_the_refresh_that_is_on_and_goes_on_alone_if_that_panics<W: Way>() {
    for panics in [false, true] {
        let (cache, clock) = cache::<W, u32>(|builder| builder.stale_while_revalidate(SECOND));
        cache.put("k", 1).unwrap();
        clock.advance(TTL);
        let (refresh, _) = refreshing(&cache, "k", move || if panics { panic!("a loader's panic") } else { Ok(2) });
        clock.advance(SECOND);
        let missed = crate::support::run::joining(&cache, "k", move || if panics { Ok(3) } else { unreachable!() });
        refresh.0.open();
        assert_eq!(told(missed.end()), if panics { (3, Source::Loaded) } else { (2, Source::Joined) });
    }
}

/// I5.
pub(crate) fn i5_an_old_value_is_served_if_the_load_fails_and_retries_back_off<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.stale_if_error(SECOND * 100));
    an_old_value_is_served_if_the_load_fails_and_retries_back_off(&cache, &clock);
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.stale_if_error(SECOND * 100));
    an_old_value_is_served_if_the_load_fails_and_retries_back_off(&cache, &clock);
}

fn an_old_value_is_served_if_the_load_fails_and_retries_back_off<S: AnyStore<u32>>(
    cache: &impl AnyCache<u32, S>,
    clock: &ManualClock,
) {
    cache.put("k", 1).unwrap();
    clock.advance(TTL);
    let runs = Runs::default();
    let mut tried_at = Vec::new();
    for second in 0..40 {
        let before = runs.get();
        let (value, source, age) = aged(cache.get_or_load("k", runs.returning(Err(Fail(1)))));
        assert_eq!((value, source, age), (1, Source::Stale, 60 + second));
        if runs.get() > before {
            tried_at.push(second);
        }
        clock.advance(SECOND);
    }
    assert_eq!(tried_at, [0, 1, 3, 7, 15, 31]);
    // A success resets: 40 s later it is tried, and the next failure waits one second.
    clock.advance(SECOND * 23);
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
    clock.advance(TTL);
    assert_eq!(told(cache.get_or_load("k", || Err(Fail(1)))), (2, Source::Stale));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Stale));
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Loaded));
}

pub(crate) fn i5_all_who_wait_for_the_load_that_fails_get_the_old_value<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.stale_if_error(SECOND * 100));
    cache.put("k", 1).unwrap();
    clock.advance(TTL);
    assert!(cache.get("k").unwrap().is_none(), "nobody knows yet that the load will fail");
    let first = crate::support::run::loading(&cache, "k", || Err(Fail(1)));
    let second = crate::support::run::joining(&cache, "k", uncalled());
    assert_eq!(told(first.end()), (1, Source::Stale));
    assert_eq!(told(second.end()), (1, Source::Stale));
}

pub(crate) fn i5_past_its_window_the_error_is_told<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.stale_if_error(SECOND * 10));
    cache.put("k", 1).unwrap();
    clock.advance(TTL + SECOND * 10);
    assert_eq!(failure(cache.get_or_load("k", || Err(Fail(7)))), 7);
}

pub(crate) fn a_put_ends_the_back_off<W: Way>() {
    let (cache, clock) = inline_cache::<W, u32>(|builder| builder.stale_while_revalidate(TTL));
    cache.put("k", 1).unwrap();
    clock.advance(TTL);
    for _ in 0..3 {
        cache.get_or_load("k", || Err(Fail(1))).unwrap();
        clock.advance(SECOND * 8);
    }
    cache.get_or_load("k", || Err(Fail(1))).unwrap();
    cache.put("k", 2).unwrap();
    clock.advance(TTL);
    assert_eq!(told(cache.get_or_load("k", || Err(Fail(1)))), (2, Source::Stale));
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Stale));
}

pub(crate) fn a_load_on_demand_that_fails_backs_off_as_well<W: Way>() {
    let (local, clock) = cache::<W, u32>(|builder| builder.stale_if_error(SECOND * 100));
    a_load_on_demand_that_fails_backs_off_as_well_in(&local, &clock);
    let (server, clock) = server();
    let shared = process::<W>(&server, &clock, |builder| builder.stale_if_error(SECOND * 100));
    a_load_on_demand_that_fails_backs_off_as_well_in(&shared, &clock);
}

fn a_load_on_demand_that_fails_backs_off_as_well_in<S: AnyStore<u32>>(
    cache: &impl AnyCache<u32, S>,
    clock: &ManualClock,
) {
    cache.put("k", 1).unwrap();
    clock.advance(TTL);
    assert_eq!(failure(cache.refresh("k", || Err(Fail(1)))), 1);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Stale));
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
}

/// First the one window, then the other.
pub(crate) fn both_windows_work_together<W: Way>() {
    let (cache, clock) =
        inline_cache::<W, u32>(|builder| builder.stale_while_revalidate(SECOND * 10).stale_if_error(SECOND * 20));
    cache.put("k", 1).unwrap();
    clock.advance(TTL + SECOND * 9);
    assert_eq!(told(cache.get_or_load("k", || Err(Fail(1)))), (1, Source::Stale));
    clock.advance(SECOND);
    assert!(cache.get("k").unwrap().is_none());
    let first = crate::support::run::loading(&cache, "k", || Err(Fail(1)));
    let waiting = crate::support::run::joining(&cache, "k", uncalled());
    assert_eq!(told(first.end()), (1, Source::Stale));
    assert_eq!(told(waiting.end()), (1, Source::Stale));
    clock.advance(SECOND * 10);
    assert_eq!(failure(cache.get_or_load("k", || Err(Fail(2)))), 2);
}

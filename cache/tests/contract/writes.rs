//! I1, I2, J5: writes win over whatever is on.

use crate::support::limits::until;
use crate::support::run::{Held, joining, loading, refreshing, run, told, uncalled};
use crate::support::stores::{Map, Request};
use crate::support::way::{Answer, AnyCache, AnyStore, Fail, Refreshes, SECOND, TTL, Way, builder, cache, cache_in};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Memory, Policy, Source};

/// What is written during a load.
#[derive(Clone, Copy, Debug)]
enum Write {
    Put,
    Invalidate,
    InvalidateAll,
}

const WRITES: [Write; 3] = [Write::Put, Write::Invalidate, Write::InvalidateAll];
/// What is put.
const PUT: u32 = 9;

fn write<S: AnyStore<u32>>(cache: &impl AnyCache<u32, S>, write: Write) {
    match write {
        Write::Put => cache.put("k", PUT),
        Write::Invalidate => cache.invalidate("k"),
        Write::InvalidateAll => cache.invalidate_all(),
    }
    .unwrap();
}

/// The value that is there at last: what was put, or what the first call after the write has loaded.
#[track_caller]
fn assert_kept<S: AnyStore<u32>>(cache: &impl AnyCache<u32, S>, write: Write) {
    match write {
        Write::Put => assert_eq!(told(cache.get_or_load("k", uncalled())), (PUT, Source::Hit)),
        _ => assert!(cache.get("k").unwrap().is_none(), "{write:?}"),
    }
}

/// I1: the first load reads 1, the database becomes 2.
pub(crate) fn i1_after_an_invalidate_a_call_starts_its_own_load_at_once<W: Way>() {
    for kind in [Write::Invalidate, Write::InvalidateAll] {
        invalidated_during_a_load(&cache::<W, u32>(|builder| builder).0, kind);
        invalidated_during_a_load(&cache_in::<W, u32, _>(Map::new().0, |builder| builder).0, kind);
    }
}

fn invalidated_during_a_load<S: AnyStore<u32>>(cache: &impl AnyCache<u32, S>, kind: Write) {
    let first = loading(cache, "k", || Ok(1));
    let with_first = joining(cache, "k", uncalled());
    write(cache, kind);
    let second = loading(cache, "k", || Ok(2));
    let with_second = joining(cache, "k", uncalled());
    assert_eq!(cache.in_flight(), 2);
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(with_first.end()), (1, Source::Joined));
    assert!(cache.get("k").unwrap().is_none(), "{kind:?}: the first is not stored");
    assert_eq!(told(second.end()), (2, Source::Loaded));
    assert_eq!(told(with_second.end()), (2, Source::Joined));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    assert_eq!(cache.stats().invalidated, 1);
}

/// I1: the second ends first.
pub(crate) fn i1_an_invalidated_load_that_ends_last_overwrites_nothing<W: Way>() {
    for kind in [Write::Invalidate, Write::InvalidateAll] {
        let (cache, _) = cache::<W, u32>(|builder| builder);
        let first = loading(&cache, "k", || Ok(1));
        write(&cache, kind);
        assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
        assert_eq!(told(first.end()), (1, Source::Loaded));
        assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    }
}

/// I1.
pub(crate) fn i1_several_keys_are_invalidated_in_one_call_as_each_would_be<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    for key in ["a", "other"] {
        cache.put(key, 1).unwrap();
    }
    let load = loading(&cache, "b", || Ok(2));
    cache.invalidate_many(&["a", "b", "a", "none"]).unwrap();
    assert!(cache.get("a").unwrap().is_none());
    assert_eq!(told(cache.get_or_load("b", || Ok(3))), (3, Source::Loaded));
    assert_eq!(told(load.end()), (2, Source::Loaded));
    assert_eq!(told(cache.get_or_load("b", uncalled())), (3, Source::Hit));
    assert_eq!(told(cache.get_or_load("other", uncalled())), (1, Source::Hit));
}

/// I2.
pub(crate) fn i2_a_put_during_a_load_wins<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let first = loading(&cache, "k", || Ok(1));
    let with_first = joining(&cache, "k", uncalled());
    cache.put("k", PUT).unwrap();
    assert_eq!(told(cache.get_or_load("k", uncalled())), (PUT, Source::Hit));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(with_first.end()), (1, Source::Joined));
    assert_kept(&cache, Write::Put);
    assert_eq!(cache.stats().invalidated, 1);
}

pub(crate) fn a_write_of_one_key_leaves_the_loads_of_others_alone<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let other = loading(&cache, "other", || Ok(1));
    write(&cache, Write::Put);
    write(&cache, Write::Invalidate);
    let with_other = joining(&cache, "other", uncalled());
    assert_eq!(told(other.end()), (1, Source::Loaded));
    assert_eq!(told(with_other.end()), (1, Source::Joined));
    assert_eq!(told(cache.get_or_load("other", uncalled())), (1, Source::Hit));
}

pub(crate) fn a_write_wins_over_a_refresh_on_demand<W: Way>() {
    for kind in WRITES {
        let (cache, _) = cache::<W, u32>(|builder| builder);
        cache.put("k", 1).unwrap();
        let asked: Held<Answer<u32>> = crate::support::run::held(|| Ok(2), {
            let cache = cache.clone();
            move |loader| cache.refresh("k", loader)
        });
        write(&cache, kind);
        assert_eq!(told(asked.end()), (2, Source::Loaded));
        assert_kept(&cache, kind);
    }
}

/// J5: early and stale.
pub(crate) fn j5_a_write_wins_over_a_refresh_that_a_read_has_started<W: Way>() {
    for kind in WRITES {
        for stale in [false, true] {
            let (cache, clock) = cache::<W, u32>(|builder| {
                builder.early_refresh(Policy::Eager { window: 0.5 }).stale_while_revalidate(TTL)
            });
            cache.put("k", 1).unwrap();
            clock.advance(if stale { TTL } else { TTL - SECOND });
            let (refresh, read) = refreshing(&cache, "k", || Ok(2));
            assert_eq!(told(read), (1, if stale { Source::Stale } else { Source::Early }));
            write(&cache, kind);
            refresh.0.open();
            until("the refresh has come to its end", || cache.stats().invalidated == 1);
            assert_kept(&cache, kind);
        }
    }
}

/// J5: the refresh that a write has made void keeps no later one from starting.
pub(crate) fn j5_after_a_write_another_refresh_may_start_at_once<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.early_refresh(Policy::Eager { window: 0.5 }));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND);
    let (first, _) = refreshing(&cache, "k", || Ok(2));
    cache.put("k", 3).unwrap();
    clock.advance(TTL - SECOND);
    let (second, read) = refreshing(&cache, "k", || Ok(4));
    assert_eq!(told(read), (3, Source::Early));
    first.0.open();
    until("the first has come to its end", || cache.stats().invalidated == 1);
    // The first one's end is not the second one's: no third starts.
    assert_eq!(told(cache.get_or_load("k", uncalled())), (3, Source::Hit));
    second.0.open();
    until("the second is stored", || *cache.get("k").unwrap().unwrap() == 4);
}

/// A call that starts after a write waits for no flight that began before the write was done, whatever that flight has read.
pub(crate) fn a_flight_that_begins_while_a_value_is_removed_serves_nobody_later<W: Way>() {
    for kind in [Write::Invalidate, Write::InvalidateAll] {
        let (map, stops) = Map::new();
        let (cache, _) = cache_in::<W, u32, _>(map, |builder| builder);
        // A reader that has missed before the value came.
        let missed = stops.next(Request::Get);
        let reader = run({
            let cache = cache.clone();
            move || cache.get_or_load("k", uncalled())
        });
        missed.reached.wait();
        cache.put("k", 1).unwrap();
        let removal = stops.next(if matches!(kind, Write::Invalidate) { Request::Remove } else { Request::Clear });
        let writer = run({
            let cache = cache.clone();
            move || write(&cache, kind)
        });
        removal.reached.wait();
        // It leads, looks again, and finds what is about to be removed.
        let found = stops.next(Request::Get);
        missed.go_on.open();
        found.reached.wait();
        removal.go_on.open();
        writer.end();
        let later = loading(&cache, "k", || Ok(2));
        found.go_on.open();
        assert_eq!(told(reader.end()), (1, Source::Hit));
        assert_eq!(told(later.end()), (2, Source::Loaded));
        assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit), "{kind:?}");
    }
}

/// A put wins over a load that begins before the put has returned, too.
pub(crate) fn a_load_that_begins_while_a_value_is_put_is_not_stored_after_it<W: Way>() {
    let (map, stops) = Map::new();
    let (cache, _) = cache_in::<W, u32, _>(map, |builder| builder);
    let putting = stops.next(Request::Put);
    let writer = run({
        let cache = cache.clone();
        move || write(&cache, Write::Put)
    });
    putting.reached.wait();
    let during = loading(&cache, "k", || Ok(1));
    putting.go_on.open();
    writer.end();
    assert_eq!(told(during.end()), (1, Source::Loaded));
    assert_kept(&cache, Write::Put);
}

/// The end of a load and a write are one after the other, so a write that comes while a value is being stored removes it.
pub(crate) fn a_write_that_comes_while_a_load_is_stored_waits_and_wins<W: Way>() {
    for kind in WRITES {
        let (map, stops) = Map::new();
        let (cache, _) = cache_in::<W, u32, _>(map, |builder| builder);
        let storing = stops.next(Request::Put);
        let first = run({
            let cache = cache.clone();
            move || cache.get_or_load("k", || Ok(1))
        });
        storing.reached.wait();
        let writer = run({
            let cache = cache.clone();
            move || write(&cache, kind)
        });
        // Whichever comes first, the write is done last.
        storing.go_on.open();
        assert_eq!(told(first.end()), (1, Source::Loaded));
        writer.end();
        assert_kept(&cache, kind);
    }
}

/// Also in a store that may take its time.
pub(crate) fn a_put_ends_the_wait_after_a_refresh_that_failed<W: Way>() {
    put_after_a_refresh_that_failed::<W, _>(Memory::new(100));
    put_after_a_refresh_that_failed::<W, _>(Map::new().0);
}

fn put_after_a_refresh_that_failed<W: Way, S: AnyStore<u32>>(store: S) {
    let clock = ManualClock::new();
    let builder = builder(&clock).store(store).early_refresh(Policy::Eager { window: 0.5 });
    let cache = <W::Cache<u32, S> as AnyCache<u32, S>>::with(builder.backoff(TTL * 100, TTL * 100), Refreshes::Inline);
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND);
    assert_eq!(told(cache.get_or_load("k", || Err(Fail(1)))), (1, Source::Early));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    cache.put("k", 2).unwrap();
    clock.advance(TTL - SECOND);
    assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Early));
}

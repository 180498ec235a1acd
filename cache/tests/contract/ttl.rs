//! I3, I4, I8, I10: how long values live, and which keys and values there are.

use crate::support::model::ModelStore;
use crate::support::run::{Runs, joining, loading, told, uncalled};
use crate::support::stores::Map;
use crate::support::way::{AnyCache, AnyStore, Refreshes, SECOND, TTL, Way, builder, cache, cache_in};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Memory, Policy, Source, Tiered};
use std::time::Duration;

pub(crate) fn a_value_expires_when_its_time_has_come_and_not_before<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder);
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    clock.advance(TTL - Duration::from_nanos(1));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    clock.advance(Duration::from_nanos(1));
    assert!(cache.get("k").unwrap().is_none());
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
}

/// I3: nothing is stored, and callers of the same time still share a load.
pub(crate) fn i3_a_ttl_of_zero_coalesces_and_stores_nothing<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder.ttl(Duration::ZERO));
    let first = loading(&cache, "k", || Ok(1));
    let second = joining(&cache, "k", uncalled());
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(second.end()), (1, Source::Joined));
    assert!(cache.get("k").unwrap().is_none());
    cache.put("k", 2).unwrap();
    assert!(cache.get("k").unwrap().is_none());
    assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Loaded));
}

/// I3: whatever is put with a time to live of zero, what was there before is not served for it.
pub(crate) fn i3_a_put_that_is_not_to_be_stored_removes_what_is_there<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder.ttl_of(|&value| if value == 2 { Duration::ZERO } else { TTL }));
    cache.put("k", 1).unwrap();
    cache.put("k", 2).unwrap();
    assert!(cache.get("k").unwrap().is_none());
}

pub(crate) fn i3_less_than_a_millisecond_is_one<W: Way>() {
    for ttl in [Duration::from_nanos(1), Duration::from_micros(999), Duration::from_millis(1)] {
        let (cache, clock) = cache::<W, u32>(|builder| builder.ttl(ttl));
        cache.get_or_load("k", || Ok(1)).unwrap();
        clock.advance(Duration::from_nanos(999_999));
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit), "{ttl:?}");
        clock.advance(Duration::from_nanos(1));
        assert!(cache.get("k").unwrap().is_none(), "{ttl:?}");
    }
}

pub(crate) fn i3_a_ttl_that_is_too_long_for_the_clock_does_not_end<W: Way>() {
    for ttl in [Duration::from_millis(u64::MAX), Duration::MAX] {
        for policy in [Policy::Never, Policy::default(), Policy::Linear { window: 0.5 }] {
            let (cache, clock) = cache::<W, u32>(|builder| {
                let builder = builder.ttl(ttl).ttl_jitter(0.05).early_refresh(policy);
                builder.stale_while_revalidate(Duration::MAX).stale_if_error(Duration::MAX)
            });
            cache.get_or_load("k", || Ok(1)).unwrap();
            clock.advance(Duration::from_secs(500 * 365 * 86_400));
            assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
        }
    }
}

pub(crate) fn the_value_may_say_how_long_it_lives<W: Way>() {
    let (cache, clock) = cache::<W, u64>(|builder| builder.ttl_of(|&seconds| SECOND * seconds as u32));
    cache.get_or_load("short", || Ok(1)).unwrap();
    cache.put("long", 5).unwrap();
    clock.advance(SECOND);
    assert!(cache.get("short").unwrap().is_none());
    clock.advance(SECOND * 3);
    assert!(cache.get("long").unwrap().is_some());
    clock.advance(SECOND);
    assert!(cache.get("long").unwrap().is_none());
}

pub(crate) fn jitter_shortens_by_the_fraction_times_the_random_number<W: Way>() {
    for (fraction, random, lives) in
        [(0.5, 1.0, 30), (0.5, 0.5, 45), (0.5, 0.0, 60), (2.0, 0.5, 30), (-1.0, 1.0, 60), (f64::NAN, 1.0, 60)]
    {
        let (cache, clock) = cache::<W, u32>(|builder| builder.ttl_jitter(fraction).rng(move || random));
        cache.get_or_load("k", || Ok(1)).unwrap();
        clock.advance(SECOND * lives - Duration::from_millis(1));
        assert!(cache.get("k").unwrap().is_some(), "{fraction} {random}");
        clock.advance(Duration::from_millis(1));
        assert!(cache.get("k").unwrap().is_none(), "{fraction} {random}");
    }
}

/// Whatever else says so, too; and what is loaded in its place lives as long as that says.
pub(crate) fn a_put_may_say_how_long_its_value_lives<W: Way>() {
    a_put_may_say_how_long_its_value_lives_in::<W, _>(|_| Memory::new(100));
    a_put_may_say_how_long_its_value_lives_in::<W, _>(|_| Map::new().0);
    a_put_may_say_how_long_its_value_lives_in::<W, _>(ModelStore::new);
    a_put_may_say_how_long_its_value_lives_in::<W, _>(|clock| Tiered::new(100, SECOND, ModelStore::new(clock)));
}

fn a_put_may_say_how_long_its_value_lives_in<W: Way, S: AnyStore<Option<u32>>>(store: impl FnOnce(ManualClock) -> S) {
    let clock = ManualClock::new();
    let settings = builder(&clock).ttl_of(|_| SECOND * 10).negative_ttl(SECOND * 10);
    let cache = W::Cache::with(settings.store(store(clock.clone())), Refreshes::Beside);
    for (key, value, seconds) in [("short", Some(1), 5), ("long", Some(2), 20), ("nothing", None, 20)] {
        cache.put_with_ttl(key, value, SECOND * seconds).unwrap();
    }
    let is_there = |key| cache.get(key).unwrap().is_some();
    clock.advance(SECOND * 5 - Duration::from_millis(1));
    assert!(is_there("short"));
    clock.advance(Duration::from_millis(1));
    assert!(!is_there("short"));
    clock.advance(SECOND * 15 - Duration::from_millis(1));
    assert!(is_there("long") && is_there("nothing"));
    clock.advance(Duration::from_millis(1));
    assert!(!is_there("long") && !is_there("nothing"));
    assert_eq!(told(cache.get_or_load("long", || Ok(Some(3)))), (Some(3), Source::Loaded));
    clock.advance(SECOND * 10);
    assert!(!is_there("long"));
}

pub(crate) fn a_ttl_of_a_put_is_jittered_and_rounded_as_others_are<W: Way>() {
    for (ttl, lives) in [(SECOND * 60, SECOND * 45), (Duration::from_nanos(1), Duration::from_millis(1))] {
        let (cache, clock) = cache::<W, u32>(|builder| builder.ttl_jitter(0.5).rng(|| 0.5));
        cache.put_with_ttl("k", 1, ttl).unwrap();
        clock.advance(lives - Duration::from_nanos(1));
        assert!(cache.get("k").unwrap().is_some(), "{ttl:?}");
        clock.advance(Duration::from_nanos(1));
        assert!(cache.get("k").unwrap().is_none(), "{ttl:?}");
    }
    let (cache, clock) = cache::<W, u32>(|builder| builder.ttl_jitter(0.5).rng(|| 0.5));
    cache.put_with_ttl("k", 1, Duration::MAX).unwrap();
    clock.advance(Duration::from_secs(500 * 365 * 86_400));
    assert!(cache.get("k").unwrap().is_some());
}

/// I3.
pub(crate) fn i3_a_put_with_a_ttl_of_zero_removes_what_is_there<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    cache.put("k", 1).unwrap();
    cache.put_with_ttl("k", 2, Duration::ZERO).unwrap();
    assert!(cache.get("k").unwrap().is_none());
}

/// I4: as far as one process goes.
pub(crate) fn i4_that_there_is_nothing_is_kept_for_its_own_time_or_until_something_is_put<W: Way>() {
    let (cache, clock) = cache::<W, Option<u32>>(|builder| builder.negative_ttl(SECOND * 5));
    assert_eq!(told(cache.get_or_load("k", || Ok(None))), (None, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (None, Source::Hit));
    cache.put("k", Some(1)).unwrap();
    clock.advance(SECOND * 59);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (Some(1), Source::Hit));
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("k", || Ok(None))), (None, Source::Loaded));
    clock.advance(SECOND * 5);
    assert_eq!(told(cache.get_or_load("k", || Ok(Some(2)))), (Some(2), Source::Loaded));
}

pub(crate) fn i4_a_negative_ttl_of_zero_keeps_no_nothing<W: Way>() {
    let (cache, _) = cache::<W, Option<u32>>(|builder| builder.negative_ttl(Duration::ZERO));
    assert_eq!(told(cache.get_or_load("k", || Ok(None))), (None, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", || Ok(Some(1)))), (Some(1), Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (Some(1), Source::Hit));
}

/// I8.
pub(crate) fn i8_odd_keys_are_all_distinct<W: Way>() {
    fn all_distinct<S: AnyStore<usize>>(cache: &impl AnyCache<usize, S>) {
        let long = "x".repeat(64 << 10);
        let keys = ["", "\0", "\0\0", " ", "a:b", "a", "b", &long, &long[1..]];
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(told(cache.get_or_load(key, move || Ok(number))), (number, Source::Loaded), "{number}");
        }
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(told(cache.get_or_load(key, uncalled())), (number, Source::Hit));
        }
        cache.invalidate("").unwrap();
        assert!(cache.get("").unwrap().is_none() && cache.get("\0").unwrap().is_some());
    }
    all_distinct(&cache::<W, usize>(|builder| builder).0);
    all_distinct(&cache_in::<W, usize, _>(Map::new().0, |builder| builder).0);
}

/// I10.
pub(crate) fn i10_values_that_look_like_nothing_are_hits<W: Way>() {
    fn is_hit<W: Way, V: crate::support::way::Value + PartialEq + std::fmt::Debug>(value: V) {
        let (cache, _) = cache::<W, V>(|builder| builder);
        let runs = Runs::default();
        cache.get_or_load("k", runs.returning(Ok(value.clone()))).unwrap();
        assert_eq!(told(cache.get_or_load("k", uncalled())), (value, Source::Hit));
        assert_eq!(runs.get(), 1);
    }
    is_hit::<W, _>(String::new());
    is_hit::<W, _>(Vec::<u8>::new());
    is_hit::<W, _>(0_u32);
    is_hit::<W, _>(false);
    is_hit::<W, _>(());
    is_hit::<W, _>(None::<u32>);
    is_hit::<W, _>(Some(None::<u32>));
}

//! J: early refresh.

use crate::support::gate::Gate;
use crate::support::limits::until;
use crate::support::run::{Runs, aged, held, refreshing, run, told, uncalled};
use crate::support::way::{AnyCache, Fail, SECOND, TTL, Way, cache, inline_cache};
use oneflight_cache::{Policy, Source};
use std::sync::Mutex;
use std::time::Duration;

const EAGER: Policy = Policy::Eager { window: 0.5 };

/// J1: no panic, and the ends of the scale.
pub(crate) fn j1_extreme_numbers_do_not_panic<W: Way>() {
    let costs = [Duration::ZERO, Duration::from_micros(1), Duration::from_micros(900), SECOND * 10, Duration::MAX];
    for random in [0.0, f64::MIN_POSITIVE, 0.5, 1.0, f64::NAN] {
        for cost in costs {
            for beta in [0.0, 1.0, 1e9, f64::INFINITY, f64::NAN] {
                for left in [Duration::ZERO, Duration::from_nanos(1), SECOND * 20] {
                    let (cache, clock) = inline_cache::<W, u32>(|builder| {
                        let policy = Policy::XFetch { beta, max_window: 1.0 };
                        builder.early_refresh(policy).rng(move || random).stale_if_error(TTL)
                    });
                    let loader = {
                        let clock = clock.clone();
                        move || {
                            clock.advance(cost);
                            Ok(1)
                        }
                    };
                    assert_eq!(told(cache.get_or_load("k", loader)), (1, Source::Loaded));
                    clock.advance(TTL - left);
                    let (value, source) = told(cache.get_or_load("k", || Ok(2)));
                    let case = format!("{random} {cost:?} {beta} {left:?}: {value} {source:?}");
                    if cost < SECOND && left.is_zero() {
                        assert_eq!(source, Source::Loaded, "{case}");
                    }
                    if cost < SECOND && !left.is_zero() && beta == 0.0 {
                        assert_eq!(source, Source::Hit, "{case}");
                    }
                    if cost == SECOND * 10 && !left.is_zero() && beta == f64::INFINITY && random < 1.0 {
                        assert_eq!(source, Source::Early, "{case}");
                    }
                }
            }
        }
    }
}

/// J1: P(refresh at s) = exp(-s / (beta d)), from 4,000 reads with a seed; within 4 sigma.
pub(crate) fn j1_reads_refresh_as_often_as_the_closed_form_says<W: Way>() {
    const READS: u32 = 4_000;
    for left in [1, 5, 10, 20] {
        let random = Mutex::new(fastrand::Rng::with_seed(left));
        let (cache, clock) = inline_cache::<W, u32>(|builder| {
            let policy = Policy::XFetch { beta: 1.0, max_window: 1.0 };
            // A refresh that fails changes nothing, and holds up no other.
            let builder = builder.early_refresh(policy).backoff(Duration::ZERO, Duration::ZERO);
            builder.rng(move || random.lock().unwrap().f64())
        });
        let cost = {
            let clock = clock.clone();
            move || {
                clock.advance(SECOND * 10);
                Ok(1)
            }
        };
        cache.get_or_load("k", cost).unwrap();
        clock.advance(TTL - SECOND * left as u32);
        let early = (0..READS).filter(|_| {
            let (value, source) = told(cache.get_or_load("k", || Err(Fail(1))));
            assert_eq!(value, 1);
            source == Source::Early
        });
        let found = early.count() as f64 / f64::from(READS);
        let expected = (-(left as f64) / 10.0).exp();
        let sigma = (expected * (1.0 - expected) / f64::from(READS)).sqrt();
        assert!((found - expected).abs() < 4.0 * sigma, "{left} s left: {found} instead of {expected}");
    }
}

/// What is put over nothing has taken no load. Of what loads take, the last one is a quarter.
pub(crate) fn what_is_put_is_refreshed_as_early_as_the_loads_of_late_ask_for<W: Way>() {
    // Reads refresh when what is left is no more than a load takes.
    let random = (-1.0_f64).exp();
    let (cache, clock) = inline_cache::<W, u32>(|builder| {
        builder.early_refresh(Policy::XFetch { beta: 1.0, max_window: 1.0 }).rng(move || random)
    });
    // A refresh that takes no time comes in between.
    for (key, took, usual) in [("a", SECOND * 2, SECOND * 2), ("b", SECOND * 10, SECOND * 29 / 8)] {
        let load = {
            let clock = clock.clone();
            move || {
                clock.advance(took);
                Ok(1)
            }
        };
        assert_eq!(told(cache.get_or_load(key, load)), (1, Source::Loaded));
        let put = format!("{key} is put");
        cache.put(&put, 2).unwrap();
        clock.advance(TTL - usual - SECOND / 10);
        assert_eq!(told(cache.get_or_load(&put, uncalled())), (2, Source::Hit));
        clock.advance(SECOND / 5);
        assert_eq!(told(cache.get_or_load(&put, || Err(Fail(1)))), (2, Source::Early));
    }
}

/// J2, with helpers or a spawner.
pub(crate) fn j2_of_1_000_hits_in_the_window_one_starts_a_refresh_and_none_waits<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.early_refresh(EAGER));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND);
    let (refresh, first) = refreshing(&cache, "k", || Ok(2));
    assert_eq!(told(first), (1, Source::Early));
    let others: Vec<_> = (0..8)
        .map(|_| {
            let cache = cache.clone();
            run(move || (0..125).for_each(|_| assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit))))
        })
        .collect();
    // They end though the refresh does not.
    others.into_iter().for_each(|other| other.end());
    let stats = cache.stats();
    assert_eq!((stats.refreshes, stats.early, stats.hits, stats.loads), (1, 1, 1_000, 1));
    refresh.0.open();
    until("the refresh is stored", || *cache.get("k").unwrap().unwrap() == 2);
    assert_eq!(cache.stats().loads, 1);
}

/// J2, without: as in the paper.
pub(crate) fn j2_inline_the_one_that_draws_refreshes_and_none_waits<W: Way>() {
    let (cache, clock) = inline_cache::<W, u32>(|builder| builder.early_refresh(EAGER));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND);
    let drawn = crate::support::run::loading(&cache, "k", || Ok(2));
    for _ in 0..100 {
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    }
    assert!(!drawn.caller.has_ended());
    assert_eq!(aged(drawn.end()), (2, Source::Early, 0));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    let stats = cache.stats();
    assert_eq!((stats.refreshes, stats.early, stats.loads), (1, 1, 1));
}

/// J2: a reader that has read the old value late does not refresh what is new by then.
pub(crate) fn j2_a_refresh_of_a_value_that_was_refreshed_meanwhile_is_ducked<W: Way>() {
    use crate::support::stores::{Map, Request};
    let (map, stops) = Map::new();
    let (cache, clock) = crate::support::way::cache_in::<W, u32, _>(map, |builder| builder.early_refresh(EAGER));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND);
    let read = stops.next(Request::Get);
    let late = run({
        let cache = cache.clone();
        move || cache.get_or_load("k", uncalled())
    });
    read.reached.wait();
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (1, Source::Early));
    until("it is refreshed", || *cache.get("k").unwrap().unwrap() == 2);
    read.go_on.open();
    // It may come while the first refresh's end is not noted yet.
    let (value, source) = told(late.end());
    assert!(value == 1 && matches!(source, Source::Early | Source::Hit));
    if source == Source::Early {
        until("it has ducked", || cache.stats().ducked == 1);
    }
    assert_eq!(cache.stats().loads, 1);
}

/// J3: the upstream is down for a minute, at 1,000 hits a second.
pub(crate) fn j3_failing_refreshes_back_off_and_the_first_success_resets<W: Way>() {
    let policy = Policy::Eager { window: 1.0 };
    let (cache, clock) = inline_cache::<W, u32>(|builder| builder.ttl(SECOND * 120).early_refresh(policy));
    cache.put("k", 1).unwrap();
    let runs = Runs::default();
    let hits = 60_000 / crate::support::way::share_of::<W>();
    for _ in 0..hits {
        clock.advance(SECOND * 60 / hits);
        let (value, source) = told(cache.get_or_load("k", runs.returning(Err(Fail(1)))));
        assert!(value == 1 && matches!(source, Source::Hit | Source::Early));
    }
    assert!((2..=8).contains(&runs.get()), "{} attempts", runs.get());
    // The longest wait is over; one succeeds, and after that a failure is followed by an attempt a second later.
    clock.advance(SECOND * 40);
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Early));
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("k", || Err(Fail(1)))), (2, Source::Early));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Early));
}

/// J4: what a refresh comes to stops no later one.
pub(crate) fn j4_a_refresh_that_panics_is_caught_and_a_later_one_may_start<W: Way>() {
    for beside in [true, false] {
        let set = |builder: crate::support::way::Made<u32>| builder.early_refresh(EAGER);
        let (cache, clock) = if beside { cache::<W, u32>(set) } else { inline_cache::<W, u32>(set) };
        cache.put("k", 1).unwrap();
        clock.advance(TTL - SECOND * 20);
        assert_eq!(told(cache.get_or_load("k", || panic!("a loader's panic"))), (1, Source::Early));
        until("it has ended", || cache.stats().load_errors == 1);
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit), "it backs off");
        clock.advance(SECOND);
        let done = Gate::new();
        let tell = done.clone();
        let again = move || {
            tell.open();
            Ok(2)
        };
        // The mark of the one that panicked goes just after it was counted.
        let again = std::sync::Arc::new(Mutex::new(Some(again)));
        until("another refresh starts", || {
            let again = std::sync::Arc::clone(&again);
            let loader = move || again.lock().unwrap().take().expect("one refresh")();
            told(cache.get_or_load("k", loader)).1 == Source::Early
        });
        done.wait();
        until("it is stored", || *cache.get("k").unwrap().unwrap() == 2);
    }
}

pub(crate) fn early_refresh_can_be_switched_off_and_on<W: Way>() {
    let (cache, clock) = inline_cache::<W, u32>(|builder| builder.early_refresh(EAGER).stale_while_revalidate(TTL));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND);
    cache.set_early_refresh(false);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    cache.set_early_refresh(true);
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Early));
    // What is stale is refreshed all the same.
    cache.set_early_refresh(false);
    clock.advance(TTL);
    assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Stale));
}

pub(crate) fn a_get_starts_no_refresh<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.early_refresh(EAGER));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND);
    assert_eq!(told(cache.get("k").map(Option::unwrap)), (1, Source::Hit));
    assert_eq!(cache.stats().refreshes, 0);
}

pub(crate) fn no_more_refreshes_at_once_than_allowed<W: Way>() {
    let (cache, clock) = cache::<W, u32>(|builder| builder.early_refresh(EAGER).max_refreshes(1));
    cache.put("a", 1).unwrap();
    cache.put("b", 1).unwrap();
    clock.advance(TTL - SECOND);
    let (refresh, _) = refreshing(&cache, "a", || Ok(2));
    assert_eq!(told(cache.get_or_load("b", uncalled())), (1, Source::Hit));
    refresh.0.open();
    until("there is room for another", || told(cache.get_or_load("b", || Ok(3))).1 == Source::Early);
}

/// A refresh on demand and one that a read draws are one load, and the read, which has a value, does not wait for it.
pub(crate) fn a_drawn_refresh_leaves_it_to_the_one_that_was_asked_for<W: Way>() {
    let (cache, clock) = inline_cache::<W, u32>(|builder| builder.early_refresh(EAGER));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND);
    let asked = held(|| Ok(2), {
        let cache = cache.clone();
        move |loader| cache.refresh("k", loader)
    });
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Early));
    assert_eq!(told(asked.end()), (2, Source::Loaded));
    assert_eq!(cache.stats().loads, 1);
}

/// I11: whatever the window is, its begin never comes.
pub(crate) fn i11_what_does_not_end_is_not_refreshed_early<W: Way>() {
    let policies =
        [Policy::Eager { window: 1.0 }, Policy::Linear { window: 1.0 }, Policy::XFetch { beta: 1.0, max_window: 1.0 }];
    for policy in policies {
        let (cache, clock) = inline_cache::<W, u32>(|builder| builder.ttl(Duration::MAX).early_refresh(policy));
        cache.put("put", 1).unwrap();
        let load = || Ok(2);
        assert_eq!(told(cache.get_or_load("loaded", load)), (2, Source::Loaded));
        for _ in 0..3 {
            clock.advance(SECOND * 86_400 * 365);
            assert_eq!(told(cache.get_or_load("put", uncalled())), (1, Source::Hit), "{policy:?}");
            assert_eq!(told(cache.get_or_load("loaded", uncalled())), (2, Source::Hit), "{policy:?}");
        }
    }
}

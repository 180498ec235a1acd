//! Memory in front of a store that several processes share. Each process is a cache of its own here; the store is a model.

use super::leases::{hold, server, wait_for};
use crate::support::limits::until;
use crate::support::model::{Failure, ModelStore};
use crate::support::run::{joining, loading, refreshing, run, told, uncalled};
use crate::support::way::{AnyCache, Fail, Made, Refreshes, SECOND, TTL, Way, builder, share_of};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{BlockingStore, Entry, Error, Fallback, Policy, Source, Tiered, Time};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

type Store = Tiered<String, u32, ModelStore<u32>>;
type Cache<W> = <W as Way>::Cache<u32, Store>;

fn process<W: Way>(
    server: &ModelStore<u32>,
    clock: &ManualClock,
    set: impl FnOnce(Made<u32, Store>) -> Made<u32, Store>,
) -> Cache<W> {
    let store = Tiered::new(1_000, SECOND, server.another_process());
    W::Cache::with(set(builder(clock).store(store)), Refreshes::Beside)
}

fn two_processes<W: Way>() -> (ModelStore<u32>, ManualClock, Cache<W>, Cache<W>) {
    let (server, clock) = server();
    let [a, b] = [(); 2].map(|()| process::<W>(&server, &clock, |builder| builder));
    (server, clock, a, b)
}

pub(crate) fn what_was_read_is_read_near_for_a_short_life<W: Way>() {
    let (server, clock, a, b) = two_processes::<W>();
    a.put("k", 1).unwrap();
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Hit));
    server.take_steps();
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Hit));
    assert_eq!(b.get("k").unwrap().unwrap().value, 1);
    assert_eq!(b.get_or_load_many(&["k"], |_| Err(Fail(1))).unwrap()[0].value, 1);
    let asked = server.take_steps();
    assert!(asked.is_empty(), "{asked:?}");
    clock.advance(SECOND);
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Hit));
    assert_eq!(server.take_steps(), ["get"]);
}

pub(crate) fn a_batch_reads_near_what_is_near_and_the_rest_from_the_server<W: Way>() {
    let (server, _, a, b) = two_processes::<W>();
    for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
        a.put(key, value).unwrap();
    }
    assert_eq!(told(b.get_or_load("b", uncalled())), (2, Source::Hit));
    server.take_steps();
    let read = || {
        let values = b.get_or_load_many(&["c", "b", "a", "c"], |_| Err(Fail(1))).unwrap();
        values.iter().map(|it| it.value).collect::<Vec<_>>()
    };
    assert_eq!(read(), [3, 2, 1, 3]);
    assert!(!server.take_steps().is_empty());
    assert_eq!(read(), [3, 2, 1, 3]);
    assert!(server.take_steps().is_empty(), "all are near now");
}

pub(crate) fn what_was_loaded_is_near_at_once_and_in_other_processes_when_they_have_waited<W: Way>() {
    let (server, _, a, b) = two_processes::<W>();
    let first = loading(&a, "k", || Ok(1));
    let second = run({
        let b = b.clone();
        move || b.get_or_load("k", uncalled())
    });
    until("it finds the lease with another", || b.stats().held > 0);
    assert_eq!((told(first.end()).0, told(second.end()).0), (1, 1));
    server.take_steps();
    assert_eq!(told(a.get_or_load("k", uncalled())), (1, Source::Hit));
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Hit));
    assert!(server.take_steps().is_empty());
}

pub(crate) fn what_another_process_writes_is_not_served_any_more<W: Way>() {
    let (_, _, a, b) = two_processes::<W>();
    for write in 1..10 {
        a.put("k", write).unwrap();
        assert_eq!(told(b.get_or_load("k", uncalled())), (write, Source::Hit));
    }
    a.invalidate("k").unwrap();
    assert!(b.get("k").unwrap().is_none());
    b.put("k", 10).unwrap();
    b.put("l", 11).unwrap();
    assert_eq!((told(a.get_or_load("k", uncalled())).0, told(a.get_or_load("l", uncalled())).0), (10, 11));
    b.invalidate_all().unwrap();
    assert!(a.get("k").unwrap().is_none() && a.get("l").unwrap().is_none());
}

pub(crate) fn a_lost_push_costs_the_near_life_and_no_more<W: Way>() {
    let (server, clock, a, b) = two_processes::<W>();
    a.put("k", 1).unwrap();
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Hit));
    server.lose_announcements(true);
    a.put("k", 2).unwrap();
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Hit), "nobody has told");
    assert_eq!(told(a.get_or_load("k", uncalled())), (2, Source::Hit), "who writes knows");
    clock.advance(SECOND);
    assert_eq!(told(b.get_or_load("k", uncalled())), (2, Source::Hit));
}

pub(crate) fn what_a_process_writes_itself_it_never_serves_old<W: Way>() {
    let (_, _, a, _) = two_processes::<W>();
    a.put("k", 1).unwrap();
    let load = loading(&a, "l", || Ok(1));
    for write in 2..10 {
        assert_eq!(told(a.get_or_load("k", uncalled())), (write - 1, Source::Hit));
        a.put("k", write).unwrap();
    }
    a.invalidate("l").unwrap();
    assert_eq!(told(load.end()), (1, Source::Loaded));
    assert_eq!(told(a.get_or_load("l", || Ok(2))), (2, Source::Loaded), "what was invalidated is not near either");
}

pub(crate) fn a_near_value_ends_with_its_own_life_and_is_refreshed_early<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.early_refresh(Policy::Eager { window: 0.2 }));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND * 5);
    // The read that draws it also keeps it near.
    let (refresh, answer) = refreshing(&cache, "k", || Ok(2));
    assert_eq!(told(answer), (1, Source::Early));
    refresh.0.open();
    until("the new value is there", || told(cache.get_or_load("k", uncalled())) == (2, Source::Hit));
    clock.advance(TTL - Duration::from_millis(500));
    cache.set_early_refresh(false);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    clock.advance(Duration::from_millis(500));
    // Whoever joins the refresh in its last step gets what it came to, however far the clock has been moved.
    until("the flight of the refresh has ended", || match told(cache.get_or_load("k", || Ok(3))) {
        (2, Source::Joined) => false,
        found => {
            assert_eq!(found, (3, Source::Loaded));
            true
        }
    });
}

pub(crate) fn a_refresh_on_demand_loads_though_what_is_near_is_old<W: Way>() {
    let (server, _, a, b) = two_processes::<W>();
    a.put("k", 1).unwrap();
    assert_eq!(told(a.get_or_load("k", uncalled())), (1, Source::Hit));
    server.lose_announcements(true);
    b.put("k", 2).unwrap();
    assert_eq!(told(a.get_or_load("k", uncalled())), (1, Source::Hit), "it is near");
    assert_eq!(told(a.refresh("k", || Ok(3))), (3, Source::Loaded));
    assert_eq!(told(a.get_or_load("k", uncalled())), (3, Source::Hit));
}

pub(crate) fn a_take_over_works_through_both_tiers<W: Way>() {
    let (server, clock, a, _) = two_processes::<W>();
    hold(&server, "k", 7, SECOND);
    let caller = run({
        let a = a.clone();
        move || a.get_or_load("k", || Ok(1))
    });
    wait_for(&caller, &clock, Duration::from_millis(20));
    assert_eq!(told(caller.end()), (1, Source::Loaded));
    assert_eq!(a.stats().taken_over, 1);
}

/// A process that keeps what it reads near for a minute, with "k" there, and does not keep 9.
fn with_one_near<W: Way>(failures: u32) -> (ModelStore<u32>, ManualClock, Cache<W>) {
    let (server, clock) = server();
    let store = Tiered::new(100, SECOND * 60, server.another_process());
    let ttl = |&value: &u32| if value == 9 { Duration::ZERO } else { TTL };
    let builder = builder(&clock).store(store).ttl_of(ttl).breaker(failures, SECOND * 10).rng(|| 0.5);
    let cache: Cache<W> = W::Cache::with(builder, Refreshes::Beside);
    cache.put("k", 1).unwrap();
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    (server, clock, cache)
}

pub(crate) fn what_is_near_is_served_while_the_server_is_left_alone<W: Way>() {
    let (server, clock, cache) = with_one_near::<W>(3);
    server.set_failure(Some(Failure::LosesRequest));
    for other in ["a", "b"] {
        assert_eq!(told(cache.get_or_load(other, || Ok(0))), (0, Source::Loaded));
    }
    assert_eq!(cache.stats().breaker_opened, 1);
    server.take_steps();
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    assert_eq!(cache.get("k").unwrap().unwrap().value, 1);
    // When one may try again, what is near is no answer.
    clock.advance(SECOND * 10);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    assert_eq!(told(cache.get_or_load("c", || Ok(0))), (0, Source::Loaded));
    assert_eq!(server.take_steps(), ["get"], "one tries, and it is left alone again");
    server.set_failure(None);
    clock.advance(SECOND * 10);
    assert_eq!(told(cache.get_or_load("d", || Ok(2))), (2, Source::Loaded));
    assert!(server.take_steps().contains(&"publish"));
}

/// What was refused is not there, so what it was to replace has to go; where nobody knows, it may have come.
pub(crate) fn a_put_that_the_server_refuses_is_told_from_one_that_is_not_answered<W: Way>() {
    for (failure, steps) in [(Failure::Refuses, vec!["put", "remove"]), (Failure::LosesAnswer, vec!["put"])] {
        let (server, _, cache) = with_one_near::<W>(0);
        server.take_steps();
        server.set_failure(Some(failure));
        assert!(cache.put("k", 2).is_err());
        assert_eq!(server.take_steps(), steps);
        server.set_failure(None);
    }
}

pub(crate) fn a_refresh_of_what_is_near_and_not_on_the_server_any_more_takes_the_lease<W: Way>() {
    let (server, _, cache) = with_one_near::<W>(0);
    server.lose_value("k");
    assert_eq!(told(cache.refresh("k", || Ok(2))), (2, Source::Loaded));
    assert_eq!((cache.stats().fallbacks, server.len()), (0, 1));
}

pub(crate) fn a_refresh_on_demand_without_a_server_does_not_come_to_what_is_near<W: Way>() {
    for fallback in [Fallback::ServeStale, Fallback::LoadUncached, Fallback::Fail] {
        let (server, clock) = server();
        let cache = process::<W>(&server, &clock, |builder| {
            builder.breaker(0, SECOND).stale_if_error(TTL).on_store_error(fallback)
        });
        cache.put("k", 1).unwrap();
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
        server.set_failure(Some(Failure::Refuses));
        match cache.refresh("k", || Ok(2)) {
            Err(Error::Store(_)) => assert_eq!(fallback, Fallback::Fail),
            asked => {
                assert_ne!(fallback, Fallback::Fail);
                assert_eq!(told(asked), (2, Source::Loaded));
            }
        }
        server.set_failure(None);
    }
}

pub(crate) fn what_is_near_does_not_count_as_an_answer_of_the_server<W: Way>() {
    let (server, _, cache) = with_one_near::<W>(5);
    server.set_failure(Some(Failure::LosesRequest));
    // Each miss makes fewer requests than five.
    for other in ["a", "b", "c"] {
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
        assert_eq!(told(cache.get_or_load(other, || Ok(0))), (0, Source::Loaded));
    }
    assert_eq!(cache.stats().breaker_opened, 1);
}

pub(crate) fn what_a_refresh_does_not_keep_is_not_left_near_either<W: Way>() {
    let (server, _, cache) = with_one_near::<W>(1);
    server.set_failure(Some(Failure::LosesRequest));
    assert_eq!(told(cache.get_or_load("x", || Ok(0))), (0, Source::Loaded));
    assert_eq!(cache.stats().breaker_opened, 1);
    assert_eq!(told(cache.refresh("k", || Ok(9))).0, 9);
    assert!(!matches!(cache.get("k"), Ok(Some(_))), "it is older than what was seen");
}

pub(crate) fn what_is_not_kept_leaves_nothing_near_though_the_server_fails_when_it_is_told<W: Way>() {
    for failure in [Failure::Refuses, Failure::LosesRequest, Failure::LosesAnswer] {
        let (server, _, cache) = with_one_near::<W>(0);
        let fails = server.clone();
        let load = move || {
            fails.set_failure(Some(failure));
            Ok(9)
        };
        assert_eq!(told(cache.refresh("k", load)).0, 9);
        assert!(!matches!(cache.get("k"), Ok(Some(_))), "it is older than what was seen");
    }
}

pub(crate) fn what_is_not_kept_takes_no_room_near<W: Way>() {
    let (server, clock) = server();
    let is_weighed = Arc::new(AtomicBool::new(false));
    let weigh = {
        let is_weighed = Arc::clone(&is_weighed);
        move |_: &String, value: &u32| {
            is_weighed.fetch_or(*value == 9, Ordering::SeqCst);
            1
        }
    };
    let store = Tiered::weighted(4, weigh, SECOND * 60, server.another_process());
    let ttl = |&value: &u32| if value == 9 { Duration::ZERO } else { TTL };
    let cache: Cache<W> = W::Cache::with(builder(&clock).store(store).ttl_of(ttl), Refreshes::Beside);
    cache.put("k", 1).unwrap();
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    for other in 0..100 {
        assert_eq!(told(cache.get_or_load(&other.to_string(), || Ok(9))), (9, Source::Loaded));
    }
    assert!(!is_weighed.load(Ordering::SeqCst), "it is to be kept near");
    server.take_steps();
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    assert!(server.take_steps().is_empty(), "it was pushed out");
    let stats = cache.stats();
    assert_eq!((stats.late, stats.superseded, stats.invalidated), (0, 0, 0));
}

pub(crate) fn of_a_batch_what_is_near_is_not_loaded_though_the_server_fails<W: Way>() {
    for failures in [0, 1] {
        let (server, _, cache) = with_one_near::<W>(failures);
        server.set_failure(Some(Failure::LosesRequest));
        for other in ["x", "y"] {
            let values = cache.get_or_load_many(&[other, "k", other], move |keys| {
                assert_eq!(keys, [other]);
                Ok(vec![2])
            });
            assert_eq!(values.unwrap().iter().map(|it| it.value).collect::<Vec<_>>(), [2, 1, 2]);
            let near = cache.get_many(&["k", "k"]).unwrap();
            assert!(near.iter().all(|it| it.as_ref().is_some_and(|it| it.value == 1)), "{near:?}");
            assert!(cache.get_many(&["k", "z"]).is_err());
        }
    }
}

/// Under random calls of all kinds, more keys than fit, and panics now and then.
pub(crate) fn what_is_near_weighs_no_more_than_there_is_room_for_whatever_panics<W: Way>() {
    let (server, clock) = server();
    let panics = Arc::new(AtomicBool::new(false));
    let weigh = {
        let panics = Arc::clone(&panics);
        move |key: &String, value: &u32| {
            assert_eq!(*key, value.to_string());
            if panics.load(Ordering::SeqCst) {
                // Without the noise of a hook.
                resume_unwind(Box::new(Fail(*value)));
            }
            if *value == 7 { 1_000 } else { 1 }
        }
    };
    let store = Tiered::weighted(20, weigh, SECOND * 60, server.another_process());
    let cache: Cache<W> = W::Cache::with(builder(&clock).store(store), Refreshes::Beside);
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 / share_of::<W>() {
        panics.store(random.u32(..20) == 0, Ordering::SeqCst);
        let (key, kind) = (random.u32(..60), random.u8(..8));
        let name = key.to_string();
        match kind {
            0 => cache.put(&name, key).unwrap(),
            1 => cache.invalidate(&name).unwrap(),
            2 => assert_eq!(cache.get_or_load_many(&[&name], move |_| Ok(vec![key])).unwrap()[0].value, key),
            _ => assert_eq!(told(cache.get_or_load(&name, move || Ok(key))).0, key),
        }
        let near = cache.store();
        assert!(near.near_len() <= 20);
        assert_eq!(near.near_weight(), near.near_len() as u64);
    }
    assert!(cache.store().near_evictions() > 0);
    panics.store(true, Ordering::SeqCst);
    cache.invalidate_all().unwrap();
    assert_eq!((cache.store().near_len(), cache.store().near_weight()), (0, 0));
    let load = loading(&cache, "8", || Ok(8));
    let waits = joining(&cache, "8", uncalled());
    assert_eq!((told(load.end()), told(waits.end())), ((8, Source::Loaded), (8, Source::Joined)));
    assert_eq!(cache.store().near_len(), 0, "it is in the store all the same");
    panics.store(false, Ordering::SeqCst);
    assert_eq!(told(cache.get_or_load("8", uncalled())), (8, Source::Hit));
    assert_eq!(told(cache.get_or_load("7", || Ok(7))), (7, Source::Loaded));
    assert_eq!(cache.store().near_weight(), 1, "what is too large is not kept near");
    assert_eq!(told(cache.get_or_load("7", uncalled())), (7, Source::Hit));
}

pub(crate) fn what_is_loaded_past_the_server_is_near_for_a_short_life<W: Way>() {
    for failure in [Failure::LosesRequest, Failure::Refuses] {
        // The second is left alone after its first request.
        for failures in [0, 1] {
            let (server, clock) = server();
            let cache = process::<W>(&server, &clock, |builder| builder.breaker(failures, SECOND * 10));
            server.set_failure(Some(failure));
            assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
            assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
            for _ in 0..2 {
                let values = cache.get_or_load_many(&["k", "l"], |keys| {
                    assert_eq!(keys, ["l"]);
                    Ok(vec![2])
                });
                assert_eq!(values.unwrap().iter().map(|it| it.value).collect::<Vec<_>>(), [1, 2]);
            }
            clock.advance(SECOND);
            assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Loaded));
            assert_eq!((cache.stats().loads, cache.store().near_len()), (3, 2));
            server.set_failure(None);
            clock.advance(SECOND * 20);
            assert_eq!(told(cache.get_or_load("k", || Ok(4))), (4, Source::Loaded), "the server has none of these");
        }
    }
}

pub(crate) fn a_write_wins_over_what_is_loaded_past_the_server<W: Way>() {
    type Write<C> = fn(&C);
    let writes: [Write<Cache<W>>; 3] =
        [|cache| drop(cache.put("k", 5)), |cache| drop(cache.invalidate("k")), |cache| drop(cache.invalidate_all())];
    for write in writes {
        let (server, clock) = server();
        let cache = process::<W>(&server, &clock, |builder| builder);
        server.set_failure(Some(Failure::LosesRequest));
        let load = loading(&cache, "k", || Ok(1));
        write(&cache);
        assert_eq!(told(load.end()), (1, Source::Loaded));
        assert_eq!(cache.store().near_len(), 0);
        // What is near goes, too.
        assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
        assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
        write(&cache);
        assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Loaded));
    }
    // One of another process, once the server answers again.
    let (server, clock) = server();
    let [a, b] = [(); 2].map(|()| process::<W>(&server, &clock, |builder| builder.breaker(0, SECOND)));
    server.set_failure(Some(Failure::LosesRequest));
    let load = loading(&a, "k", || Ok(1));
    server.set_failure(None);
    b.put("k", 2).unwrap();
    assert_eq!(told(load.end()), (1, Source::Loaded));
    assert_eq!(told(a.get_or_load("k", uncalled())), (2, Source::Hit));
}

/// Also while nothing in the cache tells yet that the load is void.
#[test]
fn what_is_loaded_past_the_server_is_not_near_if_the_key_was_written_since() {
    let (server, _) = server();
    let (store, other) = (Tiered::new(100, SECOND, server.another_process()), server.another_process());
    let entry = || {
        let now = Time::START;
        Entry::new(1, 1, now, now.after(TTL), now.after(TTL), SECOND)
    };
    let writes: [&dyn Fn(); 5] = [
        &|| assert!(BlockingStore::<str, u32>::put(&store, "k", entry(), Time::START).is_err()),
        &|| assert!(BlockingStore::<str, u32>::remove(&store, "k").is_err()),
        &|| assert!(BlockingStore::<str, u32>::clear(&store).is_err()),
        &|| BlockingStore::<str, u32>::remove(&other, "k").unwrap(),
        &|| BlockingStore::<str, u32>::clear(&other).unwrap(),
    ];
    let keep = |meanwhile: &dyn Fn()| {
        let writes = BlockingStore::<str, u32>::near_writes(&store, "k").unwrap();
        meanwhile();
        BlockingStore::<str, u32>::keep_near(&store, "k", entry(), writes);
        store.near_len()
    };
    for (number, write) in writes.into_iter().enumerate() {
        // The server need not answer for a write of this process to be known.
        server.set_failure((number < 3).then_some(Failure::LosesRequest));
        assert_eq!(keep(write), 0);
        assert_eq!(keep(&|| ()), 1);
    }
}

//! What concerns the cache for threads only. A thread cannot be interrupted, so its own time limits are real time here.

use super::leases::server;
use crate::support::gate::Gate;
use crate::support::in_time::in_time;
use crate::support::limits::{until, within_limit};
use crate::support::model::Failure;
use crate::support::run::{Running, Runs, failure, loading, refreshing, run, told, uncalled};
use crate::support::stores::{Map, Request};
use crate::support::thread_way::Threads;
use crate::support::way::{
    Answer, AnyCache, Fail, Made, Refreshes, SECOND, TTL, Way, builder, cache, cache_in, inline_cache,
};
use oneflight_cache::{BlockingStore, Clock, Entry, Error, Memory, Policy, Source, Tiered};
use std::cell::Cell;
use std::time::{Duration, Instant};

const EAGER: Policy = Policy::Eager { window: 0.5 };
/// Passes soon.
const SOON: Duration = Duration::from_millis(20);
/// Time limits of loads, one after another: others join a load only in its time.
const LIMITS: [u64; 3] = [50, 1_000, 10_000];

/// Callers of `key` that wait for the load that is on. `None` if one was too late, which shows in that not all wait at once.
fn waiting<const N: usize>(
    cache: &<Threads as Way>::Cache<u32, Memory<String, u32>>,
    key: &'static str,
    loader: impl Fn() -> Result<u32, Fail> + Clone + Send + 'static,
) -> Option<[Running<Answer<u32>>; N]> {
    let callers = [(); N].map(|()| {
        let (cache, loader) = (cache.clone(), loader.clone());
        run(move || cache.get_or_load(key, loader))
    });
    let mut all_wait = false;
    until("all wait, or one has ended", || {
        all_wait = cache.waiters(key) == N;
        all_wait || callers.iter().any(Running::has_ended)
    });
    all_wait.then_some(callers)
}

#[test]
fn past_the_age_of_a_stuck_load_one_of_those_who_wait_leads_another() {
    within_limit(|| {
        // The new load takes newcomers for no longer.
        in_time(LIMITS, |limit| {
            let (cache, clock) = cache::<Threads, u32>(|builder| builder.load_timeout(limit));
            let stuck = loading(&cache, "k", || Ok(1));
            clock.advance(SECOND);
            let runs = Runs::default();
            let callers = waiting::<4>(&cache, "k", {
                let runs = runs.clone();
                move || {
                    runs.add();
                    Ok(2)
                }
            });
            let was_in_time = callers.is_some();
            for caller in callers.into_iter().flatten() {
                assert_eq!(told(caller.end()).0, 2);
            }
            assert_eq!(told(stuck.end()), (1, Source::Loaded));
            assert_eq!(told(cache.get_or_load("k", uncalled())).0, 2, "the newer one stays");
            was_in_time && runs.get() == 1
        });
    });
}

/// A loader that hangs, as one of a database without a time limit does.
#[test]
fn i5_an_old_value_is_served_if_the_load_of_another_hangs() {
    within_limit(|| {
        in_time(LIMITS, |limit| {
            let set = |builder: Made<u32>| builder.load_timeout(limit).stale_if_error(TTL);
            let (cache, clock) = cache::<Threads, u32>(set);
            cache.put("k", 1).unwrap();
            clock.advance(TTL);
            let stuck = loading(&cache, "k", || Ok(2));
            let Some(waiting) = waiting::<3>(&cache, "k", || Ok(4)) else {
                drop(stuck.end());
                return false;
            };
            for caller in waiting {
                assert_eq!(told(caller.end()), (1, Source::Stale));
            }
            // Nobody waits again before the back-off is over, and then one leads.
            assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Stale));
            clock.advance(SECOND * 4);
            assert_eq!(told(cache.get_or_load("k", || Ok(3))), (3, Source::Loaded));
            drop(stuck.end());
            assert_eq!(told(cache.get_or_load("k", uncalled())), (3, Source::Hit));
            true
        });
    });
}

#[test]
fn what_was_written_meanwhile_is_served_in_place_of_the_old_value() {
    within_limit(|| {
        for invalidates in [false, true] {
            in_time(LIMITS, |limit| {
                let set = |builder: Made<u32>| builder.load_timeout(limit).stale_if_error(TTL);
                let (cache, clock) = cache::<Threads, u32>(set);
                cache.put("k", 1).unwrap();
                clock.advance(TTL);
                let stuck = loading(&cache, "k", || Ok(2));
                let begun = Instant::now();
                let waiting = waiting::<1>(&cache, "k", || Ok(4));
                if invalidates {
                    cache.invalidate("k").unwrap();
                } else {
                    cache.put("k", 3).unwrap();
                }
                let was_in_time = waiting.is_some() && begun.elapsed() < limit;
                for caller in waiting.into_iter().flatten().filter(|_| was_in_time) {
                    let expected = if invalidates { (4, Source::Loaded) } else { (3, Source::Hit) };
                    assert_eq!(told(caller.end()), expected);
                }
                drop(stuck.end());
                was_in_time
            });
        }
    });
}

#[test]
fn i5_a_batch_serves_old_values_if_the_loads_of_others_hang() {
    within_limit(|| {
        in_time(LIMITS, |limit| {
            let set = |builder: Made<u32>| builder.load_timeout(limit).stale_if_error(TTL);
            let (cache, clock) = cache::<Threads, u32>(set);
            cache.put("a", 1).unwrap();
            clock.advance(TTL);
            let stuck = loading(&cache, "a", || Ok(2));
            let mut calls = Vec::new();
            let load = |keys: Vec<&'static str>| {
                let values = vec![3; keys.len()];
                calls.push(keys);
                Ok(values)
            };
            let values = cache.get_or_load_many(["b", "a"], load).unwrap();
            if calls == [["b", "a"]] {
                drop(stuck.end());
                return false;
            }
            let values: Vec<_> = values.iter().map(|it| (it.value, it.source)).collect();
            assert_eq!(values, [(3, Source::Loaded), (1, Source::Stale)]);
            assert_eq!(calls, [["b"]]);
            assert_eq!(told(cache.get_or_load("a", uncalled())), (1, Source::Stale), "it is held up");
            drop(stuck.end());
            true
        });
    });
}

/// What has come meanwhile may be near alone, if the store does not answer. Then the old value is not served any more.
#[test]
fn a_batch_looks_near_before_it_serves_the_old_value_of_a_load_that_hangs() {
    within_limit(|| {
        in_time(LIMITS, |limit| {
            let (server, clock) = server();
            let store = Tiered::new(100, SECOND, server.another_process());
            let builder = builder(&clock).store(store).load_timeout(limit).stale_if_error(TTL).breaker(1, TTL);
            let cache = <<Threads as Way>::Cache<u32, _>>::with(builder, Refreshes::Beside);
            for (key, value) in [("k", 1), ("l", 7)] {
                cache.put(key, value).unwrap();
            }
            clock.advance(TTL);
            let stuck = ["k", "l"].map(|key| loading(&cache, key, || Ok(2)));
            let begun = Instant::now();
            let batch = run({
                let cache = cache.clone();
                move || cache.get_or_load_many(["l", "k"], |keys| Ok(vec![9; keys.len()]))
            });
            // One that is too late for a load waits for the lease of that, by the clock that stands still.
            let mut waits = false;
            until("it waits, or is late", || {
                waits = cache.waiters("k") == 1 && cache.waiters("l") == 1;
                waits || begun.elapsed() >= limit
            });
            // What was near is not any more.
            clock.advance(SECOND);
            server.set_failure(Some(Failure::LosesRequest));
            cache.set_coalescing(false);
            assert_eq!(told(cache.refresh("k", || Ok(3))), (3, Source::Loaded));
            cache.set_coalescing(true);
            assert_eq!(cache.stats().breaker_opened, 1);
            let was_in_time = waits && begun.elapsed() < limit;
            if was_in_time {
                let values: Vec<_> = batch.end().unwrap().iter().map(|it| (it.value, it.source)).collect();
                assert_eq!(values, [(7, Source::Stale), (3, Source::Hit)]);
            }
            stuck.into_iter().for_each(|stuck| drop(stuck.end()));
            was_in_time
        });
    });
}

/// What another process has put meanwhile is not near, and what is near is out of date.
#[test]
fn a_batch_asks_the_server_before_it_serves_the_old_value_of_a_load_that_hangs() {
    within_limit(|| {
        in_time(LIMITS, |limit| {
            let (server, clock) = server();
            let store = Tiered::new(100, TTL * 10, server.another_process());
            let builder = builder(&clock).store(store).load_timeout(limit).stale_if_error(TTL);
            let cache = <<Threads as Way>::Cache<u32, _>>::with(builder, Refreshes::Beside);
            cache.put("k", 1).unwrap();
            assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
            clock.advance(TTL);
            let begun = Instant::now();
            let stuck = loading(&cache, "k", || Ok(2));
            let batch = run({
                let cache = cache.clone();
                move || cache.get_or_load_many(["k"], |keys| Ok(vec![9; keys.len()]))
            });
            let mut waits = false;
            until("it waits, or has been too late", || {
                waits = cache.waiters("k") == 1;
                waits || batch.has_ended()
            });
            server.lose_announcements(true);
            let now = clock.now();
            let entry = Entry::new(3, 3, now, now.after(TTL), now.after(TTL), SECOND);
            BlockingStore::<str, u32>::put(&server, "k", entry, now).unwrap();
            let was_in_time = waits && begun.elapsed() < limit;
            if was_in_time {
                assert_eq!(told(Ok(batch.end().unwrap().remove(0))), (3, Source::Hit));
            }
            drop(stuck.end());
            was_in_time
        });
    });
}

#[test]
fn a_call_with_a_deadline_ends_and_the_load_goes_on_for_others() {
    within_limit(|| {
        let (cache, clock) = cache::<Threads, u32>(|builder| builder.stale_if_error(TTL));
        cache.put("old", 7).unwrap();
        clock.advance(TTL);
        let (on, old) = (loading(&cache, "k", || Ok(1)), loading(&cache, "old", || Ok(8)));
        assert!(matches!(cache.call("k").timeout(SOON).get_or_load(uncalled()), Err(Error::Deadline)));
        assert!(matches!(cache.call("k").timeout(Duration::ZERO).get_or_load(uncalled()), Err(Error::Deadline)));
        assert_eq!(told(cache.call("old").timeout(SOON).get_or_load(uncalled())), (7, Source::Stale));
        assert_eq!(cache.waiters("k"), 0);
        assert_eq!(told(on.end()), (1, Source::Loaded));
        assert_eq!(told(old.end()), (8, Source::Loaded));
        assert_eq!(told(cache.call("k").timeout(SOON).get_or_load(uncalled())), (1, Source::Hit));
    });
}

#[test]
fn calls_of_other_kinds_end_at_their_deadlines_as_well() {
    within_limit(|| {
        let (cache, clock) = cache::<Threads, u32>(|builder| builder.stale_if_error(TTL));
        cache.put("old", 7).unwrap();
        clock.advance(TTL);
        let (on, old) = (loading(&cache, "k", || Ok(1)), loading(&cache, "old", || Ok(8)));
        for limit in [SOON, Duration::ZERO] {
            let call = |key: &'static str| cache.call(key).timeout(limit);
            assert!(matches!(call("k").get_or_load_inline(uncalled()), Err(Error::Deadline)));
            assert_eq!(told(call("old").get_or_load_inline(uncalled())), (7, Source::Stale));
            assert!(matches!(call("k").refresh(uncalled()), Err(Error::Deadline)));
            assert!(matches!(call("old").refresh(uncalled()), Err(Error::Deadline)), "it wants no old value");
            let many = |keys: [&'static str; 2]| {
                cache.call_many(keys).timeout(limit).get_or_load(|_| unreachable!("others load them"))
            };
            assert!(matches!(many(["old", "k"]), Err(Error::Deadline)));
            let values = many(["old", "old"]).unwrap();
            assert_eq!(values.iter().map(|it| (it.value, it.source)).collect::<Vec<_>>(), [(7, Source::Stale); 2]);
            // What it leads it loads all the same.
            cache.invalidate("own").unwrap();
            let load = |keys: Vec<&str>| {
                assert_eq!(keys, ["own"]);
                Ok(vec![5])
            };
            assert!(matches!(cache.call_many(["own", "k"]).timeout(limit).get_or_load(load), Err(Error::Deadline)));
            assert_eq!(*cache.get("own").unwrap().unwrap(), 5);
        }
        assert_eq!(cache.waiters("k") + cache.waiters("old"), 0);
        assert_eq!(told(on.end()), (1, Source::Loaded));
        assert_eq!(told(old.end()), (8, Source::Loaded));
        assert_eq!(told(cache.call("k").timeout(SOON).get_or_load_inline(uncalled())), (1, Source::Hit));
        assert_eq!(told(cache.call("k").timeout(SOON).refresh(|| Ok(2))), (2, Source::Loaded));
        assert_eq!(told(cache.call("k").bypass().refresh(|| Ok(3))), (3, Source::Loaded));
        assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    });
}

/// A store without leases may take its time as well.
#[test]
fn what_the_store_takes_counts_towards_the_deadline_of_a_call() {
    within_limit(|| {
        // If it waits as long again, it is late each time.
        in_time(LIMITS, |limit| {
            let (store, stops) = Map::new();
            let (cache, _) = cache_in::<Threads, u32, _>(store, |builder| builder);
            let on = loading(&cache, "k", || Ok(1));
            let read = stops.next(Request::Get);
            let limited = run({
                let cache = cache.clone();
                move || cache.call("k").timeout(limit).get_or_load(uncalled())
            });
            read.reached.wait();
            std::thread::sleep(limit);
            let answered = Instant::now();
            read.go_on.open();
            assert!(matches!(limited.end(), Err(Error::Deadline)));
            let was_in_time = answered.elapsed() < limit;
            assert_eq!(told(on.end()), (1, Source::Loaded));
            was_in_time
        });
    });
}

#[test]
fn a_loader_that_borrows_refreshes_inline_though_there_are_helpers() {
    within_limit(|| {
        let (cache, clock) = cache::<Threads, u32>(|builder| builder.early_refresh(EAGER));
        let runs = Cell::new(0);
        let load = || {
            runs.set(runs.get() + 1);
            Ok(runs.get())
        };
        assert_eq!(told(cache.get_or_load_inline("k", load)), (1, Source::Loaded));
        assert_eq!(told(cache.get_or_load_inline("k", load)), (1, Source::Hit));
        clock.advance(TTL - SECOND);
        assert_eq!(told(cache.get_or_load_inline("k", load)), (2, Source::Early));
        assert_eq!(told(cache.get_or_load_inline("k", load)), (2, Source::Hit));
    });
}

#[test]
fn a_loader_that_calls_the_cache_for_its_own_key_is_told() {
    within_limit(|| {
        let (cache, _) = cache::<Threads, u32>(|builder| builder);
        let inner = cache.clone();
        let loader = move || {
            assert!(matches!(inner.get_or_load("k", uncalled()), Err(Error::Reentrant)));
            let many = inner.get_or_load_many(["l", "k"], |_| unreachable!("nothing is loaded"));
            assert!(matches!(many, Err(Error::Reentrant)));
            Ok(told(inner.get_or_load("other", || Ok(2))).0)
        };
        assert_eq!(told(cache.get_or_load("k", loader)), (2, Source::Loaded));
    });
}

/// As a single call does.
#[test]
fn a_batch_does_not_wait_for_a_load_that_is_stuck() {
    within_limit(|| {
        let (cache, _) = cache::<Threads, u32>(|builder| builder.load_timeout(Duration::from_millis(20)));
        let stuck = loading(&cache, "a", || Ok(1));
        let values = cache.get_or_load_many(["b", "a"], |keys| Ok(vec![2; keys.len()])).unwrap();
        assert_eq!(values.iter().map(|it| it.value).collect::<Vec<_>>(), [2, 2]);
        drop(stuck.end());
    });
}

/// It goes on with the rest, whether what it has loaded meanwhile is stored or not.
#[test]
fn a_batch_that_gives_up_waiting_loads_nothing_again() {
    within_limit(|| {
        for ttl in [TTL, Duration::ZERO] {
            in_time(LIMITS, |limit| {
                let (cache, _) = cache::<Threads, u32>(|builder| builder.load_timeout(limit).ttl(ttl));
                let stuck = loading(&cache, "a", || Ok(1));
                let mut calls = Vec::new();
                let load = |keys: Vec<&'static str>| {
                    let values = vec![2; keys.len()];
                    calls.push(keys);
                    Ok(values)
                };
                let values = cache.get_or_load_many(["b", "a", "b"], load).unwrap();
                let values: Vec<_> = values.iter().map(|it| (it.value, it.source)).collect();
                assert_eq!(values, [(2, Source::Loaded); 3]);
                let stats = cache.stats();
                drop(stuck.end());
                if calls == [["b", "a"]] {
                    return false;
                }
                assert_eq!(calls, [["b"], ["a"]]);
                assert_eq!((stats.loads, stats.hits, stats.joins), (3, 0, 0));
                true
            });
        }
    });
}

#[test]
fn a_batch_that_gives_up_waiting_has_its_own_error() {
    within_limit(|| {
        in_time(LIMITS, |limit| {
            let (cache, _) = cache::<Threads, u32>(|builder| builder.load_timeout(limit));
            let stuck = loading(&cache, "a", || Ok(1));
            let mut calls = Vec::new();
            let fails = cache.get_or_load_many(["b", "a"], |keys| {
                calls.push(keys);
                Err(Fail(7))
            });
            assert_eq!((failure(fails), calls.len()), (7, 1));
            drop(stuck.end());
            calls == [["b"]]
        });
    });
}

/// A value that cannot be cloned.
#[derive(Debug)]
struct Unique;

impl Clone for Unique {
    fn clone(&self) -> Self {
        std::panic::panic_any(Fail(7))
    }
}

#[test]
fn a_batch_that_gives_up_waiting_has_the_panic_of_its_own_values_clone() {
    within_limit(|| {
        in_time(LIMITS, |limit| {
            let (cache, _) = cache::<Threads, Unique>(|builder| builder.load_timeout(limit));
            let stuck = loading(&cache, "a", || Ok(Unique));
            let (runs, loaded) = (Runs::default(), Runs::default());
            let batch = run({
                let (cache, runs, loaded) = (cache.clone(), runs.clone(), loaded.clone());
                move || {
                    cache.get_or_load_many(["b", "a"], |keys| {
                        runs.add();
                        keys.iter().for_each(|_| loaded.add());
                        Ok(keys.iter().map(|_| Unique).collect())
                    })
                }
            });
            assert_eq!(*batch.panic().downcast::<Fail>().unwrap(), Fail(7));
            assert_eq!(runs.get(), 1);
            stuck.let_go().panic();
            loaded.get() == 1
        });
    });
}

#[test]
fn a_refresh_that_does_not_end_is_not_waited_for_longer_than_allowed() {
    within_limit(|| {
        for beside in [true, false] {
            let set = |builder: Made<u32>| builder.early_refresh(EAGER);
            let (cache, clock) = if beside { cache::<Threads, u32>(set) } else { inline_cache::<Threads, u32>(set) };
            cache.put("k", 1).unwrap();
            clock.advance(TTL - SECOND);
            let drawn = loading(&cache, "k", || Ok(2));
            assert!(!cache.close(SOON), "helpers: {beside}");
            drop(drawn.end());
            assert!(cache.close(SECOND * 30));
        }
    });
}

/// Two helpers do not do three refreshes at once, and do all of them.
#[test]
fn refreshes_wait_for_a_helper_to_be_free() {
    within_limit(|| {
        let (cache, clock) = cache::<Threads, u32>(|builder| builder.early_refresh(EAGER).helper_threads(1));
        cache.put("a", 1).unwrap();
        cache.put("b", 1).unwrap();
        clock.advance(TTL - SECOND);
        let (first, _) = refreshing(&cache, "a", || Ok(2));
        let begun = Gate::new();
        let tell = begun.clone();
        let second = move || {
            tell.open();
            Ok(3)
        };
        assert_eq!(told(cache.get_or_load("b", second)), (1, Source::Early));
        assert_eq!(told(cache.get_or_load("b", uncalled())), (1, Source::Hit));
        first.0.open();
        begun.wait();
        until("both are stored", || *cache.get("a").unwrap().unwrap() == 2 && *cache.get("b").unwrap().unwrap() == 3);
        assert!(cache.close(SECOND * 30));
    });
}

/// The threads go when the last handle does.
#[test]
fn helper_threads_end_with_the_cache() {
    within_limit(|| {
        let (ended, last) = (Gate::new(), Gate::new());
        struct Tell(Gate);
        impl Drop for Tell {
            fn drop(&mut self) {
                self.0.open();
            }
        }
        std::thread_local! {
            static TELL: Cell<Option<Tell>> = const { Cell::new(None) };
        }
        let (cache, clock) = cache::<Threads, u32>(|builder| builder.early_refresh(EAGER));
        cache.put("k", 1).unwrap();
        clock.advance(TTL - SECOND);
        let tell = Tell(ended.clone());
        let loader = {
            let last = last.clone();
            move || {
                // Dropped when the thread ends.
                TELL.set(Some(tell));
                last.wait();
                Ok(2)
            }
        };
        assert_eq!(told(cache.get_or_load("k", loader)), (1, Source::Early));
        // The refresh has the last handle.
        drop(cache);
        last.open();
        ended.wait();
    });
}

#[test]
fn a_refresh_that_waits_for_a_helper_does_not_keep_the_cache() {
    within_limit(|| {
        let (cache, clock) = cache::<Threads, u32>(|builder| builder.helper_threads(1).early_refresh(EAGER));
        for key in ["a", "b"] {
            cache.put(key, 1).unwrap();
        }
        clock.advance(TTL - SECOND);
        let (first, _) = refreshing(&cache, "a", || Ok(2));
        assert_eq!(told(cache.get_or_load("b", uncalled())), (1, Source::Early));
        drop(cache);
        // If the second were done, it would panic, and in the thread that is let go here.
        first.0.open();
    });
}

#[test]
fn a_refresh_that_is_stuck_has_a_successor_past_the_load_timeout() {
    within_limit(|| {
        let (cache, clock) = cache::<Threads, u32>(|builder| builder.early_refresh(EAGER).load_timeout(SECOND));
        cache.put("k", 1).unwrap();
        clock.advance(TTL - SECOND * 20);
        let (stuck, _) = refreshing(&cache, "k", || Ok(2));
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
        clock.advance(SECOND * 2);
        assert_eq!(told(cache.get_or_load("k", || Ok(3))), (1, Source::Early), "another may be drawn");
        stuck.0.open();
    });
}

/// Loaders that hang, as those of a database without a time limit do, hold up no others.
#[test]
fn helpers_that_are_stuck_are_replaced_past_the_load_timeout() {
    within_limit(|| {
        let set =
            |builder: Made<u32>| builder.early_refresh(EAGER).load_timeout(SECOND).helper_threads(2).max_refreshes(3);
        let (cache, clock) = cache::<Threads, u32>(set);
        for key in ["a", "b", "c", "d"] {
            cache.put(key, 1).unwrap();
        }
        clock.advance(TTL - SECOND * 20);
        let stuck = ["a", "b"].map(|key| refreshing(&cache, key, || Ok(2)).0);
        clock.advance(SECOND * 2);
        let (third, answer) = refreshing(&cache, "c", || Ok(3));
        assert_eq!(told(answer), (1, Source::Early), "it goes on beside this");
        clock.advance(SECOND * 2);
        assert_eq!(told(cache.get_or_load("d", uncalled())), (1, Source::Hit), "so many refreshes are on as may be");
        assert!(!cache.close(SOON), "those that are stuck are waited for");
        for refresh in stuck.into_iter().chain([third]) {
            refresh.0.open();
        }
        assert!(cache.close(SECOND * 30));
    });
}

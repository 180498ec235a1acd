//! What concerns the cache for tasks only.

use crate::support::gate::Gate;
use crate::support::limits::{until, within_limit};
use crate::support::model::ModelStore;
use crate::support::run::{aged, joining, loading, run, told, uncalled};
use crate::support::stores::{Map, Request};
use crate::support::task_ways::{Executor, TaskCache, Tasks};
use crate::support::way::{Answer, AnyCache, Fail, Made, SECOND, TTL, builder, cache, cache_in, inline_cache};
use futures_lite::future::{block_on, pending, poll_once, yield_now};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Blocking, BoxFuture, Cache, Error, Memory, Policy, Source, Store, Tiered};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const EAGER: Policy = Policy::Eager { window: 0.5 };

type Plain = Cache<String, u32, Fail>;

fn plain(set: impl FnOnce(Made<u32>) -> Made<u32>) -> (Plain, ManualClock) {
    let clock = ManualClock::new();
    (set(builder(&clock)).build(), clock)
}

async fn ok(value: u32) -> Result<u32, Fail> {
    Ok(value)
}

#[test]
fn a_leader_that_is_dropped_hands_the_load_on() {
    within_limit(|| {
        let (cache, _) = plain(|builder| builder);
        block_on(async {
            let gate = Arc::new(Mutex::new(false));
            let loader = {
                let gate = Arc::clone(&gate);
                || async move {
                    while !*gate.lock().unwrap() {
                        yield_now().await;
                    }
                    Ok(1)
                }
            };
            let mut first = Box::pin(cache.get_or_load("k", loader));
            assert!(poll_once(&mut first).await.is_none());
            let mut second = pin!(cache.get_or_load("k", || async { unreachable!("the load goes on") }));
            assert!(poll_once(&mut second).await.is_none());
            drop(first);
            *gate.lock().unwrap() = true;
            assert_eq!(told(second.await).0, 1);
            assert_eq!(cache.stats().loads, 1);
        });
    });
}

/// By a timer that adds what it is asked for to what its clock shows, which is not what the cache's own shows.
#[test]
fn limits_that_never_end_are_no_limits() {
    within_limit(|| {
        let timer = |duration: Duration| {
            let at = Instant::now() + duration;
            async move {
                ::smol::Timer::at(at).await;
            }
        };
        let (store, stops) = Map::new();
        let builder = Cache::<String, u32, Fail>::builder().store(store).timer(timer).load_timeout(Duration::MAX);
        let cache: Cache<String, u32, Fail, _> = builder.build();
        let waits = |value| {
            move || async move {
                yield_now().await;
                Ok(value)
            }
        };
        block_on(async {
            let call = cache.call("a").timeout(Duration::MAX);
            assert_eq!(told(call.get_or_load(waits(1)).await), (1, Source::Loaded));
            assert_eq!(told(cache.call("a").timeout(Duration::MAX).refresh(waits(2)).await), (2, Source::Loaded));
            // What is left of the limit is asked for once the store has to be waited for.
            let put = stops.next(Request::Put);
            put.go_on.open();
            let load = |_: Vec<&str>| waits(3)();
            let values = cache
                .call_many(["b"])
                .timeout(Duration::MAX)
                .get_or_load(async |keys| Ok(vec![load(keys).await?]))
                .await;
            assert_eq!(*values.unwrap()[0], 3);
            assert_eq!(*cache.get("b").await.unwrap().unwrap(), 3);
        });
    });
}

#[test]
fn a_load_that_is_dropped_asks_a_blocking_store_nothing() {
    within_limit(|| {
        let clock = ManualClock::new();
        let server = ModelStore::<u32>::new(clock.clone());
        let cache: Cache<String, u32, Fail, _> = builder(&clock).store(Blocking(server.another_process())).build();
        block_on(async {
            let mut load = Box::pin(cache.get_or_load("k", pending));
            assert!(poll_once(&mut load).await.is_none());
            assert!(server.is_held("k"));
            server.take_steps();
            drop(load);
            assert_eq!(server.take_steps(), [""; 0]);
            clock.advance(SECOND * 5);
            assert_eq!(told(cache.get_or_load("k", || ok(1)).await), (1, Source::Loaded));
            assert_eq!(cache.stats().held, 0, "the lease has run out");
        });
    });
}

/// Also through two tiers.
#[test]
fn a_load_that_is_dropped_gives_its_lease_up() {
    fn dropped(server: &ModelStore<u32>, cache: &Cache<String, u32, Fail, impl Store<String, u32> + Store<str, u32>>) {
        block_on(async {
            let mut load = Box::pin(cache.get_or_load("k", pending));
            assert!(poll_once(&mut load).await.is_none());
            assert!(server.is_held("k"));
            drop(load);
            assert!(!server.is_held("k"));
        });
    }
    let clock = ManualClock::new();
    let server = ModelStore::<u32>::new(clock.clone());
    dropped(&server, &builder(&clock).store(server.another_process()).build());
    let tiers = Tiered::new(100, SECOND, server.another_process());
    dropped(&server, &builder(&clock).store(tiers).build());
}

#[test]
fn a_lone_leader_that_is_dropped_leaves_the_key_free() {
    within_limit(|| {
        let (cache, _) = plain(|builder| builder.max_loads(1).max_waiters(0));
        block_on(async {
            let mut first = Box::pin(cache.get_or_load("k", pending));
            assert!(poll_once(&mut first).await.is_none());
            drop(first);
            assert_eq!(told(cache.get_or_load("k", || ok(2)).await), (2, Source::Loaded));
        });
    });
}

/// Also one whose loader then panics.
fn a_detached_load_goes_on_when_its_callers_have_left(executor: Executor) {
    let kept: Arc<Mutex<Vec<BoxFuture>>> = Arc::default();
    let spawner = {
        let kept = Arc::clone(&kept);
        move |work| kept.lock().unwrap().push(work)
    };
    let (cache, _) = plain(|builder| builder.spawner(spawner).detach_loads(true).max_loads(1));
    let gate = Arc::new(Mutex::new(false));
    let loader = |value: u32| {
        let gate = Arc::clone(&gate);
        move || async move {
            while !*gate.lock().unwrap() {
                yield_now().await;
            }
            assert!(value > 0, "a loader's panic");
            Ok(value)
        }
    };
    let spawned = || std::mem::take(&mut *kept.lock().unwrap());
    block_on(async {
        let mut first = Box::pin(cache.get_or_load("k", loader(1)));
        let mut second = Box::pin(cache.get_or_load("k", || ok(2)));
        assert!(poll_once(&mut first).await.is_none() && poll_once(&mut second).await.is_none());
        drop(first);
        assert!(kept.lock().unwrap().is_empty(), "another waits for it");
        drop(second);
        let mut third = Box::pin(cache.get_or_load("k", || ok(3)));
        assert!(poll_once(&mut third).await.is_none(), "it joins");
        *gate.lock().unwrap() = true;
        for work in spawned() {
            executor.drive(work);
        }
        assert_eq!(told(third.await).0, 1);
        assert_eq!(told(cache.get_or_load("k", || ok(4)).await), (1, Source::Hit));

        *gate.lock().unwrap() = false;
        let mut fails = Box::pin(cache.get_or_load("panics", loader(0)));
        assert!(poll_once(&mut fails).await.is_none());
        drop(fails);
        *gate.lock().unwrap() = true;
        for work in spawned() {
            executor.drive(work);
        }
        assert_eq!(told(cache.get_or_load("panics", || ok(5)).await), (5, Source::Loaded));
    });
    assert_eq!((cache.stats().loads, cache.stats().load_errors), (3, 1));
}

/// Nobody drops it.
#[test]
fn a_detached_load_whose_store_never_answers_is_left_behind() {
    const LIMIT: Duration = Duration::from_millis(20);
    within_limit(|| {
        let (map, stops) = Map::new();
        let builder = builder(&ManualClock::new()).store(map).load_timeout(LIMIT).spawner(drop).detach_loads(true);
        let cache: Cache<String, u32, Fail, Map<u32>> = builder.build();
        let look = stops.next(Request::Get);
        let first = run({
            let cache = cache.clone();
            move || block_on(cache.get_or_load("k", || ok(1)))
        });
        look.reached.wait();
        let never = stops.next(Request::Get);
        look.go_on.open();
        never.reached.wait();
        // Flights age by the real time.
        std::thread::sleep(LIMIT * 3);
        assert_eq!(told(block_on(cache.get_or_load("k", || ok(2)))), (2, Source::Loaded));
        never.go_on.open();
        assert_eq!(told(first.end()), (1, Source::Loaded));
    });
}

#[test]
fn a_refresh_that_ends_with_its_call_holds_up_the_next_one() {
    let (cache, clock) = plain(|builder| builder.early_refresh(EAGER));
    block_on(async {
        cache.put("k", 1).await.unwrap();
        clock.advance(TTL - SECOND * 10);
        let mut call = pin!(cache.call("k").timeout(SECOND).get_or_load(pending));
        assert!(poll_once(&mut call).await.is_none());
        clock.advance(SECOND);
        assert_eq!(told(call.await), (1, Source::Early));
        let next = poll_once(pin!(cache.get_or_load("k", pending))).await;
        assert_eq!(next.map(told), Some((1, Source::Hit)));
    });
}

#[test]
#[should_panic(expected = "detach_loads needs a spawner")]
fn loads_are_not_detached_without_a_spawner() {
    plain(|builder| builder.detach_loads(true));
}

/// As its documentation says. A call's own time limit ends its wait.
#[test]
fn a_batch_that_is_kept_and_not_polled_holds_up_its_keys_until_it_is_dropped() {
    within_limit(|| {
        let (cache, clock) = plain(|builder| builder.load_timeout(SECOND));
        block_on(async {
            let mut batch = Box::pin(cache.get_or_load_many(["a", "b"], |_| pending()));
            assert!(poll_once(&mut batch).await.is_none());
            let mut waits = pin!(cache.get_or_load("a", || ok(1)));
            let mut limited = pin!(cache.call("b").timeout(SECOND).get_or_load(|| ok(2)));
            assert!(poll_once(&mut waits).await.is_none() && poll_once(&mut limited).await.is_none());
            clock.advance(SECOND * 100);
            assert!(poll_once(&mut waits).await.is_none());
            assert!(matches!(limited.await, Err(Error::Deadline)));
            drop(batch);
            assert_eq!(told(waits.await), (1, Source::Loaded));
        });
    });
}

#[test]
fn a_bypass_that_takes_too_long_is_counted_as_a_load_that_failed() {
    within_limit(|| {
        let (cache, clock) = plain(|builder| builder);
        block_on(async {
            let call = cache.call("k").bypass().timeout(SECOND);
            let mut late = pin!(call.get_or_load(pending));
            assert!(poll_once(&mut late).await.is_none());
            clock.advance(SECOND);
            assert!(matches!(late.await, Err(Error::Deadline)));
            let stats = cache.stats();
            assert_eq!((stats.loads, stats.load_errors, stats.load_times.count()), (1, 1, 1));
        });
    });
}

/// A loader may start its work when it is called, before its future is polled: in a thread, or as a task of its own.
#[test]
fn a_loader_that_begins_when_it_is_called_is_made_void_by_a_write_from_then_on() {
    within_limit(|| {
        for early in [false, true] {
            let (cache, clock) = plain(|builder| builder.early_refresh(EAGER));
            let cache = Arc::new(cache);
            block_on(async {
                if early {
                    cache.put("k", 7).await.unwrap();
                    clock.advance(TTL - SECOND);
                }
                let writer = Arc::clone(&cache);
                let loader = move || {
                    // It has read what it returns, and then the key is written.
                    block_on(writer.invalidate("k")).unwrap();
                    ok(1)
                };
                let value = told(cache.get_or_load("k", loader).await).0;
                assert!(value == 1 || early);
                assert!(cache.get("k").await.unwrap().is_none(), "early: {early}");
            });
        }
    });
}

#[test]
fn a_loader_that_panics_when_it_is_called_for_a_refresh_costs_no_caller_its_value() {
    within_limit(|| {
        let (cache, clock) = plain(|builder| builder.early_refresh(EAGER));
        block_on(async {
            cache.put("k", 1).await.unwrap();
            clock.advance(TTL - SECOND * 20);
            let panics = || -> std::future::Ready<Result<u32, Fail>> { panic!("a loader's panic") };
            assert_eq!(told(cache.get_or_load("k", panics).await), (1, Source::Early));
            assert_eq!(cache.stats().load_errors, 1);
            clock.advance(SECOND);
            assert_eq!(told(cache.get_or_load("k", || ok(2)).await), (2, Source::Early));
        });
    });
}

#[test]
fn a_loader_is_not_called_before_its_turn() {
    within_limit(|| {
        let never = || -> std::future::Ready<Result<u32, Fail>> { unreachable!("there is no room for it") };
        let (cache, clock) = plain(|builder| builder.max_loads(0).early_refresh(EAGER));
        block_on(async {
            assert!(matches!(cache.get_or_load("k", never).await, Err(Error::Overloaded)));
            assert!(matches!(cache.refresh("k", never).await, Err(Error::Overloaded)));
            cache.put("k", 1).await.unwrap();
            clock.advance(TTL - SECOND);
            assert_eq!(told(cache.get_or_load("k", never).await).0, 1);
        });
    });
}

fn a_load_that_takes_too_long_is_dropped_and_all_are_told(_: Executor) {
    let (cache, clock) = cache::<Tasks, u32>(|builder| builder.load_timeout(SECOND * 30));
    let first = loading(&cache, "k", || Ok(1));
    let second = joining(&cache, "k", uncalled());
    until("the limit is set", || clock.sleepers() > 0);
    clock.advance(SECOND * 30 - Duration::from_nanos(1));
    clock.advance(Duration::from_nanos(1));
    until("the load is over", || cache.stats().load_errors == 1);
    assert!(matches!(first.end(), Err(Error::LoadTimedOut)));
    assert!(matches!(second.end(), Err(Error::LoadTimedOut)));
    assert!(cache.get("k").unwrap().is_none());
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
}

fn a_call_with_a_deadline_ends_and_the_load_goes_on_for_others(executor: Executor) {
    let (cache, clock) = cache::<Tasks, u32>(|builder| builder);
    let call = move |cache: &TaskCache<u32, Memory<String, u32>>, limit: Duration| -> Answer<u32> {
        let cache = cache.cache.clone();
        executor.drive(async move { cache.call("k").timeout(limit).get_or_load(pending).await })
    };
    let first = loading(&cache, "k", || Ok(1));
    let limited = run({
        let cache = cache.clone();
        move || call(&cache, SECOND)
    });
    until("it waits", || cache.waiters("k") == 1 && clock.sleepers() > 0);
    clock.advance(SECOND);
    assert!(matches!(limited.end(), Err(Error::Deadline)));
    let limited = run({
        let cache = cache.cache.clone();
        move || executor.drive(async move { cache.call("k").timeout(SECOND).refresh(pending).await })
    });
    until("it waits", || cache.waiters("k") == 1 && clock.sleepers() > 0);
    clock.advance(SECOND);
    assert!(matches!(limited.end(), Err(Error::Deadline)));
    assert_eq!(cache.waiters("k"), 0);
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(call(&cache, SECOND)), (1, Source::Hit));
}

/// Also of a refresh that the call has drawn and would do itself, and of a load instead of which an old value may be served.
fn a_deadline_ends_with_the_old_value_where_there_is_one(executor: Executor) {
    let (cache, clock) = inline_cache::<Tasks, u32>(|builder| builder.early_refresh(EAGER).stale_if_error(TTL));
    cache.put("k", 1).unwrap();
    for (advance, source) in [(TTL - SECOND * 5, Source::Early), (SECOND * 10, Source::Stale)] {
        clock.advance(advance);
        let limited = run({
            let cache = cache.cache.clone();
            move || executor.drive(async move { cache.call("k").timeout(SECOND).get_or_load(pending).await })
        });
        until("the limit is set", || clock.sleepers() > 0);
        clock.advance(SECOND);
        assert_eq!(told(limited.end()), (1, source));
    }
}

/// J4.
fn j4_whatever_a_spawner_does_the_hit_returns_and_a_later_one_may_refresh(executor: Executor) {
    type Kept = Arc<Mutex<Vec<BoxFuture>>>;
    for what in ["panics", "drops", "keeps"] {
        let clock = ManualClock::new();
        let kept: Kept = Arc::default();
        let spawner = {
            let kept = Arc::clone(&kept);
            move |refresh: BoxFuture| match what {
                "panics" => panic!("a spawner's panic"),
                "drops" => drop(refresh),
                _ => kept.lock().unwrap().push(refresh),
            }
        };
        let cache: Plain = builder(&clock).early_refresh(EAGER).max_refreshes(1).spawner(spawner).build();
        executor.drive(async move {
            cache.put("k", 1).await.unwrap();
            clock.advance(TTL - SECOND);
            assert_eq!(told(cache.get_or_load("k", || ok(2)).await), (1, Source::Early));
            let again = told(cache.get_or_load("k", || ok(3)).await);
            if what == "keeps" {
                assert_eq!(again, (1, Source::Hit), "it is on until it is dropped");
                let refresh = kept.lock().unwrap().pop();
                drop(refresh);
                assert_eq!(told(cache.get_or_load("k", || ok(4)).await), (1, Source::Early));
                let refresh = kept.lock().unwrap().pop().unwrap();
                refresh.await;
                assert_eq!(told(cache.get("k").await.map(Option::unwrap)), (4, Source::Hit));
            } else {
                assert_eq!(again, (1, Source::Early));
            }
        });
    }
}

/// A refresh that the executor has not come to yet.
fn a_refresh_is_as_old_as_its_first_poll_and_comes_to_nothing_once_the_cache_is_closed(executor: Executor) {
    let clock = ManualClock::new();
    let kept: Arc<Mutex<Vec<BoxFuture>>> = Arc::default();
    let spawner = {
        let kept = Arc::clone(&kept);
        move |refresh: BoxFuture| kept.lock().unwrap().push(refresh)
    };
    let cache: Plain = builder(&clock).early_refresh(EAGER).spawner(spawner).build();
    executor.drive(async move {
        let queued = || kept.lock().unwrap().pop().unwrap();
        cache.put("k", 1).await.unwrap();
        clock.advance(TTL - SECOND * 20);
        assert_eq!(told(cache.get_or_load("k", || ok(2)).await), (1, Source::Early));
        clock.advance(SECOND * 5);
        queued().await;
        assert_eq!(aged(cache.get("k").await.map(Option::unwrap)), (2, Source::Hit, 0));
        assert!(cache.stats().load_times.quantile(1.0).is_some_and(|longest| longest < SECOND));
        clock.advance(TTL - SECOND);
        let never = || async { unreachable!("the cache is closed") };
        assert_eq!(told(cache.get_or_load("k", never).await), (2, Source::Early));
        assert!(!cache.close(Duration::ZERO).await);
        queued().await;
        assert_eq!(told(cache.get("k").await.map(Option::unwrap)), (2, Source::Hit));
        assert!(cache.close(Duration::ZERO).await);
    });
}

/// Another writes to that part of the store, and hears nothing.
fn a_value_that_cannot_be_stored_in_time_is_handed_out(executor: Executor) {
    let (store, stops) = Map::new();
    let (cache, clock) = cache_in::<Tasks, u32, _>(store, |builder| builder.load_timeout(SECOND));
    let put = stops.next(Request::Put);
    let writing = run({
        let cache = cache.clone();
        move || cache.put("k", 1)
    });
    put.reached.wait();
    let loading = run({
        let cache = cache.cache.clone();
        move || executor.drive(async move { cache.get_or_load("k", || ok(2)).await })
    });
    until("it waits for its turn", || clock.sleepers() > 0);
    clock.advance(SECOND);
    assert_eq!(told(loading.end()), (2, Source::Loaded));
    put.go_on.open();
    writing.end().unwrap();
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
}

fn a_loader_that_calls_the_cache_for_its_own_key_is_told(executor: Executor) {
    let (cache, _) = cache::<Tasks, u32>(|builder| builder);
    let cache = cache.cache;
    executor.drive(async move {
        let inner = cache.clone();
        let loader = move || async move {
            assert!(matches!(inner.get_or_load("k", || ok(1)).await, Err(Error::Reentrant)));
            let many = inner.get_or_load_many(["l", "k"], |_| async { unreachable!("nothing is loaded") }).await;
            assert!(matches!(many, Err(Error::Reentrant)));
            let other = inner.get_or_load("other", || ok(2)).await;
            Ok(told(other).0)
        };
        assert_eq!(told(cache.get_or_load("k", loader).await), (2, Source::Loaded));
    });
}

/// Also one that a batch has drawn, which ends with the old value.
fn closing_drops_a_refresh_that_does_not_end(executor: Executor) {
    for of_batch in [false, true] {
        closing_drops_a_refresh(executor, of_batch);
    }
}

fn closing_drops_a_refresh(executor: Executor, of_batch: bool) {
    let clock = ManualClock::new();
    let cache: Plain = builder(&clock).early_refresh(EAGER).spawner(move |task| executor.spawn(task)).build();
    let (begun, dropped) = (Gate::new(), Gate::new());
    struct Tell(Gate);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.open();
        }
    }
    let tell = Tell(dropped.clone());
    let drive = {
        let (cache, clock, begun) = (cache.clone(), clock.clone(), begun.clone());
        async move {
            cache.put("k", 1).await.unwrap();
            clock.advance(TTL - SECOND);
            let never = move || async move {
                let _tell = tell;
                begun.open();
                pending::<Result<u32, Fail>>().await
            };
            if of_batch {
                let mut never = Some(never);
                let load = |_| {
                    let loading = never.take().expect("called once")();
                    async { loading.await.map(|value| vec![value]) }
                };
                let many = cache.get_or_load_many(["k"], load).await;
                assert_eq!(told(many.map(|mut many| many.remove(0))), (1, Source::Early));
            } else {
                assert_eq!(told(cache.get_or_load("k", never).await), (1, Source::Early));
            }
        }
    };
    let driven = run(move || executor.drive(drive));
    // Otherwise it might find the value expired, and end.
    begun.wait();
    let closing = run({
        let cache = cache.clone();
        move || executor.drive(async move { cache.close(SECOND).await })
    });
    until("it waits", || clock.sleepers() > 0);
    clock.advance(SECOND);
    assert!(!closing.end());
    dropped.wait();
    driven.end();
}

macro_rules! on_each {
    ($($case:ident;)+) => {
        on_each! { @on smol Smol $($case)+ }
        on_each! { @on tokio Tokio $($case)+ }
        on_each! { @on block_on BlockOn $($case)+ }
    };
    (@on $name:ident $executor:ident $($case:ident)+) => {
        mod $name {
            $(#[test]
            fn $case() {
                super::within_limit(|| {
                    super::Executor::$executor.choose();
                    super::$case(super::Executor::$executor);
                });
            })+
        }
    };
}

on_each! {
    a_load_that_takes_too_long_is_dropped_and_all_are_told;
    a_detached_load_goes_on_when_its_callers_have_left;
    a_call_with_a_deadline_ends_and_the_load_goes_on_for_others;
    a_deadline_ends_with_the_old_value_where_there_is_one;
    j4_whatever_a_spawner_does_the_hit_returns_and_a_later_one_may_refresh;
    a_refresh_is_as_old_as_its_first_poll_and_comes_to_nothing_once_the_cache_is_closed;
    a_value_that_cannot_be_stored_in_time_is_handed_out;
    a_loader_that_calls_the_cache_for_its_own_key_is_told;
    closing_drops_a_refresh_that_does_not_end;
}

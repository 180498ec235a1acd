//! Calls for several keys with options of their own. What threads have in common with their single calls stands in `only_threads`.

use super::hanging::Hanging;
use super::leases::server;
use crate::support::limits::within_limit;
use crate::support::run::{held, told};
use crate::support::stores::{Map, Request, Stops};
use crate::support::way::{AnyCache, Fail, Refreshes, SECOND, TTL, builder};
use futures_lite::future::{block_on, pending, poll_once};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Cache, Error, Fetched, Source, Tiered, blocking};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

type Tasks = Cache<String, u32, Fail>;
type Threads = blocking::Cache<String, u32, Fail>;

/// What comes of a call whose time is up after a second, and not before.
async fn late<T>(clock: &ManualClock, call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    assert!(poll_once(&mut call).await.is_none(), "it waits");
    clock.advance(SECOND);
    call.await
}

async fn uncalled(_: Vec<&str>) -> Result<Vec<u32>, Fail> {
    unreachable!("this loader is not to be called")
}

/// Its key that has failed ends it, and its refresh ends all the same.
#[test]
fn a_tasks_call_that_is_late_holds_its_refreshes_up_though_a_load_of_its_own_has_failed() {
    within_limit(|| {
        let clock = ManualClock::new();
        let cache: Tasks = builder(&clock).stale_while_revalidate(TTL).build();
        block_on(async {
            cache.put("old", 7).await.unwrap();
            clock.advance(TTL);
            let mut on = Box::pin(cache.refresh("old", pending));
            assert!(poll_once(&mut on).await.is_none());
            let fails = |_: Vec<&str>| async { Err(Fail(1)) };
            let many = cache.call_many(["a", "old"]).timeout(SECOND).get_or_load(fails);
            assert!(matches!(late(&clock, many).await, Err(Error::Load(error)) if *error == Fail(1)));
            drop(on);
            let old = cache.get_or_load("old", || async { unreachable!("the next refresh waits") }).await;
            assert_eq!(told(old), (7, Source::Stale));
            assert_eq!(cache.stats().stale, 2);
        });
    });
}

fn all(fetched: Result<Vec<Fetched<u32>>, Error<Fail>>) -> Vec<(u32, Source)> {
    fetched.expect("there are values").into_iter().map(|fetched| told(Ok(fetched))).collect()
}

#[test]
fn a_tasks_call_ends_at_its_deadline_and_the_loads_of_others_go_on() {
    within_limit(|| {
        let clock = ManualClock::new();
        let cache: Tasks = builder(&clock).stale_if_error(TTL).build();
        let done = Arc::new(AtomicBool::new(false));
        let when_done = |value| {
            let done = Arc::clone(&done);
            move || {
                poll_fn(move |cx| {
                    cx.waker().wake_by_ref();
                    if done.load(Ordering::SeqCst) { Poll::Ready(Ok(value)) } else { Poll::Pending }
                })
            }
        };
        block_on(async {
            cache.put("old", 7).await.unwrap();
            clock.advance(TTL);
            let mut on = Box::pin(cache.get_or_load("k", when_done(1)));
            let mut old = Box::pin(cache.get_or_load("old", when_done(8)));
            assert!(poll_once(&mut on).await.is_none() && poll_once(&mut old).await.is_none());
            let many = |keys: [&'static str; 2]| cache.call_many(keys).timeout(SECOND).get_or_load(uncalled);
            assert!(matches!(late(&clock, many(["old", "k"])).await, Err(Error::Deadline)));
            assert_eq!(all(late(&clock, many(["old", "old"])).await), [(7, Source::Stale); 2]);
            // What it has loaded itself it gets.
            let own = |keys: [&'static str; 2]| {
                let load = |keys: Vec<&'static str>| {
                    assert_eq!(keys, ["own"]);
                    async { Ok(vec![5]) }
                };
                cache.call_many(keys).timeout(SECOND).get_or_load(load)
            };
            assert_eq!(all(late(&clock, own(["own", "old"])).await), [(5, Source::Loaded), (7, Source::Stale)]);
            cache.invalidate("own").await.unwrap();
            assert!(matches!(late(&clock, own(["own", "k"])).await, Err(Error::Deadline)));
            assert_eq!(*cache.get("own").await.unwrap().unwrap(), 5);
            assert_eq!(cache.waiters("k") + cache.waiters("old"), 0);
            done.store(true, Ordering::SeqCst);
            assert_eq!(told(on.await), (1, Source::Loaded));
            assert_eq!(told(old.await), (8, Source::Loaded));
            assert_eq!(all(many(["k", "old"]).await), [(1, Source::Hit), (8, Source::Hit)]);
        });
    });
}

#[test]
fn what_a_task_loads_is_handed_on_when_its_time_is_up() {
    within_limit(|| {
        let clock = ManualClock::new();
        let cache: Tasks = builder(&clock).build();
        block_on(async {
            let mut limited = pin!(cache.call_many(["k"]).timeout(SECOND).get_or_load(|_| pending()));
            assert!(poll_once(&mut limited).await.is_none());
            let mut waits = pin!(cache.get_or_load("k", || async { Ok(3) }));
            assert!(poll_once(&mut waits).await.is_none());
            clock.advance(SECOND);
            assert!(matches!(limited.await, Err(Error::Deadline)));
            assert_eq!(told(waits.await), (3, Source::Loaded));
        });
    });
}

#[test]
fn a_tasks_refresh_ends_with_its_call_and_the_next_one_waits() {
    within_limit(|| {
        let clock = ManualClock::new();
        let cache: Tasks = builder(&clock).stale_while_revalidate(TTL).build();
        block_on(async {
            cache.put("k", 7).await.unwrap();
            clock.advance(TTL);
            let call = cache.call_many(["k"]).timeout(SECOND).get_or_load(|_| pending());
            assert_eq!(all(late(&clock, call).await), [(7, Source::Stale)]);
            assert_eq!(told(cache.get_or_load("k", || async { unreachable!() }).await), (7, Source::Stale));
            assert_eq!(cache.stats().loads, 1);
        });
    });
}

/// A load on demand that takes long is joined by refreshes. A batch whose time is up over that holds the next ones up, each time.
#[test]
fn a_refresh_that_joins_a_slow_load_ends_with_its_call_and_the_next_one_waits() {
    within_limit(|| {
        let clock = ManualClock::new();
        let cache: Tasks = builder(&clock).stale_while_revalidate(TTL).build();
        block_on(async {
            cache.put("k", 7).await.unwrap();
            clock.advance(TTL);
            let mut slow = pin!(cache.refresh("k", pending));
            assert!(poll_once(&mut slow).await.is_none());
            for _ in 0..2 {
                let many = || cache.call_many(["k"]).timeout(SECOND).get_or_load(uncalled);
                assert_eq!(all(late(&clock, many()).await), [(7, Source::Stale)]);
                let next = poll_once(pin!(many())).await.expect("it waits for nothing");
                assert_eq!(all(next), [(7, Source::Stale)]);
                clock.advance(SECOND * 4);
            }
        });
    });
    within_limit(|| {
        let clock = ManualClock::new();
        let cache = Threads::with(builder(&clock).stale_while_revalidate(TTL), Refreshes::Inline);
        cache.put("k", 7).unwrap();
        clock.advance(TTL);
        let slow = held(|| Ok(8), {
            let cache = cache.clone();
            move |loader| cache.refresh("k", loader)
        });
        let nothing = |_: Vec<&str>| unreachable!("this loader is not to be called");
        let call = cache.call_many(["k"]).timeout(Duration::ZERO);
        assert_eq!(all(call.get_or_load(nothing)), [(7, Source::Stale)]);
        assert_eq!(all(cache.get_or_load_many(["k"], nothing)), [(7, Source::Stale)]);
        assert_eq!(told(slow.end()), (8, Source::Loaded));
    });
}

/// The time is up before the server has said whether it has a newer one.
#[test]
fn a_tasks_call_has_the_old_value_that_is_near_though_the_server_hangs() {
    within_limit(|| {
        let (server, clock) = server();
        let stops = Stops::default();
        let store = Tiered::new(100, TTL * 3, Hanging(server.another_process(), stops.clone()));
        let cache = builder(&clock).store(store).stale_if_error(TTL).build();
        block_on(async {
            cache.put("k", 1).await.unwrap();
            assert_eq!(told(cache.get_or_load("k", pending).await), (1, Source::Hit));
            clock.advance(TTL);
            let stopped = [(); 3].map(|()| stops.next(Request::Get));
            let one = late(&clock, cache.call("k").timeout(SECOND).get_or_load(pending)).await;
            assert_eq!(told(one), (1, Source::Stale));
            let many = |keys: [&'static str; 2]| cache.call_many(keys).timeout(SECOND).get_or_load(uncalled);
            assert_eq!(all(late(&clock, many(["k", "k"])).await), [(1, Source::Stale), (1, Source::Stale)]);
            let missing = late(&clock, many(["k", "missing"])).await;
            assert!(matches!(missing, Err(Error::Deadline)), "{missing:?}");
            stopped.iter().for_each(|stopped| stopped.go_on.open());
        });
    });
}

#[test]
fn a_tasks_call_ends_at_its_deadline_though_the_store_hangs() {
    within_limit(|| {
        let clock = ManualClock::new();
        let (map, stops) = Map::<u32>::new();
        let cache: Cache<String, u32, Fail, Map<u32>> = builder(&clock).store(map).build();
        let stopped = [(); 2].map(|()| stops.next(Request::Get));
        block_on(async {
            let call = cache.call_many(["a", "b"]).timeout(SECOND).get_or_load(uncalled);
            assert!(matches!(late(&clock, call).await, Err(Error::Deadline)));
            let call = cache.call("a").timeout(SECOND).get_or_load(pending);
            assert!(matches!(late(&clock, call).await, Err(Error::Deadline)));
        });
        assert_eq!((cache.stats().misses, cache.stats().loads), (3, 0));
        stopped.iter().for_each(|stopped| stopped.go_on.open());
    });
}

#[test]
fn a_bypass_of_several_keys_reads_and_stores_nothing() {
    const KEYS: [&str; 3] = ["k", "new", "k"];
    fn loaded(keys: Vec<&str>) -> Result<Vec<u32>, Fail> {
        assert_eq!(keys, ["k", "new"], "each once");
        Ok(vec![1, 2])
    }
    let expected = [(1, Source::Loaded), (2, Source::Loaded), (1, Source::Loaded)];
    within_limit(move || {
        let clock = ManualClock::new();
        let threads: Threads = builder(&clock).build_blocking();
        threads.put("k", 7).unwrap();
        assert_eq!(all(threads.call_many(KEYS).bypass().get_or_load(loaded)), expected);
        assert_eq!(threads.get("k").unwrap().map(|found| *found), Some(7));
        assert!(threads.get("new").unwrap().is_none());
        assert!(matches!(threads.call_many(KEYS).bypass().get_or_load(|_| Err(Fail(3))), Err(Error::Load(_))));
        let wrong = || threads.call_many(KEYS).bypass().get_or_load(|_| Ok(vec![1]));
        catch_unwind(AssertUnwindSafe(wrong)).unwrap_err();
        assert_eq!((threads.stats().loads, threads.stats().load_errors), (3, 2));

        let tasks: Tasks = builder(&clock).build();
        block_on(async {
            tasks.put("k", 7).await.unwrap();
            let call = tasks.call_many(KEYS).bypass().get_or_load(|keys| async { loaded(keys) });
            assert_eq!(all(call.await), expected);
            assert_eq!(tasks.get("k").await.unwrap().map(|found| *found), Some(7));
            assert!(tasks.get("new").await.unwrap().is_none());
            let call = tasks.call_many(KEYS).bypass().timeout(SECOND).get_or_load(|_| pending());
            assert!(matches!(late(&clock, call).await, Err(Error::Deadline)));
            let none: [&str; 0] = [];
            assert!(tasks.call_many(none).bypass().get_or_load(uncalled).await.unwrap().is_empty());
        });
        assert_eq!((tasks.stats().loads, tasks.stats().load_errors), (2, 1));
    });
}

#[test]
fn a_tasks_call_can_be_sent() {
    fn sendable<T: Send>(_: &T) {}
    let cache: Tasks = builder(&ManualClock::new()).build();
    sendable(&cache.call_many(["k"]).timeout(SECOND).get_or_load(uncalled));
}

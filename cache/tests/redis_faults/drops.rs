//! Futures that are dropped at every await point.

use super::settings::{Kind, Settings};
use super::subject::{tasks_cache, threads_cache};
use crate::redis_support::server::Server;
use futures_lite::future::{poll_once, yield_now};
use oneflight_cache::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

const KEYS: u32 = 16;
const DROPS: u32 = 10_000;

fn key(number: u32) -> String {
    format!("k{}", number % KEYS)
}

/// What each read of the key returns, and nobody else's.
fn value(key: &str) -> String {
    format!("value-of-{key}")
}

/// Polls `call` a few times, and drops it, unless it has ended before.
async fn drop_early<T>(call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    for _ in 0..fastrand::u32(0..6) {
        if let Some(ended) = poll_once(&mut call).await {
            return Some(ended);
        }
        // Gives an answer the time to come, now and then.
        match fastrand::u32(0..4) {
            0 => thread::sleep(Duration::from_micros(200)),
            _ => yield_now().await,
        }
    }
    None
}

pub(crate) fn k6_a_future_that_is_dropped_anywhere_leaves_each_key_its_own_value(kind: Kind) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    fastrand::seed(seed);
    let server = Server::start();
    // What a dropped future has left half done does not hold up the end.
    let settings = Settings { lease: Duration::from_millis(500), ..Settings::new(kind, server.url()) };
    if kind == Kind::Threads {
        return threads_that_give_up(&settings);
    }
    let cache = tasks_cache(&settings);
    kind.drive(async {
        for number in 0..DROPS {
            let key = key(number);
            match fastrand::u32(0..8) {
                0 => drop(drop_early(cache.put(key.as_str(), value(&key))).await),
                1 => drop(drop_early(cache.invalidate(key.as_str())).await),
                2 | 3 => {
                    if let Some(Ok(Some(found))) = drop_early(cache.get(key.as_str())).await {
                        assert_eq!(*found, value(&key));
                    }
                }
                _ => {
                    let loaded = value(&key);
                    let load = || async { Ok(loaded) };
                    if let Some(found) = drop_early(cache.get_or_load(key.as_str(), load)).await {
                        assert_eq!(*found.expect("no error escapes"), value(&key));
                    }
                }
            }
        }
        for number in 0..KEYS {
            let key = key(number);
            let loaded = value(&key);
            let found = cache.get_or_load(key.as_str(), || async { Ok(loaded) }).await;
            assert_eq!(*found.expect("no error escapes"), value(&key));
            let found = cache.get(key.as_str()).await.expect("the server is there").expect("it is stored");
            assert_eq!(*found, value(&key));
        }
    });
}

/// A thread cannot be dropped. It can give up, which leaves an answer that comes too late: because the store waits for so long, or
/// a call has so much time.
fn threads_that_give_up(settings: &Settings) {
    let hasty = threads_cache(&Settings { response: Duration::from_millis(1), ..settings.clone() });
    let patient = threads_cache(settings);
    let [hits, given_up] = [(); 2].map(|()| AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..DROPS / 4 {
                    let key = key(number);
                    let cache = if fastrand::bool() { &hasty } else { &patient };
                    match fastrand::u32(0..8) {
                        // Errors are of those that have given up.
                        0 => drop(cache.put(key.as_str(), value(&key))),
                        1 => drop(cache.invalidate(key.as_str())),
                        2 | 3 => {
                            if let Ok(Some(found)) = cache.get(key.as_str()) {
                                assert_eq!(*found, value(&key));
                            }
                        }
                        4 | 5 => {
                            let loaded = value(&key);
                            let found = cache.get_or_load(key.as_str(), || Ok(loaded));
                            assert_eq!(*found.expect("no error escapes"), value(&key));
                        }
                        _ => {
                            let loaded = value(&key);
                            let call = patient.call(key.as_str()).timeout(Duration::from_micros(fastrand::u64(0..500)));
                            match call.get_or_load(|| Ok(loaded)) {
                                Err(Error::Deadline) => _ = given_up.fetch_add(1, Ordering::Relaxed),
                                found => assert_eq!(*found.expect("no other error escapes"), value(&key)),
                            }
                            // Over the connections that are left.
                            if let Some(found) = patient.get(key.as_str()).expect("the server is there") {
                                assert_eq!(*found, value(&key));
                                hits.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                }
            });
        }
    });
    let [hits, given_up] = [hits, given_up].map(AtomicU32::into_inner);
    assert!(hits > 100 && given_up > 100, "{hits} hits, {given_up} have given up");
}

/// They are on the stacks of whoever polls them: a client's own are ten times as large.
#[test]
fn futures_are_small() {
    let server = Server::start();
    let cache = tasks_cache(&Settings::new(Kind::BlockOn, server.url()));
    let load = || async { Ok(String::new()) };
    for size in [size_of_val(&cache.get_or_load("k", load)), size_of_val(&cache.put("k", String::new()))] {
        assert!(size <= 4_096, "{size} bytes");
    }
}

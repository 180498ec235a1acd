//! Caches on the store: what one process writes, and what another serves then.

use crate::bench::settings;
use crate::redis_support::server::Server;
use crate::redis_support::until;
use oneflight_cache::blocking::Cache;
use oneflight_cache::{BlockingStore, BoxError, Error, Policy, Tiered};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Words<S> = Cache<String, String, BoxError, S>;

fn cache<S: BlockingStore<String, String>>(store: S) -> Words<S> {
    Cache::builder().ttl(Duration::from_secs(3_600)).store(store).build_blocking()
}

/// What is near has an hour to live, so only what is pushed can end it.
#[test]
fn a_write_ends_what_other_processes_keep_near() {
    let server = Server::start();
    let near = || Tiered::new(100, Duration::from_secs(3_600), settings().connect_blocking(&server.url()).unwrap());
    let (writer, reader) = (cache(near()), cache(near()));
    let read = || reader.get("k").unwrap().map(|found| found.value);
    let mut number = 0;
    // Again and again, as the first writes may come before the reader listens.
    until("a value that another has put", || {
        number += 1;
        writer.put("k", number.to_string()).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        (read() == Some(number.to_string())).then_some(())
    });
    until("that another has removed it", || {
        writer.put("k", "again".to_owned()).unwrap();
        let _ = read();
        writer.invalidate("k").unwrap();
        std::thread::sleep(Duration::from_millis(2));
        read().is_none().then_some(())
    });
    until("that another has removed all", || {
        writer.put("k", "again".to_owned()).unwrap();
        let _ = read();
        writer.invalidate_all().unwrap();
        std::thread::sleep(Duration::from_millis(2));
        read().is_none().then_some(())
    });
}

/// J2. Every read draws a refresh.
#[test]
fn of_eight_caches_whose_reads_refresh_early_one_loads() {
    let server = Server::start();
    let caches = [(); 8].map(|()| {
        let builder = Cache::builder().ttl(Duration::from_secs(3_600)).early_refresh(Policy::Eager { window: 1.0 });
        let cache: Words<_> = builder.store(settings().connect_blocking(&server.url()).unwrap()).build_blocking();
        cache
    });
    caches[0].put("k", "old".to_owned()).unwrap();
    let (loads, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(())));
    let held = gate.lock().unwrap();
    let read = |cache: &Words<_>| {
        let (loads, gate) = (Arc::clone(&loads), Arc::clone(&gate));
        let loader = move || {
            loads.fetch_add(1, Ordering::SeqCst);
            drop(gate.lock());
            Ok("new".to_owned())
        };
        cache.get_or_load("k", loader).unwrap().value
    };
    let all_read = || {
        std::thread::scope(|threads| {
            for cache in &caches {
                threads.spawn(|| (0..20).for_each(|_| assert_eq!(read(cache), "old", "nobody waits")));
            }
        });
    };
    all_read();
    until("a refresh", || (loads.load(Ordering::SeqCst) > 0).then_some(()));
    all_read();
    assert_eq!(loads.load(Ordering::SeqCst), 1);
    drop(held);
    until("the new value", || (caches[7].get("k").unwrap()?.value == "new").then_some(()));
}

/// I7.
#[test]
fn a_put_that_a_full_server_refuses_leaves_nothing_older() {
    let server = Server::start();
    let cache = cache(settings().connect_blocking(&server.url()).unwrap());
    cache.put("k", "old".to_owned()).unwrap();
    server.config_set("maxmemory-policy", "noeviction");
    server.config_set("maxmemory", "1");
    assert!(matches!(cache.put("k", "new".to_owned()), Err(Error::Store(_))));
    assert!(cache.get("k").unwrap().is_none(), "what was to be replaced is not served as if it were right");
    server.config_set("maxmemory", "0");
    cache.put("k", "new".to_owned()).unwrap();
    assert_eq!(*cache.get("k").unwrap().unwrap(), "new");
}

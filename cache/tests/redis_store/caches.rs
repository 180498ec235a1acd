//! Caches on the store: what one process writes, and what another serves then.

use crate::bench::{Bench, LEASE, now, settings};
use crate::redis_support::proxy::{Fault, Mode};
use crate::redis_support::server::Server;
use crate::redis_support::until;
use oneflight_cache::blocking::Cache;
use oneflight_cache::lease::{Acquired, BlockingLease};
use oneflight_cache::{BlockingStore, BoxError, Error, Fallback, Policy, Source, Tiered};
use redis::Commands;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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
        let builder = builder.lease(LEASE);
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

/// I7: there is no room for a lease either.
#[test]
fn a_refresh_on_demand_that_a_full_server_refuses_leaves_nothing_older() {
    let server = Server::start();
    let cache = cache(settings().connect_blocking(&server.url()).unwrap());
    cache.put("k", "old".to_owned()).unwrap();
    server.config_set("maxmemory-policy", "noeviction");
    server.config_set("maxmemory", "1");
    assert_eq!(*cache.refresh("k", || Ok("new".to_owned())).unwrap(), "new");
    assert!(cache.get("k").unwrap().is_none());
}

/// K4: the leases of a process that has died end together.
#[test]
fn a_batch_takes_over_all_keys_of_a_process_that_has_died() {
    let server = Server::start();
    let mut bench = Bench::on(server);
    let keys: Vec<String> = (0..50).map(|number| format!("key {number}")).collect();
    for key in &keys {
        let acquired = bench.store.acquire(key.as_str(), Bench::claim(7, None), now()).unwrap();
        assert!(matches!(acquired, Acquired::<String>::Leader { .. }));
    }
    let cache = cache(bench.other());
    let calls = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        let batch = threads.spawn(|| {
            let load = |keys: Vec<&String>| {
                calls.fetch_add(1, Ordering::SeqCst);
                Ok(keys.into_iter().cloned().collect())
            };
            cache.get_or_load_many(&keys, load).unwrap()
        });
        until("it waits", || (cache.stats().held >= 50).then_some(()));
        let mut end = redis::pipe();
        end.atomic();
        let leases: Vec<String> = bench.raw.keys("*:l").unwrap();
        leases.iter().for_each(|lease| _ = end.cmd("PEXPIRE").arg(lease).arg(300).ignore());
        end.exec(&mut bench.raw).unwrap();
        let values: Vec<String> = batch.join().unwrap().into_iter().map(|fetched| fetched.value).collect();
        assert_eq!(values, keys);
    });
    // They may end while it looks: then it has asked for some of them too early.
    let calls = calls.into_inner();
    assert!(calls <= 3, "{calls} calls");
    assert_eq!(bench.server.keys().iter().filter(|name| name.ends_with(":l")).count(), 0);
}

/// Thousands at once would take longer than the limit for an answer, and be taken for a server that is away.
#[test]
fn a_batch_of_tasks_sends_so_many_requests_at_once_and_no_more() {
    let server = Server::start();
    let proxy = server.proxy();
    let store = settings().response_timeout(Duration::from_secs(12)).connect(&proxy.url()).unwrap();
    let forever = Duration::from_secs(3_600);
    let cache: oneflight_cache::Cache<u32, String, BoxError, _> =
        oneflight_cache::Cache::builder().store(store).lease(LEASE).breaker(3, forever).build();
    let keys: Vec<u32> = (0..1_000).collect();
    let before = AtomicUsize::new(0);
    let load = |keys: Vec<&u32>| {
        // Nothing that is to be stored is answered: so as many are sent as at once, and then the server is left alone.
        before.store(proxy.commands("EVALSHA") as usize, Ordering::SeqCst);
        proxy.set(Mode::Swallow);
        let values = keys.into_iter().map(u32::to_string).collect();
        async move { Ok(values) }
    };
    let values = smol::block_on(cache.get_or_load_many(&keys, load)).unwrap();
    assert!(values.iter().zip(&keys).all(|(value, key)| **value == key.to_string()));
    assert_eq!((cache.stats().loads, cache.stats().fallbacks), (1, 0));
    assert_eq!(proxy.commands("EVALSHA") as usize - before.into_inner(), 128);
}

/// The time of a call is that of all that it asks for, also of a thread.
#[test]
fn a_call_of_a_thread_ends_in_its_time_though_the_server_does_not_answer() {
    let server = Server::start();
    let proxy = server.proxy();
    // The store's own limits are a minute.
    let cache = cache(settings().connect_blocking(&proxy.url()).unwrap());
    let late = |key: &str| {
        let begun = Instant::now();
        let call = cache.call(key).timeout(Duration::from_millis(50));
        let loaded = call.get_or_load(|| panic!("there is no time to load"));
        assert!(matches!(loaded, Err(Error::Deadline)), "{loaded:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    };
    cache.put("k", "value".to_owned()).unwrap();
    // The request for the lease has no answer.
    proxy.once(|words| words[0] == "EVALSHA", Fault::Swallow);
    late("none");
    // Nor has the read; nor is there a connection in time, or a reply to its first command.
    for _ in 0..5 {
        proxy.set(Mode::Hang);
        late("k");
    }
    proxy.set(Mode::Pass);
    let patient = cache.call("k").timeout(Duration::from_secs(60));
    let found = patient.get_or_load(|| panic!("it is there")).unwrap();
    assert_eq!((found.value.as_str(), found.source), ("value", Source::Hit));
    assert_eq!(cache.stats().breaker_opened, 0, "it was the calls that had too little time");
}

/// Also where nothing is to be loaded past a store that fails: whoever has joined the call loads for itself.
#[test]
fn a_call_of_a_thread_that_ends_is_no_failure_of_the_store() {
    let server = Server::start();
    let proxy = server.proxy();
    let store = settings().connect_blocking(&proxy.url()).unwrap();
    let cache: Words<_> = Cache::builder().on_store_error(Fallback::Fail).store(store).build_blocking();
    cache.put("other", "value".to_owned()).unwrap();
    let round = |seconds: u64| {
        let (key, limit, before) = (seconds.to_string(), Duration::from_secs(seconds), proxy.commands("EVALSHA"));
        let name = format!(":{key}}}");
        let is_its = move |words: &[String]| words[0] == "EVALSHA" && words.iter().any(|word| word.contains(&name));
        proxy.once(is_its, Fault::Swallow);
        std::thread::scope(|scope| {
            let limited = scope.spawn(|| cache.call(&key).timeout(limit).get_or_load(|| panic!("there is no time")));
            let has_asked = until("it asks for the lease, or its time is up", || {
                let has_ended = limited.is_finished();
                let has_asked = proxy.commands("EVALSHA") > before;
                (has_asked || has_ended).then_some(has_asked)
            });
            if has_asked {
                let joined = cache.get_or_load(&key, || Ok("value".to_owned())).unwrap();
                assert_eq!(joined.value, "value");
            }
            assert!(matches!(limited.join().unwrap(), Err(Error::Deadline)));
            has_asked
        })
    };
    assert!([1, 5, 25].into_iter().any(round), "it asks for the lease");
}

#[test]
fn a_call_of_a_thread_that_refreshes_by_itself_ends_in_its_time() {
    let server = Server::start();
    let proxy = server.proxy();
    let store = settings().connect_blocking(&proxy.url()).unwrap();
    let (fresh, stale) = (Duration::from_millis(1), Duration::from_secs(3_600));
    let builder = Cache::builder().ttl(fresh).stale_while_revalidate(stale).helper_threads(0);
    let cache: Words<_> = builder.store(store).build_blocking();
    cache.put("k", "value".to_owned()).unwrap();
    until("it is stale", || cache.get("k").unwrap().filter(|found| found.source == Source::Stale));
    proxy.once(|words| words[0] == "EVALSHA", Fault::Swallow);
    let round = |millis| {
        let begun = Instant::now();
        let call = cache.call("k").timeout(Duration::from_millis(millis));
        let loaded = call.get_or_load(|| panic!("there is no time to load"));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        // Then the read had no answer in time.
        if matches!(loaded, Err(Error::Deadline)) {
            return false;
        }
        let found = loaded.unwrap();
        assert_eq!((found.value.as_str(), found.source), ("value", Source::Stale));
        true
    };
    assert!([50, 500, 15_000].into_iter().any(round), "it has what is stale");
}

/// Case I4.
#[test]
fn that_there_is_nothing_is_kept_until_another_process_puts_something() {
    type Optional<S> = Cache<String, Option<String>, BoxError, S>;
    let server = Server::start();
    let store = || settings().connect_blocking(&server.url()).unwrap();
    fn cache<S: BlockingStore<String, Option<String>>>(store: S) -> Optional<S> {
        let life = Duration::from_secs(3_600);
        Cache::builder().ttl(life).negative_ttl(life).early_refresh(Policy::Never).store(store).build_blocking()
    }
    let writer = cache(store());
    let reader = cache(store());
    let nothing = reader.get_or_load("k", || Ok(None)).unwrap();
    assert_eq!((nothing.source, nothing.value), (Source::Loaded, None));
    let nothing = writer.get_or_load("k", || panic!("it is stored that there is nothing")).unwrap();
    assert_eq!((nothing.source, nothing.value), (Source::Hit, None));
    writer.put("k", Some("put".to_owned())).unwrap();
    let found = reader.get_or_load("k", || panic!("it is stored")).unwrap();
    assert_eq!((found.source, found.value.as_deref()), (Source::Hit, Some("put")));

    let near = cache(Tiered::new(100, Duration::from_secs(3_600), store()));
    let mut number = 0;
    // Again and again, as the first writes may come before the reader listens.
    until("a value in place of nothing, which is near", || {
        number += 1;
        writer.put("k", None).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        let _ = near.get("k").unwrap();
        writer.put("k", Some(number.to_string())).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        (near.get("k").unwrap().and_then(|found| found.value) == Some(number.to_string())).then_some(())
    });
}

/// Case I11.
#[test]
fn a_value_without_an_expiry_is_never_refreshed_early() {
    let mut bench = Bench::new();
    for policy in [Policy::Eager { window: 1.0 }, Policy::XFetch { beta: 1.0, max_window: 1.0 }] {
        let builder = Cache::builder().ttl(Duration::from_secs(3_600)).early_refresh(policy).helper_threads(0);
        let words: Words<_> = builder.rng(|| 0.0).store(bench.other()).build_blocking();
        words.put("k", "put".to_owned()).unwrap();
        let name = bench.name('v');
        assert_eq!(bench.server.cli(&["PERSIST", &name]), "1");
        for _ in 0..3 {
            let found = words.get_or_load("k", || panic!("it has no end")).unwrap();
            assert_eq!((found.source, &*found.value), (Source::Hit, "put"), "{policy:?}");
        }
    }
}

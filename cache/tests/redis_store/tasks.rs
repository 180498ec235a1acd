//! What only tasks have, and clusters.

use crate::bench::{Bench, KEY, LEASE, all_found, entry, known, now, settings};
use crate::redis_support::server::Server;
use crate::redis_support::until;
use crate::servers::{RIGHTS, user, user_of_a_database};
use oneflight_cache::Store;
use oneflight_cache::lease::{Acquired, Lease, Publication, Push};
use oneflight_cache::redis::{Builder, Bytes, Error, HeldLease, RedisLease, RedisStore, blocking};
use std::fmt::Debug;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Each step of a store, and of its leases.
async fn every_step(store: &RedisStore, other: &RedisStore) {
    assert_eq!(Store::<_, String>::get(store, KEY, now()).await.unwrap(), None);
    let acquired = store.acquire(KEY, Bench::claim(1, None), now()).await.unwrap();
    let Acquired::<String>::Leader { epoch } = acquired else { panic!("{acquired:?}") };
    let held: Acquired<String> = other.acquire(KEY, Bench::claim(2, None), now()).await.unwrap();
    assert!(matches!(held, Acquired::Held { holder: 1, .. }));
    assert!(Lease::<_, String>::renew(store, KEY, 1, LEASE).await.unwrap());
    assert_eq!(store.publish(KEY, 1, epoch, entry("value", 7), now()).await.unwrap(), Publication::Stored);
    assert_eq!(known(other.get(KEY, now()).await.unwrap()), known(Some(entry("value", 7))));
    assert_eq!(store.publish(KEY, 1, epoch, entry("again", 8), now()).await.unwrap(), Publication::Superseded);

    let acquired = store.acquire(KEY, Bench::claim(1, Some(7)), now()).await.unwrap();
    assert!(matches!(acquired, Acquired::<String>::Leader { .. }));
    Lease::<_, String>::release(store, KEY, 1).await.unwrap();
    other.put(KEY, entry("put", 9), now()).await.unwrap();
    store.put("other", entry("other", 10), now()).await.unwrap();
    let found = all_found(store.get_many(&["other", "none", KEY], now()).await);
    let found: Vec<_> = found.into_iter().map(known).collect();
    assert_eq!(found, [Some(("other".to_owned(), 10)), None, Some(("put".to_owned(), 9))]);
    Store::<_, String>::remove(store, KEY).await.unwrap();
    assert_eq!(Store::<_, String>::get(other, KEY, now()).await.unwrap(), None);
    Store::<str, String>::clear(store).await.unwrap();
    assert_eq!(Store::<_, String>::get(store, "other", now()).await.unwrap(), None);
    assert_eq!(store.unreadable(), 0);
}

#[test]
fn all_may_be_shared_between_threads() {
    fn shared<T: Send + Sync + Unpin + Debug>() {}
    fn sent<T: Send>(_: impl FnOnce(&'static RedisStore, &'static RedisLease) -> T) {}
    shared::<(RedisStore, RedisLease, HeldLease)>();
    shared::<(blocking::RedisStore, blocking::RedisLease, blocking::HeldLease)>();
    shared::<(Builder, Bytes, Error)>();
    sent(|store, _| Store::<str, String>::get(store, KEY, now()));
    sent(|store, _| Store::<str, String>::put(store, KEY, entry("", 1), now()));
    sent(|store, _| Lease::<str, String>::acquire(store, KEY, Bench::claim(1, None), now()));
    sent(|_, leases| leases.acquire(KEY, LEASE));
}

#[test]
fn tasks_do_the_same() {
    let server = Server::start();
    let store = || settings().generation_life(Duration::ZERO).connect(&server.url()).unwrap();
    smol::block_on(every_step(&store(), &store()));
}

#[test]
fn a_lease_that_is_abandoned_is_given_up() {
    let bench = Bench::new();
    let store = settings().connect(&bench.server.url()).unwrap();
    smol::block_on(async {
        for token in 1..=3 {
            let acquired = store.acquire(KEY, Bench::claim(token, None), now()).await.unwrap();
            assert!(matches!(acquired, Acquired::<String>::Leader { .. }), "{acquired:?}");
            Lease::<_, String>::abandon(&store, KEY, token);
            until("the lease is given up", || {
                bench.server.keys().iter().all(|name| !name.ends_with(":l")).then_some(())
            });
        }
    });
}

#[test]
fn tasks_and_threads_read_what_the_others_wrote() {
    let mut bench = Bench::new();
    let tasks = settings().connect(&bench.server.url()).unwrap();
    bench.put("threads", 7);
    smol::block_on(async {
        assert_eq!(known(tasks.get(KEY, now()).await.unwrap()), known(Some(entry("threads", 7))));
        tasks.put(KEY, entry("tasks", 8), now()).await.unwrap();
    });
    assert_eq!(known(bench.entry()), known(Some(entry("tasks", 8))));
}

#[test]
fn tasks_are_told_what_happens_to_a_key() {
    let mut bench = Bench::new();
    let store = settings().connect(&bench.server.url()).unwrap();
    pushed(&store, || {
        bench.lead(1);
        bench.release(1);
    });
}

#[test]
fn the_rights_in_the_docs_are_enough_for_tasks() {
    let mut bench = Bench::new();
    let store = settings().connect(&user(&bench.server, RIGHTS)).unwrap();
    smol::block_on(every_step(&store, &store));
    assert!(!format!("{store:?}").contains("secret"));
    pushed(&store, || {
        bench.lead(1);
        bench.release(1);
    });
    let store = settings().connect(&user_of_a_database(&bench.server)).unwrap();
    smol::block_on(every_step(&store, &store));
    pushed(&store, || {
        bench.lead(1);
        bench.release(1);
    });
    assert!(bench.server.cli(&["INFO", "keyspace"]).contains("db3:"), "it is where the URL says");
}

#[cfg(feature = "redis-cluster")]
#[test]
fn the_rights_in_the_docs_are_enough_for_a_cluster() {
    let server = Server::cluster();
    let url = user(&server, &format!("{RIGHTS} +spublish +ssubscribe +asking +cluster|slots"));
    let store = settings().connect_cluster([url]).unwrap();
    let other = settings().connect_cluster([server.url()]).unwrap();
    smol::block_on(every_step(&store, &store));
    pushed(&store, || {
        smol::block_on(async {
            let acquired = other.acquire(KEY, Bench::claim(1, None), now()).await.unwrap();
            assert!(matches!(acquired, Acquired::<String>::Leader { .. }), "{acquired:?}");
            Lease::<_, String>::release(&other, KEY, 1).await.unwrap();
        });
    });
}

/// That the key is released is told to who watches it.
fn pushed(store: &RedisStore, release: impl FnOnce()) {
    told(store, Push::Released, release);
}

/// What is told to who watches the key.
fn told(store: &RedisStore, push: Push, happens: impl FnOnce()) {
    let limit = Duration::from_secs(60);
    let (tell, told) = channel();
    let tell = move |push| {
        let _ = tell.send(push);
    };
    let watch = Lease::<_, String>::watch(store, KEY, Box::new(tell)).expect("it pushes");
    assert_eq!(told.recv_timeout(limit), Ok(Push::Listening));
    happens();
    // What happened before may be told late.
    while told.recv_timeout(limit).expect("it is told") != push {}
    drop(watch);
}

/// Case K9.
#[cfg(feature = "redis-cluster")]
#[test]
fn a_cluster_does_the_same() {
    let server = Server::cluster();
    let store = |life| settings().generation_life(life).connect_cluster([server.url()]).unwrap();
    let (trusting, doubting) = (store(Duration::from_secs(1_000)), store(Duration::ZERO));
    smol::block_on(async {
        every_step(&doubting, &doubting).await;
        // Names with braces: a script whose names are in different slots is refused.
        for key in ["", "{", "}", "{}", "}{", "{a}b", "a}:v"] {
            let acquired = trusting.acquire(key, Bench::claim(1, None), now()).await.unwrap();
            let Acquired::<String>::Leader { epoch } = acquired else { panic!("{acquired:?}") };
            assert_eq!(trusting.publish(key, 1, epoch, entry(key, 7), now()).await.unwrap(), Publication::Stored);
            assert_eq!(known(doubting.get(key, now()).await.unwrap()), known(Some(entry(key, 7))));
        }
    });
    pushed(&trusting, || {
        smol::block_on(async {
            let acquired = doubting.acquire(KEY, Bench::claim(1, None), now()).await.unwrap();
            assert!(matches!(acquired, Acquired::<String>::Leader { .. }), "{acquired:?}");
            Lease::<_, String>::release(&doubting, KEY, 1).await.unwrap();
        });
    });
    told(&trusting, Push::Written, || {
        smol::block_on(Store::<str, String>::clear(&doubting)).unwrap();
    });
    assert_eq!(server.calls("publish"), 0, "all of it is pushed over the sharded channels");
}

/// A task that is not polled any more holds up nobody, wherever it stands: here it makes the connection.
#[test]
fn a_task_that_is_not_polled_any_more_holds_up_no_other() {
    use std::future::Future;
    use std::task::{Context, Waker};
    let server = Server::start();
    let store = settings().prefix("parked").connect(&server.url()).unwrap();
    let cache: oneflight_cache::Cache<String, String, oneflight_cache::BoxError, _> =
        oneflight_cache::Cache::builder().store(store).build();
    let mut parked = Box::pin(cache.get_or_load("a", || async { Ok("a".to_owned()) }));
    assert!(parked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    smol::block_on(async {
        assert_eq!(*cache.get_or_load("b", || async { Ok("b".to_owned()) }).await.unwrap(), "b");
        cache.invalidate("b").await.unwrap();
        assert_eq!(*parked.await.unwrap(), "a");
    });
}

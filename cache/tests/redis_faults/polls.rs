//! Futures that are dropped at each of their polls, one after the other, on a server and on a cluster.

use super::settings::Kind;
use crate::redis_support::server::Server;
use crate::redis_support::until;
use oneflight_cache::redis::{Builder, RedisLease, RedisStore, blocking};
use oneflight_cache::{BoxError, Cache};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Of leases of which none is to run out.
const TTL: Duration = Duration::from_secs(600);
const KEYS: [&str; 3] = ["a", "b", "c"];

type Words = Cache<String, String, BoxError, RedisStore>;

/// Polls `call` so many times, each time when it has been woken, and drops it, unless it has ended before.
async fn drop_at<T>(polls: u32, call: impl Future<Output = T>) -> Option<T> {
    let (mut call, mut left) = (pin!(call), polls);
    poll_fn(|cx| {
        if left > 0 {
            left -= 1;
            if let Poll::Ready(ended) = call.as_mut().poll(cx) {
                return Poll::Ready(Some(ended));
            }
        }
        if left > 0 { Poll::Pending } else { Poll::Ready(None) }
    })
    .await
}

/// What each read of the key returns, and nobody else's.
fn value(key: &str) -> String {
    format!("value-of-{key}")
}

/// One of the operations of a cache.
async fn operate(cache: &Words, operation: u32) {
    let key = KEYS[0];
    match operation {
        0 => {
            let found = cache.get(key).await.expect("no error escapes");
            assert!(found.is_none_or(|found| *found == value(key)));
        }
        1 => cache.put(key, value(key)).await.expect("no error escapes"),
        2 => cache.invalidate(key).await.expect("no error escapes"),
        3 => {
            let found = cache.get_or_load(key, || async { Ok(value(key)) }).await;
            assert_eq!(*found.expect("no error escapes"), value(key));
        }
        _ => {
            let load = |keys: Vec<&str>| {
                let values = keys.into_iter().map(value).collect();
                async { Ok(values) }
            };
            let found = cache.get_or_load_many(KEYS, load).await.expect("no error escapes");
            assert!(found.iter().zip(KEYS).all(|(found, key)| **found == value(key)));
        }
    }
}

async fn operations_are_dropped(store: RedisStore) {
    // What a dropped future has left half done does not hold up the next.
    let builder = Cache::builder().ttl(TTL).ttl_jitter(0.0).lease(Duration::from_millis(300));
    let cache: Words = builder.store(store).build();
    let mut most_polls = 0;
    for operation in 0..5 {
        for polls in 0.. {
            let ended = drop_at(polls, operate(&cache, operation)).await.is_some();
            for key in KEYS {
                let found = cache.get_or_load(key, move || async move { Ok(value(key)) }).await;
                assert_eq!(*found.expect("no error escapes"), value(key), "operation {operation}, poll {polls}");
                let found = cache.get(key).await.expect("no error escapes");
                assert!(found.is_none_or(|found| *found == value(key)), "operation {operation}, poll {polls}");
                cache.invalidate(key).await.expect("no error escapes");
            }
            if ended {
                most_polls = most_polls.max(polls);
                break;
            }
        }
    }
    // Not each of them: the answer may be there already when the first poll looks for it.
    assert!(most_polls > 1, "they ask the server");
    assert_eq!(cache.in_flight(), 0);
}

async fn leases_are_dropped(leases: RedisLease, others: &blocking::RedisLease) {
    let mut most_polls = 0;
    for polls in 0.. {
        let key = format!("acquire-{polls}");
        if let Some(lease) = drop_at(polls, leases.acquire(&key, TTL)).await {
            assert!(lease.expect("the server is there").is_some());
            most_polls = polls;
            break;
        }
        // Long before it would run out.
        until("it is given up", || others.acquire(&key, TTL).expect("the server is there").map(drop));
    }
    for polls in 0.. {
        let key = format!("renew-{polls}");
        let mut lease = leases.acquire(&key, TTL).await.expect("the server is there").expect("it is free");
        let ended = drop_at(polls, lease.renew(TTL * 2)).await;
        assert!(ended.as_ref().is_none_or(|renewed| matches!(renewed, Ok(true))) && !lease.is_lost());
        assert!(others.acquire(&key, TTL).expect("the server is there").is_none(), "it is held all the same");
        assert!(lease.renew(TTL).await.expect("the server is there") && !lease.is_lost());
        assert!(lease.release().await.expect("the server is there"));
        until("it is free", || others.acquire(&key, TTL).expect("the server is there").map(drop));
        if ended.is_some() {
            assert!(most_polls.max(polls) > 1);
            break;
        }
    }
}

/// No test here is about how long the server takes.
fn patient(prefix: &str) -> Builder {
    RedisStore::builder().prefix(prefix).response_timeout(TTL).connect_timeout(TTL)
}

fn on_a_server(kind: Kind) {
    let server = Server::start();
    let others = patient("jobs").lease_blocking(&server.url()).expect("it is a URL");
    kind.drive(async {
        let store = patient("tests").connect(&server.url());
        operations_are_dropped(store.expect("it is a URL")).await;
        let leases = patient("jobs").lease(&server.url());
        leases_are_dropped(leases.expect("it is a URL"), &others).await;
    });
}

#[cfg(feature = "redis-cluster")]
fn on_a_cluster(kind: Kind) {
    let server = Server::cluster();
    let others = patient("jobs").lease_blocking(&server.url()).expect("it is a URL");
    kind.drive(async {
        let store = patient("tests").connect_cluster([server.url()]);
        operations_are_dropped(store.expect("it is a URL")).await;
        let leases = patient("jobs").lease_cluster([server.url()]);
        leases_are_dropped(leases.expect("it is a URL"), &others).await;
    });
}

// Of tasks alone: threads cannot be dropped.
macro_rules! on_each {
    ($($name:ident: $kind:ident;)+) => {
        $(mod $name {
            use super::Kind;

            #[test]
            fn k6_what_is_dropped_at_any_poll_leaves_each_key_its_own_value_and_no_lease() {
                super::on_a_server(Kind::$kind);
            }

            #[cfg(feature = "redis-cluster")]
            #[test]
            fn k6_on_a_cluster_as_well() {
                super::on_a_cluster(Kind::$kind);
            }
        })+
    };
}

on_each! {
    smol: Smol;
    tokio: Tokio;
    block_on: BlockOn;
}

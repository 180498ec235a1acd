//! For tasks, to a cluster whose slots move to a server that has none.

use super::cluster::{OPTIONS, is_whole, two_nodes};
use super::places::{Place, everywhere};
use super::proxy::Proxy;
use super::server::Server;
use super::{LONG, OWN, SHORT, answer, commands, eventually, is_away, patient};
use crate::redis::error::Error;
use crate::redis::link::{ClusterLink, Limits, Link};
use redis::Value;
use std::sync::Arc;

/// Slot 3300, which is that of `b`, moves from the first to the third, and its keys are gone already.
pub(super) fn moving() -> ([Server; 2], Server) {
    let servers = two_nodes();
    let third = Server::with(&OPTIONS);
    servers[0].ask::<String>(&["CLUSTER", "MEET", "127.0.0.1", &third.port().to_string()]);
    let ids = [&servers[0], &third].map(|server| server.ask::<String>(&["CLUSTER", "MYID"]));
    eventually("they know each other", || {
        let knows = |server: &Server, id: &String| server.ask::<String>(&["CLUSTER", "NODES"]).contains(id);
        knows(&third, &ids[0]) && knows(&servers[0], &ids[1])
    });
    is_whole(&third);
    third.ask::<String>(&["CLUSTER", "SETSLOT", "3300", "IMPORTING", &ids[0]]);
    servers[0].ask::<String>(&["CLUSTER", "SETSLOT", "3300", "MIGRATING", &ids[1]]);
    (servers, third)
}

fn link(place: &Place, server: &Server, limits: Limits) -> Arc<ClusterLink> {
    Arc::new(place.make(|| ClusterLink::open([server.url()], limits, OWN)))
}

/// The same, and the third is reached by the others' clients through the proxy.
fn moving_behind() -> ([Server; 2], Server, Proxy) {
    let (servers, third) = moving();
    let proxy = Proxy::to(third.port());
    third.ask::<String>(&["CONFIG", "SET", "cluster-announce-port", &proxy.port().to_string()]);
    let address = format!("127.0.0.1:{}", proxy.port());
    eventually("others know", || servers[0].ask::<String>(&["CLUSTER", "NODES"]).contains(&address));
    (servers, third, proxy)
}

fn a_hundred(place: &Place, link: &Arc<ClusterLink>, check: fn(Result<Vec<Value>, Error>)) {
    place.run_all((0..100).map(|_| {
        let link = Arc::clone(link);
        async move { check(link.send(commands([&["GET", "b"]])).await) }
    }));
}

#[test]
fn all_who_are_sent_elsewhere_share_a_connection() {
    let (servers, _third, proxy) = moving_behind();
    everywhere(|place| {
        let link = link(place, &servers[0], patient());
        let before = proxy.accepted();
        for _ in 0..2 {
            a_hundred(place, &link, |replies| assert_eq!(replies.unwrap(), [Value::Nil]));
        }
        assert_eq!(proxy.accepted() - before, 1);
    });
}

#[test]
fn all_who_are_sent_to_a_server_that_hangs_share_the_failure() {
    let (servers, third, proxy) = moving_behind();
    everywhere(|place| {
        let limits = Limits { response: LONG, ..SHORT };
        let link = link(place, &servers[0], limits);
        let before = proxy.accepted();
        third.pause();
        a_hundred(place, &link, |replies| assert!(is_away(&replies), "{replies:?}"));
        third.resume();
        let made = proxy.accepted() - before;
        // Who is late begins another attempt.
        assert!((1..10).contains(&made), "{made}");
        answer(|| place.run(link.send(commands([&["GET", "b"]]))));
    });
}

#[cfg(all(feature = "redis-smol", feature = "redis-tokio"))]
#[test]
fn such_a_connection_outlives_the_runtime_that_happens_to_need_it_first() {
    let (servers, _third, proxy) = moving_behind();
    let link = ClusterLink::open([servers[0].url()], patient(), OWN).unwrap();
    let get = || link.send(commands([&["GET", "b"]]));
    let runtime = super::places::tokio();
    assert_eq!(runtime.block_on(get()).unwrap(), [Value::Nil]);
    drop(runtime);
    assert_eq!(futures_lite::future::block_on(get()).unwrap(), [Value::Nil]);
    assert_eq!(proxy.accepted(), 1);
}

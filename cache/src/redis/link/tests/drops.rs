//! What a future that is dropped leaves behind: nothing.

use super::places::{Place, everywhere};
use super::server::Server;
use super::{OWN, commands, patient, text};
use crate::redis::link::{Link, TaskLink};
use redis::Value;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

/// Polls it so many times, whenever it asks for it, and drops it then.
async fn polled<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// 100 tasks drop 10,000 futures between them.
fn ten_thousand(place: &Place, link: &Arc<impl Link>) {
    let [dropped, ended] = [0, 0].map(|count| Arc::new(AtomicUsize::new(count)));
    place.run_all((0..100).map(|worker| {
        let (link, dropped, ended) = (Arc::clone(link), Arc::clone(&dropped), Arc::clone(&ended));
        async move {
            let mut number = 0;
            let mut drops = 0;
            while drops < 100 {
                number += 1;
                let (key, value) = (format!("k{worker}"), format!("{worker} {number}"));
                let future = link.send(commands([&["SET", &key, &value], &["GET", &key]]));
                match polled(future, 1 + number % 3).await {
                    None => drops += 1,
                    Some(replies) => {
                        assert_eq!(replies.unwrap(), [Value::Okay, text(&value)]);
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                }
                // The next over the same connection. What was dropped has been carried out by then, or never will be.
                let value = format!("{worker} read {number}");
                let replies = link.send(commands([&["SET", &key, &value], &["GET", &key]])).await.unwrap();
                assert_eq!(replies, [Value::Okay, text(&value)]);
            }
            dropped.fetch_add(drops, Ordering::Relaxed);
        }
    }));
    assert_eq!(dropped.load(Ordering::Relaxed), 10_000);
    assert!(ended.load(Ordering::Relaxed) > 0, "some got their replies");
    for worker in 0..100 {
        let replies = place.run(link.send(commands([&["GET", &format!("k{worker}")]]))).unwrap();
        let [Value::BulkString(value)] = &replies[..] else { panic!("{replies:?}") };
        assert!(value.starts_with(format!("{worker} read ").as_bytes()), "{replies:?}");
    }
}

#[test]
fn ten_thousand_drops_at_any_point_leave_each_command_its_own_reply() {
    let server = Server::start();
    everywhere(|place| {
        let link = Arc::new(place.make(|| TaskLink::open(&server.url(), patient(), OWN)));
        ten_thousand(place, &link);
        let clients: String = server.ask(&["CLIENT", "LIST"]);
        assert_eq!(clients.lines().count(), 2, "it is still the first connection: {clients}");
        drop(link);
        super::eventually("the connection is closed", || {
            server.ask::<String>(&["CLIENT", "LIST"]).lines().count() == 1
        });
    });
}

#[cfg(feature = "redis-cluster")]
#[test]
fn ten_thousand_drops_at_any_point_leave_each_command_its_own_reply_from_a_cluster() {
    let servers = super::cluster::two_nodes();
    everywhere(|place| {
        let link = place.make(|| crate::redis::link::ClusterLink::open([servers[0].url()], patient(), OWN));
        ten_thousand(place, &Arc::new(link));
    });
}

#[test]
fn a_drop_while_it_connects_leaves_that_to_the_next() {
    let server = Server::start();
    everywhere(|place| {
        for times in 0..30 {
            let link = place.make(|| TaskLink::open(&server.url(), patient(), OWN));
            let replies = place.run(async {
                drop(polled(link.send(commands([&["ECHO", "first"]])), times % 10).await);
                link.send(commands([&["ECHO", "second"]])).await
            });
            assert_eq!(replies.unwrap(), [text("second")]);
        }
    });
}

#[test]
fn who_waits_for_another_to_connect_goes_on_when_that_one_is_dropped() {
    let server = Server::start();
    everywhere(|place| {
        let link = Arc::new(place.make(|| TaskLink::open(&server.url(), patient(), OWN)));
        server.pause();
        place.run(async {
            let mut first = Box::pin(link.send(commands([&["ECHO", "first"]])));
            assert!(polled(&mut first, 1).await.is_none());
            let mut second = Box::pin(link.send(commands([&["ECHO", "second"]])));
            assert!(polled(&mut second, 1).await.is_none());
            drop(first);
            server.resume();
            assert_eq!(second.await.unwrap(), [text("second")]);
        });
        drop(link);
    });
}

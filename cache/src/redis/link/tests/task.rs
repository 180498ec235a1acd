//! For tasks, to one server.

use super::fake::Fake;
use super::places::{Place, a_hundred_tasks_get_their_own_values, everywhere, is_sent_once_though_its_reply_is_lost};
use super::proxy::Proxy;
use super::server::Server;
use super::{
    LONG, OWN, SHORT, SLACK, all_are_listened_to, answer, commands, eventually, get, is_away, message, patient, text,
    watch,
};
use crate::lease::Push;
use crate::redis::error::Error;
use crate::redis::link::{Limits, Link, TaskLink};
use redis::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn link(place: &Place, url: &str, limits: Limits) -> TaskLink {
    place.make(|| TaskLink::open(url, limits, OWN))
}

#[test]
fn each_command_has_its_reply_and_what_fails_does_so_in_its_place() {
    let server = Server::start();
    everywhere(|place| {
        let link = link(place, &server.url(), patient());
        let sent = commands([&["SET", "a", "1"], &["LPUSH", "a", "x"], &["GET", "a"], &["NONSENSE"], &["GET", "b"]]);
        let replies = place.run(link.send(sent)).unwrap();
        assert_eq!((&replies[0], &replies[2], &replies[4]), (&Value::Okay, &text("1"), &Value::Nil));
        assert!(matches!((&replies[1], &replies[3]), (Value::ServerError(_), Value::ServerError(_))), "{replies:?}");
        assert_eq!(place.run(link.send(commands([]))).unwrap(), []);
    });
}

#[test]
fn a_hundred_tasks_get_their_own_values_ten_thousand_times() {
    let server = Server::start();
    everywhere(|place| {
        a_hundred_tasks_get_their_own_values(place, link(place, &server.url(), patient()));
    });
}

#[test]
fn a_server_that_is_killed_is_away_and_works_when_it_is_back() {
    everywhere(|place| {
        let mut server = Server::start();
        let link = link(place, &server.url(), patient());
        place.run(get(&link, "a")).unwrap();
        for _ in 0..2 {
            server.kill();
            for _ in 0..3 {
                let start = Instant::now();
                assert!(is_away(&place.run(get(&link, "a"))));
                assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
            }
            server.restart();
            assert_eq!(place.run(get(&link, "a")).unwrap(), Value::Nil, "the first command works");
        }
    });
}

#[test]
fn a_server_that_is_away_at_first_works_when_it_comes() {
    everywhere(|place| {
        let mut server = Server::start();
        server.kill();
        let link = link(place, &server.url(), patient());
        let (watching, told) = watch(&link, "c", 7);
        assert!(is_away(&place.run(get(&link, "a"))));
        assert!(!watching.is_listening());
        server.restart();
        assert_eq!(place.run(get(&link, "a")).unwrap(), Value::Nil);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
    });
}

#[test]
fn a_server_that_hangs_is_away_in_time_and_no_reply_reaches_another_command() {
    let server = Server::start();
    everywhere(|place| {
        let link = link(place, &server.url(), SHORT);
        answer(|| place.run(link.send(commands([&["MSET", "a", "1", "b", "2", "c", "3"]]))));
        for _ in 0..3 {
            server.pause();
            for _ in 0..2 {
                let start = Instant::now();
                assert!(is_away(&place.run(get(&link, "a"))));
                assert!(start.elapsed() < SHORT.response + SLACK, "{:?}", start.elapsed());
            }
            server.resume();
            assert_eq!(answer(|| place.run(get(&link, "b"))), text("2"));
            assert_eq!(answer(|| place.run(get(&link, "c"))), text("3"));
        }
    });
}

#[test]
fn a_command_whose_reply_is_lost_is_sent_once() {
    let server = Server::start();
    everywhere(|place| {
        let link = link(place, &server.url(), SHORT);
        is_sent_once_though_its_reply_is_lost(place, &server, &link);
    });
}

#[test]
fn channels_that_many_threads_want_at_once_are_all_listened_to() {
    let server = Server::start();
    everywhere(|place| {
        for _ in 0..5 {
            all_are_listened_to(&link(place, &server.url(), patient()));
        }
    });
}

#[test]
fn all_who_wait_for_a_connection_share_the_failure() {
    let server = Server::start();
    everywhere(|place| {
        let link = Arc::new(link(place, &server.url(), SHORT));
        server.pause();
        let start = Instant::now();
        place.run_all((0..20).map(|_| {
            let link = Arc::clone(&link);
            async move { assert!(is_away(&get(&*link, "a").await)) }
        }));
        assert!(start.elapsed() < SHORT.connect * 5 + SLACK, "not one after the other: {:?}", start.elapsed());
        server.resume();
        assert_eq!(answer(|| place.run(get(&*link, "a"))), Value::Nil);
        drop(link);
    });
}

#[test]
fn a_connection_that_goes_silent_is_replaced() {
    let server = Server::start();
    everywhere(|place| {
        let proxy = Proxy::to(server.port());
        let limits = Limits { connect: LONG, response: Duration::from_millis(200), connections: 1 };
        let link = link(place, &proxy.url(), limits);
        let (watching, told) = watch(&link, "c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        eventually("both connections are there", || place.run(get(&link, "a")).is_ok());
        proxy.silence();
        let start = Instant::now();
        while is_away(&place.run(get(&link, "a"))) {
            assert!(start.elapsed() < LONG);
        }
        assert!(start.elapsed() > limits.response * 5, "a server that hangs keeps its connection for a while");
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening, "over another one");
        assert!(watching.is_listening());
        assert!(proxy.accepted() >= 4);
    });
}

#[test]
fn a_server_that_refuses_this_client_is_not_away_until_it_lets_it_in() {
    let server = Server::start();
    everywhere(|place| {
        let port = server.port();
        let link = link(place, &format!("redis://me:hush-hush@127.0.0.1:{port}/"), patient());
        server.ask::<u32>(&["ACL", "DELUSER", "me"]);
        let error = place.run(get(&link, "a")).unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error:?}");
        let shown = format!("{error:?} {error} {link:?}");
        assert!(!shown.contains("hush"), "{shown}");
        server.ask::<String>(&["ACL", "SETUSER", "me", "on", ">hush-hush", "+@all", "~*", "&*"]);
        assert_eq!(place.run(get(&link, "a")).unwrap(), Value::Nil);
    });
}

#[test]
fn a_server_that_was_demoted_is_left_for_the_one_that_has_its_name() {
    let servers = [Server::start(), Server::start()];
    everywhere(|place| {
        servers[0].ask::<String>(&["REPLICAOF", "NO", "ONE"]);
        let proxy = Proxy::to(servers[0].port());
        let link = link(place, &proxy.url(), patient());
        let (watching, told) = watch(&link, "c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        let set = |value: &str| place.run(link.send(commands([&["SET", "a", value]]))).unwrap();
        assert_eq!(set("1"), [Value::Okay]);
        servers[0].follow(&servers[1]);
        let start = Instant::now();
        (0..20).for_each(|_| assert!(matches!(set("2")[..], [Value::ServerError(_)]), "it is read-only"));
        // Two to begin with, and two more each time that they are made anew.
        let most = 4 + start.elapsed().as_secs() as usize / 2 * 2;
        assert!(proxy.accepted() <= most, "it is not left for itself again and again: {}", proxy.accepted());
        proxy.lead_to(servers[1].port());
        eventually("it is the other one", || set("3") == [Value::Okay]);
        assert_eq!(servers[1].ask::<String>(&["GET", "a"]), "3");
        eventually("so it is for what is pushed", || servers[1].ask::<u32>(&["PUBLISH", "c", "nothing"]) == 1);
        eventually("it is listened to", || watching.is_listening());
    });
}

/// Over one connection the one that has subscribed would be cut off with the commands: a server allows it less.
#[test]
fn what_is_pushed_comes_over_a_connection_of_its_own() {
    let server = Server::start();
    everywhere(|place| {
        eventually("no other is there", || server.ask::<String>(&["CLIENT", "LIST"]).lines().count() == 1);
        let link = link(place, &server.url(), patient());
        let (watching, told) = watch(&link, "c", 7);
        let id = || place.run(link.send(commands([&["CLIENT", "ID"]]))).unwrap();
        let first = id();
        for _ in 0..3 {
            assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
            assert!(watching.is_listening());
            assert_eq!(server.ask::<u32>(&["CLIENT", "KILL", "TYPE", "pubsub"]), 1);
            assert_eq!(id(), first, "the other one is as it was");
        }
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        let Value::Int(number) = first[0] else { panic!("{first:?}") };
        server.ask::<u32>(&["CLIENT", "KILL", "ID", &number.to_string()]);
        eventually("it is replaced", || place.run(get(&link, "a")).is_ok());
        assert!(watching.is_listening(), "nor does it matter the other way round");
        assert!(told.try_recv().is_err());
    });
}

#[test]
fn what_is_pushed_in_place_of_a_reply_is_an_error_and_no_caller_gets_anothers_reply() {
    everywhere(|place| {
        let fake = Fake::start();
        let link = link(place, &fake.url(), patient());
        // It answers when it has both.
        let (a, b) = place.run(futures_lite::future::zip(get(&link, "a"), get(&link, "b")));
        assert!(is_away(&a) && is_away(&b), "{a:?}, {b:?}");
        for key in ["a", "b"] {
            assert_eq!(place.run(get(&link, key)).unwrap(), text(key), "over another connection");
        }
        assert_eq!(fake.accepted(), 2);
    });
}

#[test]
fn a_server_that_says_nothing_for_long_is_listened_to_over_the_same_connection() {
    let server = Server::start();
    everywhere(|place| {
        let proxy = Proxy::to(server.port());
        let link = link(place, &proxy.url(), patient());
        let (watching, told) = watch(&link, "c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        let pings = || server.ask::<String>(&["INFO", "commandstats"]).matches("cmdstat_ping:").count();
        eventually("it asks whether the server is there", || pings() > 0);
        assert!(watching.is_listening() && told.try_recv().is_err());
        assert_eq!(proxy.accepted(), 1);
        server.ask::<String>(&["CONFIG", "RESETSTAT"]);
    });
}
#[test]
fn what_is_pushed_arrives_and_again_after_a_restart() {
    everywhere(|place| {
        let mut server = Server::start();
        let link = link(place, &server.url(), patient());
        let (watching, told) = watch(&link, "c", 7);
        let (other, other_told) = watch(&link, "d", 7);
        for _ in 0..3 {
            assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
            assert_eq!(other_told.recv_timeout(LONG).unwrap(), Push::Listening);
            assert!(watching.is_listening() && other.is_listening());
            for (what, writer) in [('r', OWN), ('w', OWN), ('w', 2)] {
                server.ask::<u32>(&["PUBLISH", "c", &message(what, writer, 7)]);
            }
            let pushes = [told.recv_timeout(LONG).unwrap(), told.recv_timeout(LONG).unwrap()];
            assert_eq!(pushes, [Push::Released, Push::Written]);
            assert!(other_told.try_recv().is_err());
            server.kill();
            eventually("it notices, though nobody sends", || !watching.is_listening() && !other.is_listening());
            server.restart();
        }
    });
}

#[cfg(all(feature = "redis-smol", feature = "redis-tokio"))]
#[test]
fn a_connection_outlives_the_runtime_that_happens_to_need_it_first() {
    let server = Server::start();
    let link = TaskLink::open(&server.url(), patient(), OWN).unwrap();
    let id = || link.send(commands([&["CLIENT", "ID"]]));
    let runtime = super::places::tokio();
    let first = runtime.block_on(id()).unwrap();
    drop(runtime);
    assert_eq!(futures_lite::future::block_on(id()).unwrap(), first);
    assert_eq!(super::places::tokio().block_on(id()).unwrap(), first);
}

#[cfg(not(feature = "redis-smol"))]
#[test]
fn outside_of_tokio_no_link_can_be_made() {
    let error = TaskLink::open("redis://127.0.0.1:1/", patient(), OWN).unwrap_err();
    assert!(matches!(error, Error::Settings(_)), "{error:?}");
}

#[test]
fn what_is_spawned_is_done() {
    let server = Server::start();
    everywhere(|place| {
        let link = Arc::new(link(place, &server.url(), patient()));
        let (sender, receiver) = std::sync::mpsc::channel();
        let shared = Arc::clone(&link);
        link.spawn(Box::pin(async move {
            let _ = sender.send(get(&*shared, "a").await.is_ok());
        }));
        assert!(receiver.recv_timeout(LONG).unwrap());
    });
}

#[test]
fn a_link_that_is_dropped_leaves_no_connection_though_a_watch_lives_on() {
    let server = Server::start();
    everywhere(|place| {
        let link = link(place, &server.url(), patient());
        let (watching, told) = watch(&link, "c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        drop(link);
        eventually("the connection is closed", || {
            let clients: String = server.ask(&["CLIENT", "LIST"]);
            clients.lines().count() == 1
        });
        drop(watching);
    });
}

//! For threads.

use super::proxy::Proxy;
use super::server::Server;
use super::{
    LONG, OWN, SHORT, SLACK, all_are_listened_to, answer, commands, eventually, is_away, message, patient, text, watch,
};
use crate::lease::Push;
use crate::redis::error::Error;
use crate::redis::link::{BlockingLink, Limits, Link};
use crate::time::block_on;
use crate::time_limit::TimeLimit;
use redis::{Pipeline, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

fn link(url: &str, limits: Limits) -> BlockingLink {
    BlockingLink::open(url, limits, OWN).expect("the URL is right")
}

fn send(link: &BlockingLink, commands: Pipeline) -> Result<Vec<Value>, Error> {
    block_on(link.send(commands))
}

fn get(link: &BlockingLink, key: &str) -> Result<Value, Error> {
    block_on(super::get(link, key))
}

#[test]
fn each_command_has_its_reply_and_what_fails_does_so_in_its_place() {
    let server = Server::start();
    let link = link(&server.url(), patient());
    let replies =
        send(&link, commands([&["SET", "a", "1"], &["LPUSH", "a", "x"], &["GET", "a"], &["NONSENSE"], &["GET", "b"]]));
    let replies = replies.unwrap();
    assert_eq!((&replies[0], &replies[2], &replies[4]), (&Value::Okay, &text("1"), &Value::Nil));
    let errors: Vec<Error> = [&replies[1], &replies[3]]
        .map(|reply| match reply {
            Value::ServerError(error) => error.clone().into(),
            other => panic!("{other:?}"),
        })
        .into();
    assert!(matches!(errors[..], [Error::WrongType, Error::Refused(_)]), "{errors:?}");
    assert_eq!(send(&link, Pipeline::new()).unwrap(), []);
}

#[test]
fn who_waits_for_ever_is_connected() {
    let server = Server::start();
    let limits = Limits { connect: Duration::MAX, response: Duration::MAX, ..patient() };
    let link = link(&server.url(), limits);
    assert_eq!(send(&link, commands([&["PING"]])).unwrap(), [Value::SimpleString("PONG".to_owned())]);
}

#[test]
fn a_script_on_another_type_says_so() {
    let server = Server::start();
    let link = link(&server.url(), patient());
    let script = "return redis.call('GET', KEYS[1])";
    let replies = send(&link, commands([&["LPUSH", "a", "x"], &["EVAL", script, "1", "a"]])).unwrap();
    let Value::ServerError(error) = &replies[1] else { panic!("{replies:?}") };
    assert!(matches!(Error::from(error.clone()), Error::WrongType), "{error:?}");
}

/// Makes so many connections, which are idle then.
fn connect(server: &Server, link: &BlockingLink, count: usize) {
    let clients = || server.ask::<String>(&["INFO", "clients"]);
    thread::scope(|scope| {
        (0..count).for_each(|_| {
            scope.spawn(|| send(link, commands([&["BLPOP", "gate", "0"]])).unwrap());
        });
        eventually("all of them wait", || clients().contains(&format!("blocked_clients:{count}\r")));
        (0..count).for_each(|_| _ = server.ask::<u32>(&["RPUSH", "gate", "open"]));
    });
}

#[test]
fn a_server_that_is_killed_is_away_and_works_when_it_is_back() {
    let mut server = Server::start();
    let link = link(&server.url(), patient());
    // The server forgets all of them.
    connect(&server, &link, 4);
    server.kill();
    for _ in 0..3 {
        assert!(is_away(&get(&link, "a")));
    }
    server.restart();
    assert_eq!(get(&link, "a").unwrap(), Value::Nil, "the first command works");
}

#[test]
fn after_a_restart_at_most_one_command_of_several_connections_fails() {
    let mut server = Server::start();
    let link = link(&server.url(), patient());
    connect(&server, &link, 4);
    server.restart();
    assert!(is_away(&get(&link, "a")), "it may have been carried out");
    assert_eq!(get(&link, "a").unwrap(), Value::Nil);
}

#[test]
fn a_server_that_hangs_is_away_in_time_and_no_reply_reaches_another_command() {
    let server = Server::start();
    let link = link(&server.url(), SHORT);
    answer(|| send(&link, commands([&["MSET", "a", "1", "b", "2", "c", "3"]])));
    for _ in 0..3 {
        server.pause();
        let start = Instant::now();
        // Not so long for each.
        assert!(is_away(&send(&link, commands([&["GET", "a"] as &[_]; 100]))));
        assert!(start.elapsed() < SHORT.response + SLACK, "{:?}", start.elapsed());
        assert!(is_away(&get(&link, "b")), "nor is there a new connection");
        server.resume();
        assert_eq!(answer(|| get(&link, "c")), text("3"));
        assert_eq!(answer(|| get(&link, "b")), text("2"));
    }
}

/// It has three commands to answer before: the client would wait that long for each.
#[test]
fn a_connection_is_made_within_its_limit_whatever_is_sent_first() {
    let server = Server::with(&["--requirepass", "hush-hush"]);
    let with = |limits| link(&format!("redis://default:hush-hush@127.0.0.1:{}/3", server.port()), limits);
    server.pause();
    // Once more if the machine was late.
    let is_in_time = |seconds| {
        let limits = Limits { connect: Duration::from_secs(seconds), ..SHORT };
        let start = Instant::now();
        assert!(is_away(&get(&with(limits), "a")));
        start.elapsed() < limits.connect * 3 / 2
    };
    assert!([2, 6, 24].into_iter().any(is_in_time), "not so long for each");
    server.resume();
    let link = with(SHORT);
    let client = answer(|| send(&link, commands([&["CLIENT", "LIST", "TYPE", "normal"]])));
    let Value::BulkString(client) = &client[0] else { panic!("{client:?}") };
    assert!(String::from_utf8_lossy(client).contains(" db=3 "), "it is where the URL says");
}

#[test]
fn a_thread_that_has_less_time_waits_for_less() {
    let server = Server::start();
    let link = link(&server.url(), patient());
    let is_sent = |millis| {
        let _limit = TimeLimit::until(Instant::now() + Duration::from_millis(millis));
        let first = get(&link, "a");
        assert!(matches!(get(&link, "a"), Err(Error::Busy)), "nothing is sent when there is no time left");
        // Nor was it if the machine was late.
        is_away(&first) || !matches!(first, Err(Error::Busy))
    };
    get(&link, "a").unwrap();
    server.pause();
    let start = Instant::now();
    for _ in 0..3 {
        // First over the connection that there is, then over new ones.
        assert!([50, 2_000].into_iter().any(is_sent));
    }
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
    server.resume();
    // What is left of a connection has the limits of the link again.
    let ids = [(); 2].map(|()| {
        let _limit = TimeLimit::until(Instant::now() + LONG);
        send(&link, commands([&["CLIENT", "ID"]])).unwrap()
    });
    assert_eq!(ids[0], ids[1]);
    send(&link, commands([&["BLPOP", "nothing", "0.3"]])).unwrap();
}

#[test]
fn a_command_whose_reply_is_lost_is_sent_once() {
    let server = Server::start();
    let link = link(&server.url(), SHORT);
    answer(|| get(&link, "count"));
    for number in 1..4 {
        server.pause();
        assert!(is_away(&send(&link, commands([&["INCR", "count"]]))));
        server.resume();
        let count = || answer(|| get(&link, "count"));
        // It was sent over another connection than the one that asks.
        eventually("the server does it", || count() == text(&number.to_string()));
        answer(|| get(&link, "other"));
        assert_eq!(count(), text(&number.to_string()));
    }
}

#[test]
fn a_reply_that_is_late_is_nobodys() {
    let server = Server::start();
    let link = link(&server.url(), SHORT);
    answer(|| send(&link, commands([&["SET", "a", "1"], &["SET", "b", "2"]])));
    for round in 0..5 {
        // It blocks this connection until it is given up, and answers then.
        let key = format!("nothing-{round}");
        assert!(is_away(&send(&link, commands([&["BLPOP", &key, "0"], &["GET", "a"]]))));
        server.ask::<u32>(&["RPUSH", &key, "late"]);
        assert_eq!(answer(|| get(&link, "b")), text("2"));
    }
}

#[test]
fn a_server_that_refuses_this_client_is_not_away() {
    let server = Server::with(&["--requirepass", "hush-hush"]);
    let port = server.port();
    let refused = link(&format!("redis://:wrong-hush@127.0.0.1:{port}/"), patient());
    let error = get(&refused, "a").unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
    let right = link(&format!("redis://:hush-hush@127.0.0.1:{port}/"), patient());
    assert_eq!(get(&right, "a").unwrap(), Value::Nil);
    for shown in [format!("{refused:?} {right:?}"), format!("{error:?} {error}")] {
        assert!(!shown.contains("hush"), "{shown}");
    }
    let error = BlockingLink::open("redis://me:hush-hush@[::1", patient(), OWN).unwrap_err();
    assert!(matches!(error, Error::Settings(_)), "{error:?}");
    let shown = format!("{error:?} {error} {}", std::error::Error::source(&error).unwrap());
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn eight_threads_get_their_own_values_ten_thousand_times() {
    let server = Server::start();
    let link = link(&server.url(), patient());
    thread::scope(|scope| {
        for worker in 0..8 {
            let link = &link;
            scope.spawn(move || {
                for number in 0..1_250 {
                    let (key, value) = (format!("{worker}-{}", number % 7), format!("{worker} {number}"));
                    let replies = send(link, commands([&["SET", &key, &value], &["GET", &key]])).unwrap();
                    assert_eq!(replies, [Value::Okay, text(&value)]);
                }
            });
        }
    });
    let clients: String = server.ask(&["CLIENT", "LIST"]);
    assert!(clients.lines().count() <= 9, "one a thread and the one that asks: {clients}");
}

#[test]
fn no_more_connections_are_open_than_allowed() {
    let server = Server::start();
    let limits = Limits { connections: 2, ..patient() };
    let link = link(&server.url(), limits);
    thread::scope(|threads| {
        for number in 0..16 {
            let link = &link;
            threads.spawn(move || {
                let key = number.to_string();
                for _ in 0..200 {
                    let replies = send(link, commands([&["SET", &key, &key], &["GET", &key]])).unwrap();
                    assert_eq!(replies[1], text(&key));
                }
            });
        }
    });
    let stats: String = server.ask(&["INFO", "stats"]);
    let received = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    let received: u32 = received.and_then(|number| number.trim().parse().ok()).expect("a number");
    // Two of the link's, and some of the test's own.
    assert!(received <= 2 + 3, "{received} connections");
}

#[test]
fn whoever_waits_for_a_connection_in_vain_is_told_in_time() {
    let server = Server::start();
    let limits = Limits { connections: 1, ..SHORT };
    let link = link(&server.url(), limits);
    answer(|| get(&link, "a"));
    server.pause();
    let begun = Instant::now();
    thread::scope(|threads| {
        // One after the other they would take twice as long.
        for _ in 0..60 {
            threads.spawn(|| match get(&link, "a") {
                Err(Error::Busy) => {}
                other => assert!(is_away(&other), "{other:?}"),
            });
        }
    });
    assert!(begun.elapsed() < SHORT.connect + SHORT.response * 2 + SLACK, "{:?}", begun.elapsed());
    server.resume();
    eventually("it works again", || get(&link, "a").is_ok());
}

#[test]
fn a_connection_that_was_closed_while_it_was_idle_fails_no_command() {
    let server = Server::start();
    let link = link(&server.url(), patient());
    get(&link, "a").unwrap();
    link.age(Duration::from_secs(11));
    let before: String = server.ask(&["CLIENT", "ID"]);
    server.ask::<u32>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert_eq!(get(&link, "a").unwrap(), Value::Nil, "{before}");
    // One that still works is not replaced.
    let id = send(&link, commands([&["CLIENT", "ID"]])).unwrap();
    link.age(Duration::from_secs(11));
    assert_eq!(send(&link, commands([&["CLIENT", "ID"]])).unwrap(), id);
}

#[test]
fn a_server_that_was_demoted_is_left_for_the_one_that_has_its_name() {
    let servers = [Server::start(), Server::start()];
    let proxy = Proxy::to(servers[0].port());
    let link = link(&proxy.url(), patient());
    let (watching, told) = watch(&link, "c", 7);
    assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
    connect(&servers[0], &link, 4);
    let set = |value: &str| send(&link, commands([&["SET", "a", value]])).unwrap();
    servers[0].follow(&servers[1]);
    let (start, before) = (Instant::now(), proxy.accepted());
    (0..20).for_each(|_| assert!(matches!(set("2")[..], [Value::ServerError(_)]), "it is read-only"));
    // One for commands and one for what is pushed, each time.
    let most = before + 2 + start.elapsed().as_secs() as usize / 2 * 2;
    assert!(proxy.accepted() <= most, "it is not left for itself again and again: {}", proxy.accepted());
    proxy.lead_to(servers[1].port());
    eventually("it is the other one", || set("3") == [Value::Okay]);
    (0..4).for_each(|_| assert_eq!(set("4"), [Value::Okay], "no connection is left"));
    assert_eq!(servers[1].ask::<String>(&["GET", "a"]), "4");
    eventually("so it is for what is pushed", || servers[1].ask::<u32>(&["PUBLISH", "c", "nothing"]) == 1);
    eventually("it is listened to", || watching.is_listening());
}

#[test]
fn what_is_pushed_arrives_on_channels_old_and_new() {
    eventually("the connection lasts", || five_channels_are_listened_to().is_some());
}

/// `None` if the connection broke, as it does when the server says nothing for two seconds: then something may not be told.
fn five_channels_are_listened_to() -> Option<()> {
    let server = Server::start();
    let next = |told: &Receiver<Push>| Some(told.recv_timeout(LONG).unwrap()).filter(|push| *push != Push::Listening);
    let publish = |id: u64, message: &str| server.ask::<u32>(&["PUBLISH", &format!("c{id}"), message]);
    let link = link(&server.url(), patient());
    let mut watches = Vec::new();
    for id in 0..5 {
        let (watching, told) = watch(&link, &format!("c{id}"), id);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        assert!(watching.is_listening());
        for message in [&message('r', 2, id), &message('w', OWN, id), "nonsense", &message('w', 2, id)] {
            publish(id, message);
        }
        assert_eq!([next(&told)?, next(&told)?], [Push::Released, Push::Written]);
        watches.push((watching, told));
    }
    let names: Vec<String> = server.ask(&["PUBSUB", "CHANNELS"]);
    let names: HashSet<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(names.len(), 6, "five, and the thread's own: {names:?}");
    for (id, (_, told)) in (0..).zip(&watches) {
        publish(id, &message('w', 2, id));
        publish(id, &message('r', 2, id));
        assert_eq!([next(told)?, next(told)?], [Push::Written, Push::Released], "nobody is told of another's key");
    }
    Some(())
}

#[test]
fn channels_that_many_threads_want_at_once_are_all_listened_to() {
    let server = Server::start();
    for _ in 0..5 {
        all_are_listened_to(&link(&server.url(), patient()));
    }
}

#[test]
fn who_wants_a_channel_wakes_the_thread() {
    let server = Server::start();
    let is_woken = |channels| {
        let link = link(&server.url(), patient());
        let start = Instant::now();
        for id in 0..channels {
            let (_watching, told) = watch(&link, &format!("c{id}"), id);
            assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        }
        // The thread would look by itself after a second of silence: in seven seconds or more for ten.
        start.elapsed() < Duration::from_secs(channels / 2)
    };
    // More if the machine was late.
    assert!([10, 30].into_iter().any(is_woken));
}

#[test]
fn a_channel_is_listened_to_though_the_message_about_it_was_lost() {
    let server = Server::start();
    let link = link(&server.url(), patient());
    let (_first, told) = watch(&link, "c1", 1);
    assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
    // Who wants one more channel may not publish that; the thread only subscribes.
    server.ask::<String>(&["ACL", "SETUSER", "default", "-publish"]);
    let (second, told) = watch(&link, "c2", 1);
    assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
    assert!(second.is_listening());
}

#[test]
fn what_is_pushed_arrives_again_after_a_restart() {
    let mut server = Server::start();
    let link = link(&server.url(), patient());
    let (watching, told) = watch(&link, "c", 7);
    assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
    for _ in 0..2 {
        server.kill();
        eventually("it notices", || !watching.is_listening());
        server.restart();
        while told.recv_timeout(LONG).unwrap() != Push::Listening {}
        eventually("it is listened to", || watching.is_listening());
        eventually("it is told", || {
            server.ask::<u32>(&["PUBLISH", "c", &message('r', 2, 7)]);
            told.try_iter().any(|push| push == Push::Released)
        });
    }
}

#[test]
fn a_connection_that_goes_silent_is_not_listened_to() {
    let server = Server::start();
    let proxy = Proxy::to(server.port());
    let link = link(&proxy.url(), SHORT);
    let (_watching, told) = watch(&link, "c", 7);
    assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
    proxy.silence();
    assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening, "over a new one");
    eventually("it is told", || {
        server.ask::<u32>(&["PUBLISH", "c", &message('r', 2, 7)]);
        told.try_iter().any(|push| push == Push::Released)
    });
}

#[test]
fn a_link_that_is_dropped_ends_its_thread_and_does_not_wait_for_it() {
    let server = Server::start();
    let drop_one = |is_paused| {
        let link = link(&server.url(), SHORT);
        let (watching, told) = watch(&link, "c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        if is_paused {
            server.pause();
        }
        let thread = link.thread();
        let start = Instant::now();
        drop(link);
        let took = start.elapsed();
        // The watch lives on, and has one of the two that are left here.
        eventually("the thread ends", || thread.upgrade().is_none_or(|thread| Arc::strong_count(&thread) <= 2));
        drop(watching);
        eventually("nothing is left", || thread.upgrade().is_none());
        server.resume();
        took
    };
    for is_paused in [false, true] {
        // On a machine that is busy it may take longer; then another round is made.
        let is_short = (0..10).any(|_| drop_one(is_paused) < Duration::from_millis(500));
        assert!(is_short, "paused: {is_paused}");
    }
}

//! For tasks, to a cluster.

use super::places::{Place, a_hundred_tasks_get_their_own_values, everywhere, is_sent_once_though_its_reply_is_lost};
use super::server::Server;
use super::{
    LONG, OWN, SHORT, SLACK, all_are_listened_to, answer, commands, eventually, get, is_away, message, patient, text,
    watch,
};
use crate::lease::Push;
use crate::redis::error::Error;
use crate::redis::generation::Generation;
use crate::redis::header::Keep;
use crate::redis::link::{ClusterLink, Limits, Link};
use crate::redis::name::{CHANNELS, Name, Names};
use crate::redis::push::PushedMessage;
use crate::redis::steps::Steps;
use redis::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const OPTIONS: [&str; 8] = [
    "--cluster-enabled",
    "yes",
    "--cluster-config-file",
    "nodes.conf",
    "--cluster-announce-ip",
    "127.0.0.1",
    "--cluster-node-timeout",
    "5000",
];

/// A cluster of one server.
fn one_node() -> Server {
    let server = Server::with(&OPTIONS);
    server.ask::<String>(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    is_whole(&server);
    server
}

pub(super) fn is_whole(server: &Server) {
    eventually("the cluster is whole", || server.ask::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok"));
}

/// Two servers with half of the slots each.
pub(super) fn two_nodes() -> [Server; 2] {
    let servers = [Server::with(&OPTIONS), Server::with(&OPTIONS)];
    servers[0].ask::<String>(&["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]);
    servers[1].ask::<String>(&["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]);
    servers[1].ask::<String>(&["CLUSTER", "SET-CONFIG-EPOCH", "2"]);
    servers[0].ask::<String>(&["CLUSTER", "MEET", "127.0.0.1", &servers[1].port().to_string()]);
    servers.iter().for_each(is_whole);
    eventually("each knows the other's slots", || {
        servers.iter().all(|server| server.ask::<Vec<Value>>(&["CLUSTER", "SLOTS"]).len() == 2)
    });
    servers
}

/// It answers for its own slots although the other is gone, or hangs.
pub(super) fn goes_on_alone(server: &Server) {
    for (setting, value) in [("cluster-require-full-coverage", "no"), ("cluster-node-timeout", "600000")] {
        server.ask::<String>(&["CONFIG", "SET", setting, value]);
    }
}

pub(super) fn link(place: &Place, server: &Server, limits: Limits) -> ClusterLink {
    place.make(|| ClusterLink::open([server.url()], limits, OWN))
}

/// Rounds of what needs answers in time: one more with a longer limit if the machine was late.
fn rounds(is_in_time: impl Fn(Limits) -> bool) {
    let limits = |seconds| Limits { response: Duration::from_secs(seconds), ..patient() };
    assert!([2, 6, 18].into_iter().map(limits).any(is_in_time), "not in time");
}

/// Within the short limits it may take more than one attempt.
pub(super) fn connected(place: &Place, link: &ClusterLink) {
    eventually("it is connected", || place.run(get(link, "a")).is_ok());
}

#[test]
fn each_command_has_its_reply_and_what_fails_does_so_in_its_place() {
    let server = one_node();
    everywhere(|place| {
        let link = link(place, &server, patient());
        assert!(link.is_cluster());
        let sent = commands([&["SET", "{a}:v", "1"], &["LPUSH", "{a}:v", "x"], &["GET", "{a}:v"], &["GET", "{a}:l"]]);
        let replies = place.run(link.send(sent)).unwrap();
        assert_eq!((&replies[0], &replies[2], &replies[3]), (&Value::Okay, &text("1"), &Value::Nil));
        let Value::ServerError(error) = &replies[1] else { panic!("{replies:?}") };
        assert!(matches!(Error::from(error.clone()), Error::WrongType), "{error:?}");
    });
}

#[test]
fn a_hundred_tasks_get_their_own_values_of_two_servers_ten_thousand_times() {
    let servers = two_nodes();
    everywhere(|place| {
        a_hundred_tasks_get_their_own_values(place, link(place, &servers[0], patient()));
    });
    for server in &servers {
        assert!(server.ask::<usize>(&["DBSIZE"]) > 100, "both have some of the 700 keys");
    }
}

#[test]
fn what_is_pushed_to_a_shard_arrives_from_each_server() {
    let servers = two_nodes();
    everywhere(|place| {
        let link = link(place, &servers[0], patient());
        // `b` is slot 3300, `a` is slot 15495.
        for (server, channel) in servers.iter().zip(["{b}:c", "{a}:c"]) {
            let (watching, told) = watch(&link, channel, 7);
            assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
            assert!(watching.is_listening());
            for (what, writer) in [('r', OWN), ('w', OWN), ('w', 2)] {
                server.ask::<u32>(&["SPUBLISH", channel, &message(what, writer, 7)]);
            }
            let pushes = [told.recv_timeout(LONG).unwrap(), told.recv_timeout(LONG).unwrap()];
            assert_eq!(pushes, [Push::Released, Push::Written]);
        }
    });
}

/// Slot 3300, which is that of `b`.
fn give_slot(servers: &[Server; 2], owner: usize) {
    let id: String = servers[owner].ask(&["CLUSTER", "MYID"]);
    servers.iter().rev().for_each(|at| {
        at.ask::<String>(&["CLUSTER", "SETSLOT", "3300", "NODE", &id]);
    });
}

#[test]
fn a_channel_whose_slot_has_moved_is_listened_to_where_it_is_now() {
    let servers = two_nodes();
    everywhere(|place| {
        give_slot(&servers, 0);
        let link = link(place, &servers[0], patient());
        let (watching, told) = watch(&link, "{b}:c", 7);
        let (other, other_told) = watch(&link, "{a}:c", 7);
        let (log, all) = std::sync::mpsc::channel();
        let all_told = Box::new(move |message| _ = log.send(message));
        for told in [&told, &other_told] {
            assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        }
        let watching_all = link.pushes().watch_all(["{b}:c".to_owned()], all_told);
        let wait_for = |message| while all.recv_timeout(LONG).unwrap() != message {};
        wait_for(PushedMessage::Listening);
        give_slot(&servers, 1);
        wait_for(PushedMessage::Listening);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        assert!(watching.is_listening() && watching_all.is_listening());
        servers[1].ask::<u32>(&["SPUBLISH", "{b}:c", &message('r', 2, 7)]);
        eventually("it is told", || told.try_iter().any(|push| push == Push::Released));
        assert!(other.is_listening(), "nothing has happened to that one");
    });
}

/// Nobody has asked for what a server says then of a channel, and it comes before the replies that are due.
#[test]
fn what_is_said_of_a_slot_that_has_moved_is_nobodys_reply() {
    let servers = two_nodes();
    everywhere(|place| {
        give_slot(&servers, 0);
        let link = Arc::new(link(place, &servers[0], patient()));
        let (_watching, told) = watch(&*link, "{b}:c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        let (sender, receiver) = std::sync::mpsc::channel();
        let shared = Arc::clone(&link);
        // `bar` is slot 5061.
        link.spawn(Box::pin(async move {
            let _ = sender.send(shared.send(commands([&["BLPOP", "bar", "0"]])).await);
        }));
        eventually("it waits", || servers[0].ask::<String>(&["INFO", "clients"]).contains("blocked_clients:1"));
        give_slot(&servers, 1);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening, "it is over by now");
        servers[0].ask::<u32>(&["RPUSH", "bar", "value"]);
        assert_eq!(receiver.recv_timeout(LONG).unwrap().unwrap(), [Value::Array(vec![text("bar"), text("value")])]);
    });
}

#[test]
fn channels_of_a_server_that_hangs_hold_up_no_others() {
    let servers = two_nodes();
    servers.iter().for_each(goes_on_alone);
    everywhere(|place| {
        let link = link(place, &servers[1], SHORT);
        let (_first, told) = watch(&link, "{a}:first", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        servers[0].pause();
        // `b` is slot 3300, `a` is slot 15495. All are new at the same time.
        let all = (0..8).map(|number| format!("{{b}}:{number}")).chain(["{a}:c".to_owned()]);
        let _all = link.pushes().watch_all(all, Box::new(|_| ()));
        let (watching, told) = watch(&link, "{a}:c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        eventually("it is listened to", || watching.is_listening());
        let (_other, told) = watch(&link, "{b}:0", 7);
        servers[0].resume();
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening, "when it is back");
    });
}

/// Another may have taken over, and this one does not say so.
#[test]
fn a_server_that_hangs_for_long_is_not_listened_to() {
    let servers = two_nodes();
    servers.iter().for_each(goes_on_alone);
    let limits = Limits { response: Duration::from_secs(1), ..patient() };
    everywhere(|place| {
        let link = link(place, &servers[1], limits);
        let (watching, told) = watch(&link, "{b}:c", 7);
        let (other, other_told) = watch(&link, "{a}:c", 7);
        for told in [&told, &other_told] {
            assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        }
        servers[0].pause();
        eventually("it notices", || !watching.is_listening());
        eventually("the other server answers", || other.is_listening());
        servers[0].resume();
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        eventually("it is listened to", || watching.is_listening());
    });
}

/// What is to be pushed goes to other servers than what is written.
#[test]
fn a_server_that_hangs_holds_up_no_write_elsewhere_and_a_clearing_once() {
    let servers = two_nodes();
    servers.iter().for_each(goes_on_alone);
    let is_on_second = |name: &[u8]| {
        let name = String::from_utf8(name.to_vec()).unwrap();
        servers[0].ask::<u32>(&["CLUSTER", "KEYSLOT", &name]) >= 8192
    };
    let names = || {
        let mut all = (0..).map(|number| Names::new(&format!("p{number}"), 0));
        all.find(|names| is_on_second(names.generation().as_bytes())).unwrap()
    };
    let key = |names: &Names| {
        let is_apart = |name: &Name| {
            let mut name = name.clone();
            name.set_generation(0);
            is_on_second(name.value()) && !is_on_second(names.channel(name.id() % CHANNELS).as_bytes())
        };
        (0..).map(|number: u32| names.name(&number)).find(is_apart).unwrap()
    };
    everywhere(|place| {
        let is_in_time = |limits: Limits| {
            let names = names();
            let name = key(&names);
            let steps = Steps::new(link(place, &servers[1], limits), names, Generation::fixed());
            let put = || place.run(steps.put(&mut name.clone(), b"value", Keep::ForEver));
            answer(put);
            servers[0].pause();
            let start = Instant::now();
            let is_put = put().is_ok() && start.elapsed() < limits.response;
            let is_cleared = place.run(steps.clear()).is_ok() && start.elapsed() < limits.response * 3;
            servers[0].resume();
            is_put && is_cleared
        };
        rounds(is_in_time);
    });
}

#[test]
fn of_many_keys_those_of_a_server_that_hangs_cost_the_others_nothing() {
    let servers = two_nodes();
    servers.iter().for_each(goes_on_alone);
    everywhere(|place| {
        let steps = |limits| Steps::new(link(place, &servers[1], limits), Names::new("many", 0), Generation::fixed());
        let filling = steps(patient());
        let mut names: Vec<Name> = (0..100_u32).map(|number| filling.name(&number)).collect();
        for name in &mut names {
            place.run(filling.put(name, b"value", Keep::ForEver)).unwrap();
        }
        let is_in_time = |limits: Limits| {
            let steps = steps(limits);
            let read = || place.run(steps.read_many(&mut names.clone()));
            answer(|| read()?.into_iter().collect::<Result<Vec<_>, _>>());
            servers[0].pause();
            let start = Instant::now();
            let found = read().unwrap();
            // Not one after the other.
            let is_soon = start.elapsed() < limits.response * 3;
            servers[0].resume();
            is_soon
                && names.iter().zip(found).all(|(name, found)| {
                    let slot: u32 = servers[0].ask(&["CLUSTER", "KEYSLOT", std::str::from_utf8(name.value()).unwrap()]);
                    match found {
                        Ok(raw) => assert!(slot >= 8192 && raw.unwrap().bytes == b"value"),
                        // Those of the other may be late.
                        away => {
                            assert!(is_away(&away), "{away:?}");
                            return slot < 8192;
                        }
                    }
                    true
                })
        };
        rounds(is_in_time);
    });
}

#[test]
fn a_slot_that_has_moved_is_found() {
    let servers = two_nodes();
    everywhere(|place| {
        give_slot(&servers, 0);
        let link = link(place, &servers[0], patient());
        place.run(link.send(commands([&["GET", "b"]]))).unwrap();
        give_slot(&servers, 1);
        assert_eq!(place.run(link.send(commands([&["SET", "b", "1"]]))).unwrap(), [Value::Okay]);
        let replies = place.run(link.send(commands([&["GET", "b"], &["PTTL", "b"]]))).unwrap();
        assert_eq!(replies, [text("1"), Value::Int(-1)]);
        servers[1].ask::<u32>(&["DEL", "b"]);
    });
}

#[test]
fn a_key_that_has_gone_ahead_of_its_slot_is_found() {
    let servers = two_nodes();
    let ids = servers.each_ref().map(|server| server.ask::<String>(&["CLUSTER", "MYID"]));
    servers[1].ask::<String>(&["CLUSTER", "SETSLOT", "3300", "IMPORTING", &ids[0]]);
    servers[0].ask::<String>(&["CLUSTER", "SETSLOT", "3300", "MIGRATING", &ids[1]]);
    everywhere(|place| {
        let link = link(place, &servers[0], patient());
        assert_eq!(place.run(link.send(commands([&["SET", "b", "1"]]))).unwrap(), [Value::Okay]);
        let replies = place.run(link.send(commands([&["GET", "b"], &["PTTL", "b"]]))).unwrap();
        assert_eq!(replies, [text("1"), Value::Int(-1)]);
        assert_eq!(servers[0].ask::<usize>(&["DBSIZE"]), 0);
        let script = "return redis.call('DEL', KEYS[1])";
        assert_eq!(place.run(link.send(commands([&["EVAL", script, "1", "b"]]))).unwrap(), [Value::Int(1)]);
    });
}

/// The client knows those that have slots.
#[test]
fn a_key_that_has_gone_to_a_server_without_slots_is_found() {
    let (servers, third) = super::asked::moving();
    everywhere(|place| {
        let link = link(place, &servers[0], patient());
        for value in ["1", "2"] {
            assert_eq!(place.run(link.send(commands([&["SET", "b", value]]))).unwrap(), [Value::Okay]);
            let replies = place.run(link.send(commands([&["GET", "b"], &["PTTL", "b"]]))).unwrap();
            assert_eq!(replies, [text(value), Value::Int(-1)]);
        }
        assert_eq!(servers[0].ask::<usize>(&["DBSIZE"]), 0);
        assert_eq!(third.ask::<usize>(&["DBSIZE"]), 1);
    });
}

/// As a script does whose names are on both sides.
#[test]
fn what_a_server_refuses_while_a_slot_moves_is_asked_for_again_until_it_has_moved() {
    let servers = two_nodes();
    let ids = servers.each_ref().map(|server| server.ask::<String>(&["CLUSTER", "MYID"]));
    servers[0].ask::<String>(&["SET", "{b}there", "1"]);
    let refused = || servers[0].ask::<String>(&["INFO", "errorstats"]).contains("TRYAGAIN");
    everywhere(|place| {
        servers[1].ask::<String>(&["CLUSTER", "SETSLOT", "3300", "IMPORTING", &ids[0]]);
        servers[0].ask::<String>(&["CLUSTER", "SETSLOT", "3300", "MIGRATING", &ids[1]]);
        servers[0].ask::<String>(&["CONFIG", "RESETSTAT"]);
        let script = "return redis.call('EXISTS', KEYS[1], KEYS[2])";
        let sent = || commands([&["EVAL", script, "2", "{b}there", "{b}not"]]);
        let is_refused = |limits| {
            let replies = place.run(link(place, &servers[0], limits).send(sent()));
            // Or the last of them came too late.
            assert!(matches!(replies, Err(Error::Refused(_))) || is_away(&replies), "{replies:?}");
            !is_away(&replies)
        };
        rounds(is_refused);
        servers[0].ask::<String>(&["CONFIG", "RESETSTAT"]);
        let link = link(place, &servers[0], patient());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                eventually("it is refused", refused);
                servers[0].ask::<String>(&["CLUSTER", "SETSLOT", "3300", "STABLE"]);
            });
            assert_eq!(place.run(link.send(sent())).unwrap(), [Value::Int(1)]);
        });
    });
}

#[test]
fn a_server_that_is_killed_is_away_and_works_when_it_is_back_and_pushes() {
    everywhere(|place| {
        let mut server = one_node();
        let link = link(place, &server, SHORT);
        let (watching, told) = watch(&link, "c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        connected(place, &link);
        server.kill();
        for _ in 0..3 {
            let start = Instant::now();
            assert!(is_away(&place.run(get(&link, "a"))));
            assert!(start.elapsed() < SHORT.connect + SHORT.response + SLACK, "{:?}", start.elapsed());
        }
        eventually("it notices", || !watching.is_listening());
        server.restart();
        is_whole(&server);
        eventually("it works again", || place.run(get(&link, "a")).is_ok());
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        eventually("it is told", || {
            server.ask::<u32>(&["SPUBLISH", "c", &message('r', 2, 7)]);
            told.try_iter().any(|push| push == Push::Released)
        });
        eventually("it is listened to", || watching.is_listening());
    });
}

#[test]
fn a_server_that_hangs_is_away_in_time_and_no_reply_reaches_another_command() {
    let server = one_node();
    everywhere(|place| {
        let link = link(place, &server, SHORT);
        connected(place, &link);
        for key in ["a", "b", "c"] {
            answer(|| place.run(link.send(commands([&["SET", key, key]]))));
        }
        for _ in 0..3 {
            server.pause();
            let start = Instant::now();
            assert!(is_away(&place.run(get(&link, "a"))));
            assert!(start.elapsed() < SHORT.response + SLACK, "{:?}", start.elapsed());
            server.resume();
            eventually("it works again", || place.run(get(&link, "b")).is_ok_and(|value| value == text("b")));
            assert_eq!(answer(|| place.run(get(&link, "c"))), text("c"));
        }
    });
}

#[test]
fn a_command_whose_reply_is_lost_is_sent_once() {
    let server = one_node();
    everywhere(|place| {
        let link = link(place, &server, SHORT);
        connected(place, &link);
        is_sent_once_though_its_reply_is_lost(place, &server, &link);
    });
}

/// The client looks for it whenever somebody wants one of its keys.
#[test]
fn a_server_that_cannot_be_connected_to_costs_the_keys_of_others_no_error() {
    let mut servers = two_nodes();
    goes_on_alone(&servers[1]);
    servers[0].kill();
    let _mute = std::net::TcpListener::bind(("127.0.0.1", servers[0].port())).expect("it is free again");
    everywhere(|place| {
        let is_in_time = |limits| {
            let link = link(place, &servers[1], limits);
            // `b` is of the first, `a` of the second.
            let want_lost = async {
                loop {
                    assert!(get(&link, "b").await.is_err());
                }
            };
            let want_others = async {
                for _ in 0..4 {
                    match get(&link, "a").await {
                        Err(Error::Away(_)) => return false,
                        got => assert_eq!(got.unwrap(), Value::Nil),
                    }
                }
                true
            };
            place.run(futures_lite::future::or(want_lost, want_others))
        };
        rounds(is_in_time);
    });
}

#[test]
fn channels_that_many_threads_want_at_once_are_all_listened_to() {
    let servers = two_nodes();
    everywhere(|place| all_are_listened_to(&link(place, &servers[0], patient())));
}

#[test]
fn passwords_are_not_shown_and_no_address_is_an_error() {
    everywhere(|place| {
        let link = place.make(|| ClusterLink::open(["redis://me:hush-hush@127.0.0.1:1/"], SHORT, OWN));
        let error = place.run(get(&link, "a")).unwrap_err();
        let shown = format!("{link:?} {error:?} {error}");
        assert!(shown.contains("127.0.0.1") && !shown.contains("hush"), "{shown}");
        place.make(|| {
            assert!(matches!(ClusterLink::open([""; 0], SHORT, OWN), Err(Error::Settings(_))));
            Ok(())
        });
    });
}

//! A cluster all of whose servers have been replaced, and none of those that the client knows can say so.

use super::cluster::{connected, goes_on_alone, link, two_nodes};
use super::fake::Fake;
use super::places::{Place, everywhere};
use super::{LONG, OWN, SHORT, eventually, get, text, watch};
use crate::lease::Push;
use crate::redis::link::ClusterLink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

/// One server whose address is known, and two others, the second of which takes over from the first.
struct Replaced {
    known: Fake,
    first: Fake,
    /// It answers `GET` with the key.
    _second: Fake,
}

impl Replaced {
    /// The first is gone with this command, its answer to which is this one. From then on it says `gone` to everything.
    fn at(last: &'static str, answer: &'static str, gone: Option<&'static str>) -> Self {
        // The port of the server that has all slots.
        let owner = Arc::new(AtomicU16::new(0));
        let owns = Arc::clone(&owner);
        let second = Fake::answering(move |words| Some(usual(words, &owns)));
        let (successor, owns) = (second.port(), Arc::clone(&owner));
        let first = Fake::answering(move |words| {
            if owns.load(Ordering::SeqCst) == successor {
                return gone.map(str::to_owned);
            }
            if words[0] == last {
                owns.store(successor, Ordering::SeqCst);
                return Some(answer.to_owned());
            }
            Some(usual(words, &owns))
        });
        owner.store(first.port(), Ordering::SeqCst);
        let known = Fake::answering(move |words| Some(usual(words, &owner)));
        Self { known, first, _second: second }
    }

    fn link(&self, place: &Place) -> ClusterLink {
        place.make(|| ClusterLink::open([self.known.url()], SHORT, OWN))
    }
}

fn usual(words: &[String], owner: &AtomicU16) -> String {
    match words[0].as_str() {
        "CLUSTER" => {
            let port = owner.load(Ordering::SeqCst);
            format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
        }
        "GET" => format!("${}\r\n{}\r\n", words[1].len(), words[1]),
        "HELLO" => "%1\r\n+proto\r\n:3\r\n".to_owned(),
        "SSUBSCRIBE" => format!(">3\r\n$10\r\nssubscribe\r\n${}\r\n{}\r\n:1\r\n", words[1].len(), words[1]),
        _ => "+OK\r\n".to_owned(),
    }
}

const MOVED: &str = "-MOVED 3300 127.0.0.1:1\r\n";

/// The client looks for them without a pause, and for no others.
#[test]
fn servers_that_are_gone_after_a_slot_has_moved_are_given_up() {
    everywhere(|place| {
        let cluster = Replaced::at("GET", MOVED, None);
        let link = cluster.link(place);
        eventually("the address is asked", || place.run(get(&link, "b")).is_ok_and(|value| value == text("b")));
        eventually("nobody connects to the first any more", || {
            let before = cluster.first.accepted();
            (0..50).for_each(|_| _ = place.run(get(&link, "b")));
            cluster.first.accepted() == before
        });
    });
}

/// It acknowledges what it is sent.
#[test]
fn a_server_that_hangs_and_was_replaced_is_given_up_if_nobody_else_answers() {
    everywhere(|place| {
        let cluster = Replaced::at("GET", "", Some(""));
        let link = cluster.link(place);
        eventually("the address is asked", || place.run(get(&link, "b")).is_ok_and(|value| value == text("b")));
    });
}

#[test]
fn channels_are_listened_to_although_all_servers_that_were_known_are_gone() {
    everywhere(|place| {
        let cluster = Replaced::at("SSUBSCRIBE", MOVED, None);
        let link = cluster.link(place);
        let (watching, told) = watch(&link, "{b}:c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        eventually("it is listened to", || watching.is_listening());
    });
}

/// Nobody has asked the others for long, and there is no other way to them.
#[test]
fn a_server_that_hangs_for_long_takes_no_others_with_it() {
    let servers = two_nodes();
    goes_on_alone(&servers[1]);
    everywhere(|place| {
        let link = link(place, &servers[0], SHORT);
        connected(place, &link);
        eventually("it is connected to both", || place.run(get(&link, "b")).is_ok());
        servers[0].pause();
        let start = Instant::now();
        while start.elapsed() < SHORT.response * 15 {
            assert!(place.run(get(&link, "b")).is_err());
        }
        eventually("the other answers", || place.run(get(&link, "a")).is_ok());
        servers[0].resume();
    });
}

/// Nor what is pushed by the others.
#[test]
fn channels_of_others_can_be_listened_to_after_a_server_has_hung_for_long() {
    let servers = two_nodes();
    goes_on_alone(&servers[1]);
    everywhere(|place| {
        let link = link(place, &servers[0], SHORT);
        let (_first, told) = watch(&link, "{b}:c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        servers[0].pause();
        std::thread::sleep(SHORT.response * 15);
        let (other, told) = watch(&link, "{a}:c", 7);
        assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
        eventually("it is listened to", || other.is_listening());
        servers[0].resume();
    });
}

//! Writes that meet loads, bytes that are no values, and how long what is stored lives.

use super::peer::{Load, Peer, loads};
use super::settings::{Kind, Settings};
use crate::redis_support::server::Server;
use crate::redis_support::signal::Signal;
use std::time::Duration;

pub(crate) fn i2_a_put_during_a_load_wins_in_every_process(kind: Kind) {
    let server = Server::start();
    let peers: [_; 3] = Peer::several(&Settings::new(kind, server.url()));
    let [loading, waiting, writing] = &peers;
    loading.read("old", "k", 2, Load::Gate, "old");
    loading.wait_for_load("k");
    loading.wait_for_waiters("k", 1);
    waiting.read("wait", "k", 2, Load::Millis(0), "never");
    waiting.wait_for_waiters("k", 1);
    writing.say("put put k put");
    writing.wait_for_write("put");
    // It has no lease to wait for any more, and there is a value.
    assert_eq!(waiting.wait_for_answers("wait", 2).1, ["put"; 2]);
    loading.open("old");
    assert_eq!(loading.wait_for_answers("old", 2).1, ["old"; 2], "whoever loads gets what it has loaded");
    for peer in &peers {
        assert_eq!(peer.get("after", "k").as_deref(), Some("put"));
    }
    assert_eq!(loads(&peers, "k"), 1);
}

pub(crate) fn i2_an_invalidation_during_a_load_wins_in_every_process(kind: Kind) {
    let server = Server::start();
    let peers: [_; 2] = Peer::several(&Settings::new(kind, server.url()));
    let [loading, writing] = &peers;
    loading.read("old", "k", 1, Load::Gate, "old");
    loading.wait_for_load("k");
    writing.say("invalidate gone k");
    writing.wait_for_write("gone");
    writing.read("new", "k", 2, Load::Millis(0), "new");
    assert_eq!(writing.wait_for_answers("new", 2).1, ["new"; 2], "the lease went with the value");
    loading.open("old");
    loading.wait_for_answers("old", 1);
    for peer in &peers {
        assert_eq!(peer.get("after", "k").as_deref(), Some("new"));
    }

    // And with nothing stored after it: what was loaded before is not.
    loading.read("older", "j", 1, Load::Gate, "older");
    loading.wait_for_load("j");
    writing.say("invalidate gone-too j");
    writing.wait_for_write("gone-too");
    loading.open("older");
    loading.wait_for_answers("older", 1);
    for peer in &peers {
        assert_eq!(peer.get("nothing", "j"), None);
    }
}

/// The one name under which a value is stored.
fn name_of_value(server: &Server) -> String {
    let mut names = server.keys();
    names.retain(|name| name.ends_with(":v"));
    assert_eq!(names.len(), 1, "{names:?}");
    names.remove(0)
}

pub(crate) fn i6_bytes_that_are_no_value_are_loaded_and_overwritten(kind: Kind) {
    let server = Server::start();
    let peers: [_; 2] = Peer::several(&Settings::new(kind, server.url()));
    peers[0].read("first", "k", 1, Load::Millis(0), "first");
    peers[0].wait_for_answers("first", 1);
    let name = name_of_value(&server);
    let damages: [&[&str]; 5] = [
        &["SET", &name, ""],
        &["SET", &name, "garbage"],
        &["SET", &name, &"longer garbage, by far longer than any header".repeat(100)],
        // The first byte, and the last of the value's own.
        &["SETRANGE", &name, "0", "?"],
        &["SET", &name, "\0"],
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let reply = server.cli(damage);
        assert!(!reply.contains("error"), "{reply}");
        let (id, value) = (format!("{number}"), format!("v{number}"));
        for peer in &peers {
            assert_eq!(peer.get(&format!("get-{number}"), "k"), None);
        }
        for peer in &peers {
            peer.read(&id, "k", 2, Load::Millis(0), &value);
            assert_eq!(peer.wait_for_answers(&id, 2).1, [&*value; 2]);
        }
        assert_eq!(loads(&peers, "k"), number + 2, "it is overwritten by the first load");
    }
}

pub(crate) fn i11_a_value_without_a_life_is_a_hit(kind: Kind) {
    let server = Server::start();
    let peer = Peer::start(&Settings::new(kind, server.url()));
    peer.read("first", "k", 1, Load::Millis(0), "first");
    peer.wait_for_answers("first", 1);
    let name = name_of_value(&server);
    assert!(server.pttl(&name) > 0);
    assert_eq!(server.cli(&["PERSIST", &name]), "1");
    peer.read("hit", "k", 2, Load::Millis(0), "second");
    assert_eq!(peer.wait_for_answers("hit", 2).1, ["first"; 2]);
    assert_eq!(peer.loads("k"), 1);
}

pub(crate) fn k7_every_lease_and_epoch_ends_by_itself(kind: Kind) {
    let server = Server::start();
    let all_end = |when: &str, least: usize| {
        let names = server.keys();
        let names: Vec<_> = names.iter().filter(|name| name.ends_with(":l") || name.ends_with(":g")).collect();
        assert!(names.len() >= least, "{when}: {names:?}");
        for name in names {
            assert_ne!(server.pttl(name), -1, "{when}: {name}");
        }
    };
    let settings = Settings { lease: Duration::from_millis(300), ..Settings::new(kind, server.url()) };
    let [killed, other] = Peer::several(&settings);
    killed.read("held", "k", 1, Load::Gate, "never");
    killed.wait_for_load("k");
    all_end("a lease is held", 2);
    killed.signal(Signal::Kill);
    all_end("its holder is dead", 1);
    other.read("next", "k", 1, Load::Gate, "next");
    other.wait_for_load("k");
    all_end("it was taken over", 2);
    other.say("put put k put");
    other.wait_for_write("put");
    all_end("the key was written", 0);
    other.open("next");
    other.wait_for_answers("next", 1);
    other.say("invalidate gone k");
    other.wait_for_write("gone");
    all_end("the key was invalidated", 0);
}

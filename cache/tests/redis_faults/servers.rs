//! The server fails in the middle of a held lease.

use super::peer::{Load, Peer, loads};
use super::settings::{Kind, Settings};
use crate::redis_support::server::Server;
use crate::redis_support::until;
use std::time::Duration;

/// A holder in the middle of a load of `k`, and two processes of three callers that wait for it.
struct Held {
    server: Server,
    peers: [Peer; 3],
}

/// What the holder loads.
const FIRST: &str = "first";
/// What the others load, if they do.
const OTHER: &str = "other";

impl Held {
    fn new(kind: Kind, set: impl FnOnce(Settings) -> Settings) -> Self {
        Self::try_new(kind, set).expect("all others wait")
    }

    /// `None` if one of the others has loaded.
    fn try_new(kind: Kind, set: impl FnOnce(Settings) -> Settings) -> Option<Self> {
        let server = Server::start();
        let peers: [_; 3] = Peer::several(&set(Settings::new(kind, server.url())));
        let [holder, waiters @ ..] = &peers;
        holder.read("k", "k", 3, Load::Gate, FIRST);
        holder.wait_for_load("k");
        for waiter in waiters {
            waiter.read("k", "k", 3, Load::Millis(50), OTHER);
        }
        holder.wait_for_waiters("k", 2);
        waiters.iter().all(|waiter| waiter.waits("k", 2)).then_some(Self { server, peers })
    }

    /// Each caller of the two that wait gets a value; then the load of the holder ends, and its callers get that.
    fn all_are_served(&self, key: &str) {
        let [holder, waiters @ ..] = &self.peers;
        for waiter in waiters {
            assert_eq!(waiter.wait_for_answers(key, 3).1, [OTHER; 3]);
        }
        holder.open(FIRST);
        assert_eq!(holder.wait_for_answers(key, 3).1, [FIRST; 3]);
        let loads = loads(&self.peers, key);
        assert!(loads <= self.peers.len(), "{loads} loads");
    }

    /// A key that is read by all when the server works is soon loaded by one of them, and a value that is there by nobody.
    fn they_share_again(&self) {
        let mut tries = 0;
        until("the processes share a value again", || {
            tries += 1;
            let key = format!("again-{tries}");
            for peer in &self.peers {
                peer.read(&key, &key, 2, Load::Millis(1), OTHER);
                assert_eq!(peer.wait_for_answers(&key, 2).1, [OTHER; 2]);
            }
            (loads(&self.peers, &key) == 1).then_some(())
        });
    }
}

pub(crate) fn k5_a_server_that_is_gone_costs_a_load_a_process(kind: Kind) {
    let mut held = Held::new(kind, |settings| settings);
    held.server.kill();
    held.all_are_served("k");
    held.server.restart();
    held.they_share_again();
}

pub(crate) fn k5_a_server_that_hangs_costs_a_load_a_process(kind: Kind) {
    // Once more if the machine was so late that they took the server for one that hangs already.
    let try_new = || Held::try_new(kind, |settings| Settings { response: Duration::from_secs(3), ..settings });
    let held = until("all others wait", try_new);
    held.server.stop();
    held.all_are_served("k");
    held.server.cont();
    held.they_share_again();
}

pub(crate) fn k5_who_asks_for_it_gets_an_error_when_the_server_is_gone(kind: Kind) {
    let mut held = Held::new(kind, |settings| Settings { fails_closed: true, ..settings });
    held.server.kill();
    let [holder, waiters @ ..] = &held.peers;
    for waiter in waiters {
        waiter.wait_for(3, "failed k ");
    }
    holder.open(FIRST);
    assert_eq!(holder.wait_for_answers("k", 3).1, [FIRST; 3], "who has a value keeps it");
    assert_eq!(loads(&held.peers, "k"), 1);
}

pub(crate) fn k5_a_server_that_restarts_empty_costs_a_load_a_process(kind: Kind) {
    let mut held = Held::new(kind, |settings| settings);
    held.server.restart();
    held.all_are_served("k");
    held.they_share_again();
}

pub(crate) fn k5_a_server_that_forgets_all_keys_costs_one_load_more(kind: Kind) {
    let held = Held::new(kind, |settings| settings);
    held.server.flush_all();
    held.all_are_served("k");
    assert_eq!(loads(&held.peers, "k"), 2);
    assert_eq!(held.peers[0].get("after", "k").as_deref(), Some(OTHER), "the holder has nothing to say any more");
    held.they_share_again();
}

pub(crate) fn k5_a_server_that_forgets_all_scripts_costs_nothing(kind: Kind) {
    let held = Held::new(kind, |settings| settings);
    held.server.script_flush();
    held.peers[0].open(FIRST);
    for peer in &held.peers {
        assert_eq!(peer.wait_for_answers("k", 3).1, [FIRST; 3]);
    }
    assert_eq!(loads(&held.peers, "k"), 1);
    held.they_share_again();
}

pub(crate) fn i7_a_full_server_costs_a_load_a_process_and_holds_up_nobody(kind: Kind) {
    let held = Held::new(kind, |settings| settings);
    held.server.config_set("maxmemory", "1");
    let [holder, waiters @ ..] = &held.peers;
    holder.open(FIRST);
    assert_eq!(holder.wait_for_answers("k", 3).1, [FIRST; 3]);
    for waiter in waiters {
        assert_eq!(waiter.wait_for_answers("k", 3).1, [OTHER; 3]);
    }
    assert_eq!(loads(&held.peers, "k"), 3);
    held.server.config_set("maxmemory", "0");
    held.they_share_again();
}

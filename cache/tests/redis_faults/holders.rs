//! The process that loads is killed, stopped, or cut off.

use super::peer::{Load, Peer, loads};
use super::settings::{Kind, Settings};
use crate::redis_support::proxy::Mode;
use crate::redis_support::server::Server;
use crate::redis_support::signal::Signal;
use crate::redis_support::until;
use std::time::Duration;

/// Of those whose end is waited for.
const LEASE: Duration = Duration::from_secs(1);

pub(crate) fn k4_a_killed_holder_is_succeeded_by_one_waiter(kind: Kind) {
    let server = Server::start();
    let settings = Settings::new(kind, server.url());
    let holder = Peer::start(&Settings { lease: LEASE, ..settings.clone() });
    let waiters: [_; 5] = Peer::several(&settings);
    holder.read("held", "k", 1, Load::Gate, "never");
    holder.wait_for_load("k");
    for waiter in &waiters {
        waiter.read("wait", "k", 10, Load::Gate, "next");
    }
    for waiter in &waiters {
        waiter.wait_for_waiters("k", 9);
    }
    holder.signal(Signal::Kill);
    for waiter in &waiters {
        waiter.open("next");
    }
    for waiter in &waiters {
        assert_eq!(waiter.wait_for_answers("wait", 10).1, ["next"; 10]);
    }
    assert_eq!(loads(&waiters, "k"), 1, "two in all, with the holder's");
}

pub(crate) fn k2_a_holder_that_was_stopped_past_its_lease_does_not_overwrite_what_came_after(kind: Kind) {
    let server = Server::start();
    let settings = Settings { lease: LEASE, ..Settings::new(kind, server.url()) };
    let [holder, other] = Peer::several(&settings);
    holder.read("old", "k", 3, Load::Gate, "v1");
    holder.wait_for_load("k");
    holder.wait_for_waiters("k", 2);
    holder.signal(Signal::Stop);
    other.read("new", "k", 3, Load::Millis(1), "v2");
    assert_eq!(other.wait_for_answers("new", 3).1, ["v2"; 3]);
    assert_eq!(other.loads("k"), 1);

    holder.open("v1");
    holder.signal(Signal::Continue);
    assert_eq!(holder.wait_for_answers("old", 3).1, ["v1"; 3], "whoever loads gets what it has loaded");
    for peer in [&holder, &other] {
        assert_eq!(peer.get("after", "k").as_deref(), Some("v2"));
    }
}

pub(crate) fn k2_a_holder_that_comes_back_while_another_loads_is_late_and_the_other_stores_after_it(kind: Kind) {
    let server = Server::start();
    let [holder, other, third] = Peer::several(&Settings::new(kind, server.url()));
    holder.read("old", "k", 1, Load::Gate, "v1");
    holder.wait_for_load("k");
    holder.signal(Signal::Stop);
    // As if it had run out.
    let lease = server.keys().into_iter().find(|name| name.ends_with(":l")).expect("it is held");
    assert_eq!(server.cli(&["DEL", &lease]), "1");
    other.read("new", "k", 3, Load::Gate, "v2");
    other.wait_for_load("k");
    other.wait_for_waiters("k", 2);
    holder.open("v1");
    holder.signal(Signal::Continue);
    assert_eq!(holder.wait_for_answers("old", 1).1, ["v1"]);
    assert_eq!(third.get("late", "k").as_deref(), Some("v1"), "there was no value, so this one is better than none");
    other.open("v2");
    assert_eq!(other.wait_for_answers("new", 3).1, ["v2"; 3]);
    assert_eq!(third.get("after", "k").as_deref(), Some("v2"));
}

pub(crate) fn k3_a_load_of_three_leases_is_one_load(kind: Kind) {
    // It is renewed in time only while the machine does not stand still: then once more, with a longer one.
    let is_one = |millis| {
        let server = Server::start();
        let settings = Settings { lease: Duration::from_millis(millis), ..Settings::new(kind, server.url()) };
        let peers: [_; 3] = Peer::several(&settings);
        for peer in &peers {
            peer.read("wait", "k", 5, Load::Millis(millis * 3), "v");
        }
        for peer in &peers {
            assert_eq!(peer.wait_for_answers("wait", 5).1, ["v"; 5]);
        }
        loads(&peers, "k") == 1
    };
    assert!([1_500, 4_000, 16_000].into_iter().any(is_one));
}

pub(crate) fn k3_who_has_waited_long_enough_loads(kind: Kind) {
    let server = Server::start();
    let settings = Settings { lease_wait: Duration::from_millis(200), ..Settings::new(kind, server.url()) };
    let [holder, other] = Peer::several(&settings);
    holder.read("first", "k", 1, Load::Gate, "v1");
    holder.wait_for_load("k");
    other.read("second", "k", 5, Load::Millis(0), "v2");
    assert_eq!(other.wait_for_answers("second", 5).1, ["v2"; 5]);
    assert_eq!(other.get("nothing", "k"), None, "the lease is still the first one's");
    holder.open("v1");
    assert_eq!(holder.wait_for_answers("first", 1).1, ["v1"]);
    assert_eq!(other.get("after", "k").as_deref(), Some("v1"));
}

pub(crate) fn k3_a_holder_that_cannot_renew_fails_nobody(kind: Kind) {
    let server = Server::start();
    let proxy = server.proxy();
    let settings = Settings::new(kind, server.url());
    let holder = Peer::start(&Settings { url: proxy.url(), lease: LEASE, ..settings.clone() });
    let others: [_; 2] = Peer::several(&settings);
    holder.read("old", "k", 5, Load::Gate, "v1");
    holder.wait_for_load("k");
    holder.wait_for_waiters("k", 4);
    proxy.set(Mode::Refuse);
    for other in &others {
        other.read("new", "k", 5, Load::Millis(10), "v2");
    }
    for other in &others {
        assert_eq!(other.wait_for_answers("new", 5).1, ["v2"; 5]);
    }
    assert_eq!(loads(&others, "k"), 1, "one of them has taken over");

    holder.open("v1");
    assert_eq!(holder.wait_for_answers("old", 5).1, ["v1"; 5]);
    assert_eq!(holder.loads("k"), 1);
    assert_eq!(others[0].get("after", "k").as_deref(), Some("v2"));
    // As soon as it reaches the server again, it has what the others have.
    proxy.set(Mode::Pass);
    let mut tries = 0;
    until("the holder reads what is stored", || {
        tries += 1;
        let id = format!("again-{tries}");
        holder.read(&id, "k", 1, Load::Millis(1), "uncached");
        (holder.wait_for_answers(&id, 1).1 == ["v2"]).then_some(())
    });
}

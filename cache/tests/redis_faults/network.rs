//! The network loses a single request or its answer, or is slow.

use super::peer::{Load, Peer};
use super::settings::{Kind, Settings};
use crate::redis_support::proxy::{Fault, Mode, Proxy};
use crate::redis_support::server::Server;
use crate::redis_support::until;
use std::time::Duration;

/// Longer than any answer takes.
const SLOW: Duration = Duration::from_secs(20);

/// The steps of a load, each a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read,
    Acquire,
    Publish,
}

const STEPS: [Step; 3] = [Step::Read, Step::Acquire, Step::Publish];
const FAULTS: [Fault; 3] = [Fault::CutBefore, Fault::CutAfter, Fault::Swallow];

/// A process behind a network, and one that is not.
fn two(kind: Kind, server: &Server, response: Duration) -> (Peer, Proxy, Peer) {
    let proxy = server.proxy();
    let settings = Settings::new(kind, server.url());
    let peer = Peer::start(&Settings { url: proxy.url(), response, ..settings.clone() });
    let other = Peer::start(&settings);
    (peer, proxy, other)
}

/// Until what `peer` reads is soon stored. From then on the server knows the scripts, and the process takes it to be well.
fn until_it_stores(peer: &Peer, other: &Peer, name: &str) {
    let mut tries = 0;
    until("the process reaches the server", || {
        tries += 1;
        let key = format!("{name}-{tries}");
        peer.read(&key, &key, 1, Load::Millis(0), "v");
        peer.wait_for_answers(&key, 1);
        other.get(&key, &key)
    });
}

/// Begins a load whose value will be published, and returns its key. If the server is late, it is loaded without a lease, and
/// nothing is published.
fn load_with_lease(peer: &Peer, server: &Server, name: &str) -> String {
    let is_held = |key: &str| server.keys().iter().any(|name| name.ends_with(&format!(":{key}}}:l")));
    let mut keys = (1..=5).map(|number| format!("{name}-{number}"));
    let key = keys.find(|key| {
        peer.read(key, key, 1, Load::Gate, key);
        peer.wait_for_load(key);
        is_held(key) || {
            peer.open(key);
            peer.wait_for_answers(key, 1);
            false
        }
    });
    key.expect("the server is not late each time")
}

pub(crate) fn k5_a_lost_request_or_answer_fails_nobody_and_holds_up_nobody(kind: Kind) {
    let server = Server::start();
    let (peer, proxy, other) = two(kind, &server, Duration::from_secs(2));
    for (step, fault) in STEPS.into_iter().flat_map(|step| FAULTS.map(|fault| (step, fault))) {
        let name = format!("{step:?}-{fault:?}");
        until_it_stores(&peer, &other, &format!("before-{name}"));
        let fails = |key: &str| {
            let command = if step == Step::Read { "GET" } else { "EVALSHA" };
            let name = format!(":{key}}}");
            let is_it = move |words: &[String]| words[0] == command && words.iter().any(|word| word.contains(&name));
            proxy.once(is_it, fault);
        };
        let key = if step == Step::Publish {
            let key = load_with_lease(&peer, &server, &name);
            fails(&key);
            key
        } else {
            fails(&name);
            peer.read(&name, &name, 1, Load::Gate, &name);
            peer.wait_for_load(&name);
            name
        };
        peer.open(&key);
        assert_eq!(peer.wait_for_answers(&key, 1).1, [&*key], "{key}");
        assert_eq!(peer.loads(&key), 1, "{key}");
        // It waits for nobody: no lease is left of the request that may have been carried out.
        other.read(&key, &key, 3, Load::Millis(0), "other");
        let values = other.wait_for_answers(&key, 3).1;
        // One that could not read may have acquired all the same.
        let is_stored = match step {
            Step::Read => values[0] == key,
            Step::Acquire => false,
            Step::Publish => fault != Fault::CutBefore,
        };
        assert_eq!(values, [if is_stored { &*key } else { "other" }; 3], "{key}");
    }
}

pub(crate) fn k5_a_slow_network_costs_no_loads(kind: Kind) {
    let server = Server::start();
    let (peer, proxy, other) = two(kind, &server, SLOW);
    until_it_stores(&peer, &other, "before");
    proxy.set(Mode::Delay(Duration::from_millis(50)));
    peer.read("slow", "k", 5, Load::Gate, "v");
    peer.wait_for_load("k");
    other.read("wait", "k", 5, Load::Millis(0), "never");
    other.wait_for_waiters("k", 4);
    peer.open("v");
    assert_eq!(peer.wait_for_answers("slow", 5).1, ["v"; 5]);
    assert_eq!(other.wait_for_answers("wait", 5).1, ["v"; 5]);
    assert_eq!(other.loads("k"), 0);
}

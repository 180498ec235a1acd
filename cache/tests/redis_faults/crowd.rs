//! Nothing fails; there are many processes and callers.

use super::peer::{Load, Peer, loads};
use super::settings::{Kind, Settings};
use crate::redis_support::proxy::{Mode, Proxy};
use crate::redis_support::server::Server;
use std::thread;
use std::time::{Duration, Instant};

/// Processes that reach the server by a network each.
fn peers<const N: usize>(server: &Server, settings: &Settings) -> [(Peer, Proxy); N] {
    [(); N].map(|()| {
        let proxy = server.proxy();
        let peer = Peer::start(&Settings { url: proxy.url(), ..settings.clone() });
        (peer, proxy)
    })
}

pub(crate) fn k8_five_hundred_waiters_in_four_processes_are_one_waiter_a_process(kind: Kind) {
    const CALLERS: usize = 500;
    /// Half of the longest sleep between two looks: sleeps are jittered down to that.
    const POLL: Duration = Duration::from_micros(12_500);
    /// To begin with: the short sleeps, subscribing.
    const CONSTANT: u64 = 30;

    let server = Server::start();
    let peers: [_; 4] = peers(&server, &Settings::new(kind, server.url()));
    for (peer, _) in &peers {
        peer.read("wait", "k", CALLERS, Load::Gate, "v");
    }
    // One of them loads or waits for another process; the others wait for it.
    for (peer, _) in &peers {
        peer.wait_for_waiters("k", CALLERS - 1);
    }
    let (begin, before) = (Instant::now(), peers.each_ref().map(|(_, proxy)| proxy.counts().requests));
    // The time in which commands are counted.
    thread::sleep(Duration::from_secs(1));
    let after = peers.each_ref().map(|(_, proxy)| proxy.counts().requests);
    let polls = begin.elapsed().as_micros() / POLL.as_micros();
    for (before, after) in before.into_iter().zip(after) {
        assert!(
            u128::from(after - before) <= polls + u128::from(CONSTANT),
            "{} commands for {polls} polls",
            after - before
        );
    }

    for (peer, _) in &peers {
        peer.open("v");
    }
    for (peer, proxy) in &peers {
        assert_eq!(peer.wait_for_answers("wait", CALLERS).1, ["v"; CALLERS]);
        // Threads that read at the same time have a connection each.
        assert!(kind == Kind::Threads || proxy.counts().connections <= 4, "{:?}", proxy.counts());
    }
    assert_eq!(loads(peers.iter().map(|(peer, _)| peer), "k"), 1);
}

pub(crate) fn k8_a_lost_push_costs_a_poll(kind: Kind) {
    let server = Server::start();
    let peers: [_; 3] = peers(&server, &Settings::new(kind, server.url()));
    for (_, proxy) in &peers {
        proxy.set(Mode::LosePushes);
    }
    peers[0].0.read("wait", "k", 1, Load::Gate, "v");
    peers[0].0.wait_for_load("k");
    for (peer, _) in &peers[1..] {
        peer.read("wait", "k", 3, Load::Millis(0), "never");
        peer.wait_for_waiters("k", 2);
    }
    let (landed, _) = {
        peers[0].0.open("v");
        peers[0].0.wait_for_answers("wait", 1)
    };
    for (peer, _) in &peers[1..] {
        let (answered, values) = peer.wait_for_answers("wait", 3);
        assert_eq!(values, ["v"; 3]);
        // They look again after a tenth of a second; the rest is for a machine that does other things.
        let late = answered.saturating_duration_since(landed);
        assert!(late < Duration::from_secs(10), "{late:?}");
    }
    assert_eq!(loads(peers.iter().map(|(peer, _)| peer), "k"), 1);
}

pub(crate) fn j2_eight_processes_refresh_once(kind: Kind) {
    let server = Server::start();
    let settings = Settings::new(kind, server.url());
    let settings =
        Settings { ttl: Duration::from_secs(1), stale_while_revalidate: Duration::from_secs(600), ..settings };
    let peers: [_; 8] = Peer::several(&settings);
    peers[0].read("first", "k", 1, Load::Millis(0), "v1");
    peers[0].wait_for_answers("first", 1);
    // Its fresh time is the subject: after it each read wants a refresh.
    thread::sleep(settings.ttl + Duration::from_millis(50));
    for peer in &peers {
        peer.read("stale", "k", 20, Load::Gate, "v2");
    }
    for peer in &peers {
        assert_eq!(peer.wait_for_answers("stale", 20).1, ["v1"; 20], "nobody waits for the refresh");
    }
    // Once more, with one that is under way for sure.
    let refreshes =
        crate::redis_support::until("a refresh", || Some(loads(&peers, "k") - 1).filter(|loads| *loads > 0));
    assert_eq!(refreshes, 1);
    for peer in &peers {
        peer.read("again", "k", 20, Load::Gate, "v2");
    }
    for peer in &peers {
        assert_eq!(peer.wait_for_answers("again", 20).1, ["v1"; 20]);
    }
    for peer in &peers {
        peer.open("v2");
    }
    crate::redis_support::until("the refreshed value", || {
        let id = format!("new-{}", peers[1].events().len());
        (peers[1].get(&id, "k")? == "v2").then_some(())
    });
    assert_eq!(loads(&peers, "k"), 2);
}

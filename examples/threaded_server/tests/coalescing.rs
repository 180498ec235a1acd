//! The server over loopback: one rendering a page however many clients ask for it at once, none for those who ask later,
//! nobody waits for a page that has expired, and nobody pays for somebody else's panic.
//!
//! No test depends on who is faster: a rendering waits at a gate, which opens when every other client is known to wait.

mod support;

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use oneflight_cache::blocking::Cache;
use oneflight_cache::test_util::ManualClock;
use support::http::{Answer, ask, get};
use support::{Gate, Renderings, answers, clients, until};
use threaded_server::{Page, Pages, Server};

const ADDR: &str = "127.0.0.1:0";

/// Pages that do not expire during a test.
fn pages() -> Pages {
    Cache::builder().clock(ManualClock::new()).build_blocking()
}

#[test]
fn sixty_four_clients_of_a_page_share_one_rendering() {
    const CLIENTS: usize = 64;
    const PATHS: [&str; 2] = ["/users/1001", "/users/1002"];

    let (gate, renderings) = (Gate::default(), Renderings::default());
    let pages = pages();
    // Every client holds a handler until the gate opens.
    let server = Server::start(ADDR, CLIENTS * PATHS.len(), pages.clone(), {
        let (gate, renderings) = (gate.clone(), renderings.clone());
        move |path| {
            let number = renderings.next(path);
            gate.pass();
            Page::from(format!("{path}, rendering {number}"))
        }
    })
    .expect("a server");

    let crowds = PATHS.map(|path| clients(CLIENTS, server.addr(), path));
    for path in PATHS {
        until("all clients but one wait", || pages.waiters(path) == CLIENTS - 1);
    }
    gate.open();

    for (path, crowd) in PATHS.into_iter().zip(crowds) {
        let page = Answer { status: 200, body: format!("{path}, rendering 1") };
        assert_eq!(answers(crowd), vec![page; CLIENTS]);
        assert_eq!(renderings.of(path), 1);
    }
    let stats = |hits| format!("hits {hits}\nearly 0\nstale 0\nloads 2\njoins 126\nload_errors 0\n");
    assert_eq!(get(server.addr(), "/stats").unwrap().body, stats(0));

    // The second round is served from the cache.
    for path in PATHS {
        let page = Answer { status: 200, body: format!("{path}, rendering 1") };
        assert_eq!(answers(clients(CLIENTS, server.addr(), path)), vec![page; CLIENTS]);
    }
    assert_eq!(get(server.addr(), "/stats").unwrap().body, stats(128));
}

#[test]
fn nobody_waits_for_a_page_that_has_expired() {
    const CLIENTS: usize = 64;
    const PATH: &str = "/users/1001";

    let (clock, gate, renderings) = (ManualClock::new(), Gate::default(), Renderings::default());
    let (ttl, stale) = (Duration::from_secs(10), Duration::from_secs(60));
    let pages = Cache::builder().clock(clock.clone()).ttl(ttl).stale_while_revalidate(stale).build_blocking();
    let server = Server::start(ADDR, CLIENTS, pages.clone(), {
        let (gate, renderings) = (gate.clone(), renderings.clone());
        move |path| {
            let number = renderings.next(path);
            if number > 1 {
                gate.pass();
            }
            Page::from(format!("rendering {number}"))
        }
    })
    .expect("a server");
    assert_eq!(get(server.addr(), PATH).unwrap().body, "rendering 1");

    clock.advance(ttl);
    // The gate is closed: whoever waited for the new page would get no answer.
    let crowd = answers(clients(CLIENTS, server.addr(), PATH));
    assert_eq!(crowd, vec![Answer { status: 200, body: "rendering 1".to_owned() }; CLIENTS]);

    assert_eq!(pages.stats().stale, CLIENTS as u64);

    gate.open();
    until("there is a new page", || pages.get(PATH).unwrap().is_some_and(|page| page.starts_with("rendering 2")));
    assert_eq!(get(server.addr(), PATH).unwrap().body, "rendering 2");
    let stats = pages.stats();
    assert_eq!((stats.loads, stats.joins), (2, 0));
}

#[test]
fn a_panic_costs_one_client_its_page_and_the_others_nothing() {
    const CLIENTS: usize = 16;
    const PATH: &str = "/users/7";

    let (gate, renderings) = (Gate::default(), Renderings::default());
    let pages = pages();
    let server = Server::start(ADDR, CLIENTS, pages.clone(), {
        let (gate, renderings) = (gate.clone(), renderings.clone());
        move |path| {
            let number = renderings.next(path);
            gate.pass();
            assert!(number != 1, "the first rendering fails, as this test wants it to");
            Page::from(format!("{path}, rendering {number}"))
        }
    })
    .expect("a server");

    let crowd = clients(CLIENTS, server.addr(), PATH);
    until("all clients but one wait", || pages.waiters(PATH) == CLIENTS - 1);
    gate.open();

    let (failed, served): (Vec<_>, Vec<_>) = answers(crowd).into_iter().partition(|answer| answer.status == 500);
    assert_eq!(failed.len(), 1, "the client whose rendering panicked");
    let page = Answer { status: 200, body: "/users/7, rendering 2".to_owned() };
    assert_eq!(served, vec![page; CLIENTS - 1], "a follower took over");
    assert_eq!(renderings.of(PATH), 2);

    // The handler that saw the panic is still one of the pool.
    let crowd = clients(CLIENTS, server.addr(), PATH);
    assert!(answers(crowd).iter().all(|answer| answer.status == 200));
}

#[test]
fn only_pages_are_rendered_and_only_reads_are_shared() {
    let renderings = Renderings::default();
    let server = Server::start(ADDR, 2, pages(), {
        let renderings = renderings.clone();
        move |path| Page::from(format!("rendering {}", renderings.next(path)))
    })
    .expect("a server");

    for path in ["/", "/users/", "/users/abc", "/users/1/2", "/users/-1", "/user/1"] {
        assert_eq!(get(server.addr(), path).unwrap().status, 404, "{path}");
        assert_eq!(renderings.of(path), 0, "{path}");
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(ask(server.addr(), method, "/users/1", "close").unwrap().status, 405, "{method}");
    }
    assert_eq!(renderings.of("/users/1"), 0);

    assert_eq!(ask(server.addr(), "HEAD", "/users/1", "close").unwrap(), Answer { status: 200, body: String::new() });
    assert_eq!(get(server.addr(), "/users/1?page=2").unwrap().body, "rendering 1", "the query is no part of the key");
}

#[test]
fn clients_that_would_keep_their_connections_are_all_served() {
    const CLIENTS: usize = 64;

    let server = Server::start(ADDR, 8, pages(), |path| Page::from(path)).expect("a server");
    let addr = server.addr();
    let start = Arc::new(Barrier::new(CLIENTS));
    let crowd = (0..CLIENTS).map(|_| {
        let start = Arc::clone(&start);
        thread::spawn(move || {
            start.wait();
            ask(addr, "GET", "/users/1", "keep-alive").expect("an answer")
        })
    });
    assert!(answers(crowd.collect()).iter().all(|answer| answer.status == 200));
}

#[test]
fn stop_answers_those_inside_then_ends_every_thread_and_closes_the_port() {
    const CLIENTS: usize = 8;

    let gate = Gate::default();
    let token = Arc::new(());
    let pages = pages();
    let server = Server::start(ADDR, CLIENTS, pages.clone(), {
        let (gate, token) = (gate.clone(), Arc::clone(&token));
        move |path| {
            let _held_by_every_handler = &token;
            gate.pass();
            Page::from(path)
        }
    })
    .expect("a server");
    let addr = server.addr();

    let crowd = clients(CLIENTS, addr, "/users/1");
    until("all clients but one wait", || pages.waiters("/users/1") == CLIENTS - 1);
    let stopped = thread::spawn(|| server.stop());
    gate.open();
    stopped.join().expect("a clean stop");

    assert!(answers(crowd).iter().all(|answer| answer.status == 200));
    assert_eq!(Arc::strong_count(&token), 1, "a handler outlived the server");
    until("the port is closed", || get(addr, "/users/1").is_err());
}

#[test]
fn a_server_that_nobody_called_stops_when_it_is_dropped() {
    let server = Server::start(ADDR, 4, pages(), |path| Page::from(path)).expect("a server");
    let addr = server.addr();
    drop(server);
    until("the port is closed", || get(addr, "/users/1").is_err());
}

#[test]
fn an_address_in_use_is_an_error() {
    let server = Server::start(ADDR, 1, pages(), |path| Page::from(path)).expect("a server");
    let error = Server::start(server.addr(), 1, pages(), |path| Page::from(path)).expect_err("the port is taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

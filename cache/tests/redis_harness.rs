//! Whether the servers, the processes and the network of the tests do what their tests rely on.

mod redis_support;

use redis_support::process::{self, Process};
use redis_support::proxy::{Fault, Mode, Proxy};
use redis_support::resp::{self, Frames};
use redis_support::server::Server;
use redis_support::signal::Signal;
use redis_support::{LIMIT, until};
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn a_server_restarts_empty_on_the_same_port() {
    let mut server = Server::start();
    assert_eq!(server.cli(&["SET", "k", "v"]), "OK");
    assert_eq!(server.cli(&["GET", "k"]), "v");
    server.restart();
    assert_eq!(server.cli(&["GET", "k"]), "(nil)");
    server.kill();
    let error = TcpStream::connect(("127.0.0.1", server.port())).expect_err("it has ended");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_server_that_is_stopped_answers_when_it_goes_on() {
    let server = Server::start();
    server.stop();
    let mut client = TcpStream::connect(("127.0.0.1", server.port())).expect("the system accepts");
    client.set_read_timeout(Some(Duration::from_millis(100))).expect("not zero");
    client.write_all(&resp::request(&["PING"])).expect("the system buffers");
    let mut frames = Frames::new(client.try_clone().expect("there are file descriptors left"));
    assert!(matches!(frames.next().expect_err("it stands still").kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    server.cont();
    client.set_read_timeout(None).expect("for ever");
    assert_eq!(frames.next().expect("it goes on").as_deref(), Some(&b"+PONG\r\n"[..]));
}

#[test]
fn a_server_counts_and_forgets() {
    let server = Server::start();
    let before = server.commands_processed();
    assert_eq!(server.cli(&["SET", "k", "v", "PX", "60000"]), "OK");
    assert!(server.commands_processed() >= before + 2);
    assert_eq!((server.calls("set"), server.calls("getdel")), (1, 0));
    assert_eq!(server.keys(), ["k"]);
    assert!((1..=60_000).contains(&server.pttl("k")));
    server.flush_all();
    assert_eq!(server.pttl("k"), -2);
    let sha = server.cli(&["SCRIPT", "LOAD", "return 1"]);
    assert_eq!(server.cli(&["EVALSHA", &sha, "0"]), "1");
    server.script_flush();
    assert!(server.cli(&["EVALSHA", &sha, "0"]).starts_with("(error) NOSCRIPT"));
    server.config_set("maxmemory", "1");
    assert!(server.cli(&["SET", "k", "v"]).starts_with("(error) OOM"));
}

#[test]
fn a_cluster_of_one_node_has_all_slots() {
    let server = Server::cluster();
    for key in ["a", "b", "{a}c"] {
        assert_eq!(server.cli(&["SET", key, "v"]), "OK");
    }
    assert!(server.cli(&["MGET", "a", "b"]).starts_with("(error) CROSSSLOT"));
    assert_eq!(server.cli(&["MGET", "a", "{a}c"]), "v\nv");
}

/// A connection through a proxy.
struct Client {
    stream: TcpStream,
    frames: Frames<TcpStream>,
}

impl Client {
    fn of(proxy: &Proxy) -> Self {
        let address = proxy.url();
        let stream = TcpStream::connect(address.trim_start_matches("redis://")).expect("a proxy accepts");
        Self { frames: Frames::new(stream.try_clone().expect("there are file descriptors left")), stream }
    }

    /// The answer; an error if the connection is closed.
    fn ask(&mut self, words: &[&str]) -> Result<Option<String>, ()> {
        self.stream.write_all(&resp::request(words)).map_err(drop)?;
        self.answer(LIMIT)
    }

    /// As [`ask`](Self::ask), and none is expected.
    fn ask_in_vain(&mut self, words: &[&str]) -> Result<Option<String>, ()> {
        self.stream.write_all(&resp::request(words)).map_err(drop)?;
        self.answer(Duration::from_millis(100))
    }

    /// The next one; `None` if there is none for so long.
    fn answer(&mut self, limit: Duration) -> Result<Option<String>, ()> {
        self.stream.set_read_timeout(Some(limit)).expect("not zero");
        match self.frames.next() {
            Ok(Some(frame)) => Ok(Some(resp::words(&frame).join(" "))),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
            Ok(None) | Err(_) => Err(()),
        }
    }
}

fn some(text: &str) -> Result<Option<String>, ()> {
    Ok(Some(text.to_owned()))
}

#[test]
fn a_network_passes_delays_hangs_and_refuses() {
    let server = Server::start();
    let proxy = server.proxy();
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask(&["SET", "k", "v"]), some("OK"));
    proxy.set(Mode::Delay(Duration::from_millis(50)));
    let before = Instant::now();
    assert_eq!(client.ask(&["GET", "k"]), some("v"));
    assert!(before.elapsed() >= Duration::from_millis(50));

    proxy.set(Mode::Hang);
    assert_eq!(client.ask_in_vain(&["SET", "k", "w"]), Ok(None));
    assert_eq!(server.cli(&["GET", "k"]), "v");
    proxy.set(Mode::Pass);
    proxy.wait_for("the answer to what hung", |counts| counts.replies == 3);
    assert_eq!(client.answer(LIMIT), some("OK"));

    proxy.set(Mode::Refuse);
    assert_eq!(client.ask(&["PING"]), Err(()));
    assert_eq!(Client::of(&proxy).ask(&["PING"]), Err(()));
    proxy.set(Mode::Pass);
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask(&["PING"]), some("PONG"));
    proxy.cut();
    assert_eq!(client.ask(&["PING"]), Err(()));

    let counts = proxy.counts();
    assert_eq!((counts.connections, counts.requests, counts.replies), (2, 4, 4));
    assert_eq!((proxy.commands("SET"), proxy.commands("GET"), proxy.commands("PING")), (2, 1, 1));
    let bytes =
        [&["SET", "k", "v"][..], &["GET", "k"], &["SET", "k", "w"], &["PING"]].map(|words| resp::request(words).len());
    assert_eq!(counts.request_bytes, bytes.iter().sum::<usize>() as u64);
}

#[test]
fn a_network_swallows_replies_and_the_connection_stays_mute() {
    let server = Server::start();
    let proxy = server.proxy();
    let (mut client, mut other) = (Client::of(&proxy), Client::of(&proxy));
    assert_eq!(other.ask(&["PING"]), some("PONG"));
    proxy.set(Mode::Swallow);
    assert_eq!(client.ask_in_vain(&["SET", "k", "v"]), Ok(None));
    proxy.wait_for("the swallowed reply", |counts| counts.replies == 2);
    assert_eq!(server.cli(&["GET", "k"]), "v");
    proxy.set(Mode::Pass);
    assert_eq!(client.ask_in_vain(&["GET", "k"]), Ok(None), "the answer would be taken for that to the first request");
    assert_eq!(other.ask(&["GET", "k"]), some("v"));
}

#[test]
fn a_network_loses_pushes_and_nothing_else() {
    let server = Server::start();
    let proxy = server.proxy();
    let mut subscriber = Client::of(&proxy);
    assert_eq!(subscriber.ask(&["SUBSCRIBE", "c"]), some("subscribe c 1"));
    proxy.set(Mode::LosePushes);
    assert_eq!(server.cli(&["PUBLISH", "c", "lost"]), "1");
    proxy.wait_for("the push", |counts| counts.replies == 2);
    assert_eq!(subscriber.ask(&["PING"]), some("pong "));
    proxy.set(Mode::Pass);
    assert_eq!(server.cli(&["PUBLISH", "c", "heard"]), "1");
    assert_eq!(subscriber.answer(LIMIT), some("message c heard"));
}

#[test]
fn a_fault_befalls_one_request() {
    let server = Server::start();
    let proxy = server.proxy();
    let sets = |key: &'static str| move |words: &[String]| words[0] == "SET" && words[1] == key;
    proxy.once(sets("before"), Fault::CutBefore);
    proxy.once(sets("after"), Fault::CutAfter);
    proxy.once(sets("mute"), Fault::Swallow);

    let mut client = Client::of(&proxy);
    assert_eq!(client.ask(&["SET", "k", "v"]), some("OK"));
    assert_eq!(client.ask(&["SET", "before", "v"]), Err(()));
    assert_eq!(Client::of(&proxy).ask(&["SET", "after", "v"]), Err(()));
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask_in_vain(&["SET", "mute", "v"]), Ok(None));
    assert_eq!(client.ask_in_vain(&["PING"]), Ok(None));
    assert_eq!(Client::of(&proxy).ask(&["SET", "mute", "w"]), some("OK"));
    assert_eq!(server.keys(), ["after", "k", "mute"]);
}

#[test]
fn a_network_in_front_of_no_server_closes_connections() {
    let mut server = Server::start();
    let proxy = server.proxy();
    server.kill();
    assert_eq!(Client::of(&proxy).ask(&["PING"]), Err(()));
    server.restart();
    assert_eq!(Client::of(&proxy).ask(&["PING"]), some("PONG"));
}

#[test]
fn a_child_answers_stands_still_goes_on_and_is_killed() {
    if let Some(role) = process::role() {
        process::tell(&format!("role {role}"));
        process::obey(|command| process::tell(&format!("heard {command}")));
    }
    let child = Process::start("a_child_answers_stands_still_goes_on_and_is_killed", "echo");
    child.wait_for(1, "role echo");
    child.say("one");
    child.wait_for(1, "heard one");

    child.signal(Signal::Stop);
    child.say("two");
    assert_eq!(child.try_wait_for(1, "heard two", Duration::from_millis(100)), None);
    child.signal(Signal::Continue);
    child.wait_for(1, "heard two");
    assert_eq!(child.count("heard"), 2);

    child.signal(Signal::Kill);
    let before = Instant::now();
    assert_eq!(child.try_wait_for(3, "heard", Duration::from_secs(600)), None, "it is dead, and that is known at once");
    assert!(before.elapsed() < Duration::from_secs(600));
}

#[test]
fn a_server_does_not_outlive_a_test_whose_terminal_hangs_up() {
    if process::role().is_some() {
        let server = Server::start();
        process::tell(&format!("directory {}", server.directory().display()));
        process::tell(&format!("port {}", server.port()));
        process::obey(|_| {});
    }
    let child = Process::start("a_server_does_not_outlive_a_test_whose_terminal_hangs_up", "server");
    let (_, told) = child.wait_for(1, "port ");
    let port: u16 = told["port ".len()..].parse().expect("a number");
    child.signal_group(Signal::HangUp);
    // Where all that was started from a terminal that has gone ignores hang-ups, it goes on.
    child.signal(Signal::Kill);
    until("its server has ended", || TcpStream::connect(("127.0.0.1", port)).is_err().then_some(()));
    let (_, told) = child.wait_for(1, "directory ");
    let directory = Path::new(&told["directory ".len()..]);
    assert!(directory.is_absolute());
    until("its directory is gone", || (!directory.exists()).then_some(()));
}

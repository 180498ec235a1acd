//! `--redis` as its users and their scripts meet it, with real processes and a real server.

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::story;
use tempfile::TempDir;

/// Three processes, the first of them with one caller more.
const SMALL: [&str; 5] = ["--json", "--processes", "3", "--callers", "10"];

const PATIENCE: Duration = Duration::from_secs(30);

fn stampede(arguments: &[&str], temporary: &TempDir) -> Command {
    let mut stampede = Command::new(env!("CARGO_BIN_EXE_stampede"));
    stampede.args(arguments).env("TMPDIR", temporary.path());
    stampede
}

fn output(mut command: Command) -> Output {
    command.output().expect("the program starts")
}

fn temporary() -> TempDir {
    TempDir::new().expect("a temporary directory")
}

/// The program succeeds with a scenario, and the runs of all ways, none, naive and ours, are as `they_are`.
fn shows(scenario: &str, more: &[&str], they_are: impl Fn(&[Value; 3]) -> bool) {
    story(|| runs(scenario, more), |(output, runs)| !output.status.success() || !they_are(runs));
}

/// What the program says, and the runs of a scenario by all ways in its JSON.
fn runs(scenario: &str, more: &[&str]) -> (Output, [Value; 3]) {
    let temporary = temporary();
    let arguments = [&["--redis", "--scenario", scenario], &SMALL as &[&str], more].concat();
    let output = output(stampede(&arguments, &temporary));
    let left_behind: Vec<_> = std::fs::read_dir(temporary.path()).expect("is readable").collect();
    assert!(left_behind.is_empty(), "{left_behind:?}");

    // Nothing but the JSON: it would not parse otherwise. Nor if there is no redis-server, which the message says then: `bash
    // ci/test.sh` installs one.
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("no JSON ({error}): {}", String::from_utf8_lossy(&output.stderr)));
    let runs = report["scenarios"].as_array().unwrap_or_else(|| panic!("no list of scenarios: {report}")).clone();
    let names = ["callers", "loads", "lost", "name", "p50_ms", "p99_ms", "processes", "stale", "way"];
    for (run, way) in runs.iter().zip(["none", "naive", "ours"]) {
        let keys: BTreeSet<&str> = run.as_object().expect("an object").keys().map(String::as_str).collect();
        assert!(keys.into_iter().eq(names), "{run}");
        assert_eq!((run["way"].as_str(), run["name"].as_str()), (Some(way), Some(scenario)), "{run}");
        assert_eq!((number(run, "processes"), number(run, "callers")), (3.0, 10.0), "{run}");
        assert_eq!(number(run, "lost"), 0.0, "{run}");
        assert!(number(run, "p50_ms") > 0.0 && number(run, "p50_ms") <= number(run, "p99_ms"), "{run}");
    }
    let runs = runs.try_into().unwrap_or_else(|runs| panic!("not three runs: {runs:?}"));
    (output, runs)
}

fn number(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or_else(|| panic!("{name} of {run} is not a number"))
}

fn numbers(runs: &[Value; 3], name: &str) -> [f64; 3] {
    runs.each_ref().map(|run| number(run, name))
}

#[test]
fn cold_callers_of_all_processes_share_one_load() {
    shows("cold", &[], |runs| {
        let [none, naive, ours] = numbers(runs, "loads");
        // A load takes so long.
        let wait = numbers(runs, "p50_ms").into_iter().all(|median| median >= 100.0);
        wait && none > 1.0 && naive >= 1.0 && ours == 1.0
    });
}

#[test]
fn after_the_holder_was_killed_the_others_wait_for_the_lease_and_one_load() {
    shows("killed", &[], |runs| {
        let [none, naive, ours] = numbers(runs, "loads");
        // The lock lasts 5 s, the lease half a second, and then there is a load of 300 ms.
        let [_, locked, _] = numbers(runs, "p50_ms");
        let [_, _, leased] = numbers(runs, "p99_ms");
        let wait = locked >= 5_000.0 && (500.0..5_000.0).contains(&leased);
        // More with the lock, if somebody looks before the value is stored and takes the lock after it was deleted.
        wait && none > 2.0 && naive >= 2.0 && ours == 2.0
    });
}

#[test]
fn a_holder_that_was_paused_does_not_store_an_old_value_over_a_newer_one() {
    shows("paused", &[], |runs| {
        let [none, _, ours] = numbers(runs, "loads");
        numbers(runs, "stale") == [1.0, 1.0, 0.0] && none > 2.0 && ours == 2.0
    });
}

#[test]
fn a_load_that_is_longer_than_the_lease_is_one_load() {
    shows("long_load", &[], |runs| {
        let [none, naive, ours] = numbers(runs, "loads");
        none > 1.0 && naive > 1.0 && ours == 1.0
    });
}

#[test]
fn refreshes_are_one_load_a_cycle() {
    shows("refresh", &["--cycles", "4"], |runs| {
        let [none, naive, ours] = numbers(runs, "loads");
        none > 4.0 && naive >= 4.0 && ours == 4.0
    });
}

#[test]
fn the_table_shows_what_the_lease_is_for() {
    let temporary = temporary();
    let arguments = ["--redis", "--scenario", "cold", "--way", "ours", "--processes", "2", "--callers", "4"];
    let is_shown = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout);
        let loads = |title: &str| -> Option<u32> {
            let row = text.lines().find_map(|line| line.trim_start().strip_prefix(title))?;
            row.split_whitespace().next()?.parse().ok()
        };
        output.status.success() && [loads("ours   "), loads("ours, without leases")] == [Some(1), Some(2)]
    };
    story(|| output(stampede(&arguments, &temporary)), |output| !is_shown(output));
}

/// A server of the test's own.
struct Server {
    process: Child,
    port: u16,
    _directory: TempDir,
}

impl Server {
    fn start() -> Self {
        // In place of the port that another program has taken since it was found free.
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(server) = Self::start_at(free_port()) {
                return server;
            }
            assert!(Instant::now() < deadline, "the server does not start");
        }
    }

    fn start_at(port: u16) -> Option<Self> {
        let directory = temporary();
        let program = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let process = Command::new(&program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program} cannot be started ({error}): bash ci/test.sh installs it"));
        let mut server = Self { process, port, _directory: directory };
        let output = server.process.stdout.take().expect("it is piped");
        let mut log = BufReader::new(output).lines().map_while(Result::ok);
        let is_ready = log.any(|line| line.contains("Ready to accept connections"));
        // The rest is read and dropped, so that the server never waits for a reader.
        thread::spawn(|| log.for_each(drop));
        is_ready.then_some(server)
    }

    fn ask(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let mut server = redis::Client::open(self.url())?.get_connection()?;
        let (command, arguments) = words.split_first().expect("a command");
        redis::cmd(command).arg(arguments).query(&mut server)
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("it is a child");
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback interface");
    listener.local_addr().expect("it has an address").port()
}

#[test]
fn a_server_that_runs_is_left_as_it_was() {
    let (server, temporary) = (Server::start(), temporary());
    server.ask(&["SET", "page", "mine"]).expect("the server answers");
    let url = server.url();
    let arguments = [&["--redis-url", &url, "--scenario", "cold"], &SMALL as &[&str]].concat();
    story(|| output(stampede(&arguments, &temporary)), |output| !output.status.success());
    let keys: Vec<String> = redis::from_redis_value(server.ask(&["KEYS", "*"]).expect("it answers")).expect("names");
    assert_eq!(keys, ["page"]);
    let page: String = redis::from_redis_value(server.ask(&["GET", "page"]).expect("it answers")).expect("a text");
    assert_eq!(page, "mine");
    // So there was something to remove: the ways wrote here.
    let stats: String =
        redis::from_redis_value(server.ask(&["INFO", "commandstats"]).expect("it answers")).expect("text");
    assert!(stats.contains("cmdstat_del:") && stats.contains("cmdstat_evalsha:"), "{stats}");
}

#[test]
fn a_promise_that_is_not_kept_is_exit_code_1() {
    let (server, temporary) = (Server::start(), temporary());
    // A user without scripts has no leases, so each process loads for itself.
    server.ask(&["ACL", "SETUSER", "weak", "on", ">weak", "~*", "&*", "+@all", "-@scripting"]).expect("it answers");
    let url = format!("redis://weak:weak@127.0.0.1:{}", server.port);
    let arguments = [&["--redis-url", &url, "--scenario", "cold", "--way", "ours"], &SMALL as &[&str]].concat();
    let is_told = |output: &Output| {
        let message = String::from_utf8_lossy(&output.stderr);
        output.status.code() == Some(1) && message.contains("a broken promise: cold, ours: 3 loads, not one")
    };
    let output = story(|| output(stampede(&arguments, &temporary)), |output| !is_told(output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("the figures are printed nevertheless");
    assert_eq!((number(&report["scenarios"][0], "loads"), number(&report["scenarios"][0], "lost")), (3.0, 0.0));
}

#[test]
fn a_server_of_its_own_ends_with_a_program_that_is_killed() {
    let temporary = temporary();
    let arguments = [&["--redis", "--scenario", "killed", "--way", "naive"], &SMALL as &[&str]].concat();
    let mut program = stampede(&arguments, &temporary).stderr(Stdio::piped()).spawn().expect("the program starts");
    // Says that its server runs, and that it has seconds to go.
    let mut progress = BufReader::new(program.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    assert!(progress.any(|line| line.starts_with("killed")), "it does not begin");
    let directory = only_entry(&temporary).expect("the server has a directory");
    let log = directory.join("server.log");
    let log = std::fs::read_to_string(log).expect("the server has a log");
    let port = log.split_once("port=").and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.expect("it logs its port").parse().expect("a number")));
    assert!(TcpStream::connect(address).is_ok(), "it listens");

    program.kill().and_then(|()| program.wait()).expect("it is a child");
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_ok() || only_entry(&temporary).is_some() {
        assert!(Instant::now() < deadline, "the server is still there");
        thread::sleep(Duration::from_millis(10));
    }
}

fn only_entry(directory: &TempDir) -> Option<std::path::PathBuf> {
    std::fs::read_dir(directory.path()).expect("is readable").next().map(|entry| entry.expect("is readable").path())
}

#[test]
fn nonsense_ends_with_a_message_and_exit_code_2() {
    let temporary = temporary();
    for (arguments, word) in [
        (["--processes", "3", "--json"].as_slice(), "--redis"),
        (&["--redis", "--processes", "1"], "--processes"),
        (&["--redis", "--callers", "1"], "--callers"),
        (&["--redis", "--callers", "7"], "--callers"),
        (&["--redis", "--cycles", "0"], "--cycles"),
        (&["--redis", "--scenario", "warm"], "--scenario"),
        (&["--redis", "--way", "best"], "--way"),
        (&["--redis", "--strategy", "all"], "--strategy"),
        (&["--redis-url", "http://localhost"], "--redis-url"),
        (&["--redis-url", "redis://localhost", "--threads", "8"], "--threads"),
    ] {
        let output = output(stampede(arguments, &temporary));
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(word) && !message.contains("panicked"), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn without_a_server_program_it_says_how_to_get_one() {
    let temporary = temporary();
    let mut no_path = stampede(&["--redis"], &temporary);
    no_path.env("PATH", temporary.path()).env_remove("REDIS_SERVER");
    let mut no_such = stampede(&["--redis"], &temporary);
    no_such.env("REDIS_SERVER", "no-such-server");
    for command in [no_path, no_such] {
        let output = output(command);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("apt-get install redis-server"), "{message}");
    }
}

#[test]
fn a_server_that_does_not_answer_is_an_error_without_its_password() {
    let temporary = temporary();
    let url = format!("redis://:secret@127.0.0.1:{}", free_port());
    let output = output(stampede(&["--redis-url", &url], &temporary));
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("--redis-url does not answer") && !message.contains("secret"), "{message}");
}

//! `--redis` as its users and their scripts meet it, with real processes and a real server.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
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

/// The runs of a scenario by all ways, in the JSON of a program that must succeed: none, naive and ours.
fn runs(scenario: &str, more: &[&str]) -> [Value; 3] {
    let temporary = temporary();
    let arguments = [&["--redis", "--scenario", scenario], &SMALL as &[&str], more].concat();
    let output = output(stampede(&arguments, &temporary));
    // Also if there is no redis-server, which the message says then: `bash ci/test.sh` installs one.
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let left_behind: Vec<_> = std::fs::read_dir(temporary.path()).expect("is readable").collect();
    assert!(left_behind.is_empty(), "{left_behind:?}");

    // Nothing but the JSON: it would not parse otherwise.
    let report: Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
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
    runs.try_into().unwrap_or_else(|runs| panic!("not three runs: {runs:?}"))
}

fn number(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or_else(|| panic!("{name} of {run} is not a number"))
}

#[test]
fn cold_callers_of_all_processes_share_one_load() {
    let [none, naive, ours] = runs("cold", &[]);
    assert_eq!(number(&none, "loads"), 10.0);
    assert!(number(&naive, "loads") >= 1.0);
    assert_eq!(number(&ours, "loads"), 1.0);
    for run in [none, naive, ours] {
        assert!(number(&run, "p50_ms") >= 100.0, "a load takes so long: {run}");
    }
}

#[test]
fn after_the_holder_was_killed_the_others_wait_for_the_lease_and_one_load() {
    let [none, naive, ours] = runs("killed", &[]);
    assert_eq!(number(&none, "loads"), 10.0);
    // More, if somebody looks before the value is stored and takes the lock after it was deleted.
    assert!(number(&naive, "loads") >= 2.0, "{naive}");
    assert_eq!(number(&ours, "loads"), 2.0);
    // The lock lasts 5 s, the lease half a second, and then there is a load of 300 ms.
    assert!(number(&naive, "p50_ms") >= 5_000.0, "{naive}");
    assert!((500.0..5_000.0).contains(&number(&ours, "p99_ms")), "{ours}");
}

#[test]
fn a_holder_that_was_paused_does_not_store_an_old_value_over_a_newer_one() {
    let [none, naive, ours] = runs("paused", &[]);
    assert_eq!([&none, &naive, &ours].map(|run| number(run, "stale")), [1.0, 1.0, 0.0]);
    // The holder, and all six callers of the other processes.
    assert_eq!(number(&none, "loads"), 7.0);
    assert_eq!(number(&ours, "loads"), 2.0);
}

#[test]
fn a_load_that_is_longer_than_the_lease_is_one_load() {
    let [none, naive, ours] = runs("long_load", &[]);
    assert_eq!(number(&none, "loads"), 10.0);
    assert!(number(&naive, "loads") > 1.0, "{naive}");
    assert_eq!(number(&ours, "loads"), 1.0);
}

#[test]
fn refreshes_are_one_load_a_cycle() {
    let [none, naive, ours] = runs("refresh", &["--cycles", "4"]);
    assert!(number(&none, "loads") > 4.0, "{none}");
    assert!(number(&naive, "loads") >= 4.0, "{naive}");
    assert_eq!(number(&ours, "loads"), 4.0);
}

#[test]
fn the_table_shows_what_the_lease_is_for() {
    let temporary = temporary();
    let arguments = ["--redis", "--scenario", "cold", "--way", "ours", "--processes", "2", "--callers", "4"];
    let output = output(stampede(&arguments, &temporary));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let loads = |title: &str| {
        let row = text.lines().find_map(|line| line.trim_start().strip_prefix(title));
        row.and_then(|row| row.split_whitespace().next())
            .unwrap_or_else(|| panic!("no row {title:?}: {text}"))
            .to_owned()
    };
    assert_eq!((loads("ours   "), loads("ours, without leases")), ("1".to_owned(), "2".to_owned()), "{text}");
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
    let output = output(stampede(&arguments, &temporary));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
    let output = output(stampede(&arguments, &temporary));
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("a broken promise: cold, ours: 3 loads, not one"), "{message}");
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

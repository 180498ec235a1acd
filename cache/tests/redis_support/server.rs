//! A server of a test's own.

use super::proxy::Proxy;
use super::resp;
use super::signal::{self, Signal};
use super::{free_port, until};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

/// Starts the server that is given as arguments, says its process id, and kills it when nobody holds the standard input any
/// more: when the test drops it, and also when the test itself is killed. What ends the test, and reaches the shell too, must not
/// end that before: a server ignores the hang-up of a terminal. Its directory goes with it, unless a line says otherwise.
const GUARD: &str = r#"
exec 3>&1 1>server.log 2>&1
"$@" 3>&- &
trap '' HUP INT TERM
echo $! >&3
exec 3>&-
read -r line
kill -s KILL $!
wait $!
[ "$line" = keep ] || rm -rf "$PWD"
"#;

/// A server on a free port of the loopback interface, which keeps nothing on disk and ends with this value. Started by
/// `redis-server`, or by what the environment variable `REDIS_SERVER` names: `valkey-server`, say.
pub(crate) struct Server {
    port: u16,
    is_cluster: bool,
    directory: PathBuf,
    running: Option<Running>,
}

struct Running {
    guard: Child,
    pid: u32,
}

impl Server {
    /// One that answers.
    ///
    /// # Panics
    ///
    /// If there is no `redis-server`.
    pub(crate) fn start() -> Self {
        Self::new(false)
    }

    /// A cluster of one node that has all slots, and answers.
    pub(crate) fn cluster() -> Self {
        let server = Self::new(true);
        for slots in (0..16_384_u32).collect::<Vec<_>>().chunks(1_024) {
            let slots: Vec<String> = slots.iter().map(u32::to_string).collect();
            let words: Vec<&str> =
                ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
            assert_eq!(server.cli(&words), "OK");
        }
        until("the cluster is ready", || server.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok").then_some(()));
        server
    }

    fn new(is_cluster: bool) -> Self {
        // In place of the port that another program has taken since it was found free.
        until("a server that runs", || {
            let port = free_port();
            let directory =
                PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("redis-{}-{port}", std::process::id()));
            fs::create_dir_all(&directory).expect("the target directory can be written to");
            let mut server = Self { port, is_cluster, directory, running: None };
            server.run().then_some(server)
        })
    }

    /// Runs the program until it answers. False if it ends instead.
    fn run(&mut self) -> bool {
        let program = env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        if let Err(error) = Command::new(&program).arg("--version").stdout(Stdio::null()).status() {
            panic!("{program} cannot be started ({error}): bash ci/test.sh installs it");
        }
        let port = self.port.to_string();
        let mut options =
            vec!["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", "."];
        if self.is_cluster {
            options.extend(["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"]);
        }
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "sh", &program])
            .args(options)
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let mut line = String::new();
        let mut output = BufReader::new(guard.stdout.take().expect("it is piped"));
        output.read_line(&mut line).expect("the shell says something");
        let pid = line.trim().parse().unwrap_or_else(|_| panic!("not a process id: {line:?}"));
        self.running = Some(Running { guard, pid });
        until("the server answers or has ended", || {
            if resp::ask(self.port, &["PING"]).is_ok_and(|answer| answer == "PONG") {
                return Some(true);
            }
            (signal::state(pid) == 'Z').then(|| {
                let log = fs::read_to_string(self.directory.join("server.log")).unwrap_or_default();
                assert!(log.contains("Failed listening"), "{program} has ended: {log}");
                false
            })
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// For a client of its own.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What it writes is there.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A network in front of it.
    pub(crate) fn proxy(&self) -> Proxy {
        Proxy::start(self.port)
    }

    /// Ends it at once, with all that it has. Connections to its port are refused.
    pub(crate) fn kill(&mut self) {
        if let Some(Running { mut guard, .. }) = self.running.take() {
            let mut told = guard.stdin.take().expect("it is piped");
            let _ = told.write_all(b"keep\n");
            drop(told);
            guard.wait().expect("it is a child");
        }
    }

    /// Runs it anew, empty, on the same port.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let is_cluster = self.is_cluster;
        assert!(self.run(), "the port of a server that was killed has been taken");
        if is_cluster {
            until("the cluster is ready", || self.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok").then_some(()));
        }
    }

    /// It stands still: connections to it are made, by the system, and nothing is answered. See [`cont`](Self::cont).
    pub(crate) fn stop(&self) {
        signal::send(self.pid(), Signal::Stop);
    }

    /// It goes on.
    pub(crate) fn cont(&self) {
        signal::send(self.pid(), Signal::Continue);
    }

    fn pid(&self) -> u32 {
        self.running.as_ref().expect("it runs").pid
    }

    /// Asks it something, and returns the words of the answer, one a line.
    pub(crate) fn cli(&self, words: &[&str]) -> String {
        resp::ask(self.port, words).unwrap_or_else(|error| panic!("no answer to {words:?}: {error}"))
    }

    /// Forgets all values, leases and epochs.
    pub(crate) fn flush_all(&self) {
        assert_eq!(self.cli(&["FLUSHALL"]), "OK");
    }

    /// Forgets all scripts.
    pub(crate) fn script_flush(&self) {
        assert_eq!(self.cli(&["SCRIPT", "FLUSH"]), "OK");
    }

    pub(crate) fn config_set(&self, name: &str, value: &str) {
        assert_eq!(self.cli(&["CONFIG", "SET", name, value]), "OK");
    }

    /// How many commands it has carried out, those of scripts and this one included.
    pub(crate) fn commands_processed(&self) -> u64 {
        let info = self.cli(&["INFO", "stats"]);
        let count = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        count.and_then(|count| count.trim().parse().ok()).expect("the server counts its commands")
    }

    /// How often it has carried out a command, in a script or not: `evalsha`, say.
    pub(crate) fn calls(&self, command: &str) -> u64 {
        let info = self.cli(&["INFO", "commandstats"]);
        let head = format!("cmdstat_{}:calls=", command.to_lowercase());
        let count = info.lines().find_map(|line| line.strip_prefix(&head)?.split(',').next()?.parse().ok());
        count.unwrap_or(0)
    }

    /// All keys there are, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.cli(&["KEYS", "*"]).lines().map(str::to_owned).collect();
        keys.sort();
        keys
    }

    /// For how many milliseconds the key lives on: -1 for ever, -2 if there is none.
    pub(crate) fn pttl(&self, key: &str) -> i64 {
        self.cli(&["PTTL", key]).parse().expect("a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        // Left behind if it cannot be removed: it is in the target directory.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

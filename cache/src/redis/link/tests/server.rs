//! A server of the test's own.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Starts the server that is given as arguments, which says its process id first, and kills it when nobody holds the standard input
/// any more: also when the test itself is killed, by what reaches this shell, too. Its directory goes with it, unless a line says
/// otherwise.
const GUARD: &str = r#"
sh -c 'echo $$; exec "$@"' sh "$@" &
trap '' HUP INT TERM
read -r line
kill -s KILL $!
wait $!
[ "$line" = keep ] || rm -rf "$PWD"
"#;

/// A server on a free port of the loopback. It is killed when this is dropped.
pub(super) struct Server {
    running: Running,
    port: u16,
    options: Vec<String>,
    directory: PathBuf,
}

struct Running {
    guard: Child,
    pid: u32,
}

impl Running {
    /// Its directory is kept.
    fn kill(&mut self) {
        if let Some(mut told) = self.guard.stdin.take() {
            let _ = told.write_all(b"keep\n");
        }
        let _ = self.guard.wait();
    }
}

impl Server {
    pub(super) fn start() -> Self {
        Self::with(&[])
    }

    /// With more options.
    pub(super) fn with(options: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("oneflight-links-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the server");
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        // Another process may take the port before the server does.
        for _ in 0..20 {
            let port = free_port();
            if let Some(running) = launch(port, &options, &directory) {
                return Self { running, port, options, directory };
            }
        }
        panic!("the server does not start on any port");
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(super) fn kill(&mut self) {
        self.running.kill();
    }

    /// On the same port.
    pub(super) fn restart(&mut self) {
        self.kill();
        super::eventually("the server starts again", || {
            // The port may be taken for a moment.
            TcpListener::bind(("127.0.0.1", self.port)).is_ok()
        });
        self.running = launch(self.port, &self.options, &self.directory).expect("the server starts again");
    }

    /// It answers nothing until it is resumed. Connections are still accepted, by the kernel.
    pub(super) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(super) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.running.pid.to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill {signal} works");
    }

    /// Makes it a replica of the other one, which is read-only.
    pub(super) fn follow(&self, other: &Self) {
        self.ask::<String>(&["REPLICAOF", "127.0.0.1", &other.port.to_string()]);
    }

    /// Asks it by a connection of its own.
    pub(super) fn ask<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        let client = redis::Client::open(self.url()).expect("the URL is right");
        let mut connection = client.get_connection_with_timeout(super::LONG).expect("the server is there");
        let (name, arguments) = command.split_first().expect("a command");
        redis::cmd(name).arg(arguments).query(&mut connection).expect("the server answers")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// One that nobody listens on at the moment. The same as in `tests/redis_support`, but the odd ones: none, nor that of a cluster's
/// bus, which is 10,000 higher, from the range of which the system gives others one while a server is down.
fn free_port() -> u16 {
    static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = fastrand::u16(7_500..11_000) * 2 + 1;
        if TAKEN.lock().insert(port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// By `redis-server`, or by what the environment variable `REDIS_SERVER` names. Returns once it accepts connections; `None` if it
/// cannot have the port.
fn launch(port: u16, options: &[String], directory: &PathBuf) -> Option<Running> {
    let program = env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
    if let Err(error) = Command::new(&program).arg("--version").stdout(Stdio::null()).status() {
        panic!("{program} cannot be started ({error}): bash ci/test.sh installs it");
    }
    let mut guard = Command::new("sh")
        .args(["-c", GUARD, "sh", &program])
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(options)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("there is a shell");
    let mut lines = BufReader::new(guard.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let pid = lines.next().and_then(|line| line.parse().ok()).expect("a process id");
    let mut running = Running { guard, pid };
    if lines.any(|line| line.contains("Ready to accept")) {
        return Some(running);
    }
    running.kill();
    None
}

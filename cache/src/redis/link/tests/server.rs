//! A server of the test's own.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A server on a free port of the loopback. It is killed when this is dropped.
pub(super) struct Server {
    child: Child,
    port: u16,
    options: Vec<String>,
    directory: PathBuf,
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
            if let Some(child) = launch(port, &options, &directory) {
                return Self { child, port, options, directory };
            }
        }
        panic!("redis-server does not start on any port");
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// On the same port.
    pub(super) fn restart(&mut self) {
        self.kill();
        super::eventually("the server starts again", || {
            // The port may be taken for a moment.
            TcpListener::bind(("127.0.0.1", self.port)).is_ok()
        });
        self.child = launch(self.port, &self.options, &self.directory).expect("the server starts again");
    }

    /// It answers nothing until it is resumed. Connections are still accepted, by the kernel.
    pub(super) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(super) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
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

/// One that nobody listens on at the moment, and for which the port of a cluster's bus exists.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        if port < 55_000 {
            return port;
        }
    }
}

/// Returns once it accepts connections; `None` if it cannot have the port.
fn launch(port: u16, options: &[String], directory: &PathBuf) -> Option<Child> {
    let mut child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(options)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is not installed: ci/test.sh installs it");
    let output = child.stdout.take().expect("it is piped");
    let is_ready = BufReader::new(output).lines().map_while(Result::ok).any(|line| line.contains("Ready to accept"));
    if is_ready {
        return Some(child);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

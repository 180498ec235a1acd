//! The Redis server that the processes share: one of its own, or one that runs.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use oneflight_cache::BoxError;
use tempfile::TempDir;

/// Programs that may be the server, if the environment variable `REDIS_SERVER` names none.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// How long a server may take to start, and to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a word on its standard input. If it ends without one, this program was killed: then the server is ended, and its
/// directory removed. Ctrl-C, which reaches both, is left to this program.
const GUARD: &str = r#"
trap '' INT HUP TERM
if read -r _; then exit; fi
kill -s KILL "$1"
rm -f "$2/server.log"
rmdir "$2"
"#;

/// A server, and the names that may be used there.
pub(crate) struct Server {
    url: String,
    /// What the names of all keys contain: nobody else's do.
    mark: String,
    own: Option<Own>,
}

/// There is no server program.
#[derive(Debug)]
pub(crate) struct NoServer(String);

impl fmt::Display for NoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}. Install one (`apt-get install redis-server` or `apt-get install valkey-server`; `bash ci/test.sh` does \
             it, too), name it in the environment variable REDIS_SERVER, or use one that runs by --redis-url",
            self.0
        )
    }
}

impl Error for NoServer {}

impl Server {
    /// Starts one on a free port of the loopback interface. It keeps nothing on disk, and ends with this value.
    pub(crate) fn start() -> Result<Self, BoxError> {
        let program = program()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some((own, port)) = Own::start(&program, deadline)? {
                return Ok(Self { url: format!("redis://127.0.0.1:{port}"), mark: mark(), own: Some(own) });
            }
        }
    }

    /// One that runs at this address.
    pub(crate) fn at(url: &str) -> Result<Self, BoxError> {
        let server = Self { url: url.to_owned(), mark: mark(), own: None };
        let ping = server.connect().and_then(|mut server| redis::cmd("PING").query::<String>(&mut server));
        ping.map_err(|error| format!("the server of --redis-url does not answer: {error}"))?;
        Ok(server)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What the names of the keys of one run begin with.
    pub(crate) fn prefix(&self, run: usize) -> String {
        format!("{}-{run}", self.mark)
    }

    fn connect(&self) -> redis::RedisResult<redis::Connection> {
        let connection = redis::Client::open(self.url.as_str())?.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(connection)
    }

    /// Removes the keys with the mark.
    fn clean(&self) -> redis::RedisResult<()> {
        let mut server = self.connect()?;
        let pattern = format!("*{}*", self.mark);
        let mut cursor = 0_u64;
        loop {
            let (next, keys): (u64, Vec<Vec<u8>>) =
                redis::cmd("SCAN").arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(1_000).query(&mut server)?;
            if !keys.is_empty() {
                redis::cmd("DEL").arg(keys).query::<()>(&mut server)?;
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One of its own ends, with all that it has.
        if self.own.is_none()
            && let Err(error) = self.clean()
        {
            eprintln!("stampede: keys with {} in their names may be left: {error}", self.mark);
        }
    }
}

/// A name that nobody else has: 128 bits, by std's hash with random keys.
fn mark() -> String {
    let [high, low] = [0, 1].map(|half| RandomState::new().hash_one(half));
    format!("stampede-{high:016x}{low:016x}")
}

fn program() -> Result<String, NoServer> {
    let runs = |program: &str| {
        Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
    };
    if let Ok(program) = std::env::var("REDIS_SERVER") {
        return match runs(&program) {
            Ok(_) => Ok(program),
            Err(error) => Err(NoServer(format!("{program}, which REDIS_SERVER names, cannot be started: {error}"))),
        };
    }
    let found = PROGRAMS.into_iter().find(|program| runs(program).is_ok());
    found.map(str::to_owned).ok_or_else(|| NoServer(format!("there is no {}", PROGRAMS.join(" and no "))))
}

/// A server process that is to end with this one.
struct Own {
    server: Child,
    guard: Child,
    _directory: TempDir,
}

impl Own {
    /// Runs the program until it answers, and says on which port. `None` if another has taken the port meanwhile.
    fn start(program: &str, deadline: Instant) -> Result<Option<(Self, u16)>, BoxError> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let directory = TempDir::with_prefix("stampede-")?;
        let log = directory.path().join("server.log");
        let server = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(Stdio::null())
            .spawn()?;
        let guard = guard(&server, directory.path());
        let mut own = Self { server, guard: guard?, _directory: directory };
        let url = format!("redis://127.0.0.1:{port}");
        loop {
            // It is this one, and not another that has been faster.
            if process_id(&url).is_ok_and(|id| id == own.server.id()) {
                return Ok(Some((own, port)));
            }
            let log = || fs::read_to_string(&log).unwrap_or_default();
            if own.server.try_wait()?.is_some() {
                return match log() {
                    log if log.contains("Failed listening") => Ok(None),
                    log => Err(format!("{program} has ended: {log}").into()),
                };
            }
            if Instant::now() > deadline {
                return Err(format!("{program} does not answer: {}", log()).into());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn guard(server: &Child, directory: &Path) -> std::io::Result<Child> {
    let mut guard = Command::new("sh");
    guard.args(["-c", GUARD, "sh", &server.id().to_string()]).arg(directory);
    guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn process_id(url: &str) -> Result<u32, BoxError> {
    let mut server = redis::Client::open(url)?.get_connection_with_timeout(PATIENCE)?;
    server.set_read_timeout(Some(PATIENCE))?;
    let info: String = redis::cmd("INFO").arg("server").query(&mut server)?;
    let id = info.lines().find_map(|line| line.strip_prefix("process_id:"));
    Ok(id.ok_or("it does not say which process it is")?.trim().parse()?)
}

impl Drop for Own {
    fn drop(&mut self) {
        // The guard first, so that it never ends a process that is not the server.
        let dismissed = self.guard.stdin.take().is_some_and(|mut word| word.write_all(b"done\n").is_ok());
        let ended = self.server.kill().and_then(|()| self.server.wait());
        let gone = self.guard.wait();
        if !dismissed || ended.is_err() || gone.is_err() {
            eprintln!("stampede: the server, process {}, may still run", self.server.id());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_marks_differ() {
        assert_ne!(mark(), mark());
    }
}

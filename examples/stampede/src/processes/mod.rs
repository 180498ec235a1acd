//! What becomes of a value that several processes share by a Redis server: when it is cold, when the process that loads it is
//! killed or stands still, when the load takes long, and when it expires again and again.
//!
//! ```text
//! cargo run --release -p stampede -- --redis
//! ```
//!
//! runs everything, in a minute and a half, with a server of its own. `--scenario` and `--way` choose, `--processes`,
//! `--callers` and `--cycles` say how many, `--redis-url` names a server that runs.
//!
//! The processes are real: this program starts itself, and kills, stops and resumes what it has started. Each run has new ones,
//! and a key of its own. The database is with the coordinator, which tells the processes what it has, and a load is a time of
//! waiting; so what is measured is what becomes of the loads, and a machine with few cores will do.
//!
//! | file | job |
//! |---|---|
//! | `ways/` | how a caller gets the value: without protection, with a naive lock, with `oneflight-cache` |
//! | `scenarios.rs` | what happens to the processes |
//! | `server.rs` | the server |
//! | `crowd.rs`, `tally.rs` | the processes as the coordinator sees them, and what they have told |
//! | `worker.rs`, `loader.rs` | a process of callers, and its loads |
//! | `protocol.rs` | what they say to each other |
//! | `cycles.rs`, `figures.rs` | from what happened to figures; says exactly what each figure means, and what ours promises |
//! | `table.rs` | the figures as a table and as JSON |
//!
//! On a server that it did not start, the program writes nothing but keys whose names contain a random number of 128 bits, and
//! removes them at the end, also after an error; not if it is killed or interrupted. A server that it has started ends with it
//! in any case.
//!
//! The exit code is 1 if ours does not keep what it promises, and 2 if the options make no sense or there is no server
//! program.

mod crowd;
mod cycles;
mod figures;
mod loader;
mod options;
mod protocol;
mod scenarios;
mod server;
mod table;
mod tally;
mod ways;
mod worker;

use core::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use oneflight_cache::BoxError;

use figures::Subject;
use server::{NoServer, Server};

pub use figures::Row;
pub(crate) use options::{ONLY_WITH_REDIS, Shared};
pub use options::{Scenarios, Ways};

/// The environment variable that makes this program a process of callers.
const ROLE: &str = "STAMPEDE_CALLERS";

/// What is wrong with the machine, and not with what was shown.
const USAGE: u8 = 2;

/// Does the work of a process of callers, if it is one. That is all it has to do. Whatever program plays scenarios must begin with
/// this, as the processes are that program itself.
#[must_use]
pub fn as_worker() -> Option<ExitCode> {
    std::env::var_os(ROLE).map(|_| worker::run())
}

/// Shows what was asked for.
pub(crate) fn run(shared: &Shared, json: bool) -> ExitCode {
    match show(shared, json) {
        Ok(broken) if broken.is_empty() => ExitCode::SUCCESS,
        Ok(broken) => {
            for promise in broken {
                eprintln!("stampede: a broken promise: {promise}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("stampede: {error}");
            if error.is::<NoServer>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

/// Where scenarios are played: a server, and how many take part.
pub struct Stage {
    server: Server,
    shared: Shared,
    /// How many runs there have been: each has a key of its own.
    runs: usize,
}

impl Stage {
    /// On a server that runs, with so many processes and so many callers in all. `cycles` are the lives of the value that
    /// [`Scenarios::Refresh`] counts the loads of.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub fn at(url: &str, processes: u16, callers: u16, cycles: u32) -> Result<Self, BoxError> {
        let url = Some(url.to_owned());
        let (scenario, way) = (Scenarios::All, Ways::All);
        Self::new(Shared { redis: false, redis_url: url, processes, callers, scenario, way, cycles })
    }

    fn new(shared: Shared) -> Result<Self, BoxError> {
        let server = match &shared.redis_url {
            Some(url) => Server::at(url)?,
            None => Server::start()?,
        };
        Ok(Self { server, shared, runs: 0 })
    }

    /// Plays a scenario once, with processes of its own.
    ///
    /// # Errors
    ///
    /// If the processes cannot be started, or do not do what they are told.
    pub fn play(&mut self, scenario: Scenarios, way: Ways) -> Result<Row, BoxError> {
        self.play_subject(scenario, Subject::Way(way))
    }

    fn play_subject(&mut self, scenario: Scenarios, subject: Subject) -> Result<Row, BoxError> {
        self.runs += 1;
        scenarios::play(scenario, subject, &self.shared, &self.server, self.runs)
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the address of the server, which may hold a password.
        f.debug_struct("Stage").field("runs", &self.runs).finish_non_exhaustive()
    }
}

/// The promises that were broken.
fn show(shared: &Shared, json: bool) -> Result<Vec<String>, BoxError> {
    let mut stage = Stage::new(shared.clone())?;
    let mut rows = Vec::new();
    for scenario in shared.scenario.chosen() {
        for subject in Subject::of(scenario, shared.way, json) {
            eprintln!("{}: {} ..", scenario.name(), subject.title());
            rows.push(stage.play_subject(scenario, subject)?);
        }
    }
    // Before anything is printed, which may fail: the server is to be left as it was.
    drop(stage);
    let text = if json { table::json(&rows)? } else { table::text(shared, &rows) };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(rows.iter().flat_map(figures::Row::broken_promises).collect())
}

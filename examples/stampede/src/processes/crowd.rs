//! The processes of callers, as the coordinator sees them.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use oneflight_cache::BoxError;

use super::ROLE;
use super::protocol::{Event, Order, Setup};

/// How long processes may take to start, on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(60);

/// Processes that have a setup in common. They end with this value.
pub(crate) struct Crowd {
    workers: Vec<Worker>,
    heard: Receiver<Heard>,
}

/// Something that one of them has told.
pub(crate) struct Heard {
    /// Which one.
    pub(crate) from: usize,
    /// What. `None`: it says nothing any more.
    pub(crate) event: Option<Event>,
}

struct Worker {
    process: Child,
    orders: ChildStdin,
    callers: usize,
}

/// What a process can be made to do, whether it wants or not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Stop,
    Continue,
}

impl Crowd {
    /// Starts so many processes, with so many callers in all, and waits until all are connected.
    pub(crate) fn start(setup: &Setup, processes: usize, callers: usize) -> Result<Self, BoxError> {
        let (sender, heard) = mpsc::channel();
        let mut crowd = Self { workers: Vec::with_capacity(processes), heard };
        for from in 0..processes {
            // The rest goes to the first ones.
            let callers = callers / processes + usize::from(from < callers % processes);
            let setup = Setup { callers, ..setup.clone() };
            crowd.workers.push(Worker::start(from, &setup, sender.clone())?);
        }
        drop(sender);
        let deadline = Instant::now() + PATIENCE;
        for _ in 0..processes {
            match crowd.next(deadline).and_then(|heard| heard.event) {
                Some(Event::Ready) => {}
                Some(event) => return Err(format!("a process of callers begins with {event:?}").into()),
                None => return Err("a process of callers does not start".into()),
            }
        }
        Ok(crowd)
    }

    /// The numbers of all.
    pub(crate) fn all(&self) -> Vec<usize> {
        (0..self.workers.len()).collect()
    }

    /// How many callers these have.
    pub(crate) fn callers(&self, workers: &[usize]) -> usize {
        workers.iter().map(|&worker| self.workers[worker].callers).sum()
    }

    /// Tells these what to do.
    pub(crate) fn order(&mut self, workers: &[usize], order: Order) -> io::Result<()> {
        let line = serde_json::to_string(&order)? + "\n";
        for &worker in workers {
            self.workers[worker].orders.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// What is told next, by whichever of them. `None` if that is nothing until the deadline,
    /// or if all have ended.
    pub(crate) fn next(&mut self, deadline: Instant) -> Option<Heard> {
        self.heard.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
    }

    /// Kills one, by SIGKILL.
    pub(crate) fn kill(&mut self, worker: usize) -> io::Result<()> {
        self.workers[worker].process.kill()
    }

    /// Sends one a signal.
    pub(crate) fn signal(&self, worker: usize, signal: Signal) -> Result<(), BoxError> {
        let name = match signal {
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
        };
        let id = self.workers[worker].process.id().to_string();
        // The shell's own: std knows no signal but SIGKILL.
        let status = Command::new("sh").args(["-c", r#"kill -s "$1" "$2""#, "sh", name, &id]).status()?;
        if status.success() { Ok(()) } else { Err(format!("SIG{name} cannot be sent to process {id}").into()) }
    }
}

impl Worker {
    fn start(from: usize, setup: &Setup, sender: Sender<Heard>) -> Result<Self, BoxError> {
        let mut process = Command::new(std::env::current_exe()?)
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start a process of callers: {error}"))?;
        let (Some(orders), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            unreachable!("both are piped")
        };
        // From here on it is ended, whatever happens.
        let mut worker = Self { process, orders, callers: setup.callers };
        let setup = serde_json::to_string(&setup)? + "\n";
        worker.orders.write_all(setup.as_bytes())?;
        // Ends with the process.
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                // The last line of a process that was killed may be cut.
                let Some(event) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
                if sender.send(Heard { from, event: Some(event) }).is_err() {
                    return;
                }
            }
            // Nobody may listen any more.
            drop(sender.send(Heard { from, event: None }));
        });
        Ok(worker)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Also one that stands still. That fails if it has ended already, which is as well.
        let ended = self.process.kill().and_then(|()| self.process.wait());
        if let Err(error) = ended {
            eprintln!("stampede: process {} may still run: {error}", self.process.id());
        }
    }
}

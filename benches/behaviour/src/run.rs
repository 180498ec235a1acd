//! A process for each cell: a peer that hangs or dies takes nothing else with it.

use crate::cases::{self, Case, Outcome};
use crate::crowd::{Tasks, Threads};
use crate::peers::{Entry, Make, PEERS};
use std::env;
use std::io::{Read as _, Write as _};
use std::panic;
use std::process::{Command, ExitStatus, Stdio, exit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many processes run at a time.
const AT_A_TIME: usize = 4;
/// When a process is ended. A case that goes on takes far less, also on a machine that is busy; one that hangs mostly says so
/// itself, after three seconds.
const LIMIT: Duration = Duration::from_secs(20);

const RIGHT: &str = "right: ";
const WRONG: &str = "wrong: ";
const NOT_APPLICABLE: &str = "not applicable";
const HANG: &str = "hang";

/// A cell.
pub(crate) struct Cell {
    pub(crate) case: &'static Case,
    pub(crate) peer: &'static Entry,
    /// `None`: the peer cannot be asked.
    pub(crate) outcome: Option<Outcome>,
}

/// Runs one case against one peer, here.
pub(crate) fn one(case: &Case, peer: &Entry) {
    // Cases make peers and works panic; nobody wants to read that.
    panic::set_hook(Box::new(|_| ()));
    let found = match peer.make {
        Make::ForTasks(make) => case.tasks.and_then(|run| run(&mut Tasks::new(make))),
        Make::ForThreads(make) => case.threads.and_then(|run| run(&mut Threads::new(Box::leak(make())))),
    };
    report(found.as_ref());
}

/// Says that the case hangs, and ends the process, whatever else goes on in it.
pub(crate) fn report_hang() -> ! {
    report(Some(&hang()));
}

fn hang() -> Outcome {
    Outcome { text: HANG.to_owned(), is_right: false }
}

/// Ends the process: peers may have threads that never end.
fn report(found: Option<&Outcome>) -> ! {
    let mut out = std::io::stdout();
    let written = match found {
        Some(Outcome { text, is_right }) => writeln!(out, "{}{text}", if *is_right { RIGHT } else { WRONG }),
        None => writeln!(out, "{NOT_APPLICABLE}"),
    };
    exit(i32::from(written.and_then(|()| out.flush()).is_err()));
}

/// Runs all cases against all peers, in processes of their own.
pub(crate) fn all() -> Vec<Cell> {
    let jobs: Vec<(&Case, &Entry)> = cases::all().flat_map(|case| PEERS.iter().map(move |peer| (case, peer))).collect();
    let (next, cells) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(&(case, peer)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = agreed(case, peer);
                    cells.lock().expect("nothing panics under the lock").push(Cell { case, peer, outcome });
                }
            });
        }
    });
    cells.into_inner().expect("nothing panicked under the lock")
}

/// What two processes agree on: where threads of a peer race for its lock, one in many may find something else.
fn agreed(case: &Case, peer: &Entry) -> Option<Outcome> {
    let first = child(case, peer)?;
    let second = child(case, peer)?;
    if first.text == second.text { Some(first) } else { child(case, peer) }
}

fn child(case: &Case, peer: &Entry) -> Option<Outcome> {
    let is_possible = match peer.make {
        Make::ForTasks(_) => case.tasks.is_some(),
        Make::ForThreads(_) => case.threads.is_some(),
    };
    if !is_possible {
        return None;
    }
    let program = env::current_exe().expect("a program knows where it is");
    let mut child = Command::new(program)
        .args(["--case", case.id, "--peer", peer.id])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program can be started again");
    let start = Instant::now();
    let status = loop {
        match child.try_wait().expect("a child of this process can be waited for") {
            Some(status) => break status,
            None if start.elapsed() > LIMIT => {
                // It may end by itself just now; either way it is over after this.
                let _ended = child.kill();
                child.wait().expect("a child of this process can be waited for");
                return Some(hang());
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut said = String::new();
    let out = child.stdout.as_mut().expect("it was asked for");
    out.read_to_string(&mut said).expect("what is said is text");
    understand(&said, status)
}

fn understand(said: &str, status: ExitStatus) -> Option<Outcome> {
    for line in said.lines() {
        if line == NOT_APPLICABLE {
            return None;
        }
        for (prefix, is_right) in [(RIGHT, true), (WRONG, false)] {
            if let Some(text) = line.strip_prefix(prefix) {
                return Some(Outcome { text: text.to_owned(), is_right });
            }
        }
    }
    let text = if status.code().is_some() { "panic" } else { "abort" };
    Some(Outcome { text: text.to_owned(), is_right: false })
}

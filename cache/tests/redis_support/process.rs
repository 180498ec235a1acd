//! Children: the test binary runs itself.
//!
//! A child runs one test of the binary alone, which sees by [`role`] that it is one. The parent sends it commands, a line each,
//! and it sends events, a line each.

use super::LIMIT;
use super::signal::{self, Signal};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, thread};

const ROLE: &str = "ONEFLIGHT_TEST_ROLE";
/// What an event's line begins with: all other output is the test runner's.
const MARK: &str = "> ";

/// A child, killed when it is dropped. It ends by itself if the parent does.
pub(crate) struct Process {
    child: Child,
    commands: Mutex<ChildStdin>,
    told: Arc<Told>,
}

/// What a child has told, and when it came.
#[derive(Default)]
struct Told {
    events: Mutex<Events>,
    changed: Condvar,
}

#[derive(Default)]
struct Events {
    list: Vec<(Instant, String)>,
    has_ended: bool,
}

impl Process {
    /// A child that runs `test` in `role`, as the leader of a group of processes.
    pub(crate) fn start(test: &str, role: &str) -> Self {
        let mut child = Command::new(env::current_exe().expect("the test binary has a path"))
            .args(["--exact", test, "--nocapture", "--test-threads", "1"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the test binary can be run");
        let commands = Mutex::new(child.stdin.take().expect("it is piped"));
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let told = Arc::new(Told::default());
        thread::spawn({
            let told = Arc::clone(&told);
            move || {
                // What is no text, or only half there, is of a child that was killed.
                for line in output.lines().map_while(Result::ok) {
                    if let Some(event) = line.strip_prefix(MARK) {
                        told.lock().list.push((Instant::now(), event.to_owned()));
                        told.changed.notify_all();
                    }
                }
                told.lock().has_ended = true;
                told.changed.notify_all();
            }
        });
        Self { child, commands, told }
    }

    /// Sends a command. One that has been killed does not get it.
    pub(crate) fn say(&self, command: &str) {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(commands, "{command}").and_then(|()| commands.flush());
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        signal::send(self.child.id(), signal);
    }

    /// Sends a signal to it and to what it has started.
    pub(crate) fn signal_group(&self, signal: Signal) {
        signal::send_to_group(self.child.id(), signal);
    }

    /// What it has told so far.
    pub(crate) fn events(&self) -> Vec<(Instant, String)> {
        self.told.lock().list.clone()
    }

    /// How many of its events so far begin with `head`.
    pub(crate) fn count(&self, head: &str) -> usize {
        self.told.lock().list.iter().filter(|(_, event)| event.starts_with(head)).count()
    }

    /// Waits until it has told `count` events that begin with `head`, and returns when the last of them came, and it.
    ///
    /// # Panics
    ///
    /// If there are not so many within [`LIMIT`], or it has ended.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize, head: &str) -> (Instant, String) {
        self.try_wait_for(count, head, LIMIT).unwrap_or_else(|| {
            let events: Vec<String> = self.events().into_iter().map(|(_, event)| event).collect();
            panic!("not told {count} times: {head}\nbut: {events:#?}")
        })
    }

    /// As [`wait_for`](Self::wait_for), for so long at most.
    pub(crate) fn try_wait_for(&self, count: usize, head: &str, limit: Duration) -> Option<(Instant, String)> {
        let (mut events, end) = (self.told.lock(), Instant::now() + limit);
        loop {
            if let Some(found) = events.list.iter().filter(|(_, event)| event.starts_with(head)).nth(count - 1) {
                return Some(found.clone());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || events.has_ended {
                return None;
            }
            events = self.told.changed.wait_timeout(events, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Told {
    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The role of this process, if it is a child.
pub(crate) fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// Tells the parent.
pub(crate) fn tell(event: &str) {
    // On a line of its own: the test runner leaves one unfinished. In one piece, as several threads tell.
    let line = format!("\n{MARK}{event}\n");
    let mut output = io::stdout().lock();
    // A parent that is gone does not listen.
    let _ = output.write_all(line.as_bytes()).and_then(|()| output.flush());
}

/// Does what the parent says, line by line, and ends the process when there is no parent any more.
pub(crate) fn obey(mut command: impl FnMut(&str)) -> ! {
    for line in io::stdin().lines().map_while(Result::ok) {
        command(&line);
    }
    std::process::exit(0)
}

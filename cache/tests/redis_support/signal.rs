//! Signals to other processes, by the shell's `kill`: std has only SIGKILL, and only for children.

use super::until;
use std::fs;
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Kill,
    Stop,
    Continue,
    HangUp,
}

/// Sends `signal`. When it returns after `Stop`, the process stands still.
pub(crate) fn send(pid: u32, signal: Signal) {
    kill(signal, &pid.to_string());
    if signal == Signal::Stop {
        until("a process that was stopped stands still", || (state(pid) == 'T').then_some(()));
    }
}

/// Sends `signal` to all processes of the group, as a terminal does.
pub(crate) fn send_to_group(leader: u32, signal: Signal) {
    kill(signal, &format!("-{leader}"));
}

fn kill(signal: Signal, whom: &str) {
    let name = match signal {
        Signal::Kill => "KILL",
        Signal::Stop => "STOP",
        Signal::Continue => "CONT",
        Signal::HangUp => "HUP",
    };
    let status = Command::new("sh").args(["-c", r#"kill -s "$1" -- "$2""#, "sh", name, whom]).status();
    assert!(status.expect("there is a shell").success(), "process {whom} cannot be sent {signal:?}");
}

/// `R` for running, `S` for sleeping, `T` for stopped, `Z` for one that has ended.
pub(crate) fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("there is such a process, on Linux");
    // `pid (name) state ..`, and the name may hold anything.
    let after_name = stat.rsplit(") ").next().expect("rsplit returns one part at least");
    after_name.chars().next().expect("it has a state")
}

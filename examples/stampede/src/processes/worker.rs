//! A process of callers: does what the coordinator says, and tells it what became of it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::process::{self, ExitCode};
use std::sync::mpsc::{self, Receiver, SendError, Sender};
use std::thread;
use std::time::Instant;

use oneflight_cache::BoxError;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::loader::{Loader, tell};
use super::protocol::{self, Event, Order, Setup};
use super::ways::{self, Caller, Way};

/// What a caller is told.
#[derive(Clone, Copy)]
enum Task {
    Once,
    UntilStopped,
}

/// The process from its beginning to the end of its orders.
pub(crate) fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stampede: a process of callers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), BoxError> {
    let mut lines = io::stdin().lines();
    let setup: Setup = serde_json::from_str(&lines.next().ok_or("there is no setup")??)?;
    let loader = Arc::new(Loader::new(setup.terms.load));
    let way: Arc<dyn Way> = ways::make(&setup, Arc::clone(&loader))?.into();
    let stopped = Arc::new(AtomicBool::new(false));
    let callers = callers(&setup, &way, &stopped)?;
    tell(&Event::Ready);

    let (first, rest) = callers.split_first().ok_or("there is no caller")?;
    for line in lines {
        match serde_json::from_str(&line?)? {
            Order::Database(version) => loader.set_database(version),
            Order::Call => give(&callers, Task::Once)?,
            Order::CallFirst => first.send(Task::Once)?,
            Order::CallRest => give(rest, Task::Once)?,
            Order::Read => give(&callers, Task::UntilStopped)?,
            Order::Stop => stopped.store(true, Ordering::SeqCst),
            Order::Look => {
                tell(&Event::Stored(way.stored()?.map(|value| protocol::version(&value)).transpose()?));
            }
        }
    }
    Ok(())
}

fn give(callers: &[Sender<Task>], task: Task) -> Result<(), SendError<Task>> {
    callers.iter().try_for_each(|caller| caller.send(task))
}

/// Starts the threads. They are connected when it returns.
fn callers(setup: &Setup, way: &Arc<dyn Way>, stopped: &Arc<AtomicBool>) -> Result<Vec<Sender<Task>>, BoxError> {
    let (connected, connections) = mpsc::channel();
    let senders = (0..setup.callers).map(|number| {
        let (sender, tasks) = mpsc::channel();
        let (way, stopped, connected) = (Arc::clone(way), Arc::clone(stopped), connected.clone());
        let pause = setup.terms.pause;
        // Each has a sequence of its own.
        let random = StdRng::seed_from_u64(u64::from(process::id()) << 32 | number as u64);
        thread::Builder::new().name(format!("caller {number}")).spawn(move || match way.caller() {
            Ok(mut caller) => {
                // Unless another could not connect, and nobody listens.
                if connected.send(Ok(())).is_ok() {
                    drop(connected);
                    work(caller.as_mut(), &tasks, &stopped, pause, random);
                }
            }
            Err(error) => drop(connected.send(Err(error))),
        })?;
        Ok(sender)
    });
    let senders: Result<Vec<_>, io::Error> = senders.collect();
    drop(connected);
    for connection in connections {
        connection?;
    }
    Ok(senders?)
}

fn work(caller: &mut dyn Caller, tasks: &Receiver<Task>, stopped: &AtomicBool, pause: Duration, mut random: StdRng) {
    for task in tasks {
        match task {
            Task::Once => {
                let begun = Instant::now();
                let value = caller.get();
                let micros = begun.elapsed().as_micros().try_into().unwrap_or(u64::MAX);
                let value = value.map_err(|error| error.to_string()).and_then(|value| protocol::version(&value));
                tell(&Event::Answer { micros, value });
            }
            Task::UntilStopped => tell(&read(caller, stopped, pause, &mut random)),
        }
    }
}

/// Calls again and again, with pauses of random length so that the calls of all are spread.
fn read(caller: &mut dyn Caller, stopped: &AtomicBool, pause: Duration, random: &mut StdRng) -> Event {
    let (mut micros, mut failed, mut error) = (Vec::new(), 0, None);
    thread::sleep(pause.mul_f64(random.random::<f64>()));
    while !stopped.load(Ordering::SeqCst) {
        let begun = Instant::now();
        match caller.get() {
            Ok(_) => micros.push(begun.elapsed().as_micros().try_into().unwrap_or(u32::MAX)),
            Err(failure) => {
                failed += 1;
                error.get_or_insert(failure.to_string());
            }
        }
        thread::sleep(pause.mul_f64(0.5 + random.random::<f64>()));
    }
    Event::Answers { micros, failed, error }
}

//! The links against real servers.

#[cfg(all(feature = "redis-cluster", any(feature = "redis-smol", feature = "redis-tokio")))]
mod asked;
mod blocking;
mod close;
#[cfg(all(feature = "redis-cluster", any(feature = "redis-smol", feature = "redis-tokio")))]
mod cluster;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod drops;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod fake;
#[cfg(all(feature = "redis-cluster", any(feature = "redis-smol", feature = "redis-tokio")))]
mod gone;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod places;
mod proxy;
mod server;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod task;

use super::{Limits, Link};
use crate::lease::{Push, Watch};
use crate::redis::error::Error;
use redis::{Cmd, Pipeline, Value};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// For what must happen: far longer than it takes, also on a machine that is busy.
const LONG: Duration = Duration::from_secs(60);

/// For what must be refused because it takes too long. Few tests wait until nothing can be connected to.
const SHORT: Limits =
    Limits { connect: Duration::from_secs(2), response: Duration::from_millis(400), connections: 100 };

/// A machine that is busy may be late by so much.
const SLACK: Duration = Duration::from_secs(10);

/// This store's number.
const OWN: u64 = 1;

/// For tests that fail only for other reasons than time.
fn patient() -> Limits {
    Limits { connect: LONG, response: LONG, connections: 100 }
}

fn commands<const N: usize>(commands: [&[&str]; N]) -> Pipeline {
    let mut pipeline = Pipeline::new();
    for command in commands {
        let mut words = command.iter();
        let mut cmd = Cmd::new();
        words.by_ref().for_each(|word| {
            cmd.arg(*word);
        });
        pipeline.add_command(cmd);
    }
    pipeline
}

async fn get(link: &impl Link, key: &str) -> Result<Value, Error> {
    link.send(commands([&["GET", key]])).await.map(|mut replies| replies.remove(0))
}

fn text(value: &str) -> Value {
    Value::BulkString(value.as_bytes().to_vec())
}

fn is_away<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(error @ Error::Away(_)) if error.is_ambiguous())
}

/// What is told of a key, one by one.
fn watch(link: &impl Link, channel: &str, id: u64) -> (Box<dyn Watch>, Receiver<Push>) {
    let (sender, receiver) = channel_of_pushes();
    (link.pushes().watch(channel.to_owned(), id, sender), receiver)
}

fn channel_of_pushes() -> (crate::lease::Told, Receiver<Push>) {
    let (sender, receiver) = channel();
    let told = Box::new(move |push| {
        // Who has stopped asking does not care.
        let _ = sender.send(push);
    });
    (told, receiver)
}

/// What is answered, asked for again as long as the answer is late: for short limits on a machine that is busy.
fn answer<T: std::fmt::Debug>(ask: impl Fn() -> Result<T, Error>) -> T {
    let start = Instant::now();
    loop {
        match ask() {
            Err(Error::Away(_) | Error::Busy) if start.elapsed() < LONG => {}
            answered => return answered.expect("an answer"),
        }
    }
}

/// Waits for a condition that gives no signal.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn message(what: char, writer: u64, id: u64) -> String {
    format!("{what}{writer:016x}{id:016x}")
}

/// 8 threads watch 8 channels each, all new.
fn all_are_listened_to(link: &impl Link) {
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                let watches = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| watch(link, &format!("{thread}-{number}"), number));
                for (watching, told) in watches {
                    assert_eq!(told.recv_timeout(LONG).unwrap(), Push::Listening);
                    assert!(watching.is_listening());
                }
            });
        }
    });
}

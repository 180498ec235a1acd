//! The groups as a subject: rounds of random calls of threads and tasks on the same few keys.

mod arena;
mod call;
mod common;
mod ledger;
mod script;
mod tasks;
mod threads;
mod work;

use crate::alarm::Alarm;
use crate::bomb::Blast;
use crate::breach::Breach;
use crate::counts::Counts;
use crate::executors::{Executors, Kind};
use crate::options::Options;
use crate::outstanding::Outstanding;
use crate::things::alive;
use crate::watchdog::Watch;
use arena::{Arena, Detached, Group, Settings, Tasks, Threads};
use futures_lite::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc};
use std::thread;

/// What all rounds share.
pub(crate) struct Groups {
    threads: usize,
    watch: Watch,
    executors: Executors,
    alarm: Alarm,
}

/// Calls of each caller in a round.
const CALLS: usize = 150;

impl Groups {
    pub(crate) fn new(options: &Options) -> Self {
        let callers = options.threads * (2 + Kind::ALL.len());
        Self {
            threads: options.threads,
            watch: Watch::start(callers, options.stuck),
            executors: Executors::start(),
            alarm: Alarm::start(),
        }
    }

    /// One round with new groups.
    pub(crate) fn round(&self, seed: u64) -> Counts {
        let mut rng = fastrand::Rng::with_seed(seed);
        let settings = Settings::random(&mut rng);
        let detached = Outstanding::default();
        let spawner = self.spawner(rng.fork(), &detached, settings.bombs);
        let for_threads = Arena::new(settings.threads(), settings);
        let for_tasks = Arc::new(Arena::new(settings.tasks(spawner), settings));
        let counts = self.callers(&mut rng, &for_threads, &for_tasks);
        detached.wait();
        check_empty(&for_threads);
        check_empty(&*for_tasks);
        check_stats(&for_threads);
        check_stats(&*for_tasks);
        for (what, count) in alive() {
            if count != 0 {
                Breach::Left { what, count }.raise(None);
            }
        }
        counts
    }

    fn callers(&self, rng: &mut fastrand::Rng, threads: &Arena<Threads>, tasks: &Arc<Arena<Tasks>>) -> Counts {
        let (sender, results) = mpsc::channel();
        let mut numbers = 0..;
        let mut number = || numbers.next().expect("there are enough numbers");
        for kind in Kind::ALL {
            for _ in 0..self.threads {
                let field = work::Field { arena: Arc::clone(tasks), alarm: self.alarm.clone() };
                let task = tasks::Task {
                    field,
                    rng: rng.fork(),
                    watch: self.watch.clone(),
                    number: number(),
                    counts: Counts::default(),
                };
                let sender = sender.clone();
                let run = async move {
                    let counts = task.run(CALLS).await;
                    _ = sender.send(counts);
                };
                self.executors.spawn(kind, tasks.settings.faulty_wakers, Box::pin(run));
            }
        }
        drop(sender);
        thread::scope(|scope| {
            let mut handles = Vec::new();
            for _ in 0..self.threads {
                let (watch, counts) = (&self.watch, Counts::default());
                let caller = threads::Caller { arena: threads, rng: rng.fork(), watch, number: number(), counts };
                handles.push(scope.spawn(|| caller.run(CALLS)));
                let (counts, arena) = (Counts::default(), &**tasks);
                let caller = threads::Caller { arena, rng: rng.fork(), watch, number: number(), counts };
                handles.push(scope.spawn(|| caller.run(CALLS)));
            }
            let mut sum = Counts::default();
            let mut ended = 0;
            for counts in results {
                ended += 1;
                sum.merge(&counts);
            }
            if ended != Kind::ALL.len() * self.threads {
                Breach::Panicked("a task of the soak".to_owned()).raise(None);
            }
            for handle in handles {
                match handle.join() {
                    Ok(counts) => sum.merge(&counts),
                    Err(_) => Breach::Panicked("a thread of the soak".to_owned()).raise(None),
                }
            }
            sum
        })
    }

    /// Detached work goes on on some executor. Now and then the spawner panics, or drops what it is given.
    fn spawner(
        &self,
        rng: fastrand::Rng,
        detached: &Outstanding,
        faulty: bool,
    ) -> impl Fn(Detached) + Send + Sync + 'static {
        let (executors, detached) = (self.executors.clone(), detached.counter());
        let rng = std::sync::Mutex::new(rng);
        move |work| {
            let (kind, fate) = {
                let mut rng = rng.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                (Kind::ALL[rng.usize(..Kind::ALL.len())], rng.u8(..8))
            };
            match fate {
                0 if faulty && !thread::panicking() => Blast::Wake.go(),
                1 if faulty => drop(work),
                _ => {
                    let held = detached();
                    // A panic of work that no caller is left to hear of goes on here.
                    let run = async move {
                        _ = AssertUnwindSafe(work).catch_unwind().await;
                        drop(held);
                    };
                    executors.spawn(kind, false, Box::pin(run));
                }
            }
        }
    }
}

fn check_empty<G: Group>(arena: &Arena<G>) {
    let group = &arena.group;
    let waiters: usize = arena.ids.iter().map(|id| group.waiters(id)).sum();
    for (what, count) in [
        ("flights", group.in_flight()),
        ("flights in the snapshot", group.snapshot().len()),
        ("waiters", waiters),
        ("keys with a flight", arena.ids.iter().filter(|id| group.flight_info(id).is_some()).count()),
    ] {
        if count != 0 {
            Breach::Left { what, count: count.try_into().unwrap_or(i64::MAX) }.raise(None);
        }
    }
}

fn check_stats<G: Group>(arena: &Arena<G>) {
    let stats = arena.group.stats();
    let (counted, seen) = (stats.flights + stats.take_overs, arena.ledger.started());
    // Without panics in the code of keys, and batches that are refused, each lead is one start of a closure.
    let exact = !arena.settings.bombs && !arena.settings.nested && !arena.settings.faulty_wakers;
    if counted < seen || (exact && counted != seen) {
        Breach::Counter { what: "flights and take-overs", counted, seen }.raise(None);
    }
    if stats.abandons > counted {
        Breach::Counter { what: "abandons", counted: stats.abandons, seen: counted }.raise(None);
    }
}

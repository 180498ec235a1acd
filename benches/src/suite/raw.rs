//! What a call is made of, by itself: what no crate can do without, or what waiting costs at least. No targets.

use super::{Bench, CALLS, KEYS, Workload};
use crate::contender::Kind;
use crate::load;
use crate::machine::{Machine, ThreadName};
use crate::rounds::{Rounds, Samples, Spread};
use crate::workload::{Measured, undisturbed};
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use hashbrown::HashMap;
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The workloads of this part.
pub const WORKLOADS: [(&str, Workload<Bench>); 2] = [("a step of a call", steps), ("waking a thread", wake)];

fn steps(bench: &mut Bench, name: &str) {
    let keys = load::numbers(KEYS, bench.options.seed);
    let (small, fair) = (parking_lot::Mutex::new(0_u64), std::sync::Mutex::new(0_u64));
    let (mut map, mut slow_map) = (HashMap::new(), std::collections::HashMap::new());
    let mut rounds = bench.rounds();
    add(&mut rounds, "lock and unlock, parking_lot", &keys, |key| *black_box(&small).lock() ^= key);
    add(&mut rounds, "lock and unlock, std", &keys, |key| {
        *black_box(&fair).lock().expect("nobody panics under it") ^= key;
    });
    add(&mut rounds, "insert and remove, hashbrown and foldhash", &keys, move |key| {
        map.insert(key, key);
        black_box(map.remove(&key));
    });
    add(&mut rounds, "insert and remove, std and SipHash", &keys, move |key| {
        slow_map.insert(key, key);
        black_box(slow_map.remove(&key));
    });
    add(&mut rounds, "allocate and free 64 bytes", &keys, |key| drop(black_box(Box::new([key; 8]))));
    add(&mut rounds, "look at the clock", &keys, |_| {
        black_box(Instant::now());
    });
    let samples = bench.measure(rounds, 100);
    report(bench, name, &samples, "ns", 1.0);
}

/// A row for each step, since it is no contender.
fn report(bench: &mut Bench, name: &str, samples: &Samples<1>, unit: &str, scale: f64) {
    for id in samples.everybody() {
        let step = format!("{name}: {}", samples.who(id).name);
        let spread = samples.spread(id, 0).map(|value| value / scale);
        bench.report.figure(&step, "floor", Kind::Floor, unit, spread);
    }
}

/// Adds a step, which is made once for each key, round and round.
fn add<'a>(rounds: &mut Rounds<'a, 1>, name: &str, keys: &'a [u64], mut step: impl FnMut(u64) + Send + 'a) {
    let sample = move || {
        let nanos = undisturbed(|| {
            let measured = Measured::from(|| keys.iter().cycle().take(CALLS).for_each(|&key| step(black_box(key))));
            (measured.nanos_a_call(CALLS), measured.disturbed)
        });
        [nanos]
    };
    rounds.add(name, Kind::Floor, sample);
}

fn wake(bench: &mut Bench, name: &str) {
    const WAKES: usize = 20;
    let sleeper = Sleeper::start(&bench.machine);
    let mut rounds = bench.rounds();
    let asked: &Sleeper = &sleeper;
    rounds.add("unpark, until the call returns", Kind::Floor, || median_of(WAKES, || asked.wake()[0]));
    rounds.add("unpark, until the thread runs", Kind::Floor, || median_of(WAKES, || asked.wake()[1]));
    let samples = bench.measure(rounds, 50);
    report(bench, name, &samples, "us", 1e3);
}

fn median_of(times: usize, sample: impl FnMut() -> f64) -> [f64; 1] {
    [Spread::of(core::iter::repeat_with(sample).take(times).collect()).median]
}

/// A thread that sleeps until it is woken: one call of the kernel to sleep, one to wake it.
struct Sleeper {
    shared: Arc<Shared>,
    /// `None` where nobody can tell whether it sleeps.
    name: Option<ThreadName>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    origin: Instant,
    /// How often it shall wake up; one that shall end is woken once more than it can count.
    wanted: AtomicU64,
    /// When it woke up last, in nanoseconds after the origin. Zero once that has been read.
    awake: AtomicU64,
}

const END: u64 = u64::MAX;

impl Sleeper {
    /// One that sleeps on the second core.
    fn start(machine: &Machine) -> Self {
        let shared = Arc::new(Shared { origin: Instant::now(), wanted: AtomicU64::new(0), awake: AtomicU64::new(0) });
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::spawn({
            let (shared, machine) = (Arc::clone(&shared), machine.clone());
            move || {
                machine.pin(1);
                // Somebody listens, or the thread is of no use.
                let _ = tell.send(ThreadName::current());
                let mut woken = 0;
                loop {
                    match shared.wanted.load(Ordering::SeqCst) {
                        END => return,
                        wanted if wanted == woken => thread::park(),
                        wanted => {
                            shared.awake.store(shared.now(), Ordering::SeqCst);
                            woken = wanted;
                        }
                    }
                }
            }
        });
        let name = told.recv().expect("the thread has started");
        Self { shared, name, thread: Some(thread) }
    }

    /// Wakes it when it is asleep. Nanoseconds until the call that does so returned, and until the thread ran.
    fn wake(&self) -> [f64; 2] {
        while self.name.as_ref().is_some_and(|name| !name.is_asleep()) {
            thread::yield_now();
        }
        // Its last steps into sleep, which `/proc` does not show.
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(100) {
            core::hint::spin_loop();
        }
        let thread = self.thread.as_ref().expect("it runs until this is dropped").thread();
        let start = self.shared.now();
        self.shared.wanted.fetch_add(1, Ordering::SeqCst);
        thread.unpark();
        let back = self.shared.now();
        let awake = loop {
            match self.shared.awake.swap(0, Ordering::SeqCst) {
                0 => thread::yield_now(),
                awake => break awake,
            }
        };
        [back, awake].map(|at| at.saturating_sub(start) as f64)
    }
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).expect("a bench ends within centuries")
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.shared.wanted.store(END, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does not panic.
            let _ = thread.join();
        }
    }
}

//! What the contenders are made to do, and how long it took.

use crate::contender::Blocking;
use crate::load::Work;
use crate::machine::{self, Machine};
use core::borrow::Borrow;
use core::hint::black_box;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A sample in which some other thread took a core away says nothing about the contender: so many times it is taken. Nothing is
/// measured of what is built without optimisation.
const TRIES: u32 = if cfg!(debug_assertions) { 1 } else { 20 };

/// One thread calls, one key after the other, round and round. Nanoseconds a call.
#[must_use]
pub fn alone<Q, K>(contender: &impl Blocking<Q, u64>, keys: &[K], work: Work, calls: usize) -> f64
where
    Q: ?Sized,
    K: Borrow<Q>,
{
    undisturbed(|| {
        call_all(contender, keys, work, calls / 8);
        let measured = Measured::from(|| call_all(contender, keys, work, calls));
        (measured.nanos_a_call(calls), measured.disturbed)
    })
}

/// Two threads, on a core each, each call with their own sequence of keys, round and round. Nanoseconds from the first start
/// to the last end, for each call of *one* of them.
#[must_use]
pub fn pair<Q, K>(
    machine: &Machine,
    contender: &impl Blocking<Q, u64>,
    keys: [&[K]; 2],
    work: Work,
    calls: usize,
) -> f64
where
    Q: ?Sized,
    K: Borrow<Q> + Sync,
{
    undisturbed(|| {
        let arrived = AtomicUsize::new(0);
        let run = |number: usize| {
            machine.pin(number);
            call_all(contender, keys[number], work, calls / 8);
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 {
                core::hint::spin_loop();
            }
            Measured::from(|| call_all(contender, keys[number], work, calls))
        };
        let (mine, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| run(1));
            (run(0), other.join().expect("a contender panicked"))
        });
        let both = Measured {
            start: mine.start.min(other.start),
            end: mine.end.max(other.end),
            disturbed: mine.disturbed || other.disturbed,
        };
        (both.nanos_a_call(calls), both.disturbed)
    })
}

pub(crate) fn undisturbed(mut sample: impl FnMut() -> (f64, bool)) -> f64 {
    let mut tries = 1;
    loop {
        let (nanos, disturbed) = sample();
        if !disturbed || tries == TRIES {
            return nanos;
        }
        tries += 1;
    }
}

pub(crate) struct Measured {
    start: Instant,
    end: Instant,
    pub(crate) disturbed: bool,
}

impl Measured {
    pub(crate) fn from(run: impl FnOnce()) -> Self {
        let before = machine::preemptions();
        let start = Instant::now();
        run();
        let end = Instant::now();
        Self { start, end, disturbed: machine::preemptions() != before }
    }

    pub(crate) fn nanos_a_call(&self, calls: usize) -> f64 {
        (self.end - self.start).as_secs_f64() * 1e9 / calls as f64
    }
}

#[inline(never)]
fn call_all<Q, K>(contender: &impl Blocking<Q, u64>, keys: &[K], work: Work, calls: usize)
where
    Q: ?Sized,
    K: Borrow<Q>,
{
    for (number, key) in (0..calls as u64).zip(keys.iter().cycle()) {
        let value = contender.call(black_box(key.borrow()), || work.run(black_box(number)));
        black_box(value);
    }
}

//! A crowd of tasks at one key, from their joining to their end.

use crate::contender::Key as _;
use crate::contender::tasks::Coalesces;
use crate::executor::Counting;
use crate::machine;
use crate::task_work::Clock;
use crate::workload::undisturbed;
use alloc::vec::Vec;
use core::cell::Cell;
use std::time::Instant;

/// How the callers of one key end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The work ends, and each of them reads the value.
    AllRead,
    /// Each of them is dropped, the leader first.
    AllCancelled,
}

/// One task leads, `followers` join, and all end in this way, on a hand-written executor that costs next to nothing. Nanoseconds for
/// each follower: of joining, and of all of it. The tasks themselves are made before, and their memory is given back after.
///
/// # Panics
///
/// If somebody is not served.
#[must_use]
pub fn crowd(contender: &impl Coalesces<u64>, followers: usize, end: End) -> [f64; 2] {
    let nanos = Cell::new([0.0; 2]);
    let _ = undisturbed(|| {
        let preemptions = machine::preemptions();
        let of_all = crowd_once(contender, followers, end);
        nanos.set(of_all.map(|nanos| nanos / followers.max(1) as f64));
        // A large one takes so long that it is never undisturbed.
        (of_all[1], followers <= 10_000 && machine::preemptions() != preemptions)
    });
    nanos.get()
}

fn crowd_once(contender: &impl Coalesces<u64>, followers: usize, end: End) -> [f64; 2] {
    let clock = Clock::default();
    let mut tasks = Counting::default();
    let leader = tasks.add(contender.call(u64::ONE, || clock.steps(1)));
    tasks.run();
    let numbers: Vec<usize> = (0..followers).map(|_| tasks.add(contender.call(u64::ONE, || clock.steps(0)))).collect();
    let start = Instant::now();
    tasks.run();
    let joined = start.elapsed();
    match end {
        End::AllRead => {
            clock.tick();
            tasks.run();
        }
        End::AllCancelled => {
            tasks.cancel(leader);
            numbers.iter().for_each(|&number| tasks.cancel(number));
        }
    }
    let all = start.elapsed();
    assert_eq!(tasks.unfinished(), 0, "somebody is not served");
    [joined, all].map(|time| time.as_secs_f64() * 1e9)
}

//! The workloads, part by part. Each part runs those of its workloads that are wanted, and reports figures and targets.
//!
//! | part | module | what |
//! |---|---|---|
//! | `floors` | [`raw`] | what a call is made of, by itself |
//! | `threads` | [`threads`] | `SyncGroup` beside the crates for threads |
//! | `tasks` | [`tasks`] | `AsyncGroup` beside the crates for tasks |
//! | `fan-out` | [`fan_outs`] | one task leads, up to 100,000 wait |
//! | `growth` | [`growth`] | the same with more and more flights or tasks |
//! | `cache` | [`cache`] | the cache in memory |

pub mod cache;
pub mod fan_outs;
pub mod growth;
mod overhead;
pub mod raw;
pub mod tasks;
mod text_cache;
pub mod threads;

use crate::machine::Machine;
use crate::options::Options;
use crate::report::Report;
use crate::rounds::{Rounds, Samples};
use alloc::vec::Vec;

/// Keys that a lone caller asks for in turn.
const KEYS: usize = 1_024;

/// Calls of a lone caller in a sample.
const CALLS: usize = 20_000;

/// Keys that both threads ask for, some far more often than others: the skew that YCSB uses.
const ZIPF_KEYS: usize = 1_000;
const ZIPF_EXPONENT: f64 = 0.99;

/// What the workloads run on, and what they have found out.
#[derive(Debug)]
pub struct Bench {
    /// The cores.
    pub machine: Machine,
    /// The command line.
    pub options: Options,
    /// What has been found out so far.
    pub report: Report,
}

/// A workload, which is given its name.
pub type Workload<B> = fn(&mut B, &str);

impl Bench {
    /// Nothing found out yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { machine: Machine::new(), options, report: Report::default() }
    }

    /// Runs all parts that need nothing but this library.
    pub fn run(&mut self) {
        self.run_part("floors", &raw::WORKLOADS);
        self.run_part("threads", &threads::WORKLOADS);
        self.run_part("tasks", &tasks::WORKLOADS);
        self.run_part("fan-out", &fan_outs::WORKLOADS);
        self.run_part("growth", &growth::WORKLOADS);
        self.run_part("cache", &cache::WORKLOADS);
    }

    /// Runs the workloads of a part that are wanted, one after the other.
    pub fn run_part(&mut self, part: &str, workloads: &[(&str, Workload<Self>)]) {
        self.report.begin(part);
        for (name, run) in workloads {
            if self.can(name) {
                run(self, name);
            }
        }
    }

    /// Whether a workload of the present part is wanted, and possible: without a second core, those of two threads are not.
    #[must_use]
    pub fn can(&self, name: &str) -> bool {
        if !self.options.wants(self.report.part(), name) {
            return false;
        }
        let needs_two = name.contains("2 threads") || name.contains("two threads");
        if needs_two && self.machine.cores() < 2 {
            println!("left out, for want of a second core: {name}");
            return false;
        }
        eprintln!("running: {}: {name}", self.report.part());
        true
    }

    /// No contenders yet.
    #[must_use]
    pub fn rounds<'a, const N: usize>(&self) -> Rounds<'a, N> {
        Rounds::new(self.options.seed)
    }

    /// Runs so many rounds as are asked for, or as usual.
    #[must_use]
    pub fn measure<const N: usize>(&self, rounds: Rounds<'_, N>, usual: u32) -> Samples<N> {
        rounds.run(&self.machine, self.options.rounds(usual))
    }
}

/// Several contenders of a kind, to be measured in turn: some are luckier than others in where their memory lies.
fn several<C>(make: impl Fn() -> C) -> Vec<C> {
    (0..8).map(|_| make()).collect()
}

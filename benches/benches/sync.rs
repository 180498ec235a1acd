//! `SyncGroup` beside its peers and floors: the targets of its speed table, in interleaved rounds.
//!
//!     cargo bench -p oneflight-benches --bench sync

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;
use oneflight::SyncGroup;
use oneflight_benches::contender::floor::Floor;
use oneflight_benches::contender::{Uncoalesced, quick_cache};
use oneflight_benches::fan_out::{Crowd, Flight};
use oneflight_benches::load::{self, Work};
use oneflight_benches::machine::{self, Machine};
use oneflight_benches::options::Options;
use oneflight_benches::report::Bound::{AtLeast, AtMost};
use oneflight_benches::report::Report;
use oneflight_benches::rounds::{Rounds, Spread, sampler};
use oneflight_benches::workload::{alone, pair};
use std::process::ExitCode;

/// Keys that a thread asks for in turn.
const KEYS: usize = 1_024;

/// Threads that sleep behind one leader.
const FOLLOWERS: usize = 500;

/// Keys that both threads ask for, some far more often than others: the skew that YCSB uses.
const ZIPF_KEYS: usize = 1_000;
const ZIPF_EXPONENT: f64 = 0.99;

fn main() -> ExitCode {
    let options = Options::from_command_line();
    let bench = Bench { machine: Machine::new(), report: Report::new(&options), options };
    bench.run()
}

struct Bench {
    machine: Machine,
    options: Options,
    report: Report,
}

impl Bench {
    fn run(mut self) -> ExitCode {
        println!("{}", machine::description(&self.machine));
        let workloads: [(&str, fn(&mut Self, &str)); 6] = [
            ("alone, u64 key", Self::alone_number),
            ("alone, 16-byte string key", Self::alone_string),
            ("2 threads, own keys, trivial work", Self::pair_trivial),
            ("2 threads, own keys, 500 ns of work", Self::pair_working),
            ("2 threads, zipf keys, 2 us of work", Self::pair_zipf),
            ("fan-out to 500 sleeping threads", Self::fan_out),
        ];
        let (options, cores) = (self.options.clone(), self.machine.cores());
        options.run_wanted(cores, &mut self, workloads);
        self.report.finish()
    }

    fn alone_number(&mut self, name: &str) {
        const CALLS: usize = 20_000;
        let keys = load::numbers(KEYS, self.options.seed);
        let (groups, caches, floors) = (several(SyncGroup::new), several(quick_cache), several(Floor::new));
        let mut rounds = Rounds::new(self.options.seed);
        let ours = rounds.add("oneflight", sampler(&groups, |group| alone(group, &keys, Work::TRIVIAL, CALLS)));
        let theirs = rounds.add("quick_cache", sampler(&caches, |cache| alone(cache, &keys, Work::TRIVIAL, CALLS)));
        let least = rounds.add("floor", sampler(&floors, |floor| alone(floor, &keys, Work::TRIVIAL, CALLS)));
        rounds.add("no coalescing", || [alone(&Uncoalesced, &keys, Work::TRIVIAL, CALLS)]);
        let samples = rounds.run(&self.machine, self.options.rounds(400));
        self.report.figures(name, &samples, 0, "ns a call", 1.0);
        self.report.target(&format!("{name}: oneflight / floor"), AtMost(1.3), samples.ratio(ours, least, 0));
        self.report.target(&format!("{name}: oneflight / quick_cache"), AtMost(0.36), samples.ratio(ours, theirs, 0));
    }

    fn alone_string(&mut self, name: &str) {
        const CALLS: usize = 20_000;
        const WORK: Work = Work::TRIVIAL;
        let keys = load::strings(KEYS, self.options.seed);
        let (groups, caches) = (several(SyncGroup::<String, u64>::new), several(quick_cache::<String, u64>));
        let (floors, singles) = (several(Floor::new), several(singleflight::Group::new));
        let mut rounds = Rounds::new(self.options.seed);
        let ours = rounds.add("oneflight", sampler(&groups, |group| alone::<str, _>(group, &keys, WORK, CALLS)));
        let theirs = rounds.add("quick_cache", sampler(&caches, |cache| alone::<str, _>(cache, &keys, WORK, CALLS)));
        rounds.add("singleflight", sampler(&singles, |single| alone::<str, _>(single, &keys, WORK, CALLS)));
        rounds.add("floor", sampler(&floors, |floor| alone::<str, _>(floor, &keys, WORK, CALLS)));
        rounds.add("no coalescing", || [alone::<str, _>(&Uncoalesced, &keys, WORK, CALLS)]);
        let samples = rounds.run(&self.machine, self.options.rounds(400));
        self.report.figures(name, &samples, 0, "ns a call", 1.0);
        self.report.target(&format!("{name}: oneflight / quick_cache"), AtMost(0.42), samples.ratio(ours, theirs, 0));
    }

    fn pair_trivial(&mut self, name: &str) {
        const CALLS: usize = 8_000;
        let [gain, ratio] = self.pair_own_keys(name, Work::TRIVIAL, CALLS);
        self.report.target(&format!("{name}: throughput of two / of one"), AtLeast(1.0), gain);
        self.report.target(&format!("{name}: oneflight / quick_cache"), AtMost(0.35), ratio);
    }

    fn pair_working(&mut self, name: &str) {
        const CALLS: usize = 1_000;
        let [gain, _] = self.pair_own_keys(name, Work::lasting(Duration::from_nanos(500)), CALLS);
        self.report.target(&format!("{name}: throughput of two / of one"), AtLeast(1.75), gain);
    }

    /// The throughput of two threads over that of one, and the time of two through oneflight over that through quick_cache.
    fn pair_own_keys(&mut self, name: &str, work: Work, calls: usize) -> [Spread; 2] {
        let (one, two) = (load::numbers(KEYS, self.options.seed), load::numbers(KEYS, !self.options.seed));
        let (groups, caches, floors) = (several(SyncGroup::new), several(quick_cache), several(Floor::new));
        let (machine, keys) = (&self.machine, [&*one, &*two]);
        let mut rounds = Rounds::new(self.options.seed);
        let single = rounds.add("oneflight, one thread", sampler(&groups, |group| alone(group, &one, work, calls)));
        let ours = rounds.add("oneflight", sampler(&groups, |group| pair(machine, group, keys, work, calls)));
        let theirs = rounds.add("quick_cache", sampler(&caches, |cache| pair(machine, cache, keys, work, calls)));
        rounds.add("floor, one thread", sampler(&floors, |floor| alone(floor, &one, work, calls)));
        rounds.add("floor", sampler(&floors, |floor| pair(machine, floor, keys, work, calls)));
        rounds.add("no coalescing, one thread", || [alone(&Uncoalesced, &one, work, calls)]);
        rounds.add("no coalescing", || [pair(machine, &Uncoalesced, keys, work, calls)]);
        let samples = rounds.run(machine, self.options.rounds(300));
        self.report.figures(name, &samples, 0, "ns a call of one thread", 1.0);
        // Two threads make two calls in the time of one.
        let gain = samples.ratio(single, ours, 0).map(|ratio| 2.0 * ratio);
        [gain, samples.ratio(ours, theirs, 0)]
    }

    fn pair_zipf(&mut self, name: &str) {
        const CALLS: usize = 500;
        const WINDOWS: usize = 64;
        let work = Work::lasting(Duration::from_micros(2));
        let keys = load::numbers(ZIPF_KEYS, self.options.seed);
        let asked = |seed| load::zipf(&keys, ZIPF_EXPONENT, WINDOWS * CALLS, seed);
        let (one, two) = (asked(self.options.seed), asked(!self.options.seed));
        // A fresh part of the sequences each round, the same for all.
        let windows = || one.chunks(CALLS).zip(two.chunks(CALLS)).map(|(one, two)| [one, two]);
        let (group, cache) = (SyncGroup::new(), quick_cache());
        let machine = &self.machine;
        let mut rounds = Rounds::new(self.options.seed);
        let ours = rounds.add("oneflight", sampler(windows(), |keys| pair(machine, &group, keys, work, CALLS)));
        let theirs = rounds.add("quick_cache", sampler(windows(), |keys| pair(machine, &cache, keys, work, CALLS)));
        rounds.add("no coalescing", sampler(windows(), |keys| pair(machine, &Uncoalesced, keys, work, CALLS)));
        let samples = rounds.run(machine, self.options.rounds(300));
        self.report.figures(name, &samples, 0, "ns a call of one thread", 1.0);
        let gain = samples.ratio(theirs, ours, 0);
        self.report.target(&format!("{name}: throughput of oneflight / of quick_cache"), AtLeast(1.15), gain);
    }

    fn fan_out(&mut self, name: &str) {
        let (group, cache) = (Arc::new(SyncGroup::<u64, u64>::new()), Arc::new(quick_cache::<u64, u64>()));
        let single = Arc::new(singleflight::Group::<u64>::new());
        let crowd = Crowd::new(FOLLOWERS);
        let fan_out = |flight: Arc<Flight>| {
            let landing = crowd.fan_out(&flight);
            [landing.leader_back, landing.last_awake]
        };
        let mut rounds = Rounds::new(self.options.seed);
        let ours = rounds.add("oneflight", || fan_out(Flight::of::<u64, _, _>(&group, 1)));
        let theirs = rounds.add("quick_cache", || fan_out(Flight::of::<u64, _, _>(&cache, 1)));
        rounds.add("singleflight", || fan_out(Flight::of::<str, _, _>(&single, "one")));
        let least = rounds.add("OnceLock::wait", || fan_out(Flight::of_once_lock()));
        let samples = rounds.run(&self.machine, self.options.rounds(40));
        self.report.figures(&format!("{name}: leader back"), &samples, 0, "us", 1e3);
        self.report.figures(&format!("{name}: last one awake"), &samples, 1, "us", 1e3);
        let [back, awake] = [("leader back", 0), ("last one awake", 1)];
        let mut target = |(what, figure), bound, to, to_name| {
            self.report.target(
                &format!("{name}: {what}, oneflight / {to_name}"),
                bound,
                samples.ratio(ours, to, figure),
            );
        };
        target(back, AtMost(0.02), theirs, "quick_cache");
        target(awake, AtMost(0.85), theirs, "quick_cache");
        target(awake, AtMost(1.5), least, "OnceLock::wait");
    }
}

/// Several contenders of a kind, to be measured in turn: some are luckier than others in where their memory lies.
fn several<C>(make: impl Fn() -> C) -> Vec<C> {
    (0..8).map(|_| make()).collect()
}

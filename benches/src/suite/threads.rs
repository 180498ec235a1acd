//! `SyncGroup` beside the crates that coalesce the calls of threads, and beside floors.

use super::{Bench, CALLS, KEYS, Workload, ZIPF_EXPONENT, ZIPF_KEYS, several};
use crate::contender::{Blocking, Key, Kind, Visitor, everybody, text_only};
use crate::fan_out::{Crowd, Flight};
use crate::load::{self, Work};
use crate::machine::Machine;
use crate::report::Bound::{AtLeast, AtMost};
use crate::rounds::{Rounds, sampler};
use crate::workload::{alone, pair};
use alloc::format;
use alloc::sync::Arc;
use core::time::Duration;

/// The workloads of this part.
pub const WORKLOADS: [(&str, Workload<Bench>); 10] = [
    ("alone, u64 key", alone_number),
    ("alone, 16-byte string key", alone_text),
    ("alone, one u64 key again and again", alone_one_key),
    ("2 threads, own keys, trivial work", pair_trivial),
    ("2 threads, own keys, 500 ns of work", pair_working),
    ("2 threads, zipf keys, 2 us of work", pair_zipf),
    ("fan-out to 2 sleeping threads", |bench, name| fan_out(bench, name, 2)),
    ("fan-out to 8 sleeping threads", |bench, name| fan_out(bench, name, 8)),
    ("fan-out to 64 sleeping threads", |bench, name| fan_out(bench, name, 64)),
    ("fan-out to 500 sleeping threads", |bench, name| fan_out(bench, name, 500)),
];

/// One thread, which asks for these keys in turn.
struct Alone<'a, K> {
    keys: &'a [K],
    rounds: Rounds<'a, 1>,
}

impl<'a, Q: Key + ?Sized> Visitor<Q> for Alone<'a, Q::Owned> {
    fn visit<C: Blocking<Q, u64> + Send + 'static>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let (contenders, keys) = (several(make), self.keys);
        let mut next = (0..contenders.len()).cycle();
        let mut next = move || next.next().expect("it goes round");
        self.rounds.add(name, kind, move || [alone::<Q, _>(&contenders[next()], keys, Work::TRIVIAL, CALLS)]);
    }
}

fn alone_number(bench: &mut Bench, name: &str) {
    let keys = u64::many(KEYS, bench.options.seed);
    let mut all = Alone { keys: &keys, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    let samples = bench.measure(all.rounds, 300);
    bench.report.figures(name, &samples, 0, "ns a call", 1.0);
    let [ours, theirs, floor] = ["oneflight", "quick_cache", "floor"].map(|name| samples.named(name));
    bench.report.ratio(name, &samples, 0, AtMost(1.3), [ours, floor]);
    bench.report.ratio(name, &samples, 0, AtMost(0.36), [ours, theirs]);
    bench.report.first(name, &samples, 0, &[ours], &samples.all(Kind::Crate));
}

fn alone_text(bench: &mut Bench, name: &str) {
    let keys = str::many(KEYS, bench.options.seed);
    let mut all = Alone { keys: &keys, rounds: bench.rounds() };
    everybody::<str>(&mut all);
    text_only(&mut all);
    let samples = bench.measure(all.rounds, 300);
    bench.report.figures(name, &samples, 0, "ns a call", 1.0);
    let [ours, theirs] = ["oneflight", "quick_cache"].map(|name| samples.named(name));
    bench.report.ratio(name, &samples, 0, AtMost(0.42), [ours, theirs]);
    bench.report.first(name, &samples, 0, &[ours], &samples.all(Kind::Crate));
}

fn alone_one_key(bench: &mut Bench, name: &str) {
    let mut all = Alone { keys: &[*u64::ONE], rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    let samples = bench.measure(all.rounds, 300);
    bench.report.figures(name, &samples, 0, "ns a call", 1.0);
    bench.report.first(name, &samples, 0, &samples.all(Kind::Ours), &samples.all(Kind::Crate));
}

/// Two threads with keys of their own, and one of them alone.
struct Pair<'a> {
    machine: &'a Machine,
    keys: [&'a [u64]; 2],
    work: Work,
    calls: usize,
    rounds: Rounds<'a, 3>,
}

impl Visitor<u64> for Pair<'_> {
    fn visit<C: Blocking<u64, u64> + Send + 'static>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let Self { machine, keys, work, calls, .. } = *self;
        let contenders = several(make);
        let mut next = (0..contenders.len()).cycle();
        self.rounds.add(name, kind, move || {
            let contender = &contenders[next.next().expect("it goes round")];
            let both = pair(machine, contender, keys, work, calls);
            let one = alone(contender, keys[0], work, calls);
            // Two threads make two calls in the time of one.
            [both, one, 2.0 * one / both]
        });
    }
}

fn pair_trivial(bench: &mut Bench, name: &str) {
    pair_own_keys(bench, name, Work::TRIVIAL, 8_000, 1.0, Some(0.35));
}

fn pair_working(bench: &mut Bench, name: &str) {
    pair_own_keys(bench, name, Work::lasting(Duration::from_nanos(500)), 1_000, 1.75, None);
}

fn pair_own_keys(bench: &mut Bench, name: &str, work: Work, calls: usize, gain: f64, ratio: Option<f64>) {
    let (one, two) = (u64::many(KEYS, bench.options.seed), u64::many(KEYS, !bench.options.seed));
    let machine = bench.machine.clone();
    let mut all = Pair { machine: &machine, keys: [&one, &two], work, calls, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    let samples = bench.measure(all.rounds, 200);
    bench.report.figures(name, &samples, 0, "ns a call of one thread", 1.0);
    bench.report.figures(&format!("{name}: one thread alone"), &samples, 1, "ns a call", 1.0);
    bench.report.figures(&format!("{name}: throughput of two / of one"), &samples, 2, "", 1.0);
    let [ours, theirs] = ["oneflight", "quick_cache"].map(|name| samples.named(name));
    let got = samples.spread(ours, 2);
    bench.report.target(&format!("{name}: throughput of two / of one"), AtLeast(gain), got);
    if let Some(most) = ratio {
        bench.report.ratio(name, &samples, 0, AtMost(most), [ours, theirs]);
    }
    bench.report.first(name, &samples, 0, &[ours], &samples.all(Kind::Crate));
}

/// Two threads that ask for the same keys, a fresh part of the sequences each round, the same for all.
struct Zipf<'a> {
    machine: &'a Machine,
    asked: [&'a [u64]; 2],
    work: Work,
    rounds: Rounds<'a, 1>,
}

/// Calls of each thread in a sample.
const ZIPF_CALLS: usize = 500;

impl Visitor<u64> for Zipf<'_> {
    fn visit<C: Blocking<u64, u64> + Send + 'static>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let Self { machine, asked: [one, two], work, .. } = *self;
        let windows = one.chunks(ZIPF_CALLS).zip(two.chunks(ZIPF_CALLS));
        let contender = make();
        self.rounds.add(
            name,
            kind,
            sampler(windows, move |(one, two)| pair(machine, &contender, [one, two], work, ZIPF_CALLS)),
        );
    }
}

fn pair_zipf(bench: &mut Bench, name: &str) {
    const WINDOWS: usize = 64;
    let work = Work::lasting(Duration::from_micros(2));
    let keys = load::numbers(ZIPF_KEYS, bench.options.seed);
    let asked = |seed| load::zipf(&keys, ZIPF_EXPONENT, WINDOWS * ZIPF_CALLS, seed);
    let (one, two) = (asked(bench.options.seed), asked(!bench.options.seed));
    let machine = bench.machine.clone();
    let mut all = Zipf { machine: &machine, asked: [&one, &two], work, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    let samples = bench.measure(all.rounds, 200);
    bench.report.figures(name, &samples, 0, "ns a call of one thread", 1.0);
    let [ours, theirs] = ["oneflight", "quick_cache"].map(|name| samples.named(name));
    let gain = samples.ratio(theirs, ours, 0);
    bench.report.target(&format!("{name}: throughput of oneflight / of quick_cache"), AtLeast(1.15), gain);
    bench.report.first(name, &samples, 0, &[ours], &samples.all(Kind::Crate));
    bench.judge_overhead(name, &samples, None);
}

/// One thread leads, others sleep behind it.
struct FanOut<'a> {
    crowd: &'a Crowd,
    rounds: Rounds<'a, 2>,
}

impl FanOut<'_> {
    fn add(&mut self, name: &str, kind: Kind, flight: impl Fn() -> Arc<Flight> + Send + 'static) {
        let crowd = self.crowd;
        self.rounds.add(name, kind, move || {
            let landing = crowd.fan_out(&flight());
            [landing.leader_back, landing.last_awake]
        });
    }
}

impl<Q: Key + ?Sized> Visitor<Q> for FanOut<'_> {
    fn visit<C: Blocking<Q, u64> + Send + 'static>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        // Behind a floor nobody can wait.
        if kind != Kind::Floor {
            let contender = Arc::new(make());
            self.add(name, kind, move || Flight::of::<Q, _, _>(&contender, Q::ONE.to_owned()));
        }
    }
}

fn fan_out(bench: &mut Bench, name: &str, followers: usize) {
    let crowd = Crowd::new(bench.options.size(followers));
    let mut all = FanOut { crowd: &crowd, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    text_only(&mut all);
    all.add("OnceLock::wait", Kind::Floor, Flight::of_once_lock);
    let samples = bench.measure(all.rounds, 40);
    let [ours, theirs, least] = ["oneflight", "quick_cache", "OnceLock::wait"].map(|name| samples.named(name));
    for (figure, what) in ["leader back", "last one awake"].into_iter().enumerate() {
        let name = format!("{name}: {what}");
        bench.report.figures(&name, &samples, figure, "us", 1e3);
        // Fewer vary too much for a ratio to mean anything.
        if followers >= 64 {
            bench.report.first(&name, &samples, figure, &[ours], &samples.all(Kind::Crate));
        }
    }
    if followers >= 500 {
        let [back, awake] = ["leader back", "last one awake"].map(|what| format!("{name}: {what}"));
        bench.report.ratio(&back, &samples, 0, AtMost(0.02), [ours, theirs]);
        bench.report.ratio(&awake, &samples, 1, AtMost(0.85), [ours, theirs]);
        bench.report.ratio(&awake, &samples, 1, AtMost(1.5), [ours, least]);
    }
}

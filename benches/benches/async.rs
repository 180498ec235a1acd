//! `AsyncGroup` beside its peers and floors: the targets of its speed table, in interleaved rounds.
//!
//!     cargo bench -p oneflight-benches --bench async

extern crate alloc;

use alloc::sync::Arc;
use oneflight::AsyncGroup;
use oneflight_benches::contender::floor::{Boxed, Floor};
use oneflight_benches::contender::tasks::{Coalesces, Inline, SharedMap, moka, quick_cache};
use oneflight_benches::executor::{Executor, Smol, tokio_on_this_thread, tokio_with_two_threads};
use oneflight_benches::load::{self, Work};
use oneflight_benches::machine::{self, Machine};
use oneflight_benches::options::Options;
use oneflight_benches::report::Bound::{self, AtMost};
use oneflight_benches::report::Report;
use oneflight_benches::rounds::{Id, Rounds, Samples};
use oneflight_benches::task_load::{alone, fan_out, leader_dropped, woken};
use rs_singleflight::Group;
use singleflight_async::SingleFlight;
use std::process::ExitCode;
use uniflight::Merger;

/// Keys that a lone caller asks for in turn.
const KEYS: usize = 1_024;

/// Who took part in a workload.
struct Field {
    owned: Id,
    inline: Id,
    shared: Id,
    quick_cache: Id,
    /// Crates that users would pick instead.
    peers: [Id; 5],
}

/// Adds every contender to `$rounds`: `$sampler` is what measures one that `$make` makes.
macro_rules! add_all {
    ($rounds:ident, |$make:ident| $sampler:expr) => {{
        macro_rules! add {
            ($name:literal, $contender:expr) => {{
                let $make = || $contender;
                $rounds.add($name, $sampler)
            }};
        }
        let owned = add!("oneflight", AsyncGroup::<u64, u64>::new());
        let inline = add!("oneflight, inline", Inline::default());
        let quick_cache = add!("quick_cache", quick_cache());
        let peers = [
            add!("singleflight-async", SingleFlight::<u64, u64>::new()),
            add!("uniflight", Merger::<u64, u64>::new()),
            add!("rs-singleflight", Group::<u64, u64, core::convert::Infallible>::new()),
            quick_cache,
            add!("moka", moka()),
        ];
        let shared = add!("a map of Shared", SharedMap::default());
        Field { owned, inline, shared, quick_cache, peers }
    }};
}

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
        let workloads: [(&str, fn(&mut Self, &str)); 12] = [
            ("task alone, u64 key", Self::alone),
            ("5,000 tasks, tokio, one thread", |b, name| b.fan_out(name, &tokio_on_this_thread(), 5_000, 0.9)),
            ("100,000 tasks, tokio, one thread", |b, name| b.fan_out(name, &tokio_on_this_thread(), 100_000, 0.9)),
            ("5,000 tasks, smol, one thread", |b, name| b.fan_out(name, &Smol::on_this_thread(), 5_000, 1.0)),
            ("100,000 tasks, smol, one thread", |b, name| b.fan_out(name, &Smol::on_this_thread(), 100_000, 1.0)),
            ("5,000 tasks, tokio, two threads", |b, name| b.fan_out_on_tokio(name, 5_000)),
            ("100,000 tasks, tokio, two threads", |b, name| b.fan_out_on_tokio(name, 100_000)),
            ("5,000 tasks, smol, two threads", |b, name| b.fan_out_on_smol(name, 5_000)),
            ("100,000 tasks, smol, two threads", |b, name| b.fan_out_on_smol(name, 100_000)),
            ("work woken 200 times, 1,000 followers", Self::woken),
            ("polls a follower", Self::polls),
            ("leader dropped, 1,000 followers", Self::leader_dropped),
        ];
        let (options, cores) = (self.options.clone(), self.machine.cores());
        options.run_wanted(cores, &mut self, workloads);
        self.report.finish()
    }

    fn alone(&mut self, name: &str) {
        const CALLS: usize = 20_000;
        let keys = load::numbers(KEYS, self.options.seed);
        let mut rounds = Rounds::new(self.options.seed);
        let field = add_all!(rounds, |make| sampler(make, |contender| alone(contender, &keys, Work::TRIVIAL, CALLS)));
        let floor = sampler(Floor::new, |floor| alone(floor, &keys, Work::TRIVIAL, CALLS));
        let floor = rounds.add("floor, inline", floor);
        let boxed = sampler(Boxed::default, |floor| alone(floor, &keys, Work::TRIVIAL, CALLS));
        let boxed = rounds.add("floor, boxed", boxed);
        let samples = rounds.run(&self.machine, self.options.rounds(200));
        self.report.figures(name, &samples, 0, "ns a call", 1.0);
        let best = samples.least(&field.peers, 0);
        self.target(&samples, name, 0, AtMost(0.43), field.inline, best);
        self.target(&samples, name, 0, AtMost(1.3), field.inline, floor);
        self.target(&samples, name, 0, AtMost(0.9), field.owned, best);
        self.report.figure(
            &format!("{name}: oneflight"),
            "over the boxed floor",
            "",
            samples.ratio(field.owned, boxed, 0),
        );
    }

    fn fan_out_on_tokio(&mut self, name: &str, followers: usize) {
        let executor = tokio_with_two_threads(&self.machine);
        self.fan_out(name, &executor, followers, 1.0);
    }

    fn fan_out_on_smol(&mut self, name: &str, followers: usize) {
        let executor = Smol::with_two_threads(&self.machine);
        self.fan_out(name, &executor, followers, 1.0);
    }

    fn fan_out(&mut self, name: &str, executor: &impl Executor, followers: usize, most: f64) {
        let followers = self.options.size(followers);
        let mut rounds = Rounds::new(self.options.seed);
        let field = add_all!(rounds, |make| {
            let contender = Arc::new(make());
            move || [fan_out(executor, &contender, followers)]
        });
        let usual = if followers > 10_000 { 20 } else { 100 };
        let samples = rounds.run(&self.machine, self.options.rounds(usual));
        self.report.figures(name, &samples, 0, "ns a follower", 1.0);
        let best = samples.least(&field.peers, 0);
        self.target(&samples, name, 0, AtMost(most), field.owned, best);
        self.target(&samples, name, 0, AtMost(most), field.inline, best);
    }

    fn woken(&mut self, name: &str) {
        const FOLLOWERS: usize = 1_000;
        const WAKES: u32 = 200;
        let mut rounds = Rounds::new(self.options.seed);
        let field = add_all!(rounds, |make| {
            let contender = make();
            move || {
                let crowd = woken(&contender, FOLLOWERS, WAKES);
                let lone = woken(&contender, 0, WAKES);
                [crowd.nanos_a_wake, lone.nanos_a_wake, crowd.nanos_a_wake / lone.nanos_a_wake]
            }
        });
        let samples = rounds.run(&self.machine, self.options.rounds(50));
        self.report.figures(name, &samples, 0, "ns a wake", 1.0);
        self.report.figures(&format!("{name}: the same, alone"), &samples, 1, "ns a wake", 1.0);
        self.report.figures(&format!("{name}: one over the other"), &samples, 2, "", 1.0);
        for (id, name_of) in [(field.owned, "oneflight"), (field.inline, "oneflight, inline")] {
            let spread = samples.spread(id, 2);
            self.report.target(&format!("{name}: {name_of} / the same, alone"), AtMost(2.5), spread);
        }
        let shared = samples.ratio(field.shared, field.owned, 0);
        self.report.figure(&format!("{name}: a map of Shared"), "over oneflight", "", shared);
    }

    fn polls(&mut self, name: &str) {
        let (few, many) = (self.options.size(10_000), self.options.size(100_000));
        let mut rounds = Rounds::new(self.options.seed);
        let field = add_all!(rounds, |make| {
            let contender = make();
            move || {
                let work = woken(&contender, 200, 50);
                let (few, many) = (woken(&contender, few, 0), woken(&contender, many, 0));
                [work.polls, many.most_polls, few.nanos_a_follower, many.nanos_a_follower]
            }
        });
        let samples = rounds.run(&self.machine, self.options.rounds(5));
        let [polls, most] = [format!("{name}: 50 awaits, 200 followers"), format!("{name}: most of {many}")];
        self.report.figures(&polls, &samples, 0, "polls", 1.0);
        self.report.figures(&most, &samples, 1, "polls", 1.0);
        self.report.figures(&format!("{name}: landing under {few}"), &samples, 2, "ns a follower", 1.0);
        self.report.figures(&format!("{name}: landing under {many}"), &samples, 3, "ns a follower", 1.0);
        for (id, name_of) in [(field.owned, "oneflight"), (field.inline, "oneflight, inline")] {
            self.report.target(&format!("{polls}, {name_of}"), AtMost(2.5), samples.spread(id, 0));
            self.report.target(&format!("{most}, {name_of}"), AtMost(4.0), samples.spread(id, 1));
        }
    }

    fn leader_dropped(&mut self, name: &str) {
        const FOLLOWERS: usize = 1_000;
        let mut rounds = Rounds::new(self.options.seed);
        let field = add_all!(rounds, |make| move || leader_dropped(&make(), FOLLOWERS));
        let samples = rounds.run(&self.machine, self.options.rounds(100));
        self.report.figures(&format!("{name}: last one served"), &samples, 0, "us", 1.0);
        self.report.figures(&format!("{name}: executions"), &samples, 1, "", 1.0);
        self.target(&samples, name, 0, AtMost(1.0), field.owned, field.quick_cache);
        self.report.target(&format!("{name}: executions of oneflight"), AtMost(1.0), samples.spread(field.owned, 1));
    }

    fn target<const N: usize>(
        &mut self,
        samples: &Samples<N>,
        name: &str,
        figure: usize,
        bound: Bound,
        of: Id,
        to: Id,
    ) {
        let what = format!("{name}: {} / {}", samples.name(of), samples.name(to));
        self.report.target(&what, bound, samples.ratio(of, to, figure));
    }
}

/// Measures several contenders of a kind in turn: some are luckier than others in where their memory lies.
fn sampler<C: Coalesces>(make: impl Fn() -> C, measure: impl Fn(&C) -> f64) -> impl FnMut() -> [f64; 1] {
    let contenders: Vec<C> = (0..8).map(|_| make()).collect();
    let mut next = (0..contenders.len()).cycle();
    move || [measure(&contenders[next.next().expect("it goes round")])]
}

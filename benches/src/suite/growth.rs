//! The same with more and more of it: a call while ever more keys are in flight, and a landing for ever more tasks.
//!
//! The caller always asks for the same number of keys, which are not among those in flight: what grows is the group, not the caller's
//! own cache misses. The landing for 100,000 tasks of an executor may take each of them up to twice as long as for 1,000: the tasks
//! themselves no longer fit into the processor's caches, whatever wakes them. Of a crowd that is polled by hand all is timed, joining and
//! leaving too, and each step to ten times as many may take each of them 1.3 times as long.

use super::{Bench, CALLS, KEYS, Workload, several};
use crate::contender::floor::Floor;
use crate::contender::tasks::{Coalesces, Inline};
use crate::contender::{Blocking, Kind};
use crate::crowd::{self, End};
use crate::executor::{ByHand, Executor, Smol, tokio_on_this_thread};
use crate::load::{self, Work};
use crate::report::Bound::AtMost;
use crate::rounds::{Id, Rounds, Samples, Spread};
use crate::task_load;
use crate::workload::alone;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use oneflight::{AsyncGroup, SyncGroup};
use quick_cache::sync::Cache;

/// The workloads of this part.
pub const WORKLOADS: [(&str, Workload<Bench>); 6] = [
    ("keys in flight, threads", in_flight),
    ("keys in flight, tasks", in_flight_of_tasks),
    ("followers, tokio, one thread", |bench, name| followers(bench, name, &tokio_on_this_thread())),
    ("followers, smol, one thread", |bench, name| followers(bench, name, &Smol::on_this_thread())),
    ("join, land, all read", |bench, name| crowd(bench, name, End::AllRead)),
    ("join, all cancelled", |bench, name| crowd(bench, name, End::AllCancelled)),
];

const IN_FLIGHT: [usize; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
const FOLLOWERS: [usize; 3] = [1_000, 10_000, 100_000];

/// What the slowest size may take, over the fastest one.
const FLAT: f64 = 1.3;
/// What a task may take among 100,000, over one among 1,000.
const LINEAR: f64 = 2.0;
/// What a caller may take among ten times as many.
const LINEAR_STEP: f64 = 1.3;

/// Keys that are in flight, and keys that are asked for: all of them different.
struct Keys {
    held: Vec<u64>,
    asked: Vec<u64>,
}

/// Contenders in which the same number of keys are in flight. At every size so many that some are luckier than others in where
/// their memory lies, and fewer where they are large.
struct OfSize<C> {
    size: usize,
    contenders: Vec<C>,
}

impl Keys {
    fn new(bench: &Bench) -> Self {
        let most = IN_FLIGHT.map(|size| bench.options.size(size)).into_iter().max().unwrap_or(0);
        let mut held = load::numbers(most + KEYS, bench.options.seed);
        let asked = held.split_off(most);
        Self { held, asked }
    }
}

fn of_each_size<C>(bench: &Bench, make: impl Fn(usize) -> C) -> Vec<OfSize<C>> {
    let sizes = IN_FLIGHT.map(|size| bench.options.size(size)).into_iter();
    let several = |size: usize| (0..(1_000_000 / size).clamp(1, 8)).map(|_| make(size)).collect();
    sizes.map(|size| OfSize { size, contenders: several(size) }).collect()
}

/// What `hold` makes of every key that shall be in flight in each of the contenders.
fn hold<'c, C, G>(contenders: &'c [OfSize<C>], keys: &Keys, hold: impl Fn(&'c C, &u64) -> G) -> Vec<G> {
    let of = |sized: &'c OfSize<C>| sized.contenders.iter().map(move |contender| (sized.size, contender));
    let pairs = contenders.iter().flat_map(of);
    pairs
        .flat_map(|(size, contender)| keys.held[..size].iter().map(move |key| (contender, key)))
        .map(|(c, k)| hold(c, k))
        .collect()
}

/// Adds a contender at each size: `measure` times one of its instances.
fn add<'a, C: Sync>(
    rounds: &mut Rounds<'a, 1>,
    (name, kind): (&str, Kind),
    contenders: &'a [OfSize<C>],
    measure: impl Fn(&C) -> f64 + Copy + Send + 'a,
) -> Vec<Id> {
    let add = |sized: &'a OfSize<C>| {
        let mut turn = sized.contenders.iter().cycle();
        rounds.add(name, kind, move || [measure(turn.next().expect("there is at least one"))])
    };
    contenders.iter().map(add).collect()
}

fn in_flight(bench: &mut Bench, name: &str) {
    let keys = Keys::new(bench);
    let groups = of_each_size(bench, |_| SyncGroup::<u64, u64>::new());
    let caches = of_each_size(bench, |size| Cache::<u64, u64>::new(size + 4 * KEYS));
    let floors = of_each_size(bench, |_| Floor::<u64>::new());
    let leads = hold(&groups, &keys, |group, key| group.try_lead(key).expect("nobody else leads"));
    let guards = hold(&caches, &keys, |cache, key| cache.get_value_or_guard(key, None));
    hold(&floors, &keys, |floor, key| floor.enter(key));
    let mut rounds = bench.rounds();
    let asked = &keys.asked;
    let all = [
        add(&mut rounds, ("oneflight", Kind::Ours), &groups, |group| alone_with(group, asked)),
        add(&mut rounds, ("quick_cache", Kind::Crate), &caches, |cache| alone_with(cache, asked)),
        add(&mut rounds, ("floor", Kind::Floor), &floors, |floor| alone_with(floor, asked)),
    ];
    let samples = bench.measure(rounds, 60);
    drop((leads, guards));
    bench.judge_growth(name, &samples, &all);
}

fn alone_with(contender: &impl Blocking<u64, u64>, asked: &[u64]) -> f64 {
    alone::<u64, _>(contender, asked, Work::TRIVIAL, CALLS)
}

fn in_flight_of_tasks(bench: &mut Bench, name: &str) {
    let keys = Keys::new(bench);
    let owned = of_each_size(bench, |_| AsyncGroup::<u64, u64>::new());
    let inline = of_each_size(bench, |_| Inline::<u64>::default());
    let floors = of_each_size(bench, |_| Floor::<u64>::new());
    let leads = hold(&owned, &keys, |group, key| group.try_lead(key).expect("nobody else leads"));
    let leads_inline = hold(&inline, &keys, |group, key| group.0.try_lead(key).expect("nobody else leads"));
    hold(&floors, &keys, |floor, key| floor.enter(key));
    let mut rounds = bench.rounds();
    let asked = &keys.asked;
    let all = [
        add(&mut rounds, ("oneflight", Kind::Ours), &owned, |group| alone_task_with(group, asked)),
        add(&mut rounds, ("oneflight, inline", Kind::Ours), &inline, |group| alone_task_with(group, asked)),
        add(&mut rounds, ("floor, inline", Kind::Floor), &floors, |floor| alone_task_with(floor, asked)),
    ];
    let samples = bench.measure(rounds, 60);
    drop((leads, leads_inline));
    bench.judge_growth(name, &samples, &all);
}

fn alone_task_with(contender: &impl Coalesces<u64>, asked: &[u64]) -> f64 {
    task_load::alone(&ByHand, contender, asked, CALLS)
}

impl Bench {
    /// A row for each size, and the target for each of ours: as fast at every size.
    fn judge_growth(&mut self, name: &str, samples: &Samples<1>, all: &[Vec<Id>]) {
        for (place, size) in IN_FLIGHT.into_iter().enumerate() {
            let at_size: Vec<Id> = all.iter().map(|ids| ids[place]).collect();
            self.report.figures_of(&at_size, &format!("{name}: {size}"), samples, 0, "ns a call", 1.0);
        }
        for ids in all.iter().filter(|ids| samples.who(ids[0]).kind == Kind::Ours) {
            let medians = || ids.iter().map(|&id| samples.spread(id, 0).median);
            let (most, least) = (medians().fold(0.0, f64::max), medians().fold(f64::INFINITY, f64::min));
            let what = format!("{name}: {}, slowest size / fastest size", samples.who(ids[0]).name);
            self.report.target(&what, AtMost(FLAT), Spread::exact(most / least));
        }
    }
}

fn followers(bench: &mut Bench, name: &str, executor: &impl Executor) {
    let sizes = FOLLOWERS.map(|size| bench.options.size(size));
    let (owned, inline) = (Arc::new(AsyncGroup::<u64, u64>::new()), Arc::new(Inline::<u64>::default()));
    let mut rounds: Rounds<'_, 1> = bench.rounds();
    let nanos = |[nanos, _]: [f64; 2]| [nanos];
    let all = [
        sizes.map(|size| {
            rounds.add("oneflight", Kind::Ours, {
                let owned = &owned;
                move || nanos(task_load::fan_out::<u64, _>(executor, owned, size))
            })
        }),
        sizes.map(|size| {
            rounds.add("oneflight, inline", Kind::Ours, {
                let inline = &inline;
                move || nanos(task_load::fan_out::<u64, _>(executor, inline, size))
            })
        }),
    ];
    let samples = bench.measure(rounds, 20);
    for (place, size) in FOLLOWERS.into_iter().enumerate() {
        let at_size = all.map(|ids| ids[place]);
        bench.report.figures_of(&at_size, &format!("{name}: {size}"), &samples, 0, "ns a follower", 1.0);
    }
    for [few, _, many] in all {
        let what = format!("{name}: {}, a task of 100,000 / of 1,000", samples.who(few).name);
        bench.report.target(&what, AtMost(LINEAR), samples.ratio(many, few, 0));
    }
}

/// A row for joining and one for all of it at each size, and a target for each step between them.
fn crowd(bench: &mut Bench, name: &str, end: End) {
    let sizes = FOLLOWERS.map(|size| bench.options.size(size));
    let (owned, inline) = (several(AsyncGroup::<u64, u64>::new), several(Inline::<u64>::default));
    let mut rounds: Rounds<'_, 2> = bench.rounds();
    let all = [
        sizes.map(|size| {
            let mut turn = owned.iter().cycle();
            let run = move || crowd::crowd(turn.next().expect("there are several"), size, end);
            rounds.add("oneflight", Kind::Ours, run)
        }),
        sizes.map(|size| {
            let mut turn = inline.iter().cycle();
            let run = move || crowd::crowd(turn.next().expect("there are several"), size, end);
            rounds.add("oneflight, inline", Kind::Ours, run)
        }),
    ];
    let samples = bench.measure(rounds, 20);
    for (figure, what) in [(0, "joining"), (1, "all of it")] {
        for (place, size) in FOLLOWERS.into_iter().enumerate() {
            let at_size = all.map(|ids| ids[place]);
            let workload = format!("{name}: {what}, {size}");
            bench.report.figures_of(&at_size, &workload, &samples, figure, "ns a follower", 1.0);
        }
        for [few, some, many] in all {
            let who = &samples.who(few).name;
            for (step, of, to) in [("10,000 / of 1,000", some, few), ("100,000 / of 10,000", many, some)] {
                let target = format!("{name}: {who}, {what}, a task of {step}");
                bench.report.target(&target, AtMost(LINEAR_STEP), samples.ratio(of, to, figure));
            }
        }
    }
}

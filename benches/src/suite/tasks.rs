//! `AsyncGroup` beside the crates that coalesce the calls of tasks, and beside floors. Fan-outs are in
//! [`fan_outs`](super::fan_outs).

use super::{Bench, CALLS, KEYS, Workload, ZIPF_EXPONENT, ZIPF_KEYS, several};
use crate::contender::tasks::{Coalesces, Visitor, everybody, floors, on_tokio_only, text_on_tokio_only};
use crate::contender::{Key, Kind, Uncoalesced};
use crate::executor::{BlockOn, ByHand, Executor, Smol, tokio_on_this_thread, tokio_with_two_threads};
use crate::load::{Work, zipf_ranks};
use crate::report::Bound::AtMost;
use crate::rounds::{Rounds, Samples};
use crate::task_load::{alone, leader_dropped, mix, serves_the_late, woken};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use tokio::runtime::Runtime;

/// The workloads of this part.
pub const WORKLOADS: [(&str, Workload<Bench>); 10] = [
    ("alone, u64 key", alone_number),
    ("alone, 16-byte string key", alone_text),
    ("alone, one u64 key again and again", alone_one_key),
    ("2 threads, own keys, trivial work, tokio", |bench, name| on_tokio(bench, name, own_keys)),
    ("2 threads, own keys, trivial work, smol", |bench, name| on_smol(bench, name, own_keys)),
    ("2 threads, zipf keys, 2 us of work, tokio", |bench, name| on_tokio(bench, name, zipf_keys)),
    ("2 threads, zipf keys, 2 us of work, smol", |bench, name| on_smol(bench, name, zipf_keys)),
    ("work woken 200 times, 1,000 followers", work_woken),
    ("polls a follower", polls),
    ("leader dropped, 1,000 followers", leader_is_dropped),
];

/// One task, which asks for these keys in turn, and whose work is ready at once.
struct Alone<'a, K, E> {
    on: &'a E,
    keys: &'a [K],
    rounds: Rounds<'a, 1>,
}

impl<Q: Key + ?Sized, E: BlockOn> Visitor<Q> for Alone<'_, Q::Owned, E> {
    fn visit<C: Coalesces<Q>>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let (contenders, on, keys) = (several(make), self.on, self.keys);
        let mut next = (0..contenders.len()).cycle();
        let mut next = move || next.next().expect("it goes round");
        self.rounds.add(name, kind, move || [alone::<Q>(on, &contenders[next()], keys, CALLS)]);
    }
}

fn alone_number(bench: &mut Bench, name: &str) {
    let keys = u64::many(KEYS, bench.options.seed);
    let mut all = Alone { on: &ByHand, keys: &keys, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    floors::<u64>(&mut all);
    let samples = bench.measure(all.rounds, 150);
    bench.report.figures(name, &samples, 0, "ns a call", 1.0);
    bench.report.draw(name);
    let [owned, inline, floor] = ["oneflight", "oneflight, inline", "floor, inline"].map(|name| samples.named(name));
    bench.report.ratio(name, &samples, 0, AtMost(1.3), [inline, floor]);
    if let Some(best) = samples.least(&samples.all(Kind::Crate), 0) {
        bench.report.ratio(name, &samples, 0, AtMost(0.43), [inline, best]);
        bench.report.ratio(name, &samples, 0, AtMost(0.9), [owned, best]);
    }
}

fn alone_text(bench: &mut Bench, name: &str) {
    let keys = str::many(KEYS, bench.options.seed);
    // On tokio, since one of them cannot do without it, and another only as long as nobody else has its key.
    let tokio = tokio_on_this_thread();
    let mut all = Alone { on: &tokio, keys: &keys, rounds: bench.rounds() };
    everybody::<str>(&mut all);
    on_tokio_only::<str>(&mut all);
    text_on_tokio_only(&mut all);
    floors::<str>(&mut all);
    let samples = bench.measure(all.rounds, 150);
    bench.report.figures(name, &samples, 0, "ns a call", 1.0);
    each_is_first(bench, name, &samples);
}

/// The target of being first, for each way to call.
fn each_is_first<const N: usize>(bench: &mut Bench, name: &str, samples: &Samples<N>) {
    for id in samples.all(Kind::Ours) {
        bench.report.first(name, samples, 0, &[id], &samples.all(Kind::Crate));
    }
}

fn alone_one_key(bench: &mut Bench, name: &str) {
    let mut all = Alone { on: &ByHand, keys: &[*u64::ONE], rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    floors::<u64>(&mut all);
    let samples = bench.measure(all.rounds, 150);
    bench.report.figures(name, &samples, 0, "ns a call", 1.0);
    each_is_first(bench, name, &samples);
}

/// Tasks, which call on two threads.
const ASKING: usize = 16;

/// Those tasks, a fresh part of their sequences each round, the same for all.
struct Mix<'a, E> {
    executor: &'a E,
    /// A sequence for each task of each part: places among so many keys.
    ranks: &'a [Vec<usize>],
    keys: usize,
    seed: u64,
    work: Work,
    counts: bool,
    rounds: Rounds<'a, 2>,
}

impl<Q: Key + ?Sized, E: Executor> Visitor<Q> for Mix<'_, E> {
    fn visit<C: Coalesces<Q>>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let keys = Q::many(self.keys, self.seed);
        let sequence = |ranks: &Vec<usize>| ranks.iter().map(|&rank| keys[rank].clone()).collect::<Arc<[Q::Owned]>>();
        let sequences: Vec<_> = self.ranks.iter().map(sequence).collect();
        let windows: Vec<_> = sequences.chunks(ASKING).map(<[_]>::to_vec).collect();
        let (executor, work, counts, contender) = (self.executor, self.work, self.counts, Arc::new(make()));
        let mut next = (0..windows.len()).cycle();
        self.rounds.add(name, kind, move || {
            mix::<Q, _>(executor, &contender, &windows[next.next().expect("it goes round")], work, counts)
        });
    }
}

/// Shows those who can be asked on one executor alone.
type More<E> = fn(&mut Mix<'_, E>);

fn on_tokio(bench: &mut Bench, name: &str, run: fn(&mut Bench, &str, &Runtime, More<Runtime>)) {
    let tokio = tokio_with_two_threads(&bench.machine);
    run(bench, name, &tokio, |all| {
        on_tokio_only::<u64>(all);
        text_on_tokio_only(all);
    });
}

fn on_smol(bench: &mut Bench, name: &str, run: fn(&mut Bench, &str, &Smol, More<Smol>)) {
    let smol = Smol::with_two_threads(&bench.machine);
    run(bench, name, &smol, |_| ());
}

fn own_keys<E: Executor>(bench: &mut Bench, name: &str, executor: &E, visit_more: More<E>) {
    // So many that it does not matter when the second thread wakes up.
    const CALLS: usize = 2_048;
    const OWN: usize = KEYS / ASKING;
    let ranks = |task| (0..CALLS).map(|call| task * OWN + call % OWN).collect();
    let ranks: Vec<Vec<usize>> = (0..ASKING).map(ranks).collect();
    let samples = mixed(bench, (executor, visit_more), (&ranks, KEYS), Work::TRIVIAL, false);
    bench.report.figures(name, &samples, 0, "ns a call of one thread", 1.0);
    each_is_first(bench, name, &samples);
}

fn zipf_keys<E: Executor>(bench: &mut Bench, name: &str, executor: &E, visit_more: More<E>) {
    const PARTS: usize = 16;
    const CALLS: usize = 256;
    let ranks = |seed| zipf_ranks(ZIPF_KEYS, ZIPF_EXPONENT, CALLS, seed);
    let ranks: Vec<_> = (0..PARTS * ASKING).map(|task| ranks(bench.options.seed ^ ((task as u64) << 32))).collect();
    let work = Work::lasting(Duration::from_micros(2));
    let samples = mixed(bench, (executor, visit_more), (&ranks, ZIPF_KEYS), work, true);
    bench.report.figures(name, &samples, 0, "ns a call of one thread", 1.0);
    bench.report.figures(&format!("{name}: works"), &samples, 1, "works a call", 1.0);
    // Who hands out what was read before the call began has less to do.
    let mut late = Late { on: executor, names: Vec::new() };
    everybody::<u64>(&mut late);
    let crates: Vec<_> = samples.all(Kind::Crate);
    let crates: Vec<_> = crates.into_iter().filter(|&id| !late.names.contains(&&*samples.who(id).name)).collect();
    bench.report.first(name, &samples, 0, &samples.all(Kind::Ours), &crates);
    bench.judge_overhead(name, &samples, Some(1));
}

fn mixed<E: Executor>(
    bench: &Bench,
    (executor, visit_more): (&E, More<E>),
    (ranks, keys): (&[Vec<usize>], usize),
    work: Work,
    counts: bool,
) -> Samples<2> {
    let mut all = Mix { executor, ranks, keys, seed: bench.options.seed, work, counts, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    visit_more(&mut all);
    Visitor::<u64>::visit(&mut all, "no coalescing", Kind::Floor, || Uncoalesced);
    bench.measure(all.rounds, 60)
}

/// The names of the contenders that serve a call with the value of work that had ended before.
struct Late<'a, E> {
    on: &'a E,
    names: Vec<&'static str>,
}

impl<E: Executor> Visitor<u64> for Late<'_, E> {
    fn visit<C: Coalesces<u64>>(&mut self, name: &'static str, _kind: Kind, make: fn() -> C) {
        if serves_the_late(&make(), self.on) {
            self.names.push(name);
        }
    }
}

/// What is done with contenders on an executor that is written by hand.
struct ByFigure<'a, const N: usize, M> {
    measure: M,
    rounds: Rounds<'a, N>,
}

/// A measurement that can be made of any contender.
trait Measurement<const N: usize>: Copy + Send + 'static {
    fn of<C: Coalesces<u64>>(self, make: fn() -> C) -> [f64; N];
}

impl<const N: usize, M: Measurement<N>> Visitor<u64> for ByFigure<'_, N, M> {
    fn visit<C: Coalesces<u64>>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let measure = self.measure;
        self.rounds.add(name, kind, move || measure.of(make));
    }
}

const CROWD: usize = 1_000;

/// Nanoseconds a wake with a crowd, without, and one over the other.
#[derive(Clone, Copy)]
struct Wakes;

impl Measurement<3> for Wakes {
    fn of<C: Coalesces<u64>>(self, make: fn() -> C) -> [f64; 3] {
        const WAKES: u32 = 200;
        let contender = make();
        let (crowd, lone) = (woken(&contender, CROWD, WAKES), woken(&contender, 0, WAKES));
        [crowd.nanos_a_wake, lone.nanos_a_wake, crowd.nanos_a_wake / lone.nanos_a_wake]
    }
}

fn work_woken(bench: &mut Bench, name: &str) {
    let mut all = ByFigure { measure: Wakes, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    let samples = bench.measure(all.rounds, 50);
    bench.report.figures(name, &samples, 0, "ns a wake", 1.0);
    bench.report.figures(&format!("{name}: the same, alone"), &samples, 1, "ns a wake", 1.0);
    bench.report.figures(&format!("{name}: one over the other"), &samples, 2, "", 1.0);
    for id in samples.all(Kind::Ours) {
        let what = format!("{name}: {} / the same, alone", samples.who(id).name);
        bench.report.target(&what, AtMost(2.5), samples.spread(id, 2));
    }
    bench.report.first(name, &samples, 0, &samples.all(Kind::Ours), &samples.all(Kind::Crate));
}

/// Polls a follower of work that waits 50 times, most polls of a follower of work that waits once, and nanoseconds to serve
/// each of a few and of many.
#[derive(Clone, Copy)]
struct Polls {
    few: usize,
    many: usize,
}

impl Measurement<4> for Polls {
    fn of<C: Coalesces<u64>>(self, make: fn() -> C) -> [f64; 4] {
        let contender = make();
        let work = woken(&contender, 200, 50);
        let (few, many) = (woken(&contender, self.few, 0), woken(&contender, self.many, 0));
        [work.polls, many.most_polls, few.nanos_a_follower, many.nanos_a_follower]
    }
}

fn polls(bench: &mut Bench, name: &str) {
    let (few, many) = (bench.options.size(10_000), bench.options.size(100_000));
    let mut all = ByFigure { measure: Polls { few, many }, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    let samples = bench.measure(all.rounds, 5);
    let [polls, most] = [format!("{name}: 50 awaits, 200 followers"), format!("{name}: most of {many}")];
    bench.report.figures(&polls, &samples, 0, "polls", 1.0);
    bench.report.figures(&most, &samples, 1, "polls", 1.0);
    bench.report.figures(&format!("{name}: landing under {few}"), &samples, 2, "ns a follower", 1.0);
    bench.report.figures(&format!("{name}: landing under {many}"), &samples, 3, "ns a follower", 1.0);
    for id in samples.all(Kind::Ours) {
        let who = &samples.who(id).name;
        bench.report.target(&format!("{polls}, {who}"), AtMost(2.5), samples.spread(id, 0));
        bench.report.target(&format!("{most}, {who}"), AtMost(4.0), samples.spread(id, 1));
    }
}

/// Microseconds until the last one is served, and executions that were begun.
#[derive(Clone, Copy)]
struct Dropped;

impl Measurement<2> for Dropped {
    fn of<C: Coalesces<u64>>(self, make: fn() -> C) -> [f64; 2] {
        leader_dropped(&make(), CROWD)
    }
}

fn leader_is_dropped(bench: &mut Bench, name: &str) {
    let mut all = ByFigure { measure: Dropped, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    let samples = bench.measure(all.rounds, 100);
    let (served, executions) = (format!("{name}: last one served"), format!("{name}: executions"));
    bench.report.figures(&served, &samples, 0, "us", 1.0);
    bench.report.figures(&executions, &samples, 1, "", 1.0);
    let [owned, theirs] = ["oneflight", "quick_cache"].map(|name| samples.named(name));
    bench.report.ratio(&served, &samples, 0, AtMost(1.0), [owned, theirs]);
    bench.report.target(&format!("{executions} of oneflight"), AtMost(1.0), samples.spread(owned, 1));
    bench.report.first(&served, &samples, 0, &samples.all(Kind::Ours), &samples.all(Kind::Crate));
}

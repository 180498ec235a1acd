//! One task leads, many wait, it lands: on the executors that users have.

use super::{Bench, Workload};
use crate::contender::tasks::{Coalesces, Visitor, everybody, on_tokio_only, text_on_tokio_only};
use crate::contender::{Key, Kind};
use crate::executor::{Executor, Smol, tokio_on_this_thread, tokio_with_two_threads};
use crate::report::Bound::AtMost;
use crate::rounds::{Id, Rounds};
use crate::task_load::fan_out;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use tokio::runtime::Runtime;

/// The workloads of this part.
pub const WORKLOADS: [(&str, Workload<Bench>); 16] = [
    ("1 task, tokio, one thread", |b, n| on_tokio(b, n, &tokio_on_this_thread(), 1, 0.9)),
    ("100 tasks, tokio, one thread", |b, n| on_tokio(b, n, &tokio_on_this_thread(), 100, 1.0)),
    ("5,000 tasks, tokio, one thread", |b, n| on_tokio(b, n, &tokio_on_this_thread(), 5_000, 0.9)),
    ("100,000 tasks, tokio, one thread", |b, n| on_tokio(b, n, &tokio_on_this_thread(), 100_000, 0.9)),
    ("1 task, smol, one thread", |b, n| on(b, n, &Smol::on_this_thread(), 1, 1.0)),
    ("100 tasks, smol, one thread", |b, n| on(b, n, &Smol::on_this_thread(), 100, 1.0)),
    ("5,000 tasks, smol, one thread", |b, n| on(b, n, &Smol::on_this_thread(), 5_000, 1.0)),
    ("100,000 tasks, smol, one thread", |b, n| on(b, n, &Smol::on_this_thread(), 100_000, 1.0)),
    ("1 task, tokio, two threads", |b, n| on_two_of_tokio(b, n, 1)),
    ("100 tasks, tokio, two threads", |b, n| on_two_of_tokio(b, n, 100)),
    ("5,000 tasks, tokio, two threads", |b, n| on_two_of_tokio(b, n, 5_000)),
    ("100,000 tasks, tokio, two threads", |b, n| on_two_of_tokio(b, n, 100_000)),
    ("1 task, smol, two threads", |b, n| on_two_of_smol(b, n, 1)),
    ("100 tasks, smol, two threads", |b, n| on_two_of_smol(b, n, 100)),
    ("5,000 tasks, smol, two threads", |b, n| on_two_of_smol(b, n, 5_000)),
    ("100,000 tasks, smol, two threads", |b, n| on_two_of_smol(b, n, 100_000)),
];

/// That many followers of each contender.
struct FanOut<'a, E> {
    executor: &'a E,
    followers: usize,
    rounds: Rounds<'a, 2>,
}

impl<Q: Key + ?Sized, E: Executor> Visitor<Q> for FanOut<'_, E> {
    fn visit<C: Coalesces<Q>>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let (executor, followers, contender) = (self.executor, self.followers, Arc::new(make()));
        self.rounds.add(name, kind, move || fan_out::<Q, _>(executor, &contender, followers));
    }
}

fn on_two_of_tokio(bench: &mut Bench, name: &str, followers: usize) {
    let tokio = tokio_with_two_threads(&bench.machine);
    on_tokio(bench, name, &tokio, followers, 1.0);
}

fn on_two_of_smol(bench: &mut Bench, name: &str, followers: usize) {
    let smol = Smol::with_two_threads(&bench.machine);
    on(bench, name, &smol, followers, 1.0);
}

fn on_tokio(bench: &mut Bench, name: &str, executor: &Runtime, followers: usize, most: f64) {
    measured(bench, name, executor, followers, most, |all| {
        on_tokio_only::<u64>(all);
        text_on_tokio_only(all);
    });
}

fn on(bench: &mut Bench, name: &str, executor: &impl Executor, followers: usize, most: f64) {
    measured(bench, name, executor, followers, most, |_| ());
}

fn measured<E: Executor>(
    bench: &mut Bench,
    name: &str,
    executor: &E,
    followers: usize,
    most: f64,
    visit_more: fn(&mut FanOut<'_, E>),
) {
    let followers = bench.options.size(followers);
    let mut all = FanOut { executor, followers, rounds: bench.rounds() };
    everybody::<u64>(&mut all);
    visit_more(&mut all);
    let usual = match followers {
        0..=999 => 200,
        1_000..=9_999 => 80,
        _ => 16,
    };
    let samples = bench.measure(all.rounds, usual);
    bench.report.figures(name, &samples, 0, "ns a follower", 1.0);
    // A crate whose followers had to work has not coalesced, so it is not one to be faster than.
    let (crates, others): (Vec<Id>, Vec<Id>) =
        samples.all(Kind::Crate).into_iter().partition(|&id| samples.spread(id, 1).median == 0.0);
    for id in &others {
        let who = samples.who(*id);
        let work = format!("{name}: followers that had to work");
        bench.report.figure(&work, &who.name, who.kind, "", samples.spread(*id, 1));
    }
    // Fewer vary too much for a ratio to mean anything.
    if followers < 64 {
        return;
    }
    bench.report.draw(name);
    let ours = samples.all(Kind::Ours);
    for &id in &ours {
        let what = format!("{name}: followers that had to work, {}", samples.who(id).name);
        bench.report.target(&what, AtMost(0.0), samples.spread(id, 1));
    }
    match samples.least(&crates, 0) {
        // Of thousands, each way to call has a target of its own.
        Some(best) if followers >= 1_000 => {
            for id in ours {
                bench.report.ratio(name, &samples, 0, AtMost(most), [id, best]);
            }
        }
        _ => bench.report.first(name, &samples, 0, &ours, &crates),
    }
}

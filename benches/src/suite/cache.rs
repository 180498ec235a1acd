//! The cache beside moka and quick_cache: hits on zipf keys, and loads of keys that are not there.

use super::{Bench, Workload, text_cache};
use crate::contender::{Blocking, Kind};
use crate::load::{self, Work};
use crate::report::Bound::{AtLeast, AtMost};
use crate::rounds::sampler;
use crate::workload::{alone, pair};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use oneflight_cache::{Builder, Cache, Policy, blocking};
use std::time::Instant;

/// The workloads of this part.
pub const WORKLOADS: [(&str, Workload<Bench>); 7] = [
    ("hit", hit),
    ("hit, task", async_hit),
    ("2 threads hit, own keys", pair_hits),
    ("load and invalidate", load_and_invalidate),
    ("load and invalidate, task", load_and_invalidate_task),
    ("hit, task on tokio, string key", text_cache::hit),
    ("load and invalidate, task on tokio, string key", text_cache::load_and_invalidate),
];

pub(super) const KEYS: usize = 10_000;
pub(super) const ZIPF_EXPONENT: f64 = 0.99;
pub(super) const CALLS: usize = 10_000;
pub(super) const TTL: Duration = Duration::from_secs(3_600);

type Value = Arc<u64>;
pub(super) type Hasher = quick_cache::DefaultHashBuilder;
type Plain = quick_cache::sync::Cache<u64, Value>;
type Moka = moka::sync::Cache<u64, Value, Hasher>;
type AsyncMoka = moka::future::Cache<u64, Value, Hasher>;

fn ours(policy: Policy) -> Builder<u64, Value> {
    Cache::builder().capacity(2 * KEYS).ttl(TTL).early_refresh(policy)
}

fn plain() -> Plain {
    Plain::new(2 * KEYS)
}

fn moka() -> Moka {
    moka::sync::Cache::builder().max_capacity(2 * KEYS as u64).time_to_live(TTL).build_with_hasher(Hasher::default())
}

fn async_moka() -> AsyncMoka {
    moka::future::Cache::builder().max_capacity(2 * KEYS as u64).time_to_live(TTL).build_with_hasher(Hasher::default())
}

/// A cache that is asked for what is there. It answers with the number behind the value.
struct Hits<F>(F);

impl<F: Fn(&u64) -> u64 + Sync> Blocking<u64, u64> for Hits<F> {
    fn call(&self, key: &u64, _work: impl FnOnce() -> u64) -> u64 {
        (self.0)(key)
    }
}

/// A cache that loads by `work` what is not there, and gives it up again.
struct Loads<F>(F);

impl<F: Fn(&u64, u64) -> u64 + Sync> Blocking<u64, u64> for Loads<F> {
    fn call(&self, key: &u64, work: impl FnOnce() -> u64) -> u64 {
        (self.0)(key, work())
    }
}

/// Polls a future that is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits for something"),
    }
}

fn hits(cache: &blocking::Cache<u64, Value>) -> Hits<impl Fn(&u64) -> u64> {
    // Looked at where it is: what the caller does with it is no cost of the call.
    Hits(|key: &u64| *cache.get_or_load(key, || Err("it is there".into())).as_ref().expect("it is there").value)
}

fn async_hits(cache: &Cache<u64, Value>) -> Hits<impl Fn(&u64) -> u64> {
    Hits(|key: &u64| {
        let future = pin!(cache.get_or_load(key, || async { Err("it is there".into()) }));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(ref hit)) => *hit.value,
            _ => unreachable!("it is there"),
        }
    })
}

/// The least that a hit with a time to live can cost.
fn floor(cache: &Plain) -> Hits<impl Fn(&u64) -> u64> {
    Hits(|key: &u64| {
        black_box(Instant::now());
        *cache.get(key).expect("it is there")
    })
}

/// Keys, and a sequence in which they are asked for.
fn keys(bench: &Bench) -> (Vec<u64>, Vec<u64>) {
    let keys = load::numbers(KEYS, bench.options.seed);
    let asked = load::zipf(&keys, ZIPF_EXPONENT, 10 * CALLS, bench.options.seed);
    (keys, asked)
}

fn hit(bench: &mut Bench, name: &str) {
    let (keys, asked) = keys(bench);
    let (early, never) = (ours(Policy::default()).build_blocking(), ours(Policy::Never).build_blocking());
    let (plain, moka) = (plain(), moka());
    for &key in &keys {
        let value = Arc::new(key);
        plain.insert(key, Arc::clone(&value));
        moka.insert(key, Arc::clone(&value));
        early
            .get_or_load(&key, {
                let value = Arc::clone(&value);
                move || Ok(value)
            })
            .expect("it loads");
        never.get_or_load(&key, move || Ok(value)).expect("it loads");
    }
    let moka = Hits(|key: &u64| *moka.get_with(*key, || unreachable!("it is there")));
    let (early, never, floor) = (hits(&early), hits(&never), floor(&plain));
    compare_hits(bench, name, &asked, [&early, &never], &floor, &moka);
}

fn async_hit(bench: &mut Bench, name: &str) {
    let (keys, asked) = keys(bench);
    let (early, never) = (ours(Policy::default()).build(), ours(Policy::Never).build());
    let (plain, moka) = (plain(), async_moka());
    for &key in &keys {
        let value = Arc::new(key);
        plain.insert(key, Arc::clone(&value));
        ready(moka.insert(key, Arc::clone(&value)));
        ready(early.get_or_load(&key, {
            let value = Arc::clone(&value);
            || async { Ok(value) }
        }))
        .expect("it loads");
        ready(never.get_or_load(&key, || async { Ok(value) })).expect("it loads");
    }
    let moka = Hits(|key: &u64| *ready(moka.get_with(*key, async { unreachable!("it is there") })));
    let (early, never, floor) = (async_hits(&early), async_hits(&never), floor(&plain));
    compare_hits(bench, name, &asked, [&early, &never], &floor, &moka);
}

fn compare_hits(
    bench: &mut Bench,
    name: &str,
    asked: &[u64],
    ours: [&Hits<impl Fn(&u64) -> u64 + Sync>; 2],
    floor: &Hits<impl Fn(&u64) -> u64 + Sync>,
    moka: &Hits<impl Fn(&u64) -> u64 + Sync>,
) {
    // A fresh part of the sequence each round, the same for all.
    let windows = || asked.chunks(CALLS);
    let mut rounds = bench.rounds();
    let early = rounds.add(
        "oneflight-cache",
        Kind::Ours,
        sampler(windows(), |keys| alone(ours[0], keys, Work::TRIVIAL, CALLS)),
    );
    let never = rounds.add(
        "oneflight-cache, no policy",
        Kind::Ours,
        sampler(windows(), |keys| alone(ours[1], keys, Work::TRIVIAL, CALLS)),
    );
    let least = rounds.add(
        "quick_cache and a clock",
        Kind::Floor,
        sampler(windows(), |keys| alone(floor, keys, Work::TRIVIAL, CALLS)),
    );
    let theirs = rounds.add("moka", Kind::Crate, sampler(windows(), |keys| alone(moka, keys, Work::TRIVIAL, CALLS)));
    let samples = bench.measure(rounds, 200);
    bench.report.figures(name, &samples, 0, "ns a call", 1.0);
    bench.report.draw(name);
    let mut target = |to_name: &str, bound, of, to| {
        bench.report.target(&format!("{name}: oneflight-cache / {to_name}"), AtMost(bound), samples.ratio(of, to, 0));
    };
    target("quick_cache and a clock", 1.25, early, least);
    target("moka", 0.8, early, theirs);
    target("without a policy", 1.1, early, never);
}

fn pair_hits(bench: &mut Bench, name: &str) {
    let (keys, _) = keys(bench);
    let (cache, plain) = (ours(Policy::default()).build_blocking(), plain());
    for &key in &keys {
        cache.get_or_load(&key, move || Ok(Arc::new(key))).expect("it loads");
        plain.insert(key, Arc::new(key));
    }
    let (one, two) = keys.split_at(KEYS / 2);
    let (machine, cache, floor) = (&bench.machine, hits(&cache), floor(&plain));
    let mut rounds = bench.rounds();
    let both = rounds.add("oneflight-cache", Kind::Ours, || [pair(machine, &cache, [one, two], Work::TRIVIAL, CALLS)]);
    let single = rounds.add("oneflight-cache, one thread", Kind::Ours, || [alone(&cache, one, Work::TRIVIAL, CALLS)]);
    rounds.add("quick_cache and a clock, one thread", Kind::Floor, || [alone(&floor, one, Work::TRIVIAL, CALLS)]);
    rounds.add("quick_cache and a clock", Kind::Floor, || [pair(machine, &floor, [one, two], Work::TRIVIAL, CALLS)]);
    let samples = bench.measure(rounds, 200);
    bench.report.figures(name, &samples, 0, "ns a call of one thread", 1.0);
    let gain = samples.ratio(single, both, 0).map(|ratio| 2.0 * ratio);
    bench.report.target(&format!("{name}: throughput of two / of one"), AtLeast(1.6), gain);
}

fn load_and_invalidate(bench: &mut Bench, name: &str) {
    let cache = ours(Policy::default()).build_blocking();
    let moka = moka();
    let ours = Loads(|key: &u64, value: u64| {
        let loaded = cache.get_or_load(key, move || Ok(Arc::new(value))).expect("it loads");
        cache.invalidate(key).expect("memory does not fail");
        *loaded.value
    });
    let theirs = Loads(|key: &u64, value: u64| {
        let loaded = moka.get_with(*key, || Arc::new(value));
        moka.invalidate(key);
        *loaded
    });
    compare_loads(bench, name, &ours, &theirs);
}

fn load_and_invalidate_task(bench: &mut Bench, name: &str) {
    let cache = ours(Policy::default()).build();
    let moka = async_moka();
    let ours = Loads(|key: &u64, value: u64| {
        let loaded = ready(cache.get_or_load(key, move || async move { Ok(Arc::new(value)) })).expect("it loads");
        ready(cache.invalidate(key)).expect("memory does not fail");
        *loaded.value
    });
    let theirs = Loads(|key: &u64, value: u64| {
        let loaded = ready(moka.get_with(*key, async { Arc::new(value) }));
        ready(moka.invalidate(key));
        *loaded
    });
    compare_loads(bench, name, &ours, &theirs);
}

fn compare_loads(
    bench: &mut Bench,
    name: &str,
    ours: &Loads<impl Fn(&u64, u64) -> u64 + Sync>,
    theirs: &Loads<impl Fn(&u64, u64) -> u64 + Sync>,
) {
    const CALLS: usize = 2_000;
    let keys = load::numbers(1_024, bench.options.seed);
    let mut rounds = bench.rounds();
    let ours = rounds.add("oneflight-cache", Kind::Ours, || [alone(ours, &keys, Work::TRIVIAL, CALLS)]);
    let theirs = rounds.add("moka", Kind::Crate, || [alone(theirs, &keys, Work::TRIVIAL, CALLS)]);
    let samples = bench.measure(rounds, 200);
    bench.report.figures(name, &samples, 0, "ns a call", 1.0);
    bench.report.draw(name);
    bench.report.target(&format!("{name}: oneflight-cache / moka"), AtMost(0.5), samples.ratio(ours, theirs, 0));
}

//! The cache beside moka and quick_cache: hits on zipf keys, and loads of keys that are not there.
//!
//!     cargo bench -p oneflight-benches --bench cache

extern crate alloc;

use alloc::sync::Arc;
use core::future::Future;
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use oneflight_benches::contender::Blocking;
use oneflight_benches::load::{self, Work};
use oneflight_benches::machine::{self, Machine};
use oneflight_benches::options::Options;
use oneflight_benches::report::Bound::{AtLeast, AtMost};
use oneflight_benches::report::Report;
use oneflight_benches::rounds::{Rounds, sampler};
use oneflight_benches::workload::{alone, pair};
use oneflight_cache::{Builder, Cache, Policy, blocking};
use std::process::ExitCode;
use std::time::Instant;

const KEYS: usize = 10_000;
const ZIPF_EXPONENT: f64 = 0.99;
const CALLS: usize = 10_000;
const TTL: Duration = Duration::from_secs(3_600);

type Value = Arc<u64>;
type Hasher = quick_cache::DefaultHashBuilder;
type Plain = quick_cache::sync::Cache<u64, Value>;
type Moka = moka::sync::Cache<u64, Value, Hasher>;
type AsyncMoka = moka::future::Cache<u64, Value, Hasher>;

fn main() -> ExitCode {
    let options = Options::from_command_line();
    let bench = Bench { machine: Machine::new(), report: Report::new(&options), options };
    bench.run()
}

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

struct Bench {
    machine: Machine,
    options: Options,
    report: Report,
}

impl Bench {
    fn run(mut self) -> ExitCode {
        println!("{}", machine::description(&self.machine));
        let workloads: [(&str, fn(&mut Self, &str)); 5] = [
            ("hit", Self::hit),
            ("hit, task", Self::async_hit),
            ("2 threads hit, own keys", Self::pair_hits),
            ("load and invalidate", Self::load),
            ("load and invalidate, task", Self::async_load),
        ];
        let (options, cores) = (self.options.clone(), self.machine.cores());
        options.run_wanted(cores, &mut self, workloads);
        self.report.finish()
    }

    /// Keys, and a sequence in which they are asked for.
    fn keys(&self) -> (Vec<u64>, Vec<u64>) {
        let keys = load::numbers(KEYS, self.options.seed);
        let asked = load::zipf(&keys, ZIPF_EXPONENT, 10 * CALLS, self.options.seed);
        (keys, asked)
    }

    fn hit(&mut self, name: &str) {
        let (keys, asked) = self.keys();
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
        self.compare_hits(name, &asked, [&early, &never], &floor, &moka);
    }

    fn async_hit(&mut self, name: &str) {
        let (keys, asked) = self.keys();
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
        self.compare_hits(name, &asked, [&early, &never], &floor, &moka);
    }

    fn compare_hits(
        &mut self,
        name: &str,
        asked: &[u64],
        ours: [&Hits<impl Fn(&u64) -> u64 + Sync>; 2],
        floor: &Hits<impl Fn(&u64) -> u64 + Sync>,
        moka: &Hits<impl Fn(&u64) -> u64 + Sync>,
    ) {
        // A fresh part of the sequence each round, the same for all.
        let windows = || asked.chunks(CALLS);
        let mut rounds = Rounds::new(self.options.seed);
        let early = rounds
            .add("oneflight-cache, XFetch", sampler(windows(), |keys| alone(ours[0], keys, Work::TRIVIAL, CALLS)));
        let never = rounds
            .add("oneflight-cache, no policy", sampler(windows(), |keys| alone(ours[1], keys, Work::TRIVIAL, CALLS)));
        let least =
            rounds.add("quick_cache and a clock", sampler(windows(), |keys| alone(floor, keys, Work::TRIVIAL, CALLS)));
        let theirs = rounds.add("moka, with a TTL", sampler(windows(), |keys| alone(moka, keys, Work::TRIVIAL, CALLS)));
        let samples = rounds.run(&self.machine, self.options.rounds(300));
        self.report.figures(name, &samples, 0, "ns a call", 1.0);
        let mut target = |to_name: &str, bound, of, to| {
            self.report.target(
                &format!("{name}: oneflight-cache / {to_name}"),
                AtMost(bound),
                samples.ratio(of, to, 0),
            );
        };
        target("quick_cache and a clock", 1.25, early, least);
        target("moka", 0.8, early, theirs);
        target("without a policy", 1.1, early, never);
    }

    fn pair_hits(&mut self, name: &str) {
        let (keys, _) = self.keys();
        let (cache, plain) = (ours(Policy::default()).build_blocking(), plain());
        for &key in &keys {
            cache.get_or_load(&key, move || Ok(Arc::new(key))).expect("it loads");
            plain.insert(key, Arc::new(key));
        }
        let (one, two) = keys.split_at(KEYS / 2);
        let (machine, cache, floor) = (&self.machine, hits(&cache), floor(&plain));
        let mut rounds = Rounds::new(self.options.seed);
        let single = rounds.add("oneflight-cache, one thread", || [alone(&cache, one, Work::TRIVIAL, CALLS)]);
        let both = rounds.add("oneflight-cache", || [pair(machine, &cache, [one, two], Work::TRIVIAL, CALLS)]);
        rounds.add("quick_cache and a clock, one thread", || [alone(&floor, one, Work::TRIVIAL, CALLS)]);
        rounds.add("quick_cache and a clock", || [pair(machine, &floor, [one, two], Work::TRIVIAL, CALLS)]);
        let samples = rounds.run(machine, self.options.rounds(300));
        self.report.figures(name, &samples, 0, "ns a call of one thread", 1.0);
        let gain = samples.ratio(single, both, 0).map(|ratio| 2.0 * ratio);
        self.report.target(&format!("{name}: throughput of two / of one"), AtLeast(1.6), gain);
    }

    fn load(&mut self, name: &str) {
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
        self.compare_loads(name, &ours, &theirs);
    }

    fn async_load(&mut self, name: &str) {
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
        self.compare_loads(name, &ours, &theirs);
    }

    fn compare_loads(
        &mut self,
        name: &str,
        ours: &Loads<impl Fn(&u64, u64) -> u64 + Sync>,
        theirs: &Loads<impl Fn(&u64, u64) -> u64 + Sync>,
    ) {
        const CALLS: usize = 2_000;
        let keys = load::numbers(1_024, self.options.seed);
        let mut rounds = Rounds::new(self.options.seed);
        let ours = rounds.add("oneflight-cache", || [alone(ours, &keys, Work::TRIVIAL, CALLS)]);
        let theirs = rounds.add("moka, with a TTL", || [alone(theirs, &keys, Work::TRIVIAL, CALLS)]);
        let samples = rounds.run(&self.machine, self.options.rounds(300));
        self.report.figures(name, &samples, 0, "ns a call", 1.0);
        self.report.target(&format!("{name}: oneflight-cache / moka"), AtMost(0.5), samples.ratio(ours, theirs, 0));
    }
}

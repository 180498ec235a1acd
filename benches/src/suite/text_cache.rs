//! The cache beside those that only a task of tokio's can ask, and, since one of them takes no other keys, with keys of text.
//!
//! Each has a time to live but quick_cache and foyer, which know of none: quick_cache is a floor here, with a look at the clock each
//! call.

use super::Bench;
use super::cache::{CALLS, Hasher, KEYS, TTL, ZIPF_EXPONENT};
use crate::contender::Kind;
use crate::contender::tasks::Coalesces;
use crate::executor::tokio_on_this_thread;
use crate::load;
use crate::rounds::{Rounds, Samples, sampler};
use crate::task_load::alone;
use alloc::string::String;
use alloc::vec::Vec;
use amalgam::EntryOptions;
use core::convert::Infallible;
use core::future::{Future, IntoFuture as _};
use core::hint::black_box;
use oneflight_cache::Cache;
use std::time::Instant;
use tokio::runtime::Runtime;

/// A cache, as a task asks it.
trait Caches: Send + Sync + 'static {
    /// What is there, or what `work` makes.
    fn get(&self, key: &str, work: impl Future<Output = u64> + Send + 'static) -> impl Future<Output = u64> + Send;

    /// Gives up what is there.
    fn give_up(&self, key: &str) -> impl Future<Output = ()> + Send;
}

impl Caches for Cache<String, u64> {
    async fn get(&self, key: &str, work: impl Future<Output = u64> + Send + 'static) -> u64 {
        self.get_or_load(key, || async { Ok(work.await) }).await.expect("no work fails here").into_value()
    }

    async fn give_up(&self, key: &str) {
        self.invalidate(key).await.expect("memory does not fail");
    }
}

impl Caches for moka::future::Cache<String, u64, Hasher> {
    async fn get(&self, key: &str, work: impl Future<Output = u64> + Send + 'static) -> u64 {
        self.get_with_by_ref(key, work).await
    }

    async fn give_up(&self, key: &str) {
        self.invalidate(key).await;
    }
}

impl Caches for foyer_memory::Cache<String, u64, Hasher> {
    async fn get(&self, key: &str, work: impl Future<Output = u64> + Send + 'static) -> u64 {
        *self.get_or_fetch(key, || async { Ok::<_, Infallible>(work.await) }).await.expect("no work fails here")
    }

    async fn give_up(&self, key: &str) {
        self.remove(key);
    }
}

impl Caches for amalgam::Cache<u64> {
    async fn get(&self, key: &str, work: impl Future<Output = u64> + Send + 'static) -> u64 {
        let request = self.get_or_set(key, |_| async { Ok::<_, Infallible>(work.await) });
        request.into_future().await.expect("nothing fails in memory")
    }

    async fn give_up(&self, key: &str) {
        self.remove(key).await.expect("nothing fails in memory");
    }
}

/// The least that a cache with a time to live can cost.
impl Caches for quick_cache::sync::Cache<String, u64> {
    async fn get(&self, key: &str, work: impl Future<Output = u64> + Send + 'static) -> u64 {
        black_box(Instant::now());
        let Ok(value) = self.get_or_insert_async(key, async { Ok::<_, Infallible>(work.await) }).await;
        value
    }

    async fn give_up(&self, key: &str) {
        self.remove(key);
    }
}

/// Asked for what is there, once it has been asked for all keys.
struct Hits<C>(C);

impl<C: Caches> Coalesces<str> for Hits<C> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a str, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.0.get(key, work())
    }
}

/// Asked for what is not there, which is given up again.
struct Loads<C>(C);

impl<C: Caches> Coalesces<str> for Loads<C> {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a str, work: W) -> u64
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let value = self.0.get(key, work()).await;
        self.0.give_up(key).await;
        value
    }
}

/// Looks at one cache after the other.
trait Visitor {
    fn visit<C: Caches>(&mut self, name: &str, kind: Kind, cache: C);
}

fn everybody(visitor: &mut impl Visitor) {
    let room = 2 * KEYS;
    visitor.visit("oneflight-cache", Kind::Ours, Cache::builder().capacity(room).ttl(TTL).build());
    visitor.visit("quick_cache and a clock", Kind::Floor, quick_cache::sync::Cache::new(room));
    let moka = moka::future::Cache::builder().max_capacity(room as u64).time_to_live(TTL);
    visitor.visit("moka", Kind::Crate, moka.build_with_hasher(Hasher::default()));
    let foyer = foyer_memory::Cache::builder(room).with_hash_builder(Hasher::default());
    visitor.visit("foyer", Kind::Crate, foyer.build());
    let amalgam = amalgam::Cache::builder().default_options(EntryOptions::new(TTL));
    visitor.visit("amalgam-cache", Kind::Crate, amalgam.try_build().expect("the options are valid"));
}

struct AllHits<'a> {
    tokio: &'a Runtime,
    keys: &'a [String],
    /// In which order they are asked for: a fresh part of it each round, the same for all.
    asked: &'a [String],
    rounds: Rounds<'a, 1>,
}

impl Visitor for AllHits<'_> {
    fn visit<C: Caches>(&mut self, name: &str, kind: Kind, cache: C) {
        let (tokio, cache) = (self.tokio, Hits(cache));
        // They are all there from now on.
        black_box(alone::<str>(tokio, &cache, self.keys, self.keys.len()));
        self.rounds.add(
            name,
            kind,
            sampler(self.asked.chunks(CALLS), move |keys| alone::<str>(tokio, &cache, keys, CALLS)),
        );
    }
}

pub(super) fn hit(bench: &mut Bench, name: &str) {
    let tokio = tokio_on_this_thread();
    let keys = load::strings(KEYS, bench.options.seed);
    let ranks = load::zipf_ranks(KEYS, ZIPF_EXPONENT, 10 * CALLS, bench.options.seed);
    let asked: Vec<String> = ranks.into_iter().map(|rank| keys[rank].clone()).collect();
    let mut all = AllHits { tokio: &tokio, keys: &keys, asked: &asked, rounds: bench.rounds() };
    everybody(&mut all);
    let samples = bench.measure(all.rounds, 100);
    report(bench, name, &samples);
}

struct AllLoads<'a> {
    tokio: &'a Runtime,
    keys: &'a [String],
    rounds: Rounds<'a, 1>,
}

impl Visitor for AllLoads<'_> {
    fn visit<C: Caches>(&mut self, name: &str, kind: Kind, cache: C) {
        const CALLS: usize = 2_000;
        let (tokio, keys, cache) = (self.tokio, self.keys, Loads(cache));
        self.rounds.add(name, kind, move || [alone::<str>(tokio, &cache, keys, CALLS)]);
    }
}

pub(super) fn load_and_invalidate(bench: &mut Bench, name: &str) {
    let tokio = tokio_on_this_thread();
    let keys = load::strings(1_024, bench.options.seed);
    let mut all = AllLoads { tokio: &tokio, keys: &keys, rounds: bench.rounds() };
    everybody(&mut all);
    let samples = bench.measure(all.rounds, 100);
    report(bench, name, &samples);
}

fn report(bench: &mut Bench, name: &str, samples: &Samples<1>) {
    bench.report.figures(name, samples, 0, "ns a call", 1.0);
    bench.report.first(name, samples, 0, &samples.all(Kind::Ours), &samples.all(Kind::Crate));
}

//! What the cases know of a cache: that callers can be threads that block in it, whatever it does inside.

use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{BlockingStore, Builder, Cache, Error, Fetched, Memory, Policy, Stats, Store};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Values of the suite.
pub(crate) trait Value: Clone + Send + Sync + 'static {}
impl<V: Clone + Send + Sync + 'static> Value for V {}

/// Stores that both caches can use.
pub(crate) trait AnyStore<V>:
    Store<String, V> + Store<str, V> + BlockingStore<String, V> + BlockingStore<str, V>
{
}
impl<V, S> AnyStore<V> for S where S: Store<String, V> + Store<str, V> + BlockingStore<String, V> + BlockingStore<str, V>
{}

/// What loaders of the suite fail with. Not `Clone`: the cache does not ask for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fail(pub(crate) u32);

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failure {}", self.0)
    }
}

impl std::error::Error for Fail {}

pub(crate) type Answer<V> = Result<Fetched<V>, Error<Fail>>;
pub(crate) type Loader<V> = Box<dyn FnOnce() -> Result<V, Fail> + Send>;
pub(crate) type BatchLoader<V> = Arc<dyn Fn(Vec<String>) -> Result<Vec<V>, Fail> + Send + Sync>;
pub(crate) type Made<V, S = Memory<String, V>> = Builder<String, V, Fail, S>;

/// Where refreshes are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshes {
    /// By a spawner or by helper threads.
    Beside,
    /// By the caller that draws them.
    Inline,
}

/// One of the caches, and where its callers run.
pub(crate) trait Way: 'static {
    type Cache<V: Value, S: AnyStore<V>>: AnyCache<V, S>;
}

/// A cache whose calls block the thread until they have ended. Clones are the same cache.
pub(crate) trait AnyCache<V: Value, S: AnyStore<V>>: Clone + Send + Sync + 'static {
    fn with(builder: Made<V, S>, refreshes: Refreshes) -> Self;

    fn boxed_get_or_load(&self, key: &str, loader: Loader<V>) -> Answer<V>;
    fn boxed_bypass(&self, key: &str, loader: Loader<V>) -> Answer<V>;
    fn get(&self, key: &str) -> Result<Option<Fetched<V>>, Error<Fail>>;
    fn get_many(&self, keys: &[&str]) -> Result<Vec<Option<Fetched<V>>>, Error<Fail>>;
    fn put(&self, key: &str, value: V) -> Result<(), Error<Fail>>;
    fn put_with_ttl(&self, key: &str, value: V, ttl: Duration) -> Result<(), Error<Fail>>;
    fn invalidate(&self, key: &str) -> Result<(), Error<Fail>>;
    fn invalidate_many(&self, keys: &[&str]) -> Result<(), Error<Fail>>;
    fn invalidate_all(&self) -> Result<(), Error<Fail>>;
    fn boxed_refresh(&self, key: &str, loader: Loader<V>) -> Answer<V>;
    fn boxed_get_or_load_many(&self, keys: &[&str], loader: BatchLoader<V>) -> Result<Vec<Fetched<V>>, Error<Fail>>;

    // In boxes, so that all that a call needs is not compiled anew for each loader of the suite.

    fn get_or_load(&self, key: &str, loader: impl FnOnce() -> Result<V, Fail> + Send + 'static) -> Answer<V> {
        self.boxed_get_or_load(key, Box::new(loader))
    }

    fn bypass(&self, key: &str, loader: impl FnOnce() -> Result<V, Fail> + Send + 'static) -> Answer<V> {
        self.boxed_bypass(key, Box::new(loader))
    }

    fn refresh(&self, key: &str, loader: impl FnOnce() -> Result<V, Fail> + Send + 'static) -> Answer<V> {
        self.boxed_refresh(key, Box::new(loader))
    }

    fn get_or_load_many(
        &self,
        keys: &[&str],
        loader: impl Fn(Vec<String>) -> Result<Vec<V>, Fail> + Send + Sync + 'static,
    ) -> Result<Vec<Fetched<V>>, Error<Fail>> {
        self.boxed_get_or_load_many(keys, Arc::new(loader))
    }

    fn set_coalescing(&self, on: bool);
    fn set_early_refresh(&self, on: bool);
    fn close(&self, deadline: Duration) -> bool;
    fn stats(&self) -> Stats;
    fn waiters(&self, key: &str) -> usize;
    fn store(&self) -> &S;
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const TTL: Duration = Duration::from_secs(60);

/// A builder whose time stands still until it is moved on: values live for [`TTL`], none shorter, none is refreshed early,
/// loads may take for ever, and every random number is 0.
pub(crate) fn builder<V: Value>(clock: &ManualClock) -> Made<V> {
    let builder = Cache::builder().ttl(TTL).ttl_jitter(0.0).early_refresh(Policy::Never).load_timeout(None).rng(|| 0.0);
    builder.clock(clock.clone()).timer(clock.clone())
}

/// A cache with memory, and its clock.
pub(crate) fn cache<W: Way, V: Value>(
    set: impl FnOnce(Made<V>) -> Made<V>,
) -> (W::Cache<V, Memory<String, V>>, ManualClock) {
    let clock = ManualClock::new();
    (W::Cache::with(set(builder(&clock)), Refreshes::Beside), clock)
}

/// As [`cache`], whose callers do the refreshes that they draw.
pub(crate) fn inline_cache<W: Way, V: Value>(
    set: impl FnOnce(Made<V>) -> Made<V>,
) -> (W::Cache<V, Memory<String, V>>, ManualClock) {
    let clock = ManualClock::new();
    (W::Cache::with(set(builder(&clock)), Refreshes::Inline), clock)
}

/// A cache with `store`, and its clock.
pub(crate) fn cache_in<W: Way, V: Value, S: AnyStore<V>>(
    store: S,
    set: impl FnOnce(Made<V, S>) -> Made<V, S>,
) -> (W::Cache<V, S>, ManualClock) {
    let clock = ManualClock::new();
    (W::Cache::with(set(builder(&clock).store(store)), Refreshes::Beside), clock)
}

/// By how much a case with very many calls is smaller for `W`: each call of a task costs a thread or two.
pub(crate) fn share_of<W: Way>() -> u32 {
    if std::any::TypeId::of::<W>() == std::any::TypeId::of::<super::thread_way::Threads>() { 1 } else { 40 }
}

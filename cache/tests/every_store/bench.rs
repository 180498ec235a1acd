//! Caches of either kind, whichever the store: so the suite is compiled once.

use crate::support::model::ModelStore;
use crate::support::task_ways::Executor;
use crate::support::way::{BatchLoader, Fail, Loader};
use oneflight_cache::lease::NoLease;
use oneflight_cache::{
    BlockingStore, Builder, Cache, Clock, Entry, Error, Fetched, Memory, Policy, Store, Tiered, Time, blocking,
};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Absent values are values: they are kept as well.
pub(crate) type Value = Option<String>;
pub(crate) type Many = Result<Vec<Fetched<Value>>, Error<Fail>>;

const VERY_MANY: u32 = 10_000;
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// Whose call for several keys it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Through {
    Cache,
    Collector,
}

/// The loader's own error: the cache's is not `Clone`.
impl From<u32> for Fail {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

/// A cache whose calls block the thread until they have ended.
pub(crate) trait AnyCache: Send + Sync {
    fn many(&self, through: Through, keys: &[&str], loader: BatchLoader<Value>) -> Many;
    fn get_or_load(&self, key: &str, loader: Loader<Value>) -> Result<Fetched<Value>, Error<Fail>>;
    fn get(&self, key: &str) -> Option<Fetched<Value>>;
    fn put(&self, key: &str, value: Value);
    fn put_with_ttl(&self, key: &str, value: Value, ttl: Duration);
    fn waiters(&self, key: &str) -> usize;
}

/// One or two processes that use a store.
pub(crate) struct Bench {
    pub(crate) cache: Arc<dyn AnyCache>,
    /// For stores that processes share.
    pub(crate) other: Option<Arc<dyn AnyCache>>,
    /// How many keys are very many.
    pub(crate) very_many: u32,
    /// Ends with this.
    pub(crate) _server: Box<dyn Send>,
}

impl Bench {
    fn new(cache: Arc<dyn AnyCache>) -> Self {
        Self { cache, other: None, very_many: VERY_MANY, _server: Box::new(()) }
    }

    pub(crate) fn shared([cache, other]: [Arc<dyn AnyCache>; 2], server: impl Send + 'static) -> Self {
        Self { cache, other: Some(other), very_many: VERY_MANY, _server: Box::new(server) }
    }
}

/// Values that begin with `short` are stale almost at once, and served while they are refreshed.
fn builder<S>(store: S) -> Builder<String, Value, Fail, S> {
    let long = Duration::from_secs(600);
    let is_short = |value: &Value| value.as_ref().is_some_and(|text| text.starts_with("short"));
    let builder = Cache::builder().negative_ttl(HOUR).ttl_jitter(0.0).early_refresh(Policy::Never);
    builder
        .ttl_of(move |value| if is_short(value) { Duration::from_millis(1) } else { HOUR })
        .stale_while_revalidate(HOUR)
        .load_timeout(Some(long))
        .lease(long)
        .lease_wait(long)
        .store(store)
}

pub(crate) fn threads<S>(store: S) -> Arc<dyn AnyCache>
where
    S: BlockingStore<String, Value> + BlockingStore<str, Value>,
{
    Arc::new(OfThreads(builder(store).build_blocking()))
}

pub(crate) fn tasks<S>(store: S, executor: Executor) -> Arc<dyn AnyCache>
where
    S: Store<String, Value> + Store<str, Value>,
{
    Arc::new(OfTasks(builder(store).build(), executor))
}

struct OfThreads<S>(blocking::Cache<String, Value, Fail, S>);

impl<S> AnyCache for OfThreads<S>
where
    S: BlockingStore<String, Value> + BlockingStore<str, Value>,
{
    fn many(&self, through: Through, keys: &[&str], loader: BatchLoader<Value>) -> Many {
        let keys = keys.iter().copied();
        match through {
            Through::Cache => {
                self.0.get_or_load_many(keys, |keys| loader(keys.into_iter().map(str::to_owned).collect()))
            }
            Through::Collector => {
                let load = move |keys| loader(keys).map_err(|Fail(number)| number);
                self.0.collector(load).window(Duration::ZERO).max_batch(usize::MAX).build().load_many(keys)
            }
        }
    }

    fn get_or_load(&self, key: &str, loader: Loader<Value>) -> Result<Fetched<Value>, Error<Fail>> {
        self.0.get_or_load(key, loader)
    }

    fn get(&self, key: &str) -> Option<Fetched<Value>> {
        self.0.get(key).expect("the store works")
    }

    fn put(&self, key: &str, value: Value) {
        self.0.put(key, value).expect("the store works");
    }

    fn put_with_ttl(&self, key: &str, value: Value, ttl: Duration) {
        self.0.put_with_ttl(key, value, ttl).expect("the store works");
    }

    fn waiters(&self, key: &str) -> usize {
        self.0.waiters(key)
    }
}

struct OfTasks<S>(Cache<String, Value, Fail, S>, Executor);

impl<S> AnyCache for OfTasks<S>
where
    S: Store<String, Value> + Store<str, Value>,
{
    fn many(&self, through: Through, keys: &[&str], loader: BatchLoader<Value>) -> Many {
        let cache = self.0.clone();
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        self.1.drive(async move {
            let load = move |keys| {
                let loader = Arc::clone(&loader);
                smol::unblock(move || loader(keys))
            };
            let borrowed = keys.iter().map(String::as_str);
            match through {
                Through::Cache => {
                    let load = |keys: Vec<&str>| load(keys.into_iter().map(str::to_owned).collect());
                    cache.get_or_load_many(borrowed, load).await
                }
                Through::Collector => {
                    let load = move |keys| {
                        let loading = load(keys);
                        async { loading.await.map_err(|Fail(number)| number) }
                    };
                    let collector = cache.collector(load).window(Duration::ZERO).max_batch(usize::MAX).build();
                    collector.load_many(borrowed).await
                }
            }
        })
    }

    fn get_or_load(&self, key: &str, loader: Loader<Value>) -> Result<Fetched<Value>, Error<Fail>> {
        let (cache, key) = (self.0.clone(), key.to_owned());
        self.1.drive(async move { cache.get_or_load(key.as_str(), move || smol::unblock(loader)).await })
    }

    fn get(&self, key: &str) -> Option<Fetched<Value>> {
        let (cache, key) = (self.0.clone(), key.to_owned());
        self.1.drive(async move { cache.get(key.as_str()).await.expect("the store works") })
    }

    fn put(&self, key: &str, value: Value) {
        let (cache, key) = (self.0.clone(), key.to_owned());
        self.1.drive(async move { cache.put(key.as_str(), value).await.expect("the store works") });
    }

    fn put_with_ttl(&self, key: &str, value: Value, ttl: Duration) {
        let (cache, key) = (self.0.clone(), key.to_owned());
        self.1.drive(async move { cache.put_with_ttl(key.as_str(), value, ttl).await.expect("the store works") });
    }

    fn waiters(&self, key: &str) -> usize {
        self.0.waiters(key)
    }
}

fn memory() -> Memory<String, Value> {
    Memory::new(40_000)
}

pub(crate) fn memory_threads() -> Bench {
    Bench::new(threads(memory()))
}

pub(crate) fn memory_tasks() -> Bench {
    Bench::new(tasks(memory(), Executor::BlockOn))
}

/// A store that makes tasks wait before and after everything that it does.
struct Pends(Memory<String, Value>);

async fn pending<T>(request: impl Future<Output = T>) -> T {
    futures_lite::future::yield_now().await;
    let answer = request.await;
    futures_lite::future::yield_now().await;
    answer
}

impl<K> Store<K, Value> for Pends
where
    K: Sync + ?Sized,
    Memory<String, Value>: Store<K, Value, Error = Infallible>,
{
    type Error = Infallible;
    type Displaced = <Memory<String, Value> as Store<K, Value>>::Displaced;
    type Lease = NoLease;

    fn get(&self, key: &K, now: Time) -> impl Future<Output = Result<Option<Entry<Value>>, Infallible>> + Send {
        pending(Store::<K, Value>::get(&self.0, key, now))
    }

    fn put(
        &self,
        key: &K,
        entry: Entry<Value>,
        now: Time,
    ) -> impl Future<Output = Result<Self::Displaced, Infallible>> + Send {
        pending(Store::<K, Value>::put(&self.0, key, entry, now))
    }

    fn remove(&self, key: &K) -> impl Future<Output = Result<Self::Displaced, Infallible>> + Send {
        pending(Store::<K, Value>::remove(&self.0, key))
    }

    fn clear(&self) -> impl Future<Output = Result<Self::Displaced, Infallible>> + Send {
        pending(Store::<K, Value>::clear(&self.0))
    }
}

pub(crate) fn pending_tasks() -> Bench {
    // Each poll of a batch visits all keys that it leads, and here there are several for each of them.
    Bench { very_many: 1_000, ..Bench::new(tasks(Pends(memory()), Executor::Smol)) }
}

/// The machine's clock, as the model's server sees it.
struct Real(Instant);

impl Clock for Real {
    fn now(&self) -> Time {
        Time::from_start(HOUR + self.0.elapsed())
    }
}

fn models() -> [ModelStore<Value>; 2] {
    let server = ModelStore::new(Real(Instant::now()));
    [server.another_process(), server]
}

pub(crate) fn tiered<S: oneflight_cache::lease::Announces<String>>(store: S) -> Tiered<String, Value, S> {
    Tiered::new(40_000, HOUR, store)
}

pub(crate) fn model_threads() -> Bench {
    Bench::shared(models().map(threads), ())
}

pub(crate) fn model_tasks() -> Bench {
    Bench::shared(models().map(|store| tasks(store, Executor::Tokio)), ())
}

pub(crate) fn tiered_threads() -> Bench {
    Bench::shared(models().map(|store| threads(tiered(store))), ())
}

pub(crate) fn tiered_tasks() -> Bench {
    Bench::shared(models().map(|store| tasks(tiered(store), Executor::Smol)), ())
}

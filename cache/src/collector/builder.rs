//! The settings of a collector.

use super::gather::{Gather, Loader};
use super::output::{BatchOutput, Spread};
use super::{Batches, Collector};
use crate::blocking;
use crate::cache::Cache;
use crate::config::Config;
use crate::store::{BlockingStore, Store};
use oneflight::AsyncGroup;
use std::fmt;
use std::future::{Future, ready};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// Builds a [`Collector`] or, with the same words, a [`blocking::Collector`]: see [`Cache::collector`] and
/// [`blocking::Cache::collector`].
///
/// | setting | default |
/// |---|---|
/// | [`window`](Self::window) | 1 ms |
/// | [`max_batch`](Self::max_batch) | 1,000 keys |
///
/// # Examples
///
/// ```
/// use oneflight_cache::{BoxError, blocking::Cache};
/// use std::time::Duration;
///
/// let cache: Cache<u64, String> = Cache::builder().build_blocking();
/// let load = |ids: Vec<u64>| Ok::<_, BoxError>(ids.iter().map(|id| format!("user {id}")).collect::<Vec<_>>());
/// let users = cache.collector(load).window(Duration::from_millis(5)).max_batch(100).build();
/// assert_eq!(*users.load(&7)?, "user 7");
/// # Ok::<(), oneflight_cache::Error<BoxError>>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct CollectorBuilder<C, K, V, E> {
    cache: C,
    window: Duration,
    max_batch: usize,
    loader: Loader<K, V, E>,
}

impl<C, K, V, E> CollectorBuilder<C, K, V, E> {
    fn new(cache: C, loader: Loader<K, V, E>) -> Self {
        // As those have it that many programs know. Less than a round trip to most databases, more than it takes the tasks of
        // one request to ask.
        Self { cache, window: Duration::from_millis(1), max_batch: 1_000, loader }
    }

    /// How long a batch waits for further keys, from its first one on. Default: 1 ms, which a timer may make 2. Zero: for
    /// none, so only the keys of one `load_many` are together. [`Duration::MAX`]: until there are
    /// [`max_batch`](Self::max_batch).
    ///
    /// It is a part of the time that a load takes: of the cache's [`load_timeout`](crate::Builder::load_timeout), and of what
    /// [early refresh](crate::Builder::early_refresh) reckons with.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, blocking::Cache};
    /// let cache: Cache<u64, u64> = Cache::builder().build_blocking();
    /// let same = cache.collector(|keys: Vec<u64>| Ok::<_, BoxError>(keys));
    /// // No wait: only the keys of one `load_many` are together.
    /// let same = same.window(std::time::Duration::ZERO).build();
    /// assert_eq!(*same.load(&7)?, 7);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// How many different keys are loaded together at most. A batch that has so many is loaded at once; more make further
    /// batches. Default: 1,000, as statements with more parameters are refused by some databases. Zero counts as one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, blocking::Cache};
    /// let cache: Cache<u64, u64> = Cache::builder().build_blocking();
    /// let same = cache.collector(|keys: Vec<u64>| Ok::<_, BoxError>(keys));
    /// let same = same.max_batch(2).build();
    /// // Three calls of the loader, for two keys, two and one.
    /// assert_eq!(same.load_many(&[1, 2, 3, 4, 5])?.len(), 5);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn max_batch(mut self, keys: usize) -> Self {
        self.max_batch = keys.max(1);
        self
    }

    /// The cache, and what gathers its keys.
    fn gather(self, config: &Config<V>) -> (C, Arc<Gather<K, V, E>>) {
        let Self { cache, window, max_batch, loader } = self;
        let (clock, timer) = (config.clock.clone(), Arc::clone(&config.timer));
        (cache, Arc::new(Gather { window, max_batch, clock, timer, loader, state: Default::default() }))
    }
}

impl<K, V, E, S> Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    /// Gathers the keys that callers ask for one by one, and loads those together that are neither stored nor being loaded: what
    /// is known as a data loader. `loader` gets different keys, and returns a value for each in their order; or an error; or for
    /// each a result of its own, see [`BatchOutput`].
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{BoxError, Cache};
    ///
    /// /// One statement for all of them. `?` makes a `BoxError` of any error.
    /// async fn load_users(ids: Vec<u64>) -> Result<Vec<String>, BoxError> {
    ///     let title = std::str::from_utf8(b"user")?;
    ///     Ok(ids.iter().map(|id| format!("{title} {id}")).collect())
    /// }
    ///
    /// # smol::block_on(async {
    /// let cache: Cache<u64, String> = Cache::builder().build();
    /// let users = cache.collector(load_users).build();
    /// let (ada, grace) = futures_lite::future::zip(users.load(&1), users.load(&2)).await;
    /// assert_eq!((ada?.as_str(), grace?.as_str()), ("user 1", "user 2"));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn collector<L, F>(&self, loader: L) -> CollectorBuilder<Self, K, V, E>
    where
        L: Fn(Vec<K>) -> F + Send + Sync + 'static,
        F: Future<Output: BatchOutput<V, E>> + Send + 'static,
    {
        let loader = move |keys: Vec<K>| {
            let asked = keys.len();
            let loading = loader(keys);
            Box::pin(async move { loading.await.spread(asked) }) as _
        };
        CollectorBuilder::new(self.clone(), Box::new(loader))
    }
}

impl<K, V, E, S> CollectorBuilder<Cache<K, V, E, S>, K, V, E>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    /// The collector. It uses the cache's [`timer`](crate::Builder::timer).
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, Cache};
    /// # smol::block_on(async {
    /// let cache: Cache<u64, u64> = Cache::builder().build();
    /// let same = cache.collector(|keys: Vec<u64>| async { Ok::<_, BoxError>(keys) }).build();
    /// assert_eq!(*same.load(&7).await?, 7);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn build(self) -> Collector<K, V, E, S> {
        let shared = Arc::clone(&self.cache.shared);
        let (cache, gather) = self.gather(&shared.inner.config);
        Collector { cache, batches: Arc::new(Batches { gather, group: AsyncGroup::new() }) }
    }
}

impl<K, V, E, S> blocking::Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    /// Gathers the keys that threads ask for one by one, and loads those together that are neither stored nor being loaded: what
    /// is known as a data loader. `loader` gets different keys, and returns a value for each in their order; or an error; or for
    /// each a result of its own, see [`BatchOutput`].
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{BoxError, blocking::Cache};
    ///
    /// /// One statement for all of them.
    /// fn load_users(ids: Vec<u64>) -> Result<Vec<String>, BoxError> {
    ///     Ok(ids.iter().map(|id| format!("user {id}")).collect())
    /// }
    ///
    /// let cache: Cache<u64, String> = Cache::builder().build_blocking();
    /// let users = cache.collector(load_users).build();
    /// std::thread::scope(|threads| {
    ///     for id in 1..=2 {
    ///         let users = &users;
    ///         threads.spawn(move || assert_eq!(*users.load(&id).unwrap(), format!("user {id}")));
    ///     }
    /// });
    /// ```
    pub fn collector<L, R>(&self, loader: L) -> CollectorBuilder<Self, K, V, E>
    where
        L: Fn(Vec<K>) -> R + Send + Sync + 'static,
        R: BatchOutput<V, E>,
    {
        let loader = move |keys: Vec<K>| {
            let asked = keys.len();
            Box::pin(ready(loader(keys).spread(asked))) as _
        };
        CollectorBuilder::new(self.clone(), Box::new(loader))
    }
}

impl<K, V, E, S> CollectorBuilder<blocking::Cache<K, V, E, S>, K, V, E>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    /// The collector.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, blocking::Cache};
    /// let cache: Cache<u64, u64> = Cache::builder().build_blocking();
    /// let same = cache.collector(|keys: Vec<u64>| Ok::<_, BoxError>(keys));
    /// assert_eq!(*same.build().load(&7)?, 7);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn build(self) -> blocking::Collector<K, V, E, S> {
        let shared = Arc::clone(&self.cache.shared);
        let (cache, gather) = self.gather(&shared.inner.config);
        blocking::Collector::new(cache, gather)
    }
}

impl<C, K, V, E> fmt::Debug for CollectorBuilder<C, K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { window, max_batch, .. } = self;
        f.debug_struct("CollectorBuilder").field("window", window).field("max_batch", max_batch).finish_non_exhaustive()
    }
}

//! Keys that callers ask for one by one, loaded together.
//!
//! Each key has the flight of a `get_or_load`. What that flight loads by is a caller of a batch, which is a flight too: so keys
//! join what is on, and nobody waits for a key of others.

mod builder;
pub(crate) mod gather;
mod output;

pub use builder::CollectorBuilder;
pub use output::BatchOutput;

use crate::cache::Cache;
use crate::call::Options;
use crate::entry::Fetched;
use crate::error::{BoxError, Error, Told};
use crate::many::together::all;
use crate::memory::Memory;
use crate::store::Store;
use gather::{Gather, Outcomes};
use hashbrown::Equivalent;
use oneflight::AsyncGroup;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// Gathers the keys that tasks ask for one by one, and loads those together that are neither stored nor being loaded: see
/// [`Cache::collector`].
///
/// | a key that | costs its caller |
/// |---|---|
/// | is stored | what a hit costs, and a copy of the key: it is not gathered |
/// | is being loaded: by a collector, by `get_or_load`, by another process | waits for that: it is not gathered |
/// | is neither | waits for the [`window`](CollectorBuilder::window) of its batch, or until the batch has [`max_batch`](CollectorBuilder::max_batch) keys, and then for the load |
/// | is to be refreshed | nothing with a [`spawner`](crate::Builder::spawner): the refresh is a caller of the batch |
///
/// A batch needs no executor and no task of its own. It is driven by whoever waits for it: if the first caller is dropped or not
/// polled any more, by another. A key that nobody waits for when the window ends is not loaded, unless loads are
/// [detached](crate::Builder::detach_loads).
///
/// A clone is a handle to the same collector. Several collectors of one cache gather apart, and join each other's loads.
///
/// # Before you use it
///
/// - The loader must not ask for a key of its own batch, nor for one that is loaded by a loader that waits for this batch: they
///   would wait for each other until the cache's [`load_timeout`](crate::Builder::load_timeout).
/// - [`max_loads`](crate::Builder::max_loads) and [`Stats::loads`](crate::Stats::loads) count the keys that are waited for, not
///   the batches: `load` is a load of one key, `load_many` one of several.
/// - After [`close`](Cache::close) no key is gathered. Those that are by then are loaded.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{BoxError, Cache, Collector};
/// use std::time::Duration;
///
/// struct Users(Collector<u64, String>);
///
/// # smol::block_on(async {
/// let load = |ids: Vec<u64>| async move {
///     Ok::<_, BoxError>(ids.iter().map(|id| format!("user {id}")).collect::<Vec<_>>())
/// };
/// let cache = Cache::builder().ttl(Duration::from_secs(30)).build();
/// let users = Users(cache.collector(load).window(Duration::from_millis(2)).build());
/// assert_eq!(*users.0.load(&7).await?, "user 7");
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// # }).unwrap();
/// ```
pub struct Collector<K, V, E = BoxError, S = Memory<K, V>> {
    cache: Cache<K, V, E, S>,
    batches: Arc<Batches<K, V, E>>,
}

/// Batches that tasks run.
struct Batches<K, V, E> {
    gather: Arc<Gather<K, V, E>>,
    group: AsyncGroup<u64, Outcomes<V, E>>,
}

impl<K, V, E> Batches<K, V, E>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
{
    /// Has keys loaded, with others.
    async fn load(&self, keys: Vec<K>) -> Vec<Result<V, Error<E>>> {
        let asked = self.gather.ask(keys);
        let landed = all(asked.iter().map(|asked| {
            let run = || Arc::clone(&self.gather).run(asked.batch);
            self.group.do_call(&asked.batch, run)
        }));
        let landed = landed.await;
        asked.into_iter().zip(&landed).flat_map(|(asked, landed)| asked.outcomes(landed)).collect()
    }
}

impl<K, V, E, S> Collector<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    /// The value of `key`: from the store, from the load that is on, or from the batch that is being gathered.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. Nobody else is affected; if nobody else asks for the key, it is taken out of a batch that
    /// is not loaded yet, unless loads are [detached](crate::Builder::detach_loads).
    ///
    /// # Errors
    ///
    /// As [`Cache::get_or_load`]. An error of the loader reaches all who asked for the keys of this batch, or for the key that
    /// it is the result of, and nobody else. [`Error::WrongCount`] reaches all of the batch.
    ///
    /// # Panics
    ///
    /// If the loader panics while it is called for this caller. The others of the batch go on: the loader is called again for
    /// their keys. As [`Cache::get_or_load`] besides.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, Cache};
    /// # smol::block_on(async {
    /// let cache: Cache<String, usize> = Cache::builder().build();
    /// let lengths = cache.collector(|words: Vec<String>| async move {
    ///     words.iter().map(|word| Ok::<_, BoxError>(word.len())).collect::<Vec<_>>()
    /// });
    /// assert_eq!(*lengths.build().load("four").await?, 4);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn load<Q>(&self, key: &Q) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: Store<Q, V>,
    {
        let (batches, owned) = (Arc::clone(&self.batches), key.to_owned());
        let load = move || async move {
            let mut loaded = batches.load(vec![owned]).await;
            Told(loaded.pop().expect("there is one for each key"))
        };
        self.cache.shared.get_or_load(key, Options::default(), load).await
    }

    /// The values of several keys, in their order; what [`Cache::get_or_load_many`] does, with a loader that gathers the keys of
    /// others too. Keys may stand there more than once. More than [`max_batch`](CollectorBuilder::max_batch) are loaded in
    /// several batches, at the same time.
    ///
    /// # Cancel safety
    ///
    /// As [`Cache::get_or_load_many`]: it may be dropped at any time. While it is kept and not polled, those wait for it who ask
    /// for the keys that it loads; those who ask for other keys of its batch do not.
    ///
    /// # Errors
    ///
    /// As [`Cache::get_or_load_many`]: the first error of a key that has no old value to be served. Whoever waits for one of the
    /// other keys gets its value, and it is stored; but this call returns none, so ask for keys one by one if some may fail.
    ///
    /// # Panics
    ///
    /// As [`load`](Self::load).
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, Cache};
    /// # smol::block_on(async {
    /// let cache: Cache<String, usize> = Cache::builder().build();
    /// let lengths = cache.collector(|words: Vec<String>| async move {
    ///     words.iter().map(|word| Ok::<_, BoxError>(word.len())).collect::<Vec<_>>()
    /// });
    /// let found = lengths.build().load_many(["four", "to"]).await?;
    /// assert_eq!((*found[0], *found[1]), (4, 2));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn load_many<'q, Q>(&self, keys: impl IntoIterator<Item = &'q Q>) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: Store<Q, V>,
    {
        let load = |missing: Vec<&'q Q>| {
            let keys = missing.into_iter().map(ToOwned::to_owned).collect();
            async { Ok(self.batches.load(keys).await) }
        };
        self.cache.load_many(keys, None, load).await
    }
}

impl<K, V, E, S> Collector<K, V, E, S> {
    /// The cache.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, Cache};
    /// # smol::block_on(async {
    /// let cache: Cache<u64, u64> = Cache::builder().build();
    /// let same = cache.collector(|keys: Vec<u64>| async { Ok::<_, BoxError>(keys) }).build();
    /// same.load(&7).await?;
    /// same.cache().invalidate(&7).await?;
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn cache(&self) -> &Cache<K, V, E, S> {
        &self.cache
    }

    /// How many different keys the batch has that is being gathered; none if there is no such batch.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, Cache};
    /// let cache: Cache<u64, u64> = Cache::builder().build();
    /// let same = cache.collector(|keys: Vec<u64>| async { Ok::<_, BoxError>(keys) }).build();
    /// assert_eq!(same.gathered(), 0);
    /// ```
    pub fn gathered(&self) -> usize {
        self.batches.gather.gathered()
    }
}

impl<K, V, E, S> Clone for Collector<K, V, E, S> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), batches: Arc::clone(&self.batches) }
    }
}

impl<K, V, E, S> fmt::Debug for Collector<K, V, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

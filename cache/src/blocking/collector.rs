//! Keys that threads ask for one by one, loaded together.

use super::Cache;
use crate::call::Options;
use crate::collector::gather::{Gather, Outcomes};
use crate::entry::Fetched;
use crate::error::{BoxError, Error};
use crate::memory::Memory;
use crate::store::BlockingStore;
use crate::time::block_on;
use hashbrown::Equivalent;
use oneflight::{CallError, SyncGroup};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// Gathers the keys that threads ask for one by one, and loads those together that are neither stored nor being loaded: see
/// [`Cache::collector`].
///
/// It is [`Collector`](crate::Collector) in the same words, and what is said there holds here; but the first thread of a batch
/// waits for its window and calls the loader, and refreshes are done by the cache's
/// [`helper_threads`](crate::Builder::helper_threads), so as many of them as there are helpers can be in one batch.
///
/// # Examples
///
/// ```
/// use oneflight_cache::BoxError;
/// use oneflight_cache::blocking::{Cache, Collector};
///
/// struct Users(Collector<u64, String>);
///
/// let load = |ids: Vec<u64>| Ok::<_, BoxError>(ids.iter().map(|id| format!("user {id}")).collect::<Vec<_>>());
/// let users = Users(Cache::builder().build_blocking().collector(load).build());
/// assert_eq!(*users.0.load(&7)?, "user 7");
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
pub struct Collector<K, V, E = BoxError, S = Memory<K, V>> {
    cache: Cache<K, V, E, S>,
    batches: Arc<Batches<K, V, E>>,
}

/// Batches that threads run.
struct Batches<K, V, E> {
    gather: Arc<Gather<K, V, E>>,
    group: SyncGroup<u64, Outcomes<V, E>>,
    /// How long a thread waits for a batch that another runs.
    load_timeout: Option<Duration>,
}

impl<K, V, E> Batches<K, V, E>
where
    K: Hash + Eq + Clone,
    V: Clone,
{
    /// Has keys loaded, with others.
    fn load(&self, keys: Vec<K>) -> Vec<Result<V, Error<E>>> {
        let asked = self.gather.ask(keys);
        let mut loaded = Vec::new();
        // One after the other. Others who ask for keys of a later one do not wait for this thread to come to it.
        for asked in asked {
            let mut call = self.group.call(&asked.batch);
            if let Some(limit) = self.load_timeout {
                call = call.wait_timeout(limit);
            }
            match call.run(|| block_on(Arc::clone(&self.gather).run(asked.batch))) {
                Ok(outcome) => loaded.extend(asked.outcomes(&outcome.value)),
                Err(error) => {
                    // Nobody asks for a key of a batch from inside it, as by then it takes no further ones: but several threads
                    // may wait for each other.
                    let timed_out = error == CallError::TimedOut;
                    let error = || if timed_out { Error::LoadTimedOut } else { Error::Reentrant };
                    loaded.extend((0..asked.len()).map(|_| Err(error())));
                }
            }
        }
        loaded
    }
}

impl<K, V, E, S> Collector<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    pub(crate) fn new(cache: Cache<K, V, E, S>, gather: Arc<Gather<K, V, E>>) -> Self {
        let load_timeout = cache.shared.inner.config.load_timeout;
        Self { cache, batches: Arc::new(Batches { gather, group: SyncGroup::new(), load_timeout }) }
    }

    /// The value of `key`: from the store, from the load that is on, or from the batch that is being gathered.
    ///
    /// # Blocking
    ///
    /// For the [`window`](crate::CollectorBuilder::window) of its batch and its load, or for another's load. A hit waits for
    /// the store alone.
    ///
    /// A thread that calls the loader is not interrupted. Those who wait for it do so for the cache's
    /// [`load_timeout`](crate::Builder::load_timeout) at most: then they get [`Error::LoadTimedOut`], or an old value that may be
    /// served [instead](crate::Builder::stale_if_error), and who calls later is in another batch.
    ///
    /// # Errors
    ///
    /// As [`Cache::get_or_load`]. An error of the loader reaches all who asked for the keys of this batch, or for the key that
    /// it is the result of, and nobody else. [`Error::WrongCount`] reaches all of the batch.
    ///
    /// # Panics
    ///
    /// If the loader panics while this thread calls it. The others of the batch go on: one of them calls the loader again, for
    /// their keys. As [`Cache::get_or_load`] besides.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, blocking::Cache};
    /// let cache: Cache<String, usize> = Cache::builder().build_blocking();
    /// let length = |words: Vec<String>| words.iter().map(|word| Ok::<_, BoxError>(word.len())).collect::<Vec<_>>();
    /// assert_eq!(*cache.collector(length).build().load("four")?, 4);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn load<Q>(&self, key: &Q) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: BlockingStore<Q, V>,
    {
        let (batches, owned) = (Arc::clone(&self.batches), key.to_owned());
        let load = move || batches.load(vec![owned]).pop().expect("there is one for each key");
        self.cache.shared.get_or_load(key, Options::default(), load)
    }

    /// The values of several keys, in their order; what [`Cache::get_or_load_many`] does, with a loader that gathers the keys of
    /// others too. Keys may stand there more than once. More than [`max_batch`](crate::CollectorBuilder::max_batch) are loaded
    /// in several batches, one after the other.
    ///
    /// # Blocking
    ///
    /// As [`load`](Self::load).
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
    /// # use oneflight_cache::{BoxError, blocking::Cache};
    /// let cache: Cache<String, usize> = Cache::builder().build_blocking();
    /// let length = |words: Vec<String>| words.iter().map(|word| Ok::<_, BoxError>(word.len())).collect::<Vec<_>>();
    /// let found = cache.collector(length).build().load_many(["four", "to"])?;
    /// assert_eq!((*found[0], *found[1]), (4, 2));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn load_many<'q, Q>(&self, keys: impl IntoIterator<Item = &'q Q>) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: BlockingStore<Q, V>,
    {
        let load = |missing: Vec<&'q Q>| {
            let keys = missing.into_iter().map(ToOwned::to_owned).collect();
            Ok(self.batches.load(keys))
        };
        self.cache.load_many(keys, None, load)
    }
}

impl<K, V, E, S> Collector<K, V, E, S> {
    /// The cache.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, blocking::Cache};
    /// let cache: Cache<u64, u64> = Cache::builder().build_blocking();
    /// let same = cache.collector(Ok::<_, BoxError>).build();
    /// same.load(&7)?;
    /// same.cache().invalidate(&7)?;
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn cache(&self) -> &Cache<K, V, E, S> {
        &self.cache
    }

    /// How many different keys the batch has that is being gathered; none if there is no such batch.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{BoxError, blocking::Cache};
    /// let cache: Cache<u64, u64> = Cache::builder().build_blocking();
    /// let same = cache.collector(Ok::<_, BoxError>).build();
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

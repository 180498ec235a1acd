//! The cache for threads.

mod collector;
mod control;
mod read;
mod side;
mod write;

pub use collector::Collector;
pub(crate) use side::ThreadSide;

use crate::builder::Builder;
use crate::call::Options;
use crate::entry::{Entry, Fetched};
use crate::error::{BoxError, Error, Loaded};
use crate::helpers::Helpers;
use crate::inner::{Flown, Inner, Landed, Leave, Why};
use crate::keeper::Keeper;
use crate::memory::Memory;
use crate::store::{Blocking, BlockingStore};
use crate::time::block_on;
use hashbrown::Equivalent;
use oneflight::SyncGroup;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// A read-through cache for threads: the first caller that misses a key loads it, all others wait for that load and share its
/// value; and before a value expires, one read has it refreshed while the others go on with the old one.
///
/// It is [`Cache`](crate::Cache) in the same words, with loaders that block. A clone is a handle to the same cache.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Source, blocking::Cache};
/// use std::time::Duration;
///
/// let pages: Cache<String, String> = Cache::builder().ttl(Duration::from_secs(30)).build_blocking();
/// let page = pages.get_or_load("home", || Ok("<h1>hello</h1>".to_owned()))?;
/// assert_eq!((page.as_str(), page.source), ("<h1>hello</h1>", Source::Loaded));
/// let page = pages.get_or_load("home", || Err("not called".into()))?;
/// assert_eq!((page.as_str(), page.source), ("<h1>hello</h1>", Source::Hit));
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
pub struct Cache<K, V, E = BoxError, S = Memory<K, V>> {
    pub(crate) shared: Arc<Shared<K, V, E, S>>,
}

pub(crate) struct Shared<K, V, E, S> {
    pub(crate) inner: Inner<V, Blocking<S>>,
    pub(crate) group: SyncGroup<K, Flown<V, E>>,
    helpers: Helpers,
    /// Renews leases.
    keeper: Keeper,
}

/// What to do with the refresh that a read has drawn: with its leave, and the entry that it found.
type Refresh<'r, V, L> = &'r dyn Fn(&Entry<V>, Leave, L) -> Option<Landed<V>>;

impl<K, V, E> Cache<K, V, E> {
    /// Settings other than the defaults, for this or a [`Cache`](crate::Cache).
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::blocking::Cache;
    ///
    /// let cache: Cache<String, String> = Cache::builder().capacity(1_000).build_blocking();
    /// # let _ = cache;
    /// ```
    pub fn builder() -> Builder<K, V, E>
    where
        K: Hash + Eq,
        V: Clone,
    {
        Builder::new()
    }
}

impl<K, V, E, S> Clone for Cache<K, V, E, S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K, V, E, S> Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    pub(crate) fn new(inner: Inner<V, Blocking<S>>, helper_threads: usize) -> Self {
        let mut group = SyncGroup::builder();
        if let Some(age) = inner.config.load_timeout {
            group = group.max_flight_age(age);
        }
        let helpers = Helpers::new(helper_threads, inner.config.clock.clone(), inner.config.load_timeout);
        Self { shared: Arc::new(Shared { inner, group: group.build(), helpers, keeper: Keeper::default() }) }
    }

    /// The value of `key`, from the store, or from `loader`, which is not called if another caller loads already.
    ///
    /// # Blocking
    ///
    /// While it loads or waits for another's load. A hit waits for the store alone.
    ///
    /// # Errors
    ///
    /// See [`Error`]. The loader's error reaches everybody who waited for this load, and is not kept. If an old value may be
    /// served [instead](Builder::stale_if_error), that is what they get.
    ///
    /// # Panics
    ///
    /// If its own `loader` panics, with that panic; another caller that waits goes on with its own. A panic in a refresh is
    /// caught, wherever that goes on. If `Hash`, `Eq` or `ToOwned` of the key or `Clone` of the value panics.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// let name = users.get_or_load(&7, || Ok("Ada".to_owned()))?.into_value();
    /// assert_eq!(name, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn get_or_load<Q, L>(&self, key: &Q, loader: L) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: BlockingStore<Q, V>,
        L: FnOnce() -> Result<V, E> + Send + 'static,
    {
        self.shared.get_or_load(key, Options::default(), || loader().told())
    }

    /// Like [`get_or_load`](Self::get_or_load), for a loader that borrows or is not `Send`: if this call draws a refresh, it does
    /// it before it returns, while others get the old value at once.
    ///
    /// # Blocking
    ///
    /// As [`get_or_load`](Self::get_or_load), and while it refreshes.
    ///
    /// # Errors
    ///
    /// As [`get_or_load`](Self::get_or_load).
    ///
    /// # Panics
    ///
    /// As [`get_or_load`](Self::get_or_load).
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::blocking::Cache;
    ///
    /// let names = vec!["Ada".to_owned()];
    /// let users: Cache<usize, String> = Cache::builder().build_blocking();
    /// assert_eq!(*users.get_or_load_inline(&0, || Ok(names[0].clone()))?, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn get_or_load_inline<Q>(&self, key: &Q, loader: impl FnOnce() -> Result<V, E>) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: BlockingStore<Q, V>,
    {
        self.shared.get_or_load_inline(key, Options::default(), || loader().told())
    }

    /// The value of `key` if there is one that may be served. Starts nothing, and waits for no load.
    ///
    /// # Blocking
    ///
    /// For the store's answer.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// assert!(users.get(&7)?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn get<Q>(&self, key: &Q) -> Result<Option<Fetched<V>>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: BlockingStore<Q, V>,
    {
        let inner = &self.shared.inner;
        let now = inner.now();
        let found = block_on(inner.get::<Q>(key, now)).map_err(|failure| Error::Store(failure.error))?;
        Ok(inner.served(found, now))
    }

    /// Loads the value of `key` anew, whatever is there, and returns it; or waits for the load that is on. Others go on to get
    /// the old value meanwhile.
    ///
    /// # Blocking
    ///
    /// While it loads or waits for another's load.
    ///
    /// # Panics
    ///
    /// As [`get_or_load`](Self::get_or_load).
    ///
    /// # Errors
    ///
    /// As [`get_or_load`](Self::get_or_load), without recourse to an old value, which is left in peace.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// users.refresh(&7, || Ok("Ada Lovelace".to_owned()))?;
    /// assert_eq!(*users.get(&7)?.unwrap(), "Ada Lovelace");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn refresh<Q>(&self, key: &Q, loader: impl FnOnce() -> Result<V, E>) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.shared.load(key, Why::Asked, None, || loader().told())
    }
}

impl<K, V, E, S> fmt::Debug for Cache<K, V, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

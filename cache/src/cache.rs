//! The cache for tasks.

mod control;
mod read;
mod side;
mod write;

pub(crate) use side::TaskSide;

use crate::builder::Builder;
use crate::call::Options;
use crate::entry::{Fetched, Source};
use crate::error::{BoxError, Error};
use crate::inner::{Flown, Inner, Why};
use crate::memory::Memory;
use crate::store::Store;
use crate::time::BoxFuture;
use event_listener::Event;
use futures_lite::FutureExt;
use hashbrown::Equivalent;
use oneflight::AsyncGroup;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A read-through cache for tasks: the first caller that misses a key loads it, all others wait for that load and share its
/// value; and before a value expires, one read refreshes it while the others go on with the old one.
///
/// `E` is the error of the loaders, `S` where values are kept. A clone is a handle to the same cache.
///
/// The key must hold everything that the loader reads (tenant, user, locale), or one caller's data reaches another.
///
/// Values are cloned for each caller, so put large ones in an [`Arc`].
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Cache, Source};
/// use std::time::Duration;
///
/// # smol::block_on(async {
/// let pages: Cache<String, String> = Cache::builder().ttl(Duration::from_secs(30)).build();
/// let page = pages.get_or_load("home", || async { Ok("<h1>hello</h1>".to_owned()) }).await?;
/// assert_eq!((page.as_str(), page.source), ("<h1>hello</h1>", Source::Loaded));
/// let page = pages.get_or_load("home", || async { Err("not called".into()) }).await?;
/// assert_eq!((page.as_str(), page.source), ("<h1>hello</h1>", Source::Hit));
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// # }).unwrap();
/// ```
pub struct Cache<K, V, E = BoxError, S = Memory<K, V>> {
    pub(crate) shared: Arc<Shared<K, V, E, S>>,
}

/// Where refreshes go on beside the calls that started them.
pub(crate) type Spawner = dyn Fn(BoxFuture) + Send + Sync;

pub(crate) struct Shared<K, V, E, S> {
    pub(crate) inner: Inner<V, S>,
    pub(crate) group: AsyncGroup<K, Flown<V, E>>,
    pub(crate) spawner: Option<Arc<Spawner>>,
    /// A load goes on when its last caller has left.
    pub(crate) detaches: bool,
    /// Whether refreshes that are on are to end, and what tells them.
    cancelled: AtomicBool,
    cancel: Event,
}

impl<K, V, E> Cache<K, V, E> {
    /// Settings other than the defaults, for this or a [`blocking::Cache`](crate::blocking::Cache).
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().capacity(1_000).build();
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
    S: Store<K, V>,
{
    pub(crate) fn new(inner: Inner<V, S>, spawner: Option<Arc<Spawner>>, detaches: bool) -> Self {
        let group = match &spawner {
            Some(spawner) if detaches => {
                let spawner = Arc::clone(spawner);
                // Nobody is left to hear of a panic, and not every executor stands one.
                let quiet = move |work: BoxFuture| {
                    spawner(Box::pin(async { drop(AssertUnwindSafe(work).catch_unwind().await) }))
                };
                let mut group = AsyncGroup::builder().spawner(quiet);
                // Nobody drops a load whose store never answers, so newcomers leave it behind. What was loaded in time is given
                // time to be stored.
                if let Some(limit) = inner.config.load_timeout {
                    group = group.max_flight_age(limit.saturating_mul(2));
                }
                group.build()
            }
            _ => AsyncGroup::new(),
        };
        let shared =
            Shared { inner, group, spawner, detaches, cancelled: AtomicBool::new(false), cancel: Event::new() };
        Self { shared: Arc::new(shared) }
    }

    /// The value of `key`, from the store, or from `loader`, which is not called if another caller loads already, here or in
    /// another process that shares the store, nor past [`max_loads`](Builder::max_loads).
    ///
    /// The loader is called when its turn has come, by whoever drives the load then; so it is `'static`, as its future is: it
    /// owns what it needs (`async move || db.load(id).await`, with a clone of an `Arc<Db>`). One that borrows can be given to
    /// [`get_or_load_many`](Self::get_or_load_many).
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. A load that it has begun goes on as long as anybody waits for it, or [to its
    /// end](Builder::detach_loads).
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
    /// # use oneflight_cache::Cache;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// let name = users.get_or_load(&7, || async { Ok("Ada".to_owned()) }).await?.into_value();
    /// assert_eq!(name, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn get_or_load<Q, L, F>(&self, key: &Q, loader: L) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: Store<Q, V>,
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let shared = &self.shared;
        let now = shared.inner.now();
        let store = &shared.inner.store;
        let found = if Store::<Q, V>::lease(store).is_none() {
            Store::<Q, V>::get(store, key, now).await.map_err(|error| shared.inner.refused(error))
        } else {
            // In a box, so that the others' hits are small.
            Box::pin(shared.inner.get::<Q>(key, now)).await
        };
        let found = match found {
            Ok(Some(entry)) if entry.is_calm(now) => return Ok(shared.inner.fetched(entry, Source::Hit, now)),
            Ok(found) => found,
            Err(_) => Store::<Q, V>::near(store, key, now),
        };
        shared.read(key, Options::default(), now, found, loader).await
    }

    /// The value of `key` if there is one that may be served. Starts nothing, and waits for no load.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// assert!(users.get(&7).await?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn get<Q>(&self, key: &Q) -> Result<Option<Fetched<V>>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: Store<Q, V>,
    {
        let inner = &self.shared.inner;
        let now = inner.now();
        let found = inner.get::<Q>(key, now).await.map_err(|failure| Error::Store(failure.error))?;
        Ok(inner.served(found, now))
    }

    /// Loads the value of `key` anew, whatever is there, and returns it; or waits for the load that is on. Others go on to get
    /// the old value meanwhile.
    ///
    /// # Cancel safety
    ///
    /// As [`get_or_load`](Self::get_or_load).
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
    /// # use oneflight_cache::Cache;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.put(&7, "Ada".to_owned()).await?;
    /// users.refresh(&7, || async { Ok("Ada Lovelace".to_owned()) }).await?;
    /// assert_eq!(*users.get(&7).await?.unwrap(), "Ada Lovelace");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn refresh<Q, L, F>(&self, key: &Q, loader: L) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        self.shared.load(key, Why::Asked, &mut Some(loader)).await
    }
}

impl<K, V, E, S> fmt::Debug for Cache<K, V, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

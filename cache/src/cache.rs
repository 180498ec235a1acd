//! The cache for tasks.

mod read;
mod side;

pub(crate) use side::TaskSide;

use crate::builder::Builder;
use crate::call::Options;
use crate::config::Put;
use crate::entry::{Fetched, Source};
use crate::error::{BoxError, Error};
use crate::inner::{Flown, Inner, Why};
use crate::memory::Memory;
use crate::stats::Stats;
use crate::store::Store;
use crate::time::{BoxFuture, within};
use event_listener::Event;
use futures_lite::FutureExt;
use hashbrown::Equivalent;
use oneflight::AsyncGroup;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
            found => found.unwrap_or(None),
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

    /// Stores `value`. It wins over every load and refresh of `key` that is on: what these come to is not stored, and whoever
    /// calls after this has returned does not get it.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the value may be stored or not.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    ///
    /// # Panics
    ///
    /// If [`ttl_of`](Builder::ttl_of), what [weighs](Memory::weighted) values, `Hash` or `Eq` of the key or `Clone` of the value
    /// panics. The value may not be stored then.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.put(&7, "Ada".to_owned()).await?;
    /// assert_eq!(*users.get(&7).await?.unwrap(), "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn put<Q>(&self, key: &Q, value: V) -> Result<(), Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: Store<Q, V>,
    {
        self.shared.inner.write(key, Some(Put { value, ttl: None }), || _ = self.shared.group.forget(key)).await
    }

    /// As [`put`](Self::put), of a value that is fresh for `ttl`, whatever the settings say: [`ttl`](Builder::ttl),
    /// [`ttl_of`](Builder::ttl_of), [`negative_ttl`](Builder::negative_ttl). All else holds for it too: [jitter](Builder::ttl_jitter)
    /// makes `ttl` shorter, it is refreshed early, and served when it is stale, if others are. What is loaded in its place is fresh
    /// for as long as the settings say.
    ///
    /// Zero: it is not stored, and what was there is removed. Less than a millisecond counts as one; what is too long to count
    /// does not end.
    ///
    /// # Cancel safety
    ///
    /// As [`put`](Self::put).
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    ///
    /// # Panics
    ///
    /// As [`put`](Self::put).
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// # smol::block_on(async {
    /// let sessions: Cache<u64, String> = Cache::builder().build();
    /// sessions.put_with_ttl(&7, "Ada".to_owned(), Duration::from_secs(3_600)).await?;
    /// assert_eq!(*sessions.get(&7).await?.unwrap(), "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn put_with_ttl<Q>(&self, key: &Q, value: V, ttl: Duration) -> Result<(), Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: Store<Q, V>,
    {
        self.shared.inner.write(key, Some(Put { value, ttl: Some(ttl) }), || _ = self.shared.group.forget(key)).await
    }

    /// Removes the value of `key`. Whoever calls after this has returned gets no value whose load began before: the load that
    /// is on is not joined any more, and what it comes to is not stored.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the value may be gone or not.
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
    /// users.put(&7, "Ada".to_owned()).await?;
    /// users.invalidate(&7).await?;
    /// assert!(users.get(&7).await?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn invalidate<Q>(&self, key: &Q) -> Result<(), Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: Store<Q, V>,
    {
        self.shared.inner.write(key, None, || _ = self.shared.group.forget(key)).await
    }

    /// As [`invalidate`](Self::invalidate), for all keys.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, values may be gone or not.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.put(&7, "Ada".to_owned()).await?;
    /// users.invalidate_all().await?;
    /// assert!(users.get(&7).await?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn invalidate_all(&self) -> Result<(), Error<E>> {
        self.shared.inner.clear(|| self.shared.group.forget_all()).await
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

    /// Whether callers of a key share one load. On, unless it is switched off here, at any time, say to find out whether a
    /// problem has to do with it: then each caller that misses loads.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.set_coalescing(false);
    /// assert_eq!(*users.get_or_load(&7, || async { Ok("Ada".to_owned()) }).await?, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_coalescing(&self, on: bool) {
        self.shared.inner.coalescing.store(on, Ordering::Relaxed);
    }

    /// Whether reads refresh values early, as the [policy](Builder::early_refresh) says. May be switched at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.set_early_refresh(false);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_early_refresh(&self, on: bool) {
        self.shared.inner.early_refresh.store(on, Ordering::Relaxed);
    }

    /// Starts no refreshes and no loads from now on, waits for the refreshes that are on, and drops those that have not ended
    /// after `deadline`. Returns whether all had. What is stored is still served; calls that would have to load
    /// get [`Error::Closed`]. A refresh in the load of a [batch](Self::get_or_load_many) that has keys without a value, too, is
    /// not dropped: that goes on, as other loads do.
    ///
    /// The loader of a refresh that awaits this waits for itself, so until `deadline`, and is dropped then.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, nothing new is started all the same; refreshes that are on go on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// assert!(users.close(Duration::from_secs(5)).await);
    /// # });
    /// ```
    pub async fn close(&self, deadline: Duration) -> bool {
        let inner = &self.shared.inner;
        inner.closed.store(true, Ordering::SeqCst);
        let ended = async {
            loop {
                let empty = inner.refreshing.listen();
                if inner.refreshing.is_empty() {
                    break;
                }
                empty.await;
            }
        };
        let ended = within(Some(deadline), &inner.config.timer, ended).await.is_some();
        self.shared.cancelled.store(true, Ordering::SeqCst);
        self.shared.cancel.notify(usize::MAX);
        ended
    }

    /// What the cache has done so far.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.get_or_load(&7, || async { Ok("Ada".to_owned()) }).await?;
    /// assert_eq!((users.stats().loads, users.stats().hits), (1, 0));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn stats(&self) -> Stats {
        self.shared.inner.stats::<K>()
    }

    /// The store.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.put(&7, "Ada".to_owned()).await?;
    /// assert_eq!(users.store().len(), 1);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn store(&self) -> &S {
        &self.shared.inner.store
    }

    /// How many callers wait for the load of `key` that is on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// assert_eq!(users.waiters(&7), 0);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn waiters<Q>(&self, key: &Q) -> usize
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.shared.group.waiters(key)
    }

    /// How many loads and refreshes are on, with or without callers that wait, by key; those included that nobody joins any
    /// more since a write. Those that nobody could ever join, past the cache or without coalescing, are not counted.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.get_or_load(&7, || async { Ok("Ada".to_owned()) }).await?;
    /// assert_eq!(users.in_flight(), 0);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.group.in_flight()
    }
}

impl<K, V, E, S> fmt::Debug for Cache<K, V, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

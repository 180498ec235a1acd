//! The cache for tasks.

use crate::builder::Builder;
use crate::call::Options;
use crate::config::Verdict;
use crate::entry::{Entry, Fetched, Source};
use crate::error::{BoxError, Error};
use crate::inner::{Begun, Flown, Inner, Landed, Leave, Why};
use crate::memory::Memory;
use crate::stats::{Count, Stats};
use crate::store::Store;
use crate::time::{BoxFuture, Time, within};
use event_listener::Event;
use futures_lite::FutureExt;
use hashbrown::Equivalent;
use oneflight::{AsyncGroup, CallError, Role};
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
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
    /// Whether refreshes that are on are to end, and what tells them.
    cancelled: AtomicBool,
    cancel: Event,
}

impl<K, V, E> Cache<K, V, E> {
    /// Settings other than the defaults, for this or a [`blocking::Cache`](crate::blocking::Cache).
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
    pub(crate) fn new(inner: Inner<V, S>, spawner: Option<Arc<Spawner>>) -> Self {
        let group = AsyncGroup::new();
        let shared = Shared { inner, group, spawner, cancelled: AtomicBool::new(false), cancel: Event::new() };
        Self { shared: Arc::new(shared) }
    }

    /// The value of `key`, from the store, or from `loader`, which is not called if another caller loads already. The future that
    /// it returns may be dropped before it is polled, if the value is there by then.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. A load that it has begun goes on as long as anybody waits for it.
    ///
    /// # Errors
    ///
    /// See [`Error`]. The loader's error reaches everybody who waited for this load, and is not kept. If an old value may be
    /// served [instead](Builder::stale_if_error), that is what they get.
    ///
    /// # Panics
    ///
    /// If its own `loader` panics, with that panic; another caller that waits goes on with its own. A panic in a refresh that
    /// goes on elsewhere is caught. If `Hash`, `Eq` or `ToOwned` of the key or `Clone` of the value panics.
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
        L: FnOnce() -> F,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let shared = &self.shared;
        let now = shared.inner.now();
        let found = match Store::<Q, V>::get(&shared.inner.store, key, now).await {
            Ok(Some(entry)) if entry.is_calm(now) => return Ok(shared.inner.fetched(entry, Source::Hit, now)),
            found => shared.inner.found(found),
        };
        shared.read(key, Options::default(), now, found, loader).await
    }

    /// The value of `key` if there is one that may be served. Starts nothing, and waits for no load.
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
        let found = Store::<Q, V>::get(&inner.store, key, now).await.map_err(|error| inner.store_failed(error))?;
        Ok(found.and_then(|entry| match inner.config.judge(&entry, now) {
            Verdict::Calm | Verdict::Fresh => Some(inner.fetched(entry, Source::Hit, now)),
            Verdict::Stale => Some(inner.fetched(entry, Source::Stale, now)),
            Verdict::IfError | Verdict::Gone => None,
        }))
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
        self.shared.inner.write(key, Some(value), || _ = self.shared.group.forget(key)).await
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
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn invalidate_all(&self) -> Result<(), Error<E>> {
        self.shared.inner.clear(|| self.shared.group.forget_all()).await
    }

    /// Loads the value of `key` anew, whatever is there, and returns it; or waits for the load that is on. Others go on to get
    /// the old value meanwhile.
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
        L: FnOnce() -> F,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        self.shared.load(key, Why::Asked, &mut Some(loader)).await
    }

    /// Whether callers of a key share one load. On, unless it is switched off here, at any time, say to find out whether a
    /// problem has to do with it: then each caller that misses loads.
    pub fn set_coalescing(&self, on: bool) {
        self.shared.inner.coalescing.store(on, Ordering::Relaxed);
    }

    /// Whether reads refresh values early, as the [policy](Builder::early_refresh) says. May be switched at any time.
    pub fn set_early_refresh(&self, on: bool) {
        self.shared.inner.early_refresh.store(on, Ordering::Relaxed);
    }

    /// Starts no refreshes and no loads from now on, waits for the refreshes that are on, and drops those that have not ended
    /// after `deadline`. Returns whether all had. What is stored is still served; calls that would have to load
    /// get [`Error::Closed`].
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
    pub fn stats(&self) -> Stats {
        self.shared.inner.stats::<K>()
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.shared.inner.store
    }

    /// How many callers wait for the load of `key` that is on.
    pub fn waiters<Q>(&self, key: &Q) -> usize
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.shared.group.waiters(key)
    }
}

impl<K, V, E, S> Shared<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    pub(crate) async fn get_or_load<Q, L, F>(
        self: &Arc<Self>,
        key: &Q,
        options: Options,
        loader: L,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: Store<Q, V>,
        L: FnOnce() -> F,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        if options.bypass {
            return self.bypass(options, loader).await;
        }
        let now = self.inner.now();
        let look = self.inner.look(key, now);
        let Some(limit) = options.timeout else {
            return self.read(key, options, now, look.await, loader).await;
        };
        // A store may hang as well.
        let found = within(Some(limit), &self.inner.config.timer, look).await.ok_or(Error::Deadline)?;
        let left = limit.saturating_sub(self.inner.now().since(now));
        self.read(key, Options { timeout: Some(left), ..options }, now, found, loader).await
    }

    /// What is done with what was found. In a box, so that the future of a hit is small.
    fn read<'a, Q, L, F>(
        self: &'a Arc<Self>,
        key: &'a Q,
        options: Options,
        now: Time,
        found: Option<Entry<V>>,
        loader: L,
    ) -> Pin<Box<impl Future<Output = Result<Fetched<V>, Error<E>>> + use<'a, K, V, E, S, Q, L, F>>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> F,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        Box::pin(self.read_on(key, options, now, found, loader))
    }

    async fn read_on<Q, L, F>(
        self: &Arc<Self>,
        key: &Q,
        options: Options,
        now: Time,
        found: Option<Entry<V>>,
        loader: L,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> F,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let verdict = found.as_ref().map_or(Verdict::Gone, |entry| self.inner.config.judge(entry, now));
        let entry = match (verdict, found) {
            (Verdict::Calm | Verdict::Fresh | Verdict::Stale, Some(entry)) => {
                let plain = if verdict == Verdict::Stale { Source::Stale } else { Source::Hit };
                return Ok(match self.inner.leave_to_refresh(&entry, now, || self.inner.loads.hash(key)) {
                    None => self.inner.fetched(entry, plain, now),
                    Some(leave) => self.refresh_early(key, options, entry, now, leave, loader).await,
                });
            }
            (Verdict::IfError, Some(entry)) => {
                if !self.inner.loads.may_try(self.inner.loads.hash(key), now) {
                    return Ok(self.inner.fetched(entry, Source::Stale, now));
                }
                Some(entry)
            }
            (_, entry) => entry,
        };
        let why = Why::Missing { found: entry.as_ref().map(|entry| entry.version()) };
        let mut loader = Some(loader);
        let load = self.load(key, why, &mut loader);
        let loaded = match options.timeout {
            None => load.await,
            limit => within(limit, &self.inner.config.timer, load).await.unwrap_or(Err(Error::Deadline)),
        };
        match (loaded, entry) {
            (Err(error), Some(entry)) if verdict == Verdict::IfError && !matches!(error, Error::Reentrant) => {
                Ok(self.inner.fetched(entry, Source::Stale, now))
            }
            (loaded, _) => loaded,
        }
    }

    /// Joins the flight of `key`, or loads.
    async fn load<Q, L, F>(self: &Arc<Self>, key: &Q, why: Why, loader: &mut Option<L>) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> F,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let inner = &self.inner;
        let _calling = match inner.config.max_waiters {
            None => None,
            Some(max) => match inner.loads.call(inner.loads.hash(key), max) {
                None => {
                    inner.counters.add(Count::Overloaded);
                    return Err(Error::Overloaded);
                }
                calling => calling,
            },
        };
        loop {
            if inner.closed.load(Ordering::Relaxed) {
                return Err(Error::Closed);
            }
            let mut work = || {
                let begun = inner.begin(key);
                let loader = loader.take().expect("a call loads once at most")();
                Arc::clone(self).fly(key.to_owned(), why, begun, async move { Some(loader.await) })
            };
            let (flown, role) = if inner.coalescing.load(Ordering::Relaxed) {
                match self.group.call(key).run(work).await {
                    Ok(outcome) => (outcome.value, outcome.role),
                    Err(CallError::Reentrant) => return Err(Error::Reentrant),
                    Err(error) => unreachable!("no limit was set: {error}"),
                }
            } else {
                (work().await, Role::Led)
            };
            match flown {
                // It joined a refresh that came to nothing.
                None => continue,
                Some(Err(error)) => return Err(error),
                Some(Ok(landed)) => return Ok(self.arrived(landed, role)),
            }
        }
    }

    fn arrived(&self, landed: Landed<V>, role: Role) -> Fetched<V> {
        let source = match role {
            Role::Followed => Source::Joined,
            _ if landed.was_there => Source::Hit,
            _ => Source::Loaded,
        };
        match source {
            Source::Joined => self.inner.counters.add(Count::Joins),
            Source::Hit => self.inner.counters.add(Count::Hits),
            _ => {}
        }
        Fetched { value: landed.value, source, age: landed.age }
    }

    async fn fly<F>(self: Arc<Self>, key: K, why: Why, begun: Begun, loader: F) -> Flown<V, E>
    where
        F: Future<Output = Option<Result<V, E>>> + Send + 'static,
    {
        self.inner.fly(&key, why, self.inner.config.load_timeout, begun, loader).await
    }

    /// Refreshes what this read has found: beside it where there is a spawner, otherwise before it returns.
    async fn refresh_early<Q, L, F>(
        self: &Arc<Self>,
        key: &Q,
        options: Options,
        entry: Entry<V>,
        now: Time,
        leave: Leave,
        loader: L,
    ) -> Fetched<V>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> F,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let source = if now < entry.fresh_until() { Source::Early } else { Source::Stale };
        let begun = self.inner.begin(key);
        let Ok(loader) = catch_unwind(AssertUnwindSafe(loader)) else {
            self.inner.failed(&begun.load, true);
            return self.inner.fetched(entry, source, now);
        };
        let refresh = Arc::clone(self).fly_refresh(key.to_owned(), entry.version(), leave, begun, loader);
        match &self.spawner {
            Some(spawner) => {
                // Whatever the spawner does with it: if it is dropped, others may refresh.
                let _ = catch_unwind(AssertUnwindSafe(|| spawner(Box::pin(async move { drop(refresh.await) }))));
                self.inner.fetched(entry, source, now)
            }
            // Somebody is at it already, and this caller has a value.
            None if self.group.flight_info(key).is_some() => self.inner.fetched(entry, source, now),
            // Its own time limit ends the refresh too: the old value is at hand.
            None => match within(options.timeout, &self.inner.config.timer, refresh).await.flatten() {
                Some(Ok(landed)) => {
                    self.inner.counters.add(if source == Source::Early { Count::Early } else { Count::Stale });
                    Fetched { value: landed.value, source, age: landed.age }
                }
                _ => self.inner.fetched(entry, source, now),
            },
        }
    }

    async fn fly_refresh<F>(self: Arc<Self>, key: K, seen: u32, leave: Leave, begun: Begun, loader: F) -> Flown<V, E>
    where
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        // Dropped last, when the value is there.
        let _leave = leave;
        let flight = async {
            let work = || {
                let loader = async move { AssertUnwindSafe(loader).catch_unwind().await.ok() };
                Arc::clone(&self).fly(key.clone(), Why::Refresh { seen }, begun, loader)
            };
            let Ok(outcome) = AssertUnwindSafe(self.group.call(&key).run(work)).catch_unwind().await else {
                // The loader's panics are caught before. There is other code of the user's: `ttl_of`, a weigher, the store.
                self.inner.hold_up(self.inner.loads.hash(&key));
                return None;
            };
            outcome.ok()?.value
        };
        let cancelled = async {
            let cancel = self.cancel.listen();
            if !self.cancelled.load(Ordering::SeqCst) {
                cancel.await;
            }
            None
        };
        flight.or(cancelled).await
    }

    /// Loads as if there were no cache.
    async fn bypass<L, F>(&self, options: Options, loader: L) -> Result<Fetched<V>, Error<E>>
    where
        L: FnOnce() -> F,
        F: Future<Output = Result<V, E>>,
    {
        let begun = self.inner.now();
        let loaded = within(options.timeout, &self.inner.config.timer, loader()).await.ok_or(Error::Deadline)?;
        let value = loaded.map_err(|error| Error::Load(Arc::new(error)))?;
        Ok(Fetched { value, source: Source::Loaded, age: self.inner.now().since(begun) })
    }
}

impl<K, V, E, S> fmt::Debug for Cache<K, V, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

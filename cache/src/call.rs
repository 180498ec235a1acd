//! What one call may ask for.

use crate::blocking;
use crate::cache::Cache;
use crate::entry::Fetched;
use crate::error::{Error, Loaded};
use crate::inner::Why;
use crate::store::{BlockingStore, Store};
use crate::time::{block_on, within};
use crate::time_limit::deadline;
use hashbrown::Equivalent;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) timeout: Option<Duration>,
    pub(crate) bypass: bool,
}

/// One call with options of its own, made by [`Cache::call`] or [`blocking::Cache::call`](crate::blocking::Cache::call). Nothing
/// happens until [`get_or_load`](Self::get_or_load) or another of its methods that load.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::{Source, blocking::Cache};
/// let users: Cache<u64, String> = Cache::builder().build_blocking();
/// let name = users.call(&7).timeout(std::time::Duration::from_secs(1)).get_or_load(|| Ok("Ada".to_owned()))?;
/// assert_eq!(*name, "Ada");
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
#[must_use = "a call does nothing until `get_or_load`"]
pub struct Call<'a, C, Q: ?Sized> {
    cache: &'a C,
    key: &'a Q,
    options: Options,
}

impl<'a, C, Q: ?Sized> Call<'a, C, Q> {
    fn new(cache: &'a C, key: &'a Q) -> Self {
        Self { cache, key, options: Options::default() }
    }

    /// How long the call may take. Then it ends with [`Error::Deadline`], or with an old value that may be served
    /// [if a load fails](crate::Builder::stale_if_error); the load goes on if others wait for it.
    ///
    /// A blocking call that loads itself is not interrupted. With a store that processes share it does not begin to load when its
    /// time is up, and waits no longer than that for the store's answers before it loads.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// let call = users.call(&7).timeout(std::time::Duration::from_millis(50));
    /// assert_eq!(*call.get_or_load(|| Ok("Ada".to_owned()))?, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Calls the loader as if there were no cache: nothing is read, waited for or stored. It is counted as a load.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.call(&7).bypass().get_or_load(|| Ok("Ada".to_owned()))?;
    /// assert!(users.get(&7)?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn bypass(mut self) -> Self {
        self.options.bypass = true;
        self
    }
}

impl<K, V, E, S, Q> Call<'_, Cache<K, V, E, S>, Q>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V> + Store<Q, V>,
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
{
    /// See [`Cache::get_or_load`].
    ///
    /// # Cancel safety
    ///
    /// As there.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::Deadline`].
    ///
    /// # Panics
    ///
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// assert_eq!(*users.call(&7).get_or_load(|| async { Ok("Ada".to_owned()) }).await?, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn get_or_load<L, F>(self, loader: L) -> Result<Fetched<V>, Error<E>>
    where
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        self.cache.shared.get_or_load(self.key, self.options, loader).await
    }

    /// See [`Cache::refresh`].
    ///
    /// # Cancel safety
    ///
    /// As there.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::Deadline`].
    ///
    /// # Panics
    ///
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Error};
    /// # use std::time::Duration;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.put(&7, "Ada".to_owned()).await?;
    /// let late = users.call(&7).timeout(Duration::from_millis(5)).refresh(std::future::pending).await;
    /// assert!(matches!(late, Err(Error::Deadline)));
    /// assert_eq!(*users.get(&7).await?.unwrap(), "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn refresh<L, F>(self, loader: L) -> Result<Fetched<V>, Error<E>>
    where
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let (shared, Options { timeout, bypass }) = (&self.cache.shared, self.options);
        if bypass {
            return shared.inner.bypass(timeout, async { loader().await.told() }).await;
        }
        let mut loader = Some(loader);
        let load = shared.load(self.key, Why::Asked, &mut loader);
        within(timeout, &shared.inner.config.timer, load).await.unwrap_or(Err(Error::Deadline))
    }
}

impl<K, V, E, S> Cache<K, V, E, S> {
    /// A call with options of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Error};
    /// # use std::time::Duration;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// let late = users.call(&7).timeout(Duration::from_millis(5)).get_or_load(std::future::pending).await;
    /// assert!(matches!(late, Err(Error::Deadline)));
    /// # });
    /// ```
    pub fn call<'a, Q: ?Sized>(&'a self, key: &'a Q) -> Call<'a, Self, Q> {
        Call::new(self, key)
    }
}

impl<K, V, E, S, Q> Call<'_, blocking::Cache<K, V, E, S>, Q>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V> + BlockingStore<Q, V>,
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
{
    /// See [`blocking::Cache::get_or_load`].
    ///
    /// # Blocking
    ///
    /// As there.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::Deadline`].
    ///
    /// # Panics
    ///
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// # use std::time::Duration;
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// let name = users.call(&7).timeout(Duration::from_millis(50)).get_or_load(|| Ok("Ada".to_owned()))?;
    /// assert_eq!(*name, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn get_or_load<L>(self, loader: L) -> Result<Fetched<V>, Error<E>>
    where
        L: FnOnce() -> Result<V, E> + Send + 'static,
    {
        self.cache.shared.get_or_load(self.key, self.options, || loader().told())
    }

    /// See [`blocking::Cache::get_or_load_inline`].
    ///
    /// # Blocking
    ///
    /// As there.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::Deadline`].
    ///
    /// # Panics
    ///
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// # use std::time::Duration;
    /// let names = vec!["Ada".to_owned()];
    /// let users: Cache<usize, String> = Cache::builder().build_blocking();
    /// let call = users.call(&0).timeout(Duration::from_millis(50));
    /// assert_eq!(*call.get_or_load_inline(|| Ok(names[0].clone()))?, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn get_or_load_inline(self, loader: impl FnOnce() -> Result<V, E>) -> Result<Fetched<V>, Error<E>> {
        self.cache.shared.get_or_load_inline(self.key, self.options, || loader().told())
    }

    /// See [`blocking::Cache::refresh`].
    ///
    /// # Blocking
    ///
    /// As there.
    ///
    /// # Errors
    ///
    /// As there, and [`Error::Deadline`].
    ///
    /// # Panics
    ///
    /// As there.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// # use std::time::Duration;
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// let call = users.call(&7).timeout(Duration::from_millis(50));
    /// assert_eq!(*call.refresh(|| Ok("Ada Lovelace".to_owned()))?, "Ada Lovelace");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn refresh(self, loader: impl FnOnce() -> Result<V, E>) -> Result<Fetched<V>, Error<E>> {
        let (shared, Options { timeout, bypass }) = (&self.cache.shared, self.options);
        if bypass {
            return block_on(shared.inner.bypass(None, async { loader().told() }));
        }
        shared.load(self.key, Why::Asked, timeout.and_then(deadline), || loader().told())
    }
}

impl<K, V, E, S> blocking::Cache<K, V, E, S> {
    /// A call with options of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// # use std::time::Duration;
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// let name = users.call(&7).timeout(Duration::from_millis(50)).get_or_load(|| Ok("Ada".to_owned()))?;
    /// assert_eq!(*name, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn call<'a, Q: ?Sized>(&'a self, key: &'a Q) -> Call<'a, Self, Q> {
        Call::new(self, key)
    }
}

impl<C, Q: ?Sized> fmt::Debug for Call<'_, C, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("options", &self.options).finish_non_exhaustive()
    }
}

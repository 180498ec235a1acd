//! What one call for several keys may ask for.

use crate::blocking;
use crate::cache::Cache;
use crate::call::Options;
use crate::entry::Fetched;
use crate::error::{Error, of_each};
use crate::store::{BlockingStore, Store};
use crate::time::block_on;
use crate::time_limit::deadline;
use hashbrown::Equivalent;
use std::fmt;
use std::future::{Future, ready};
use std::hash::Hash;
use std::time::Duration;

/// One call for several keys with options of its own, made by [`Cache::call_many`] or
/// [`blocking::Cache::call_many`](crate::blocking::Cache::call_many). Nothing happens until
/// [`get_or_load`](Self::get_or_load).
///
/// # Examples
///
/// ```
/// # use oneflight_cache::blocking::Cache;
/// # use std::time::Duration;
/// let users: Cache<u32, String> = Cache::builder().build_blocking();
/// let load = |ids: Vec<&u32>| Ok(ids.iter().map(|id| format!("user {id}")).collect());
/// let names = users.call_many(&[3, 1]).timeout(Duration::from_secs(1)).get_or_load(load)?;
/// assert_eq!(*names[1], "user 1");
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
#[must_use = "a call does nothing until `get_or_load`"]
pub struct CallMany<'a, C, I> {
    cache: &'a C,
    keys: I,
    options: Options,
}

impl<'a, C, I> CallMany<'a, C, I> {
    fn new(cache: &'a C, keys: I) -> Self {
        Self { cache, keys, options: Options::default() }
    }

    /// How long the call may take, as of [`Call::timeout`](crate::Call::timeout). Then it ends with [`Error::Deadline`], or with old
    /// values if each key that has come to nothing has one that may be served [if a load fails](crate::Builder::stale_if_error). Among
    /// those count all keys that others load, if it waits for one of these when its time is up: also such as have been loaded by then.
    ///
    /// What a task loads is dropped then, and those who wait for one of these keys load it themselves. A thread's load of the keys that
    /// it leads is not interrupted, and the time that it takes is not counted while it waits for the others after that. With a store
    /// that processes share it does not begin to load when its time is up.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// # use std::time::Duration;
    /// let users: Cache<u32, String> = Cache::builder().build_blocking();
    /// users.put(&1, "Ada".to_owned())?;
    /// let call = users.call_many(&[1]).timeout(Duration::from_millis(50));
    /// assert_eq!(*call.get_or_load(|_| Err("it is there".into()))?[0], "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Calls the loader as if there were no cache, once, with each key once: nothing is read, waited for or stored. It is counted as a
    /// load.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// let users: Cache<u32, String> = Cache::builder().build_blocking();
    /// let load = |ids: Vec<&u32>| Ok(ids.iter().map(|id| format!("user {id}")).collect());
    /// assert_eq!(*users.call_many(&[3, 1]).bypass().get_or_load(load)?[1], "user 1");
    /// assert!(users.get(&1)?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn bypass(mut self) -> Self {
        self.options.bypass = true;
        self
    }
}

impl<K, V, E, S, I> CallMany<'_, Cache<K, V, E, S>, I>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    /// See [`Cache::get_or_load_many`].
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
    /// let users: Cache<u32, String> = Cache::builder().build();
    /// let call = users.call_many(&[3]).timeout(Duration::from_millis(5));
    /// let late = call.get_or_load(|_| std::future::pending()).await;
    /// assert!(matches!(late, Err(Error::Deadline)));
    /// # });
    /// ```
    pub async fn get_or_load<'q, Q, L, F>(self, mut loader: L) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        I: IntoIterator<Item = &'q Q>,
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: Store<Q, V>,
        L: FnMut(Vec<&'q Q>) -> F,
        F: Future<Output = Result<Vec<V>, E>>,
    {
        let Self { cache, keys, options: Options { timeout, bypass } } = self;
        let load = move |missing: Vec<&'q Q>| {
            let loading = loader(missing);
            async { of_each(loading.await) }
        };
        if bypass {
            return cache.shared.inner.bypass_many(keys, timeout, load).await;
        }
        cache.load_many(keys, timeout, load).await
    }
}

impl<K, V, E, S> Cache<K, V, E, S> {
    /// A call for several keys with options of its own. What [`get_or_load_many`](Self::get_or_load_many) is without one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// # smol::block_on(async {
    /// let users: Cache<u32, String> = Cache::builder().build();
    /// let load = |ids: Vec<&u32>| {
    ///     let names = ids.iter().map(|id| format!("user {id}")).collect();
    ///     async move { Ok(names) }
    /// };
    /// let names = users.call_many(&[3]).timeout(Duration::from_secs(1)).get_or_load(load).await?;
    /// assert_eq!(*names[0], "user 3");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn call_many<I>(&self, keys: I) -> CallMany<'_, Self, I> {
        CallMany::new(self, keys)
    }
}

impl<K, V, E, S, I> CallMany<'_, blocking::Cache<K, V, E, S>, I>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    /// See [`blocking::Cache::get_or_load_many`].
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
    /// let users: Cache<u32, String> = Cache::builder().build_blocking();
    /// let load = |ids: Vec<&u32>| Ok(ids.iter().map(|id| format!("user {id}")).collect());
    /// let names = users.call_many(&[3]).timeout(Duration::from_millis(50)).get_or_load(load)?;
    /// assert_eq!(*names[0], "user 3");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn get_or_load<'q, Q>(
        self,
        mut loader: impl FnMut(Vec<&'q Q>) -> Result<Vec<V>, E>,
    ) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        I: IntoIterator<Item = &'q Q>,
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: BlockingStore<Q, V>,
    {
        let Self { cache, keys, options: Options { timeout, bypass } } = self;
        if bypass {
            return block_on(cache.shared.inner.bypass_many(keys, None, |all| ready(of_each(loader(all)))));
        }
        cache.load_many(keys, timeout.and_then(deadline), |missing| of_each(loader(missing)))
    }
}

impl<K, V, E, S> blocking::Cache<K, V, E, S> {
    /// A call for several keys with options of its own. What [`get_or_load_many`](Self::get_or_load_many) is without one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// # use std::time::Duration;
    /// let users: Cache<u32, String> = Cache::builder().build_blocking();
    /// let load = |ids: Vec<&u32>| Ok(ids.iter().map(|id| format!("user {id}")).collect());
    /// let names = users.call_many(&[3]).timeout(Duration::from_millis(50)).get_or_load(load)?;
    /// assert_eq!(*names[0], "user 3");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn call_many<I>(&self, keys: I) -> CallMany<'_, Self, I> {
        CallMany::new(self, keys)
    }
}

impl<C, I> fmt::Debug for CallMany<'_, C, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallMany").field("options", &self.options).finish_non_exhaustive()
    }
}

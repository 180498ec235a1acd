//! Writes by threads.

use super::Cache;
use crate::config::Put;
use crate::error::Error;
use crate::store::BlockingStore;
use crate::time::{block_on, block_on_pinned};
use hashbrown::Equivalent;
use std::hash::Hash;
use std::pin::pin;
use std::time::Duration;

impl<K, V, E, S> Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    /// Stores `value`. It wins over every load and refresh of `key` that is on: what these come to is not stored, and whoever
    /// calls after this has returned does not get it.
    ///
    /// # Blocking
    ///
    /// For the store's answer, and while something else is written under the key, or under one that shares its lock.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    ///
    /// # Panics
    ///
    /// If [`ttl_of`](crate::Builder::ttl_of), what [weighs](crate::Memory::weighted) values, `Hash` or `Eq` of the key or
    /// `Clone` of the value panics. The value may not be stored then.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// assert_eq!(*users.get(&7)?.unwrap(), "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn put<Q>(&self, key: &Q, value: V) -> Result<(), Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: BlockingStore<Q, V>,
    {
        self.write(key, Some(Put { value, ttl: None }))
    }

    /// As [`put`](Self::put), of a value that is fresh for `ttl`, whatever the settings say: [`ttl`](crate::Builder::ttl),
    /// [`ttl_of`](crate::Builder::ttl_of), [`negative_ttl`](crate::Builder::negative_ttl). All else holds for it too:
    /// [jitter](crate::Builder::ttl_jitter) makes `ttl` shorter, it is refreshed early, and served when it is stale, if
    /// others are. What is loaded in its place is fresh for as long as the settings say.
    ///
    /// Zero: it is not stored, and what was there is removed. Less than a millisecond counts as one; what is too long to count
    /// does not end.
    ///
    /// # Blocking
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
    /// # use oneflight_cache::blocking::Cache;
    /// # use std::time::Duration;
    /// let sessions: Cache<u64, String> = Cache::builder().build_blocking();
    /// sessions.put_with_ttl(&7, "Ada".to_owned(), Duration::from_secs(3_600))?;
    /// assert_eq!(*sessions.get(&7)?.unwrap(), "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn put_with_ttl<Q>(&self, key: &Q, value: V, ttl: Duration) -> Result<(), Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: BlockingStore<Q, V>,
    {
        self.write(key, Some(Put { value, ttl: Some(ttl) }))
    }

    /// Removes the value of `key`. Whoever calls after this has returned gets no value whose load began before: the load that
    /// is on is not joined any more, and what it comes to is not stored.
    ///
    /// # Blocking
    ///
    /// As [`put`](Self::put).
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
    /// users.put(&7, "Ada".to_owned())?;
    /// users.invalidate(&7)?;
    /// assert!(users.get(&7)?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn invalidate<Q>(&self, key: &Q) -> Result<(), Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: BlockingStore<Q, V>,
    {
        self.write(key, None)
    }

    fn write<Q>(&self, key: &Q, put: Option<Put<V>>) -> Result<(), Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: BlockingStore<Q, V>,
    {
        block_on_pinned(pin!(self.shared.inner.write(key, put, || _ = self.shared.group.forget(key))))
    }

    /// As [`invalidate`](Self::invalidate), for all keys.
    ///
    /// # Blocking
    ///
    /// For the store's answer, and while anything else is written.
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
    /// users.put(&7, "Ada".to_owned())?;
    /// users.invalidate_all()?;
    /// assert!(users.get(&7)?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn invalidate_all(&self) -> Result<(), Error<E>> {
        block_on(self.shared.inner.clear::<K, E>(|| self.shared.group.forget_all()))
    }
}

//! Writes by tasks.

use super::Cache;
use crate::config::Put;
use crate::error::Error;
use crate::store::Store;
use hashbrown::Equivalent;
use std::hash::Hash;
use std::time::Duration;

impl<K, V, E, S> Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
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
    /// If [`ttl_of`](crate::Builder::ttl_of), what [weighs](crate::Memory::weighted) values, `Hash` or `Eq` of the key or
    /// `Clone` of the value panics. The value may not be stored then.
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

    /// As [`put`](Self::put), of a value that is fresh for `ttl`, whatever the settings say: [`ttl`](crate::Builder::ttl),
    /// [`ttl_of`](crate::Builder::ttl_of), [`negative_ttl`](crate::Builder::negative_ttl). All else holds for it too:
    /// [jitter](crate::Builder::ttl_jitter) makes `ttl` shorter, it is refreshed early, and served when it is stale, if
    /// others are. What is loaded in its place is fresh for as long as the settings say.
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
}

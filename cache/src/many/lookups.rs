//! Several keys in one call that loads nothing.

use super::leased::REQUESTS;
use super::together::together;
use crate::blocking;
use crate::cache::Cache;
use crate::entry::Fetched;
use crate::error::Error;
use crate::inner::Inner;
use crate::store::{BlockingStore, Store};
use crate::time::block_on;
use hashbrown::Equivalent;
use std::hash::Hash;

impl<V, S> Inner<V, S> {
    /// What may be served of these.
    async fn served_many<Q, E>(&self, keys: Vec<&Q>) -> Result<Vec<Option<Fetched<V>>>, Error<E>>
    where
        Q: Sync + ?Sized,
        V: Send,
        S: Store<Q, V>,
    {
        let now = self.now();
        let all: Result<Vec<_>, _> = self.find_many(&keys, now).await.into_iter().collect();
        Ok(all.map_err(Error::Store)?.into_iter().map(|found| self.served(found, now)).collect())
    }

    /// Removes these, all of them whatever becomes of one. `forget` lets nobody join the flight of a key.
    async fn remove_many<Q, E>(&self, keys: Vec<&Q>, forget: impl Fn(&Q)) -> Result<(), Error<E>>
    where
        Q: Hash + ?Sized,
        S: Store<Q, V>,
    {
        let forget = &forget;
        let writes = keys.into_iter().map(|key| self.write(key, None, move || forget(key)));
        together(REQUESTS, writes.collect()).await.into_iter().collect()
    }
}

impl<K, V, E, S> Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    /// The values of several keys, in their order, of those that have one that may be served. Starts nothing, and waits for no
    /// load. The store is asked once.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], also if the store has failed for one of them only.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.put(&7, "Ada".to_owned()).await?;
    /// let found = users.get_many(&[7, 8]).await?;
    /// assert!(found[0].is_some() && found[1].is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn get_many<'q, Q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
    ) -> Result<Vec<Option<Fetched<V>>>, Error<E>>
    where
        Q: Hash + Equivalent<K> + Sync + ?Sized + 'q,
        S: Store<Q, V>,
    {
        self.shared.inner.served_many(keys.into_iter().collect()).await
    }

    /// As [`invalidate`](Self::invalidate), for several keys.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, values may be gone or not.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], the first of a key. The others are removed all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.put(&7, "Ada".to_owned()).await?;
    /// users.invalidate_many(&[7, 8]).await?;
    /// assert!(users.get(&7).await?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn invalidate_many<'q, Q>(&self, keys: impl IntoIterator<Item = &'q Q>) -> Result<(), Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized + 'q,
        S: Store<Q, V>,
    {
        let forget = |key: &Q| _ = self.shared.group.forget(key);
        self.shared.inner.remove_many(keys.into_iter().collect(), forget).await
    }
}

impl<K, V, E, S> blocking::Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    /// The values of several keys, in their order, of those that have one that may be served. Starts nothing, and waits for no
    /// load. The store is asked once.
    ///
    /// # Blocking
    ///
    /// For the store's answer.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], also if the store has failed for one of them only.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// let found = users.get_many(&[7, 8])?;
    /// assert!(found[0].is_some() && found[1].is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn get_many<'q, Q>(&self, keys: impl IntoIterator<Item = &'q Q>) -> Result<Vec<Option<Fetched<V>>>, Error<E>>
    where
        Q: Hash + Equivalent<K> + Sync + ?Sized + 'q,
        S: BlockingStore<Q, V>,
    {
        block_on(self.shared.inner.served_many(keys.into_iter().collect()))
    }

    /// As [`invalidate`](Self::invalidate), for several keys.
    ///
    /// # Blocking
    ///
    /// As [`put`](Self::put), for one key after the other.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], the first of a key. The others are removed all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// users.invalidate_many(&[7, 8])?;
    /// assert!(users.get(&7)?.is_none());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn invalidate_many<'q, Q>(&self, keys: impl IntoIterator<Item = &'q Q>) -> Result<(), Error<E>>
    where
        Q: Hash + Equivalent<K> + ?Sized + 'q,
        S: BlockingStore<Q, V>,
    {
        let forget = |key: &Q| _ = self.shared.group.forget(key);
        block_on(self.shared.inner.remove_many(keys.into_iter().collect(), forget))
    }
}

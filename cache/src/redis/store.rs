//! The store for tasks.

use super::any_link::AnyLink;
use super::builder::Builder;
use super::codec::{Bytes, Codec};
use super::error::Error;
use super::key::CacheKey;
use super::values::Values;
use crate::entry::Entry;
use crate::fill::{Epoch, Token};
use crate::lease::{Acquired, Announces, Claim, Lease, Publication, Told, ToldWritten, Watch};
use crate::store::{FoundMany, Store};
use crate::time::Time;
use std::fmt;
use std::time::Duration;

/// Keeps values on a Redis or Valkey server, and says which of the processes that share it loads. With the feature `redis-smol` or
/// `redis-tokio`.
///
/// A hit is one round trip. Keys are of any type that is a [`CacheKey`], values of any that its [`Codec`] knows.
///
/// # Cancel safety
///
/// All futures may be dropped at any time: what was asked for may have been done or not. Nobody else gets the answer. A lease
/// that was asked for and is not wanted any more runs out by itself.
///
/// # Examples
///
/// ```no_run
/// use oneflight_cache::redis::RedisStore;
/// use oneflight_cache::{BoxError, Cache};
///
/// # smol::block_on(async {
/// let store = RedisStore::builder().prefix("shop").connect("redis://localhost:6379")?;
/// let pages: Cache<String, String, BoxError, _> = Cache::builder().store(store).build();
/// let page = pages.get_or_load("/", || async { Ok("welcome".to_owned()) }).await?;
/// assert_eq!(*page, "welcome");
/// # Ok::<(), BoxError>(())
/// # }).unwrap();
/// ```
pub struct RedisStore<C = Bytes>(pub(super) Values<AnyLink, C>);

impl RedisStore {
    /// Sets one up.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis-smol")] {
    /// use oneflight_cache::redis::RedisStore;
    ///
    /// let store = RedisStore::builder().prefix("shop").connect("redis://localhost:6379")?;
    /// # let _ = store;
    /// # }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl<C> RedisStore<C> {
    /// How often there was a value that could not be read: it was a miss. It may have been cut, or of another format, or
    /// somebody else's.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis-smol")] {
    /// use oneflight_cache::redis::RedisStore;
    ///
    /// let store = RedisStore::builder().prefix("shop").connect("redis://localhost:6379")?;
    /// assert_eq!(store.unreadable(), 0); // nothing was read yet
    /// # }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn unreadable(&self) -> u64 {
        self.0.unreadable()
    }
}

impl<K, V, C> Store<K, V> for RedisStore<C>
where
    K: CacheKey + ?Sized + Sync,
    V: Send,
    C: Codec<V>,
{
    type Error = Error;
    type Displaced = ();
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        Some(self)
    }

    async fn get(&self, key: &K, now: Time) -> Result<Option<Entry<V>>, Error> {
        self.0.get(key, now).await
    }

    async fn get_many(&self, keys: &[&K], now: Time) -> FoundMany<V, Error> {
        self.0.get_many(keys, now).await
    }

    async fn put(&self, key: &K, entry: Entry<V>, now: Time) -> Result<(), Error> {
        self.0.put(key, entry, now).await
    }

    async fn remove(&self, key: &K) -> Result<(), Error> {
        self.0.remove(key).await
    }

    async fn clear(&self) -> Result<(), Error> {
        self.0.steps.clear().await
    }
}

impl<K, V, C> Lease<K, V> for RedisStore<C>
where
    K: CacheKey + ?Sized + Sync,
    V: Send,
    C: Codec<V>,
{
    type Error = Error;

    async fn acquire(&self, key: &K, claim: Claim, now: Time) -> Result<Acquired<V>, Error> {
        self.0.acquire(key, claim, now).await
    }

    async fn renew(&self, key: &K, token: Token, lease: Duration) -> Result<bool, Error> {
        self.0.renew(key, token, lease).await
    }

    async fn publish(
        &self,
        key: &K,
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> Result<Publication, Error> {
        self.0.publish(key, token, epoch, entry, now).await
    }

    async fn release(&self, key: &K, token: Token) -> Result<(), Error> {
        self.0.release(key, token).await
    }

    fn abandon(&self, key: &K, token: Token) {
        self.0.steps.abandon(self.0.steps.name(key), token);
    }

    fn is_ambiguous(&self, error: &Error) -> bool {
        error.is_ambiguous()
    }

    fn watch(&self, key: &K, told: Told) -> Option<Box<dyn Watch>> {
        Some(self.0.watch(key, told))
    }
}

impl<K, C> Announces<K> for RedisStore<C>
where
    K: CacheKey + ?Sized,
{
    fn key_number(&self, key: &K) -> u64 {
        self.0.key_number(key)
    }

    fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch> {
        self.0.watch_writes(told)
    }
}

impl<C> fmt::Debug for RedisStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("link", self.0.steps.link())
            .field("unreadable", &self.unreadable())
            .finish_non_exhaustive()
    }
}

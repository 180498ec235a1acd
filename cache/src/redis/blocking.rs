//! The same for threads.

use super::builder::Builder;
use super::codec::{Bytes, Codec};
use super::error::Error;
use super::key::CacheKey;
use super::link::BlockingLink;
use super::values::Values;
use crate::entry::Entry;
use crate::fill::{Epoch, Token};
use crate::lease::{Acquired, Announces, BlockingLease, Claim, Publication, Told, ToldWritten, Watch};
use crate::store::{BlockingStore, FoundMany};
use crate::time::{Time, block_on};
use std::fmt;
use std::time::Duration;

pub use super::thread_lease::{HeldLease, RedisLease};

/// Keeps values on a Redis or Valkey server, and says which of the processes that share it loads: for threads.
///
/// A hit is one round trip. Keys are of any type that is a [`CacheKey`], values of any that its [`Codec`] knows. Each call
/// blocks for as long as the limits for a connection and a reply allow, and has a connection of its own meanwhile.
///
/// # Examples
///
/// ```no_run
/// use oneflight_cache::redis::blocking::RedisStore;
/// use oneflight_cache::{BoxError, blocking::Cache};
///
/// let store = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
/// let pages: Cache<String, String, BoxError, _> = Cache::builder().store(store).build_blocking();
/// let page = pages.get_or_load("/", || Ok("welcome".to_owned()))?;
/// assert_eq!(*page, "welcome");
/// # Ok::<(), BoxError>(())
/// ```
pub struct RedisStore<C = Bytes>(pub(super) Values<BlockingLink, C>);

impl RedisStore {
    /// Sets one up.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisStore;
    ///
    /// let store = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
    /// # let _ = store;
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
    /// use oneflight_cache::redis::blocking::RedisStore;
    ///
    /// let store = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
    /// assert_eq!(store.unreadable(), 0); // nothing was read yet
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn unreadable(&self) -> u64 {
        self.0.unreadable()
    }
}

// The futures of a link for threads are ready at once, so these block in the link alone.
impl<K: CacheKey + ?Sized, V, C: Codec<V>> BlockingStore<K, V> for RedisStore<C> {
    type Error = Error;
    type Displaced = ();
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        Some(self)
    }

    fn get(&self, key: &K, now: Time) -> Result<Option<Entry<V>>, Error> {
        block_on(self.0.get(key, now))
    }

    fn get_many(&self, keys: &[&K], now: Time) -> FoundMany<V, Error> {
        block_on(self.0.get_many(keys, now))
    }

    fn put(&self, key: &K, entry: Entry<V>, now: Time) -> Result<(), Error> {
        block_on(self.0.put(key, entry, now))
    }

    fn remove(&self, key: &K) -> Result<(), Error> {
        block_on(self.0.remove(key))
    }

    fn clear(&self) -> Result<(), Error> {
        block_on(self.0.steps.clear())
    }
}

impl<K: CacheKey + ?Sized, V, C: Codec<V>> BlockingLease<K, V> for RedisStore<C> {
    type Error = Error;

    fn acquire(&self, key: &K, claim: Claim, now: Time) -> Result<Acquired<V>, Error> {
        block_on(self.0.acquire(key, claim, now))
    }

    fn renew(&self, key: &K, token: Token, lease: Duration) -> Result<bool, Error> {
        block_on(self.0.renew(key, token, lease))
    }

    fn publish(&self, key: &K, token: Token, epoch: Epoch, entry: Entry<V>, now: Time) -> Result<Publication, Error> {
        block_on(self.0.publish(key, token, epoch, entry, now))
    }

    fn release(&self, key: &K, token: Token) -> Result<(), Error> {
        block_on(self.0.release(key, token))
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

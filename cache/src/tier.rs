//! Memory in front of a store that processes share.

mod near;
mod stores;

use crate::entry::Entry;
use crate::lease::{Announces, ToldWritten, Watch, Written};
use crate::memory::Memory;
use crate::store::BlockingStore;
use crate::time::Time;
use hashbrown::Equivalent;
use near::{Kept, Near, NearMany, Request, Writing};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Two tiers: memory in front of a store that several processes share, such as Redis.
///
/// What is read from the store is kept in memory for a short life, and hits there cost no round trip. What another process
/// writes is told by the store, and removed from memory. If that is lost, an old value is served for the rest of that life, and
/// not for longer.
///
/// What this process writes is never served old by it.
///
/// While the store does not answer, what is in memory is served for the rest of its short life, and what is loaded is kept there for
/// as long.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "redis")] {
/// use oneflight_cache::blocking::Cache;
/// use oneflight_cache::{Tiered, redis};
/// use std::time::Duration;
///
/// let server = redis::blocking::RedisStore::builder().prefix("shop").connect_blocking("redis://127.0.0.1/")?;
/// let store = Tiered::new(10_000, Duration::from_secs(1), server);
/// let pages = Cache::<String, Vec<u8>>::builder().store(store).build_blocking();
/// assert_eq!(*pages.get_or_load("/", || Ok(b"welcome".to_vec()))?, b"welcome");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tiered<K, V, S> {
    near: Arc<Near<K, V>>,
    life: Duration,
    far: S,
    _watch: Box<dyn Watch>,
}

impl<K, V, S> Tiered<K, V, S>
where
    K: Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Keeps so many entries in memory, each for `life`, of what is in `store`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis")] {
    /// use oneflight_cache::{Tiered, redis::blocking::RedisStore};
    /// use std::time::Duration;
    ///
    /// let server = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
    /// let store: Tiered<String, String, _> = Tiered::new(10_000, Duration::from_secs(1), server);
    /// assert_eq!(store.near_len(), 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(capacity: usize, life: Duration, store: S) -> Self
    where
        S: Announces<K>,
    {
        Self::of(Memory::new(capacity), life, store)
    }

    /// As [`new`](Self::new), with room for entries of the weight `capacity` together, as [`Memory::weighted`] has: for values of
    /// which few are large.
    ///
    /// `weigh` is called once for each value that is to be kept in memory, where no lock is held. If it panics, that value is not
    /// kept there, and whoever reads or loads it has it all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis")] {
    /// use oneflight_cache::{Tiered, redis::blocking::RedisStore};
    /// use std::time::Duration;
    ///
    /// let server = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
    /// // Up to 64 MiB.
    /// let weigh = |url: &String, page: &String| (url.len() + page.len() + 100) as u64;
    /// let store = Tiered::weighted(64 << 20, weigh, Duration::from_secs(1), server);
    /// assert_eq!(store.near_weight(), 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weighted(
        capacity: u64,
        weigh: impl Fn(&K, &V) -> u64 + Send + Sync + 'static,
        life: Duration,
        store: S,
    ) -> Self
    where
        S: Announces<K>,
    {
        Self::of(Memory::weighted(capacity, move |_, kept: &Kept<K, V>| weigh(&kept.key, &kept.value)), life, store)
    }

    fn of(memory: Memory<u64, Kept<K, V>>, life: Duration, store: S) -> Self
    where
        S: Announces<K>,
    {
        let near = Arc::new(Near::new(memory));
        let told: ToldWritten = {
            let near = Arc::downgrade(&near);
            Box::new(move |written| {
                // It may drop values, which are the user's. That does not harm who tells.
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    if let Some(near) = near.upgrade() {
                        match written {
                            Written::Key(number) => near.written(number),
                            Written::Any => near.all_written(),
                        }
                    }
                }));
            })
        };
        let watch = store.watch_writes(told);
        Self { near, life, far: store, _watch: watch }
    }

    /// The store behind the memory.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis")] {
    /// use oneflight_cache::{Tiered, redis::blocking::RedisStore};
    /// use std::time::Duration;
    ///
    /// let server = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
    /// let store: Tiered<String, String, _> = Tiered::new(10_000, Duration::from_secs(1), server);
    /// assert_eq!(store.far().unreadable(), 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn far(&self) -> &S {
        &self.far
    }

    /// How many entries are in memory.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis")] {
    /// use oneflight_cache::{Tiered, redis::blocking::RedisStore};
    /// use std::time::Duration;
    ///
    /// let server = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
    /// let store: Tiered<String, String, _> = Tiered::new(10_000, Duration::from_secs(1), server);
    /// assert_eq!(store.near_len(), 0); // nothing was read yet
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn near_len(&self) -> usize {
        self.near.memory.len()
    }

    /// The weight of all entries in memory together: how many there are, if they are not [weighed](Self::weighted).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis")] {
    /// use oneflight_cache::{Tiered, redis::blocking::RedisStore};
    /// use std::time::Duration;
    ///
    /// let server = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
    /// let store: Tiered<String, String, _> = Tiered::new(10_000, Duration::from_secs(1), server);
    /// assert_eq!(store.near_weight(), 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn near_weight(&self) -> u64 {
        self.near.memory.weight()
    }

    /// How many entries in memory were given up to make room for others.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis")] {
    /// use oneflight_cache::{Tiered, redis::blocking::RedisStore};
    /// use std::time::Duration;
    ///
    /// let server = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
    /// let store: Tiered<String, String, _> = Tiered::new(10_000, Duration::from_secs(1), server);
    /// assert_eq!(store.near_evictions(), 0);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn near_evictions(&self) -> u64 {
        BlockingStore::<u64, Kept<K, V>>::evictions(&self.near.memory)
    }

    fn request<Q: ?Sized>(&self, key: &Q, now: Time) -> Request<'_, K, V>
    where
        S: Announces<Q>,
    {
        Request::new(&self.near, self.far.key_number(key), now.after(self.life))
    }

    fn find<Q>(&self, key: &Q, now: Time) -> Option<Entry<V>>
    where
        Q: Equivalent<K> + ?Sized,
        S: Announces<Q>,
    {
        self.near.find(self.far.key_number(key), key, now)
    }

    /// What is near, if it is fresh. What is not may be so in the store.
    fn find_fresh<Q>(&self, key: &Q, now: Time) -> Option<Entry<V>>
    where
        Q: Equivalent<K> + ?Sized,
        S: Announces<Q>,
    {
        self.find(key, now).filter(|entry| now < entry.fresh_until())
    }

    /// Its life begins with its load: what is written elsewhere meanwhile may have been told to nobody.
    fn keep<Q>(&self, key: &Q, entry: Entry<V>, writes: u64)
    where
        Q: ToOwned<Owned = K> + ?Sized,
        S: Announces<Q>,
    {
        let until = entry.loaded_at().after(self.life);
        Request::since(&self.near, self.far.key_number(key), writes, until).filled(key, entry);
    }

    fn near_many<'q, Q>(&self, keys: &[&'q Q], now: Time) -> NearMany<'_, 'q, Q, K, V>
    where
        Q: Equivalent<K> + ?Sized,
        S: Announces<Q>,
    {
        let mut near = NearMany { found: Vec::with_capacity(keys.len()), missing: Vec::new(), requests: Vec::new() };
        for (place, key) in keys.iter().copied().enumerate() {
            let found = self.find_fresh(key, now);
            if found.is_none() {
                near.missing.push(key);
                near.requests.push((place, self.request(key, now)));
            }
            near.found.push(found);
        }
        near
    }

    fn write<Q: ?Sized>(&self, key: &Q) -> Writing<'_, K, V>
    where
        S: Announces<Q>,
    {
        Writing::begin(&self.near, Some(self.far.key_number(key)))
    }
}

impl<K, V, S: fmt::Debug> fmt::Debug for Tiered<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tiered").field("life", &self.life).field("far", &self.far).finish_non_exhaustive()
    }
}

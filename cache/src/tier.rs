//! Memory in front of a store that processes share.

mod stores;

use crate::entry::Entry;
use crate::lease::{Acquired, Announces, Publication, ToldWritten, Watch, Written};
use crate::memory::Memory;
use crate::time::Time;
use crossbeam_utils::CachePadded;
use hashbrown::Equivalent;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Two tiers: memory in front of a store that several processes share, such as Redis.
///
/// What is read from the store is kept in memory for a short life, and hits there cost no round trip. What another process
/// writes is told by the store, and removed from memory. If that is lost, an old value is served for the rest of that life, and
/// not for longer.
///
/// What this process writes is never served old by it.
///
/// While the store does not answer, what is in memory is served for the rest of its short life.
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

/// By the numbers of keys, as others' writes are told by these.
struct Near<K, V> {
    memory: Memory<u64, Kept<K, V>>,
    /// How often keys were written whose number falls on each.
    writes: Box<[CachePadded<AtomicU64>]>,
}

struct Kept<K, V> {
    key: Arc<K>,
    value: V,
    until: Time,
}

// Not derived: `K` need not be `Clone`.
impl<K, V: Clone> Clone for Kept<K, V> {
    fn clone(&self) -> Self {
        Self { key: Arc::clone(&self.key), value: self.value.clone(), until: self.until }
    }
}

const STRIPES: usize = 64;

impl<K: Send + Sync + 'static, V: Clone + Send + Sync + 'static> Near<K, V> {
    fn find<Q: Equivalent<K> + ?Sized>(&self, number: u64, key: &Q, now: Time) -> Option<Entry<V>> {
        let Entry { life, value: kept } = self.memory.find(&number, now)?;
        (now < kept.until && key.equivalent(&kept.key)).then_some(Entry { life, value: kept.value })
    }

    fn writes(&self, number: u64) -> u64 {
        self.stripe(number).load(Ordering::SeqCst)
    }

    fn stripe(&self, number: u64) -> &AtomicU64 {
        &self.writes[number as usize % STRIPES]
    }

    /// Keeps it, unless the key was written after there were so many `writes`.
    fn keep(&self, number: u64, key: K, entry: &Entry<V>, until: Time, writes: u64) {
        if self.writes(number) == writes {
            let kept = Kept { key: Arc::new(key), value: entry.value.clone(), until };
            drop(self.memory.keep(number, Entry { life: entry.life, value: kept }, 1));
            // Whoever has written since has removed what was there, or does it now, after it was counted.
            if self.writes(number) != writes {
                drop(self.memory.take(&number));
            }
        }
    }

    fn written(&self, number: u64) {
        self.stripe(number).fetch_add(1, Ordering::SeqCst);
        drop(self.memory.take(&number));
    }

    fn all_written(&self) {
        for stripe in &self.writes {
            stripe.fetch_add(1, Ordering::SeqCst);
        }
        drop(self.memory.take_all());
    }
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
        let writes = (0..STRIPES).map(|_| CachePadded::default()).collect();
        let near = Arc::new(Near { memory: Memory::new(capacity), writes });
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
}

/// A request about a key that may have been written while it was under way.
struct Request<'t, K, V> {
    near: &'t Near<K, V>,
    number: u64,
    writes: u64,
    until: Time,
}

impl<K: Send + Sync + 'static, V: Clone + Send + Sync + 'static> Request<'_, K, V> {
    fn keep<Q: ToOwned<Owned = K> + ?Sized>(&self, key: &Q, entry: &Entry<V>) {
        self.near.keep(self.number, key.to_owned(), entry, self.until, self.writes);
    }

    fn got<Q: ToOwned<Owned = K> + ?Sized>(&self, key: &Q, got: Option<Entry<V>>) -> Option<Entry<V>> {
        got.inspect(|entry| self.keep(key, entry))
    }

    fn acquired<Q: ToOwned<Owned = K> + ?Sized>(&self, key: &Q, acquired: Acquired<V>) -> Acquired<V> {
        if let Acquired::Filled(entry) = &acquired {
            self.keep(key, entry);
        }
        acquired
    }

    fn published<Q: ToOwned<Owned = K> + ?Sized>(
        &self,
        key: &Q,
        entry: &Entry<V>,
        publication: Publication,
    ) -> Publication {
        if let Publication::Stored | Publication::Late = publication {
            self.keep(key, entry);
        }
        publication
    }
}

/// What is near of several keys, and what has to be asked for.
struct NearMany<'t, 'q, Q: ?Sized, K, V> {
    found: Vec<Option<Entry<V>>>,
    missing: Vec<&'q Q>,
    /// Of the missing ones, each with its place.
    requests: Vec<(usize, Request<'t, K, V>)>,
}

impl<Q, K, V> NearMany<'_, '_, Q, K, V>
where
    Q: ToOwned<Owned = K> + ?Sized,
    K: Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// All, in their order, with what was got of the missing ones.
    fn with<E>(self, got: Vec<Result<Option<Entry<V>>, E>>) -> Vec<Result<Option<Entry<V>>, E>> {
        let mut found: Vec<_> = self.found.into_iter().map(Ok).collect();
        for (((place, request), key), got) in self.requests.into_iter().zip(self.missing).zip(got) {
            found[place] = got.map(|got| request.got(key, got));
        }
        found
    }
}

/// A write under way: what is kept before it begins or until it has ended is not kept.
struct Writing<'t, K: Send + Sync + 'static, V: Clone + Send + Sync + 'static>(&'t Near<K, V>, Option<u64>);

impl<'t, K: Send + Sync + 'static, V: Clone + Send + Sync + 'static> Writing<'t, K, V> {
    fn begin(near: &'t Near<K, V>, number: Option<u64>) -> Self {
        let writing = Self(near, number);
        writing.write();
        writing
    }

    fn write(&self) {
        match self.1 {
            Some(number) => self.0.written(number),
            None => self.0.all_written(),
        }
    }
}

impl<K: Send + Sync + 'static, V: Clone + Send + Sync + 'static> Drop for Writing<'_, K, V> {
    fn drop(&mut self) {
        self.write();
    }
}

impl<K, V, S> Tiered<K, V, S>
where
    K: Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn request<Q: ?Sized>(&self, key: &Q, now: Time) -> Request<'_, K, V>
    where
        S: Announces<Q>,
    {
        let number = self.far.key_number(key);
        Request { near: &self.near, number, writes: self.near.writes(number), until: now.after(self.life) }
    }

    fn find<Q>(&self, key: &Q, now: Time) -> Option<Entry<V>>
    where
        Q: Equivalent<K> + ?Sized,
        S: Announces<Q>,
    {
        self.near.find(self.far.key_number(key), key, now)
    }

    fn near_many<'q, Q>(&self, keys: &[&'q Q], now: Time) -> NearMany<'_, 'q, Q, K, V>
    where
        Q: Equivalent<K> + ?Sized,
        S: Announces<Q>,
    {
        let mut near = NearMany { found: Vec::with_capacity(keys.len()), missing: Vec::new(), requests: Vec::new() };
        for (place, key) in keys.iter().copied().enumerate() {
            let request = self.request(key, now);
            let found = self.near.find(request.number, key, now);
            if found.is_none() {
                near.missing.push(key);
                near.requests.push((place, request));
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

//! The store in this process.

mod entries;
#[cfg(test)]
mod tests;

use crate::entry::Entry;
use crate::lease::NoLease;
use crate::store::{BlockingStore, Store};
use crate::time::Time;
use entries::Entries;
use hashbrown::Equivalent;
use quick_cache::{DefaultHashBuilder, Options, OptionsBuilder};
use std::convert::Infallible;
use std::fmt;
use std::future::{Future, ready};
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Keeps values in memory, shared and not serialised, up to a number of entries or a weight. What it gives up first is what
/// has been read least, by S3-FIFO ([`quick_cache`]).
///
/// A value is cloned under the lock of its part of the store, and keys are compared there. So values should be cheap to clone,
/// an [`Arc`] say, and neither `Clone` of a value nor `Hash`, `Eq`, `ToOwned`, `Clone` or `Drop` of a key may call the cache. Values
/// are dropped outside. If the `Hash` of a key panics while room is made, everything is given up.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Cache, Memory};
/// use std::sync::Arc;
///
/// // Up to 64 MiB of pages.
/// let pages = Memory::weighted(64 << 20, |_url: &String, page: &Arc<[u8]>| page.len() as u64 + 100);
/// let cache: Cache<String, Arc<[u8]>> = Cache::builder().memory(pages).build();
/// # let _ = cache;
/// ```
pub struct Memory<K, V, H = DefaultHashBuilder> {
    entries: Entries<K, V, H>,
    evictions: AtomicU64,
}

/// Asked for once, since the answer takes the system longer than all else that there is to do for a new cache.
static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));

/// Entries that a write has pushed out of a [`Memory`].
///
/// # Examples
///
/// ```
/// use oneflight_cache::{BlockingStore, Entry, Memory, Pushed, Time};
/// use std::time::Duration;
///
/// let memory: Memory<u64, String> = Memory::new(100);
/// let now = Time::START;
/// let entry = Entry::new("Ada".to_owned(), 1, now, now.after(Duration::MAX), Time::NEVER, Duration::ZERO);
/// let pushed: Pushed<u64, String> = memory.put(&7, entry, now)?;
/// drop(pushed); // here, where no lock is held
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Debug)]
pub struct Pushed<K, V> {
    first: Option<(K, Entry<V>)>,
    more: Vec<(K, Entry<V>)>,
}

impl<K, V> Default for Pushed<K, V> {
    fn default() -> Self {
        Self { first: None, more: Vec::new() }
    }
}

impl<K, V> Pushed<K, V> {
    fn add(&mut self, key: K, entry: Entry<V>) {
        match &mut self.first {
            first @ None => *first = Some((key, entry)),
            Some(_) => self.more.push((key, entry)),
        }
    }
}

impl<K: Hash + Eq, V: Clone> Memory<K, V> {
    /// Room for `capacity` entries.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::Memory;
    ///
    /// let memory: Memory<String, u32> = Memory::new(1_000);
    /// assert!(memory.is_empty());
    /// ```
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self::with_hasher(capacity, DefaultHashBuilder::default())
    }

    /// Room for entries of the weight `capacity` together, in whatever unit `weigh` weighs: bytes, say. What weighs zero counts
    /// as one. The store has parts, four for each core, which share the capacity: what does not fit into a part is not kept.
    ///
    /// `weigh` is called once for each value that is stored, before, and where no lock is held: it may call the cache, and what it
    /// says holds for as long as the entry is there. If it panics, nothing is stored, and the panic is that of the
    /// [`put`](crate::Cache::put), or of the caller that loads.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::Memory;
    ///
    /// let weigh = |key: &String, value: &String| (key.len() + value.len()) as u64;
    /// let memory = Memory::weighted(1 << 20, weigh);
    /// assert_eq!(memory.weight(), 0);
    /// ```
    #[must_use]
    pub fn weighted(capacity: u64, weigh: impl Fn(&K, &V) -> u64 + Send + Sync + 'static) -> Self {
        let options = options(capacity, 1_000, None);
        Self::of(Entries::weighed(options, Arc::new(weigh), DefaultHashBuilder::default()))
    }
}

impl<K: Hash + Eq, V: Clone, H: BuildHasher + Clone> Memory<K, V, H> {
    /// Room for `capacity` entries, whose keys are hashed by `hasher`.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::Memory;
    /// use std::hash::RandomState;
    ///
    /// let memory: Memory<String, u32, RandomState> = Memory::with_hasher(1_000, RandomState::new());
    /// assert_eq!(memory.len(), 0);
    /// ```
    #[must_use]
    pub fn with_hasher(capacity: usize, hasher: H) -> Self {
        // Four times the usual number, since also readers of different keys of a part hold each other up. Not with weights: an
        // entry must fit into its part.
        Self::of(Entries::counted(options(capacity as u64, capacity, Some(16 * *CORES)), hasher))
    }

    fn of(entries: Entries<K, V, H>) -> Self {
        Self { entries, evictions: AtomicU64::new(0) }
    }

    /// How many entries there are, those included that have expired and were not asked for since.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Memory, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// assert_eq!(users.store().len(), 1);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Memory, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// assert!(!users.store().is_empty());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// The weight of all entries together.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Memory, blocking::Cache};
    /// let memory = Memory::weighted(1 << 20, |_: &u64, name: &String| name.len() as u64);
    /// let users: Cache<u64, String> = Cache::builder().memory(memory).build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// assert_eq!(users.store().weight(), 3);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.entries.weight()
    }

    #[inline]
    pub(crate) fn find<Q>(&self, key: &Q, now: Time) -> Option<Entry<V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let mut found = self.entries.get(key);
        // Whoever asks looks whether it is calm, too.
        if let Some(entry) = &found
            && !entry.is_calm(now)
            && entry.stale_until() <= now
        {
            found = None;
            self.expire(key, now);
        }
        found
    }

    #[cold]
    fn expire<Q>(&self, key: &Q, now: Time)
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        // Another may have put a newer one meanwhile.
        self.entries.remove_if(key, |entry| entry.stale_until() <= now);
    }

    /// `weight` is what [`weigh`](Entries::weigh) has said.
    pub(crate) fn keep(&self, key: K, entry: Entry<V>, weight: u64) -> Pushed<K, V>
    where
        K: Clone,
    {
        let mut pushed = Pushed::default();
        let replaced = key.clone();
        self.entries.insert(key, entry, weight, &mut pushed);
        let evicted = pushed.first.iter().chain(&pushed.more).filter(|(key, _)| *key != replaced).count();
        if evicted > 0 {
            self.evictions.fetch_add(evicted as u64, Ordering::Relaxed);
        }
        pushed
    }

    pub(crate) fn take<Q>(&self, key: &Q) -> Pushed<K, V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        Pushed { first: self.entries.remove(key), more: Vec::new() }
    }

    pub(crate) fn take_all(&self) -> Pushed<K, V> {
        Pushed { first: None, more: self.entries.take_all() }
    }
}

/// For so many entries or such a weight in so many parts.
fn options(capacity: u64, expected_entries: usize, parts: Option<usize>) -> Options {
    // Not more than fit if each weighs one: it settles into how many parts the capacity is divided.
    let expected_entries = expected_entries.min(usize::try_from(capacity).unwrap_or(usize::MAX));
    let mut options = OptionsBuilder::new();
    options.weight_capacity(capacity).estimated_items_capacity(expected_entries);
    if let Some(parts) = parts {
        options.shards(parts);
    }
    options.build().expect("both capacities are set")
}

impl<Q, K, V, H> Store<Q, V> for Memory<K, V, H>
where
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    H: BuildHasher + Clone + Send + Sync + 'static,
{
    type Error = Infallible;
    type Displaced = Pushed<K, V>;
    type Lease = NoLease;

    #[inline]
    fn get(&self, key: &Q, now: Time) -> impl Future<Output = Result<Option<Entry<V>>, Infallible>> + Send {
        ready(Ok(self.find(key, now)))
    }

    fn put(
        &self,
        key: &Q,
        entry: Entry<V>,
        _now: Time,
    ) -> impl Future<Output = Result<Self::Displaced, Infallible>> + Send {
        let weight = self.entries.weigh(key, &entry.value);
        ready(Ok(self.keep(key.to_owned(), entry, weight)))
    }

    #[inline]
    fn weigh(&self, key: &Q, value: &V) -> u64 {
        self.entries.weigh(key, value)
    }

    fn put_weighed(
        &self,
        key: &Q,
        entry: Entry<V>,
        weight: u64,
        _now: Time,
    ) -> impl Future<Output = Result<Self::Displaced, Infallible>> + Send {
        ready(Ok(self.keep(key.to_owned(), entry, weight)))
    }

    fn remove(&self, key: &Q) -> impl Future<Output = Result<Self::Displaced, Infallible>> + Send {
        ready(Ok(self.take(key)))
    }

    fn clear(&self) -> impl Future<Output = Result<Self::Displaced, Infallible>> + Send {
        ready(Ok(self.take_all()))
    }

    fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_immediate(&self) -> bool {
        true
    }
}

impl<Q, K, V, H> BlockingStore<Q, V> for Memory<K, V, H>
where
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    H: BuildHasher + Clone + Send + Sync + 'static,
{
    type Error = Infallible;
    type Displaced = Pushed<K, V>;
    type Lease = NoLease;

    #[inline]
    fn get(&self, key: &Q, now: Time) -> Result<Option<Entry<V>>, Infallible> {
        Ok(self.find(key, now))
    }

    fn put(&self, key: &Q, entry: Entry<V>, _now: Time) -> Result<Self::Displaced, Infallible> {
        let weight = self.entries.weigh(key, &entry.value);
        Ok(self.keep(key.to_owned(), entry, weight))
    }

    #[inline]
    fn weigh(&self, key: &Q, value: &V) -> u64 {
        self.entries.weigh(key, value)
    }

    fn put_weighed(&self, key: &Q, entry: Entry<V>, weight: u64, _now: Time) -> Result<Self::Displaced, Infallible> {
        Ok(self.keep(key.to_owned(), entry, weight))
    }

    fn remove(&self, key: &Q) -> Result<Self::Displaced, Infallible> {
        Ok(self.take(key))
    }

    fn clear(&self) -> Result<Self::Displaced, Infallible> {
        Ok(self.take_all())
    }

    fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_immediate(&self) -> bool {
        true
    }
}

impl<K, V, H> fmt::Debug for Memory<K, V, H>
where
    K: Hash + Eq,
    V: Clone,
    H: BuildHasher + Clone,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("len", &self.len()).field("weight", &self.weight()).finish_non_exhaustive()
    }
}

//! A store that fails when a test says so.

use crate::entry::Entry;
use crate::lease::NoLease;
use crate::store::{BlockingStore, Store};
use crate::time::Time;
use std::error::Error;
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A store that fails when it is told to, and otherwise does what the one inside does. It has no leases, even if that one has: it is for
/// caches that share their store with no other process.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Cache, Memory, test_util::FaultyStore};
///
/// let (store, faults) = FaultyStore::new(Memory::new(100));
/// let users = Cache::<u64, String>::builder().store(store).build_blocking();
/// faults.fail_writes(true);
/// assert!(users.put(&7, "Ada".to_owned()).is_err());
/// faults.fail_writes(false);
/// users.put(&7, "Ada".to_owned())?;
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
#[derive(Debug)]
pub struct FaultyStore<S> {
    store: S,
    faults: Faults,
}

/// Which requests to a [`FaultyStore`] fail. A clone is about the same store.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Cache, Memory, test_util::FaultyStore};
///
/// let (store, faults) = FaultyStore::new(Memory::new(100));
/// let users = Cache::<u64, String>::builder().store(store).build_blocking();
/// faults.clone().fail_reads(true); // also from another thread
/// assert!(users.get(&7).is_err());
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    reads: AtomicBool,
    writes: AtomicBool,
    puts: AtomicBool,
}

impl Faults {
    /// Whether reads fail from now on.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Memory, test_util::FaultyStore};
    ///
    /// let (store, faults) = FaultyStore::new(Memory::new(100));
    /// let users = Cache::<u64, String>::builder().store(store).build_blocking();
    /// faults.fail_reads(true);
    /// assert!(users.get(&7).is_err());
    /// // A read that loads falls back to its loader.
    /// assert_eq!(*users.get_or_load(&7, || Ok("Ada".to_owned()))?, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn fail_reads(&self, fail: bool) {
        self.0.reads.store(fail, Ordering::SeqCst);
    }

    /// Whether writes fail from now on: puts, removals, clearing.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Memory, test_util::FaultyStore};
    ///
    /// let (store, faults) = FaultyStore::new(Memory::new(100));
    /// let users = Cache::<u64, String>::builder().store(store).build_blocking();
    /// faults.fail_writes(true);
    /// assert!(users.put(&7, "Ada".to_owned()).is_err());
    /// ```
    pub fn fail_writes(&self, fail: bool) {
        self.0.writes.store(fail, Ordering::SeqCst);
    }

    /// Whether puts fail from now on, while removals go on: a store that is full, or a value that is too large for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Memory, test_util::FaultyStore};
    ///
    /// let (store, faults) = FaultyStore::new(Memory::new(100));
    /// let users = Cache::<u64, String>::builder().store(store).build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// faults.fail_puts(true);
    /// assert!(users.put(&7, "Grace".to_owned()).is_err());
    /// assert!(users.get(&7)?.is_none(), "what was to be replaced is not served either");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn fail_puts(&self, fail: bool) {
        self.0.puts.store(fail, Ordering::SeqCst);
    }

    fn read<T, E>(&self, request: impl FnOnce() -> Result<T, E>) -> Result<T, Fault<E>> {
        Self::request(self.0.reads.load(Ordering::SeqCst), request)
    }

    fn write<T, E>(&self, request: impl FnOnce() -> Result<T, E>) -> Result<T, Fault<E>> {
        Self::request(self.0.writes.load(Ordering::SeqCst), request)
    }

    fn put<T, E>(&self, request: impl FnOnce() -> Result<T, E>) -> Result<T, Fault<E>> {
        Self::request(self.0.puts.load(Ordering::SeqCst) || self.0.writes.load(Ordering::SeqCst), request)
    }

    fn request<T, E>(fails: bool, request: impl FnOnce() -> Result<T, E>) -> Result<T, Fault<E>> {
        if fails { Err(Fault::Injected) } else { request().map_err(Fault::Real) }
    }
}

/// Why a [`FaultyStore`] failed.
///
/// # Examples
///
/// ```
/// use oneflight_cache::test_util::{Fault, FaultyStore};
/// use oneflight_cache::{BlockingStore, Memory, Time};
///
/// let (store, faults) = FaultyStore::new(Memory::<u64, String>::new(100));
/// faults.fail_reads(true);
/// assert!(matches!(BlockingStore::<u64, String>::get(&store, &7, Time::START), Err(Fault::Injected)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<E> {
    /// It was told to.
    Injected,
    /// The store inside has failed.
    Real(E),
}

impl<E: fmt::Display> fmt::Display for Fault<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Injected => f.write_str("a fault that was asked for"),
            Self::Real(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for Fault<E> {}

impl<S> FaultyStore<S> {
    /// Puts `store` inside, and tells how to make it fail.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::test_util::FaultyStore;
    /// use oneflight_cache::{Cache, Memory};
    ///
    /// # smol::block_on(async {
    /// let (store, faults) = FaultyStore::new(Memory::new(100));
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// let users = Cache::<u64, String>::builder().store(store).build();
    /// faults.fail_reads(true);
    /// assert_eq!(*users.get_or_load(&7, || async { Ok("Ada".to_owned()) }).await?, "Ada");
    /// assert!(users.get(&7).await.is_err());
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn new(store: S) -> (Self, Faults) {
        let faults = Faults::default();
        (Self { store, faults: faults.clone() }, faults)
    }

    /// The store inside.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Memory, test_util::FaultyStore};
    ///
    /// let (store, _faults) = FaultyStore::new(Memory::<u64, String>::new(100));
    /// assert!(store.inner().is_empty());
    /// ```
    pub fn inner(&self) -> &S {
        &self.store
    }
}

impl<K, V, S> Store<K, V> for FaultyStore<S>
where
    K: ?Sized,
    V: Send + 'static,
    S: BlockingStore<K, V>,
{
    type Error = Fault<S::Error>;
    type Displaced = S::Displaced;
    type Lease = NoLease<Self::Error>;

    fn get(&self, key: &K, now: Time) -> impl Future<Output = Result<Option<Entry<V>>, Self::Error>> + Send {
        ready(self.faults.read(|| self.store.get(key, now)))
    }

    fn put(
        &self,
        key: &K,
        entry: Entry<V>,
        now: Time,
    ) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send {
        ready(self.faults.put(|| self.store.put(key, entry, now)))
    }

    fn weigh(&self, key: &K, value: &V) -> u64 {
        self.store.weigh(key, value)
    }

    fn put_weighed(
        &self,
        key: &K,
        entry: Entry<V>,
        weight: u64,
        now: Time,
    ) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send {
        ready(self.faults.put(|| self.store.put_weighed(key, entry, weight, now)))
    }

    fn remove(&self, key: &K) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send {
        ready(self.faults.write(|| self.store.remove(key)))
    }

    fn clear(&self) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send {
        ready(self.faults.write(|| self.store.clear()))
    }

    fn evictions(&self) -> u64 {
        self.store.evictions()
    }

    fn is_immediate(&self) -> bool {
        self.store.is_immediate()
    }
}

impl<K, V, S> BlockingStore<K, V> for FaultyStore<S>
where
    K: ?Sized,
    S: BlockingStore<K, V>,
{
    type Error = Fault<S::Error>;
    type Displaced = S::Displaced;
    type Lease = NoLease<Self::Error>;

    fn get(&self, key: &K, now: Time) -> Result<Option<Entry<V>>, Self::Error> {
        self.faults.read(|| self.store.get(key, now))
    }

    fn put(&self, key: &K, entry: Entry<V>, now: Time) -> Result<Self::Displaced, Self::Error> {
        self.faults.put(|| self.store.put(key, entry, now))
    }

    fn weigh(&self, key: &K, value: &V) -> u64 {
        self.store.weigh(key, value)
    }

    fn put_weighed(&self, key: &K, entry: Entry<V>, weight: u64, now: Time) -> Result<Self::Displaced, Self::Error> {
        self.faults.put(|| self.store.put_weighed(key, entry, weight, now))
    }

    fn remove(&self, key: &K) -> Result<Self::Displaced, Self::Error> {
        self.faults.write(|| self.store.remove(key))
    }

    fn clear(&self) -> Result<Self::Displaced, Self::Error> {
        self.faults.write(|| self.store.clear())
    }

    fn evictions(&self) -> u64 {
        self.store.evictions()
    }

    fn is_immediate(&self) -> bool {
        self.store.is_immediate()
    }
}

//! For tests of programs that use a cache (feature `test-util`).

use crate::entry::Entry;
use crate::lease::NoLease;
use crate::store::{BlockingStore, Store};
use crate::time::{BoxFuture, Clock, Time, Timer};
use parking_lot::Mutex;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

/// A clock, and a timer, that stand still until they are told to go on. A clone shows the same time.
///
/// # Examples
///
/// ```
/// use oneflight_cache::test_util::ManualClock;
/// use oneflight_cache::{Cache, Source};
/// use std::time::Duration;
///
/// # smol::block_on(async {
/// let clock = ManualClock::new();
/// let builder = Cache::builder().ttl(Duration::from_secs(60)).ttl_jitter(0.0);
/// let users: Cache<u64, String> = builder.clock(clock.clone()).timer(clock.clone()).build();
/// users.put(&7, "Ada".to_owned()).await?;
/// clock.advance(Duration::from_secs(61));
/// let name = users.get_or_load(&7, || async { Ok("Grace".to_owned()) }).await?;
/// assert_eq!((name.as_str(), name.source), ("Grace", Source::Loaded));
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<Manual>>);

#[derive(Debug, Default)]
struct Manual {
    now: Time,
    sleepers: Vec<(Time, Waker)>,
}

impl ManualClock {
    /// A clock that has just begun.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Clock, Time, test_util::ManualClock};
    ///
    /// assert_eq!(ManualClock::new().now(), Time::START);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on by `duration`, and wakes those whose time has come.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Clock, Time, test_util::ManualClock};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// clock.advance(Duration::from_secs(2));
    /// assert_eq!(clock.now(), Time::from_start(Duration::from_secs(2)));
    /// ```
    pub fn advance(&self, duration: Duration) {
        let mut manual = self.0.lock();
        let now = manual.now.after(duration);
        manual.now = now;
        let (due, later) = std::mem::take(&mut manual.sleepers).into_iter().partition(|(until, _)| *until <= now);
        manual.sleepers = later;
        drop(manual);
        let due: Vec<(Time, Waker)> = due;
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// How many tasks sleep.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(oneflight_cache::test_util::ManualClock::new().sleepers(), 0);
    /// ```
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.0.lock().sleepers.len()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        self.0.lock().now
    }
}

impl Timer for ManualClock {
    fn sleep(&self, duration: Duration) -> BoxFuture {
        let clock = self.clone();
        let until = clock.now().after(duration);
        Box::pin(std::future::poll_fn(move |cx| {
            let waker = cx.waker().clone();
            let mut manual = clock.0.lock();
            if manual.now >= until {
                return Poll::Ready(());
            }
            // More than one for a task that is polled often, which only wakes it once too often.
            manual.sleepers.push((until, waker));
            Poll::Pending
        }))
    }
}

/// A store that fails when it is told to, and otherwise does what the one inside does.
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
pub struct Faults(Arc<[AtomicBool; 2]>);

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
        self.0[0].store(fail, Ordering::SeqCst);
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
        self.0[1].store(fail, Ordering::SeqCst);
    }

    fn read<T, E>(&self, request: impl FnOnce() -> Result<T, E>) -> Result<T, Fault<E>> {
        if self.0[0].load(Ordering::SeqCst) { Err(Fault::Injected) } else { request().map_err(Fault::Real) }
    }

    fn write<T, E>(&self, request: impl FnOnce() -> Result<T, E>) -> Result<T, Fault<E>> {
        if self.0[1].load(Ordering::SeqCst) { Err(Fault::Injected) } else { request().map_err(Fault::Real) }
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
        std::future::ready(self.faults.read(|| self.store.get(key, now)))
    }

    fn put(
        &self,
        key: &K,
        entry: Entry<V>,
        now: Time,
    ) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send {
        std::future::ready(self.faults.write(|| self.store.put(key, entry, now)))
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
        std::future::ready(self.faults.write(|| self.store.put_weighed(key, entry, weight, now)))
    }

    fn remove(&self, key: &K) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send {
        std::future::ready(self.faults.write(|| self.store.remove(key)))
    }

    fn clear(&self) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send {
        std::future::ready(self.faults.write(|| self.store.clear()))
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
        self.faults.write(|| self.store.put(key, entry, now))
    }

    fn weigh(&self, key: &K, value: &V) -> u64 {
        self.store.weigh(key, value)
    }

    fn put_weighed(&self, key: &K, entry: Entry<V>, weight: u64, now: Time) -> Result<Self::Displaced, Self::Error> {
        self.faults.write(|| self.store.put_weighed(key, entry, weight, now))
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

/// Lets others run until `count` callers wait, as `waiters` counts them: `wait_for_waiters(3, || cache.waiters("key"))`. For
/// threads; a task awaits [`async_wait_for_waiters`].
///
/// # Panics
///
/// If it takes more than 30 s.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{blocking::Cache, test_util::wait_for_waiters};
///
/// let users: Cache<u64, String> = Cache::builder().build_blocking();
/// std::thread::scope(|threads| {
///     let (go, gone) = std::sync::mpsc::channel();
///     let load = move || {
///         gone.recv()?;
///         Ok("Ada".to_owned())
///     };
///     threads.spawn(|| users.get_or_load(&7, load));
///     while users.stats().loads == 0 {
///         std::thread::yield_now();
///     }
///     threads.spawn(|| users.get_or_load(&7, || unreachable!("it joins")));
///     wait_for_waiters(1, || users.waiters(&7));
///     go.send(()).unwrap();
/// });
/// assert_eq!(users.stats().joins, 1);
/// ```
#[track_caller]
pub fn wait_for_waiters(count: usize, waiters: impl Fn() -> usize) {
    let begun = std::time::Instant::now();
    while waiters() < count {
        assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} in vain for {count} callers; there are {}", waiters());
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// As [`wait_for_waiters`], for tasks: yields to the others of its executor.
///
/// # Panics
///
/// If it takes more than 30 s.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::{Cache, Source};
/// # smol::block_on(async {
/// let users: Cache<u64, String> = Cache::builder().build();
/// oneflight_cache::test_util::async_wait_for_waiters(0, || users.waiters(&7)).await;
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// # }).unwrap();
/// ```
pub async fn async_wait_for_waiters(count: usize, waiters: impl Fn() -> usize) {
    let begun = std::time::Instant::now();
    while waiters() < count {
        assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} in vain for {count} callers; there are {}", waiters());
        futures_lite::future::yield_now().await;
    }
}

const LIMIT: Duration = Duration::from_secs(30);

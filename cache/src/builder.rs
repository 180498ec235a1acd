//! The settings of a cache.

mod life;
mod limits;
mod sharing;

use crate::blocking;
use crate::cache::{Cache, Spawner};
use crate::config::{Config, Sharing, Ttl};
use crate::error::BoxError;
use crate::fill;
use crate::inner::Inner;
use crate::memory::Memory;
use crate::store::{Blocking, BlockingStore, Store};
use crate::time::{AnyClock, BoxFuture, Clock, Timer};
use oneflight::refresh::Policy;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Builds a [`Cache`] or, with the same words, a [`blocking::Cache`].
///
/// | setting | default |
/// |---|---|
/// | [`capacity`](Self::capacity), [`memory`](Self::memory), [`store`](Self::store) | in memory, 10,000 entries |
/// | [`ttl`](Self::ttl), [`ttl_of`](Self::ttl_of) | 60 s |
/// | [`negative_ttl`](Self::negative_ttl) | `None` is a value like any other |
/// | [`ttl_jitter`](Self::ttl_jitter) | 0.05: up to 5 % shorter |
/// | [`early_refresh`](Self::early_refresh) | XFetch, `beta` 1, in the second half of the life |
/// | [`stale_while_revalidate`](Self::stale_while_revalidate) | zero: off |
/// | [`stale_if_error`](Self::stale_if_error) | zero: off |
/// | [`backoff`](Self::backoff) | 1 s, twice as long each time, 60 s at most |
/// | [`load_timeout`](Self::load_timeout) | 30 s |
/// | [`max_loads`](Self::max_loads), [`max_waiters`](Self::max_waiters) | no limit |
/// | [`max_refreshes`](Self::max_refreshes) | 64 at once |
/// | [`spawner`](Self::spawner) (tasks) | none: whoever starts a refresh does it before it returns |
/// | [`detach_loads`](Self::detach_loads) (tasks) | false: a load that nobody waits for any more is dropped |
/// | [`helper_threads`](Self::helper_threads) (threads) | 2, started when they are needed |
/// | [`clock`](Self::clock) | the system's monotonic one |
/// | [`timer`](Self::timer) | `futures-timer`, which works on any executor, and without one |
/// | [`rng`](Self::rng) | `fastrand` |
/// | [`lease`](Self::lease), [`max_hold`](Self::max_hold) (stores that processes share) | 5 s, renewed for 60 s |
/// | [`lease_wait`](Self::lease_wait), [`on_wait_timeout`](Self::on_wait_timeout) | 5 s, then it loads past the store |
/// | [`on_store_error`](Self::on_store_error) | it loads past the store |
/// | [`max_uncached_loads`](Self::max_uncached_loads) | 64 at once |
/// | [`breaker`](Self::breaker) | after 3 requests without an answer none for 1 s |
#[cfg_attr(any(feature = "metrics", feature = "tracing"), doc = "| [`name`](Self::name) | empty |")]
///
/// # Examples
///
/// ```
/// use oneflight_cache::Cache;
/// use std::time::Duration;
///
/// let pages: Cache<String, String> = Cache::builder()
///     .ttl(Duration::from_secs(30))
///     .stale_if_error(Duration::from_secs(300))
///     .spawner(|refresh| smol::spawn(refresh).detach())
///     .build();
/// # let _ = pages;
/// ```
#[must_use = "a builder does nothing until `build` or `build_blocking`"]
pub struct Builder<K, V, E = BoxError, S = Memory<K, V>> {
    store: S,
    config: Config<V>,
    spawner: Option<Arc<Spawner>>,
    detach_loads: bool,
    helper_threads: usize,
    types: PhantomData<fn() -> (K, E)>,
}

const CAPACITY: usize = 10_000;

impl<K: Hash + Eq, V: Clone, E> Builder<K, V, E> {
    pub(crate) fn new() -> Self {
        let config = Config {
            ttl: Ttl::Fixed(Duration::from_secs(60)),
            negative_ttl: None,
            ttl_jitter: 0.05,
            early_refresh: Policy::default(),
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            first_backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(60),
            load_timeout: Some(Duration::from_secs(30)),
            max_loads: usize::MAX,
            max_waiters: None,
            max_refreshes: 64,
            sharing: Sharing {
                fill: fill::Config::default(),
                max_uncached_loads: 64,
                breaker_failures: 3,
                breaker_open: Duration::from_secs(1),
            },
            clock: AnyClock::system(),
            timer: Arc::new(futures_timer::Delay::new),
            random: None,
            #[cfg(any(feature = "metrics", feature = "tracing"))]
            name: String::new(),
        };
        Self {
            store: Memory::new(CAPACITY),
            config,
            spawner: None,
            detach_loads: false,
            helper_threads: 2,
            types: PhantomData,
        }
    }

    /// How many entries are kept in memory. They are divided among the parts of the store, each of which gives up entries when its
    /// share is full: of 1,000 keys, say, some 930 stay in a cache of that capacity.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().capacity(50_000).build();
    /// # let _ = cache;
    /// ```
    pub fn capacity(self, entries: usize) -> Self {
        self.store(Memory::new(entries))
    }
}

impl<K, V, E, S> Builder<K, V, E, S> {
    /// The memory to keep values in, for one that [weighs](Memory::weighted) them, say.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Memory};
    ///
    /// let memory = Memory::weighted(1 << 20, |_key: &String, value: &String| value.len() as u64);
    /// let cache: Cache<String, String> = Cache::builder().memory(memory).build();
    /// # let _ = cache;
    /// ```
    pub fn memory<H>(self, memory: Memory<K, V, H>) -> Builder<K, V, E, Memory<K, V, H>> {
        self.store(memory)
    }

    /// Where to keep values: a [`Store`] for [`build`](Self::build), a [`BlockingStore`] for
    /// [`build_blocking`](Self::build_blocking).
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Memory};
    ///
    /// let cache = Cache::<String, String>::builder().store(Memory::new(100)).build();
    /// assert!(cache.store().is_empty());
    /// ```
    pub fn store<T>(self, store: T) -> Builder<K, V, E, T> {
        Builder {
            store,
            config: self.config,
            spawner: self.spawner,
            detach_loads: self.detach_loads,
            helper_threads: self.helper_threads,
            types: PhantomData,
        }
    }

    /// Where refreshes of a [`Cache`] go on beside the calls that started them: any function that takes a boxed future and has it
    /// polled. With smol `|refresh| smol::spawn(refresh).detach()`, with tokio `|refresh| drop(tokio::spawn(refresh))`.
    ///
    /// If it panics or drops the future, that refresh does not happen, and a later read may start another. Nor does it if the
    /// value has expired, and is not to be served stale either, before the executor comes to it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().spawner(|refresh| smol::spawn(refresh).detach()).build();
    /// # let _ = cache;
    /// ```
    pub fn spawner(mut self, spawner: impl Fn(BoxFuture) + Send + Sync + 'static) -> Self {
        self.spawner = Some(Arc::new(spawner));
        self
    }

    /// Whether a load of a [`Cache`] that nobody waits for any more goes on, on the [`spawner`](Self::spawner), until its value is
    /// stored. Otherwise it is dropped with its last caller, so a load that takes longer than all clients have patience never
    /// comes to an end: each begins it anew.
    ///
    /// The [`load_timeout`](Self::load_timeout) ends it all the same, and it counts among [`max_loads`](Self::max_loads).
    /// [`close`](Cache::close) does not wait for it. It concerns what is loaded one by one, by a [`Collector`](crate::Collector) too, not
    /// `get_or_load_many` and `load_many`; threads finish what they have begun in any case.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Error};
    /// # use std::time::Duration;
    /// # smol::block_on(async {
    /// let cache: Cache<String, String> =
    ///     Cache::builder().spawner(|work| smol::spawn(work).detach()).detach_loads(true).build();
    /// let slow = || async {
    ///     smol::Timer::after(Duration::from_millis(30)).await;
    ///     Ok("slow".to_owned())
    /// };
    /// let impatient = cache.call("k").timeout(Duration::from_millis(1)).get_or_load(slow).await;
    /// assert!(matches!(impatient, Err(Error::Deadline)));
    /// while cache.get("k").await?.is_none() {
    ///     smol::Timer::after(Duration::from_millis(5)).await;
    /// }
    /// # Ok::<(), Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn detach_loads(mut self, detach: bool) -> Self {
        self.detach_loads = detach;
        self
    }

    /// How many threads of its own a [`blocking::Cache`] refreshes in. Zero: whoever starts a refresh does it before it returns.
    ///
    /// A thread cannot be interrupted. So one whose refresh takes longer than the [`load_timeout`](Self::load_timeout) is replaced, if
    /// a refresh waits for it, and ends when its loader returns: while loaders hang there may be as many threads more as
    /// [`max_refreshes`](Self::max_refreshes) allows. Without a `load_timeout` none is replaced.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, blocking};
    ///
    /// let cache: blocking::Cache<String, String> = Cache::builder().helper_threads(4).build_blocking();
    /// # let _ = cache;
    /// ```
    pub fn helper_threads(mut self, threads: usize) -> Self {
        self.helper_threads = threads;
        self
    }

    /// Where the time comes from.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Clock, Time};
    ///
    /// /// A clock that stands still.
    /// struct Still;
    ///
    /// impl Clock for Still {
    ///     fn now(&self) -> Time {
    ///         Time::START
    ///     }
    /// }
    /// let cache: Cache<String, String> = Cache::builder().clock(Still).build();
    /// # let _ = cache;
    /// ```
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.config.clock = AnyClock::Other(Arc::new(clock));
        self
    }

    /// How time is waited for: by a [`Cache`] for its limits, and by both caches where they wait for another process or for the window
    /// of a [`Collector`](crate::Collector). With tokio's, for tasks that run there: `tokio::time::sleep`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let timer = |duration: Duration| async move {
    ///     smol::Timer::after(duration).await;
    /// };
    /// let cache: Cache<String, String> = Cache::builder().timer(timer).build();
    /// # let _ = cache;
    /// ```
    pub fn timer(mut self, timer: impl Timer) -> Self {
        self.config.timer = Arc::new(timer);
        self
    }

    /// Where random numbers come from, from 0 to 1: for [jitter](Self::ttl_jitter), [early refresh](Self::early_refresh),
    /// [back-off](Self::backoff) and the [breaker](Self::breaker). What is not a number counts as 0.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().rng(|| 0.5).build();
    /// # let _ = cache;
    /// ```
    pub fn rng(mut self, random: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.config.random = Some(Arc::new(random));
        self
    }

    /// What the cache is called in metrics and in events: the value of their label or field `cache`. With the feature `metrics` or
    /// `tracing`.
    ///
    /// With the feature `metrics` a cache asks the recorder for handles once, in [`build`](Self::build) or
    /// [`build_blocking`](Self::build_blocking): install the recorder first, or nothing is counted there. All but
    /// `oneflight_cache_load_seconds` are counters, of what [`Stats`](crate::Stats) tells:
    ///
    /// | name | is |
    /// |---|---|
    /// | `oneflight_cache_requests_total` | by the label `outcome`: `hit`, `early`, `stale`, `miss` |
    /// | `oneflight_cache_joins_total` | `joins` |
    /// | `oneflight_cache_loads_total` | `loads` |
    /// | `oneflight_cache_load_seconds` | a histogram of load times, in seconds |
    /// | `oneflight_cache_load_errors_total` | `load_errors` |
    /// | `oneflight_cache_refreshes_total` | `refreshes` |
    /// | `oneflight_cache_refreshes_ducked_total` | `ducked` |
    /// | `oneflight_cache_invalidated_loads_total` | `invalidated` |
    /// | `oneflight_cache_overloaded_total` | `overloaded` |
    /// | `oneflight_cache_store_errors_total` | `store_errors` |
    /// | `oneflight_cache_evictions_total` | `evictions`, told when something is stored |
    /// | `oneflight_cache_lease_events_total` | by the label `event`: `held`, `waited`, `taken_over`, `lost`, `late`, `superseded`, `fallback` (`fallbacks`), `breaker_opened` |
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().name("pages").build();
    /// # let _ = cache;
    /// ```
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = name.into();
        self
    }

    /// The cache for tasks.
    ///
    /// # Panics
    ///
    /// If [`detach_loads`](Self::detach_loads) is set, and there is no [`spawner`](Self::spawner) for them.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().build();
    /// # let _ = cache;
    /// ```
    pub fn build(self) -> Cache<K, V, E, S>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
        E: Send + Sync + 'static,
        S: Store<K, V>,
    {
        let missing = self.detach_loads && self.spawner.is_none();
        assert!(!missing, "oneflight-cache: detach_loads needs a spawner, see Builder::spawner");
        Cache::new(Inner::new::<K>(self.store, self.config), self.spawner, self.detach_loads)
    }

    /// The cache for threads.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, blocking};
    ///
    /// let cache: blocking::Cache<String, String> = Cache::builder().build_blocking();
    /// # let _ = cache;
    /// ```
    pub fn build_blocking(self) -> blocking::Cache<K, V, E, S>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
        E: Send + Sync + 'static,
        S: BlockingStore<K, V>,
    {
        blocking::Cache::new(Inner::new::<K>(Blocking(self.store), self.config), self.helper_threads)
    }
}

impl<K, V, E, S> fmt::Debug for Builder<K, V, E, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("early_refresh", &self.config.early_refresh)
            .field("spawner", &self.spawner.is_some())
            .field("detach_loads", &self.detach_loads)
            .field("helper_threads", &self.helper_threads)
            .finish_non_exhaustive()
    }
}

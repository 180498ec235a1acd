//! What both caches are made of: the store, what is known of its keys, and how a value gets there.

mod copy;
mod flight;
mod fly;
mod leased;
mod write;

pub(crate) use crate::fill::Seen;
pub(crate) use copy::{Panicked, copy};
pub(crate) use flight::{Flight, Next};
pub(crate) use leased::{Renewals, Side, fill_time};

use crate::config::{Config, Verdict};
use crate::entry::{Entry, Source};
use crate::error::{Error, StoreError};
use crate::fill::Published;
use crate::gate::{Gate, Pass};
use crate::loads::{Backoff, KeyHash, Load, Loads, Mark};
use crate::sharing::{Failure, Sharing};
use crate::stats::{Count, Counters, Stats};
use crate::store::Store;
use crate::time::{Time, nanos};
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Whether a load that has failed so has failed in its loader.
fn was_called<E>(error: Option<&Error<E>>) -> bool {
    !matches!(error, Some(Error::Overloaded | Error::Closed))
}

/// A cache without its flights.
pub(crate) struct Inner<V, S> {
    pub(crate) store: S,
    pub(crate) config: Config<V>,
    pub(crate) loads: Arc<Loads>,
    pub(crate) counters: Counters,
    pub(crate) coalescing: AtomicBool,
    pub(crate) early_refresh: AtomicBool,
    pub(crate) closed: AtomicBool,
    /// In nanoseconds; zero before the first load.
    usual_cost: AtomicU64,
    /// Loads that are on.
    loading: Gate,
    /// Refreshes that are on.
    pub(crate) refreshing: Gate,
    /// For a store with leases.
    pub(crate) sharing: Option<Box<Sharing>>,
}

/// What comes of a flight. `None` in the place of a result: nothing, somebody else must load.
pub(crate) type Flown<V, E> = Option<Result<Landed<V>, Error<E>>>;

/// A value that a flight has brought.
#[derive(Clone, Debug)]
pub(crate) struct Landed<V> {
    pub(crate) value: V,
    /// How old it was when it landed.
    pub(crate) age: Duration,
    /// Where it comes from, for the caller that led the flight.
    pub(crate) source: Source,
    /// The panic of `Clone`, if it could not be copied for the store.
    pub(crate) panicked: Option<Panicked>,
}

impl<V> Landed<V> {
    pub(crate) fn found(entry: Entry<V>, now: Time) -> Self {
        Self { age: now.since(entry.loaded_at()), value: entry.value, source: Source::Hit, panicked: None }
    }

    pub(crate) fn loaded(value: V, age: Duration, panicked: Option<Panicked>) -> Self {
        Self { value, age, source: Source::Loaded, panicked }
    }
}

/// Why a value is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// There is none that will do.
    Missing(Option<Seen>),
    /// There is one, of this version, which goes on to be served meanwhile, and took so long to load.
    Refresh { seen: u32, cost: Duration },
    /// Somebody asked for it, whatever there is.
    Asked,
}

/// Does something when it is dropped, however that comes about.
pub(crate) struct OnDrop<F: Fn()>(pub(crate) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A load of a key that has begun: what is written from now on makes it void. To be made before the loader is called, as that may
/// start its work before its future is polled.
pub(crate) struct Begun {
    pub(crate) load: Load,
    at: Time,
}

/// Leave to refresh a key. Whatever becomes of it, dropping it lets others refresh.
pub(crate) struct Leave {
    _mark: Mark,
    _pass: Pass,
}

impl<V, S> Inner<V, S> {
    pub(crate) fn new<K>(store: S, config: Config<V>) -> Self
    where
        S: Store<K, V>,
    {
        Self {
            sharing: store.lease().map(|_| Box::new(Sharing::new(&config.sharing))),
            store,
            loading: Gate::new(config.max_loads),
            refreshing: Gate::awaited(config.max_refreshes),
            counters: Counters::new(
                #[cfg(feature = "metrics")]
                &config.name,
            ),
            config,
            loads: Arc::new(Loads::new()),
            coalescing: AtomicBool::new(true),
            early_refresh: AtomicBool::new(true),
            closed: AtomicBool::new(false),
            usual_cost: AtomicU64::new(0),
        }
    }

    /// What the cache is called in events.
    #[cfg(feature = "tracing")]
    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.config.clock.now()
    }

    /// Whether what it does with the store takes no longer than a look-up. Not if others share it: then the store sees to the order
    /// of writes.
    #[inline]
    pub(crate) fn is_immediate<Q: ?Sized>(&self) -> bool
    where
        S: Store<Q, V>,
    {
        self.store.lease().is_none() && self.store.is_immediate()
    }

    /// Whether this read is to refresh a value that is fresh or may be served stale. The caller that gets leave has to do so.
    pub(crate) fn leave_to_refresh(
        &self,
        entry: &Entry<V>,
        verdict: Verdict,
        now: Time,
        hash: impl FnOnce() -> KeyHash,
    ) -> Option<Leave> {
        let wanted = match verdict {
            Verdict::Stale => true,
            Verdict::Fresh => {
                // What does not end is never near its end: as a number, so long a time is rounded.
                entry.fresh_until() != Time::NEVER
                    && self.early_refresh.load(Ordering::Relaxed)
                    && self.config.early_refresh.fires(entry.freshness(now), self.config.random())
            }
            _ => false,
        };
        if !wanted {
            return None;
        }
        let pass = self.refreshing.pass()?;
        // After that: whoever closes the cache waits for all who got through before.
        if self.is_closed() {
            return None;
        }
        let mark = self.loads.begin_refresh(hash(), now, self.config.load_timeout)?;
        self.counters.add(Count::Refreshes);
        Some(Leave { _mark: mark, _pass: pass })
    }

    /// How long loads take, on average, of late.
    fn usual_cost(&self) -> Duration {
        Duration::from_nanos(self.usual_cost.load(Ordering::Relaxed))
    }

    fn note_cost(&self, took: Duration) {
        let took = nanos(took);
        // Not exact if loads end at the same time, and need not be.
        let before = self.usual_cost.load(Ordering::Relaxed);
        let usual = if before == 0 { took } else { before / 4 * 3 + took / 4 };
        self.usual_cost.store(usual, Ordering::Relaxed);
    }

    /// Counts a run of a loader that has failed by this, or by a panic: once, however many keys it was for. If the loader was not
    /// called at all, nothing has failed.
    pub(crate) fn count_failed<E>(&self, error: Option<&Error<E>>) {
        if was_called(error) {
            self.counters.add(Count::LoadErrors);
        }
    }

    /// The load of a key has failed so. The next refresh waits, if there is a value to be refreshed, and it has not been written
    /// since.
    pub(crate) fn back_off<E>(&self, load: &Load, error: Option<&Error<E>>, had_value: bool) {
        if had_value && !load.is_void() && was_called(error) {
            self.hold_up(load.hash());
        }
    }

    /// A load has brought a value, and this has become of it. A refresh whose value could not be stored is due again at once, so
    /// the next one waits.
    fn settle(&self, load: &mut Load, is_refresh: bool, published: Published) {
        match published {
            Published::Failed | Published::Unknown if is_refresh => self.hold_up(load.hash()),
            _ => load.succeed(),
        }
    }

    /// Lets the next refresh of the key wait.
    pub(crate) fn hold_up(&self, hash: KeyHash) {
        self.loads.fail(hash, self.now(), self.backoff());
    }

    /// A load of the key has been waited for in vain, as long as one may take. Of all who have waited for it, the first lets the
    /// next refresh wait.
    pub(crate) fn hangs(&self, hash: KeyHash) {
        self.loads.hangs(hash, self.now(), self.backoff());
    }

    fn backoff(&self) -> Backoff {
        let Config { first_backoff, longest_backoff, .. } = self.config;
        Backoff { first: first_backoff, longest: longest_backoff, random: self.config.random() }
    }

    /// Lets the next refresh of the key wait for a moment: another process is at it.
    fn pause(&self, hash: KeyHash) {
        let now = self.now();
        self.loads.pause(hash, now, now.after(self.config.sharing.fill.listening_poll));
    }

    pub(crate) fn store_failed(&self, error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
        self.counters.add(Count::StoreErrors);
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "oneflight_cache", cache = self.name(), %error, "the store failed");
        Arc::new(error)
    }

    /// The flight has ended by this while it loaded for a store with leases, so the store is what failed.
    fn last_store_error<E>(&self) -> Error<E> {
        Error::Store(self.sharing.as_ref().expect("there are leases").last_error())
    }

    /// The entry of `key`. Of a store that fails, what is near, however old.
    #[inline]
    pub(crate) async fn look<Q: ?Sized>(&self, key: &Q, now: Time) -> Option<Entry<V>>
    where
        S: Store<Q, V>,
    {
        match self.get(key, now).await {
            Ok(found) => found,
            Err(_) => self.store.near(key, now),
        }
    }

    /// What is near, if it may be served. It counts as no answer of the store's, and needs none. What is older is asked for, as
    /// another process may have put a newer one into the store.
    #[inline]
    pub(crate) fn near<Q: ?Sized>(&self, key: &Q, now: Time) -> Option<Entry<V>>
    where
        S: Store<Q, V>,
    {
        self.store.near(key, now).filter(|entry| self.config.judge(entry, now).may_be_served())
    }

    /// The entry of `key`.
    #[inline]
    pub(crate) async fn get<Q: ?Sized>(&self, key: &Q, now: Time) -> Result<Option<Entry<V>>, Failure>
    where
        S: Store<Q, V>,
    {
        if let Some(entry) = self.near(key, now) {
            return Ok(Some(entry));
        }
        self.ask::<Q, _, _>(|| self.store.get(key, now)).await
    }

    pub(crate) fn begin<Q: Hash + ?Sized>(&self, key: &Q) -> Begun {
        Begun { load: self.loads.begin(self.loads.hash(key)), at: self.now() }
    }

    pub(crate) fn stats<K>(&self) -> Stats
    where
        S: Store<K, V>,
    {
        self.note_evictions::<K>();
        self.counters.stats(self.store.evictions())
    }

    /// Something was stored, which may have pushed out something else.
    pub(crate) fn note_evictions<Q: ?Sized>(&self)
    where
        S: Store<Q, V>,
    {
        #[cfg(feature = "metrics")]
        self.counters.evicted(self.store.evictions());
    }
}

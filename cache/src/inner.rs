//! What both caches are made of: the store, what is known of its keys, and how a value gets there.

use crate::config::{Config, Verdict};
use crate::entry::Entry;
use crate::error::Error;
use crate::fill::{Action, Config as FillConfig, Event, Fill, Outcome, Published};
use crate::gate::{Gate, Pass};
use crate::loads::{KeyHash, Load, Loads, Mark, Storing};
use crate::stats::{Count, Counters, Stats};
use crate::store::Store;
use crate::time::{Time, within};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

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
}

/// What comes of a flight. `None` in the place of a result: nothing, somebody else must load.
pub(crate) type Flown<V, E> = Option<Result<Landed<V>, Error<E>>>;

/// A value that a flight has brought.
#[derive(Clone, Debug)]
pub(crate) struct Landed<V> {
    pub(crate) value: V,
    /// When it landed.
    pub(crate) age: Duration,
    /// It was not loaded: somebody else had, by the time that this flight began.
    pub(crate) was_there: bool,
}

impl<V> Landed<V> {
    pub(crate) fn found(entry: Entry<V>, now: Time) -> Self {
        Self { age: now.since(entry.loaded_at()), value: entry.value, was_there: true }
    }
}

/// Why a value is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// There is none, or one that is too old.
    Missing,
    /// There is one, of this version, which goes on to be served meanwhile.
    Refresh { seen: u32 },
    /// Somebody asked for it, whatever there is.
    Asked,
}

/// Counts a load that ends by its own caller's panic, which nobody else does.
struct CountsPanic<'c>(&'c Counters);

impl Drop for CountsPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.add(Count::LoadErrors);
        }
    }
}

/// Does something when it is dropped, however that comes about.
struct OnDrop<F: Fn()>(F);

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
    pub(crate) fn new(store: S, config: Config<V>, #[cfg(feature = "metrics")] name: &str) -> Self {
        Self {
            store,
            loading: Gate::new(config.max_loads),
            refreshing: Gate::awaited(config.max_refreshes),
            config,
            loads: Arc::new(Loads::new()),
            counters: Counters::new(
                #[cfg(feature = "metrics")]
                name,
            ),
            coalescing: AtomicBool::new(true),
            early_refresh: AtomicBool::new(true),
            closed: AtomicBool::new(false),
            usual_cost: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.config.clock.now()
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
                self.early_refresh.load(Ordering::Relaxed)
                    && self.config.early_refresh.fires(entry.freshness(now), self.config.random())
            }
            _ => false,
        };
        if !wanted {
            return None;
        }
        let pass = self.refreshing.pass()?;
        // After that: whoever closes the cache waits for all who got through before.
        if self.closed.load(Ordering::SeqCst) {
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
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // Not exact if loads end at the same time, and need not be.
        let before = self.usual_cost.load(Ordering::Relaxed);
        let usual = if before == 0 { took } else { before / 4 * 3 + took / 4 };
        self.usual_cost.store(usual, Ordering::Relaxed);
    }

    /// A load has failed. The next refresh waits, if there is a value to be refreshed, and it has not been written since.
    pub(crate) fn failed(&self, load: &Load, had_value: bool) {
        self.counters.add(Count::LoadErrors);
        if had_value && !load.is_void() {
            self.hold_up(load.hash());
        }
    }

    /// Lets the next refresh of the key wait.
    pub(crate) fn hold_up(&self, hash: KeyHash) {
        let Config { first_backoff, longest_backoff, .. } = self.config;
        self.loads.fail(hash, self.now(), first_backoff, longest_backoff, self.config.random());
    }

    pub(crate) fn store_failed<E>(&self, error: impl std::error::Error + Send + Sync + 'static) -> Error<E> {
        self.counters.add(Count::StoreErrors);
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "oneflight_cache", %error, "the store failed");
        Error::store(error)
    }

    /// The entry of `key`. A store that fails has none.
    #[inline]
    pub(crate) async fn look<Q: ?Sized>(&self, key: &Q, now: Time) -> Option<Entry<V>>
    where
        S: Store<Q, V>,
    {
        self.found(self.store.get(key, now).await)
    }

    /// What was found. A store that fails has nothing.
    pub(crate) fn found(
        &self,
        found: Result<Option<Entry<V>>, impl std::error::Error + Send + Sync + 'static>,
    ) -> Option<Entry<V>> {
        found.unwrap_or_else(|error| {
            let _: Error<()> = self.store_failed(error);
            None
        })
    }

    pub(crate) fn begin<Q: Hash + ?Sized>(&self, key: &Q) -> Begun {
        Begun { load: self.loads.begin(self.loads.hash(key)), at: self.now() }
    }

    /// Loads a value by `loader`, unless there is one by now, and stores it, unless the key is written meanwhile. `None` from
    /// the loader is a panic that was caught.
    pub(crate) async fn fly<K, E, F>(
        &self,
        key: &K,
        why: Why,
        limit: Option<Duration>,
        begun: Begun,
        loader: F,
    ) -> Flown<V, E>
    where
        K: Hash,
        V: Clone,
        S: Store<K, V>,
        F: Future<Output = Option<Result<V, E>>>,
    {
        // Clocks are slow: it is now until the loader has run.
        let Begun { mut load, at: begun } = begun;
        let mut now = begun;
        let clock = |time: Time| time.since(Time::START);
        // No epoch is ever forgotten here.
        let config = FillConfig { epoch_life: Duration::MAX, ..FillConfig::default() };
        let mut fill = match why {
            Why::Missing | Why::Asked => Fill::read(config, 0, clock(now)),
            Why::Refresh { seen } => Fill::refresh(config, 0, seen, clock(now)),
        };
        let mut loader = Some(loader);
        let mut former = None;
        let mut found: Option<Entry<V>> = None;
        let mut loaded: Option<V> = None;
        let mut error = None;
        let mut action = fill.action();
        loop {
            let event = match action {
                // The caller has read, and found nothing that will do.
                Action::Read => Event::Miss { unreadable: None },
                Action::Acquire { seen } => match self.store.get(key, now).await {
                    Err(error) => {
                        let _: Error<E> = self.store_failed(error);
                        Event::StoreError { ambiguous: false }
                    }
                    Ok(entry) => {
                        let event = self.acquired(entry.as_ref(), seen, why, now);
                        if event == Event::Filled {
                            found = entry;
                        } else {
                            former = entry;
                        }
                        event
                    }
                },
                Action::Load { .. } => {
                    let (result, ended) = self.run(limit, now, loader.take()).await;
                    now = ended;
                    match result {
                        Some(Ok(value)) => {
                            loaded = Some(value);
                            Event::LoadOk { store: true }
                        }
                        failed => {
                            error = failed.and_then(Result::err);
                            Event::LoadFailed
                        }
                    }
                }
                Action::Publish { .. } => {
                    let value = loaded.as_ref().expect("what is published was loaded");
                    self.publish(key, &load, value.clone(), [begun, now], former.as_ref(), limit).await
                }
                Action::Release => Event::Released,
                Action::Wait { .. } => Event::Tick,
                Action::Done(outcome) => {
                    let found = found.map(|entry| Landed::found(entry, now));
                    let loaded = loaded.map(|value| Landed { value, age: now.since(begun), was_there: false });
                    return self.landed(&mut load, outcome, found, loaded, error, former.is_some());
                }
            };
            action = fill.step(event, clock(now)).unwrap_or_else(|refused| panic!("{refused}"));
        }
    }

    /// In this process a flight is its own lease: what is left to do is to look at what is there. `seen` is what a refresh is to
    /// replace.
    fn acquired(&self, entry: Option<&Entry<V>>, seen: Option<u32>, why: Why, now: Time) -> Event {
        match entry {
            _ if why == Why::Asked => Event::Acquired { epoch: 0 },
            Some(entry) if seen == Some(entry.version()) => Event::Acquired { epoch: 0 },
            Some(entry) if now < entry.fresh_until() => Event::Filled,
            _ if seen.is_some() => Event::Miss { unreadable: None },
            _ => Event::Acquired { epoch: 0 },
        }
    }

    /// Runs a loader that began `at` that time. Tells when it has ended, too.
    pub(crate) async fn run<T, E, F>(
        &self,
        limit: Option<Duration>,
        at: Time,
        loader: Option<F>,
    ) -> (Option<Result<T, Error<E>>>, Time)
    where
        F: Future<Output = Option<Result<T, E>>>,
    {
        let Some(_pass) = self.loading.pass() else {
            self.counters.add(Count::Overloaded);
            return (Some(Err(Error::Overloaded)), at);
        };
        self.counters.add(Count::Loads);
        let loader = loader.expect("a fill loads once");
        let _counts = CountsPanic(&self.counters);
        let result = match within(limit, &self.config.timer, loader).await {
            None => Some(Err(Error::LoadTimedOut)),
            Some(result) => result.map(|result| result.map_err(|error| Error::Load(Arc::new(error)))),
        };
        let ended = self.now();
        let took = ended.since(at);
        self.counters.took(took);
        self.note_cost(took);
        #[cfg(feature = "tracing")]
        match &result {
            Some(Ok(_)) => tracing::debug!(target: "oneflight_cache", ?took, "loaded"),
            Some(Err(_)) => tracing::warn!(target: "oneflight_cache", ?took, "the load failed"),
            None => tracing::warn!(target: "oneflight_cache", ?took, "the loader panicked"),
        }
        (result, ended)
    }

    /// Stores a value that was loaded from the one time to the other.
    pub(crate) async fn publish<K>(
        &self,
        key: &K,
        load: &Load,
        value: V,
        [begun, ended]: [Time; 2],
        former: Option<&Entry<V>>,
        limit: Option<Duration>,
    ) -> Event
    where
        S: Store<K, V>,
    {
        // The user's code, so not under the lock.
        let entry = self.config.entry(value, begun, ended, former);
        if entry.is_none() && former.is_none() {
            return Event::Stored;
        }
        let writing = self.loads.write(load.hash()).await;
        match load.storing(begun) {
            Storing::Yes => {}
            storing => {
                drop(writing);
                return if storing == Storing::Void { Event::Invalidated } else { Event::Superseded };
            }
        }
        let put = async {
            match entry {
                Some(entry) => self.store.put(key, entry, ended).await,
                // It is not to be kept, so what it replaces is not either.
                None => self.store.remove(key).await,
            }
        };
        // The value is there: its callers do not wait for ever for it to be stored.
        let put = within(limit, &self.config.timer, put).await;
        drop(writing);
        match put {
            Some(Ok(displaced)) => {
                drop(displaced);
                Event::Stored
            }
            Some(Err(error)) => {
                let _: Error<()> = self.store_failed(error);
                Event::StoreError { ambiguous: true }
            }
            None => {
                self.counters.add(Count::StoreErrors);
                Event::StoreError { ambiguous: true }
            }
        }
    }

    fn landed<E>(
        &self,
        load: &mut Load,
        outcome: Outcome,
        found: Option<Landed<V>>,
        loaded: Option<Landed<V>>,
        error: Option<Error<E>>,
        had_value: bool,
    ) -> Flown<V, E> {
        match outcome {
            Outcome::Loaded(published) => {
                if published == Published::Invalidated {
                    self.counters.add(Count::Invalidated);
                }
                load.succeed();
                loaded.map(Ok)
            }
            Outcome::LoadFailed => {
                if !matches!(error, Some(Error::Overloaded)) {
                    self.failed(load, had_value);
                }
                error.map(Err)
            }
            _ => {
                if outcome == Outcome::Ducked {
                    self.counters.add(Count::Ducked);
                }
                found.map(Ok)
            }
        }
    }

    /// Puts a value, or removes what is there, so that no load that is on undoes it. `forget` lets nobody join the flight of
    /// the key that is on.
    pub(crate) async fn write<Q, E>(&self, key: &Q, value: Option<V>, forget: impl Fn()) -> Result<(), Error<E>>
    where
        Q: Hash + ?Sized,
        S: Store<Q, V>,
    {
        let hash = self.loads.hash(key);
        let entry = match value {
            None => None,
            Some(value) => {
                let now = self.now();
                let former = self.look(key, now).await;
                // What the last load took says how early the next must be.
                let cost = former.map_or_else(|| self.usual_cost(), |former| former.cost());
                self.config.entry_put(value, now, cost)
            }
        };
        let is_put = entry.is_some();
        let writing = self.loads.write(hash).await;
        // When the store has been written to, as a flight that begins meanwhile may find what was there before: whoever comes
        // from then on must not join it, and it must not undo the write. Also if the store fails, or this is dropped.
        let ends = OnDrop(|| {
            self.loads.void(hash);
            forget();
        });
        let written = match entry {
            Some(entry) => self.store.put(key, entry, self.now()).await,
            None => self.store.remove(key).await,
        };
        drop(ends);
        drop(writing);
        let displaced = written.map_err(|error| self.store_failed(error))?;
        drop(displaced);
        if is_put {
            self.loads.succeed(hash);
        }
        Ok(())
    }

    /// Removes everything. `forget` lets nobody join any flight that is on.
    pub(crate) async fn clear<K, E>(&self, forget: impl Fn()) -> Result<(), Error<E>>
    where
        S: Store<K, V>,
    {
        let writing = self.loads.write_all().await;
        // As in `write`.
        let ends = OnDrop(|| {
            self.loads.void_all();
            forget();
        });
        let cleared = self.store.clear().await;
        drop(ends);
        drop(writing);
        let displaced = cleared.map_err(|error| self.store_failed(error))?;
        drop(displaced);
        Ok(())
    }

    pub(crate) fn stats<K>(&self) -> Stats
    where
        S: Store<K, V>,
    {
        self.counters.stats(self.store.evictions())
    }
}

//! The flight of a key: how its value gets into the store.

use super::{Begun, CountsPanic, Flown, Inner, Landed, Why, copy};
use crate::entry::{Entry, Fetched, Source};
use crate::error::Error;
use crate::fill::{Action, Config as FillConfig, Event, Fill, Outcome, Published};
use crate::loads::{Load, Storing};
use crate::stats::Count;
use crate::store::Store;
use crate::time::{Time, within};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

impl<V, S> Inner<V, S> {
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
            Why::Missing(_) | Why::Asked => Fill::read(config, 0, clock(now)),
            Why::Refresh { seen, .. } => Fill::refresh(config, 0, seen, clock(now)),
        };
        let mut loader = Some(loader);
        let mut former = None;
        let mut found: Option<Entry<V>> = None;
        let mut loaded: Option<V> = None;
        let mut error = None;
        let mut panicked = None;
        let mut action = fill.action();
        loop {
            let event = match action {
                // The caller has read, and found nothing that will do.
                Action::Read => Event::Miss { unreadable: None },
                Action::Acquire { seen } => match self.store.get(key, now).await {
                    Err(error) => {
                        self.store_failed(error);
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
                    match copy(value) {
                        Ok(value) => self.publish(key, &load, value, [begun, now], former.as_ref(), limit).await,
                        Err(panic) => {
                            panicked = Some(panic);
                            Event::StoreError { ambiguous: false }
                        }
                    }
                }
                Action::Release => Event::Released,
                Action::Wait { .. } => Event::Tick,
                Action::Done(outcome) => {
                    let loaded = loaded.map(|value| Landed::loaded(value, now.since(begun), panicked));
                    let landed = loaded.or_else(|| found.map(|entry| Landed::found(entry, now)));
                    let is_refresh = matches!(why, Why::Refresh { .. });
                    return self.landed(&mut load, outcome, landed, error, former.is_some(), is_refresh);
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
        let ended = self.count_run(at, result.as_ref());
        (result, ended)
    }

    /// A loader that began `at` that time has ended, now.
    fn count_run<T, E>(&self, at: Time, result: Option<&Result<T, Error<E>>>) -> Time {
        let ended = self.now();
        let took = ended.since(at);
        self.counters.took(took);
        self.note_cost(took);
        #[cfg(feature = "tracing")]
        match result {
            Some(Ok(_)) => tracing::debug!(target: "oneflight_cache", ?took, "loaded"),
            Some(Err(_)) => tracing::warn!(target: "oneflight_cache", ?took, "the load failed"),
            None => tracing::warn!(target: "oneflight_cache", ?took, "the loader panicked"),
        }
        #[cfg(not(feature = "tracing"))]
        let _ = result;
        ended
    }

    /// Loads as if there were no cache, but for its numbers.
    pub(crate) async fn bypass<E>(
        &self,
        limit: Option<Duration>,
        loader: impl Future<Output = Result<V, E>>,
    ) -> Result<Fetched<V>, Error<E>> {
        let begun = self.now();
        self.counters.add(Count::Loads);
        let _counts = CountsPanic(&self.counters);
        let result = match within(limit, &self.config.timer, loader).await {
            // The limit is the call's.
            None => Err(Error::Deadline),
            Some(result) => result.map_err(|error| Error::Load(Arc::new(error))),
        };
        if result.is_err() {
            self.counters.add(Count::LoadErrors);
        }
        let ended = self.count_run(begun, Some(&result));
        result.map(|value| Fetched { value, source: Source::Loaded, age: ended.since(begun) })
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
        let entry = self.config.entry(value, begun, ended, former.map(Entry::cost));
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
                self.store_failed(error);
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
        landed: Option<Landed<V>>,
        error: Option<Error<E>>,
        had_value: bool,
        is_refresh: bool,
    ) -> Flown<V, E> {
        match outcome {
            Outcome::Loaded(published) => {
                if published == Published::Invalidated {
                    self.counters.add(Count::Invalidated);
                }
                self.settle(load, is_refresh, published);
                landed.map(Ok)
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
                landed.map(Ok)
            }
        }
    }
}

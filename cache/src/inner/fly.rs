//! The flight of a key: how its value gets into the store.

use super::{Begun, CountsPanic, Flown, Inner, Landed, Why, copy};
use crate::entry::{Entry, Fetched, Source};
use crate::error::Error;
use crate::fill::Published;
use crate::loads::{Load, Unwanted};
use crate::stats::Count;
use crate::store::Store;
use crate::time::{Time, at_once, pinned_within, within};
use std::future::Future;
use std::hash::Hash;
use std::pin::pin;
use std::time::Duration;

impl Why {
    /// Whether a value is to be loaded, if this is what is there.
    fn calls_for_load<V>(self, entry: Option<&Entry<V>>, now: Time) -> bool {
        match (self, entry) {
            (Self::Asked, _) => true,
            (Self::Missing(_), entry) => entry.is_none_or(|entry| entry.fresh_until() <= now),
            // Not if what was to be refreshed has gone.
            (Self::Refresh { seen, .. }, entry) => entry.is_some_and(|entry| entry.version() == seen),
        }
    }
}

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
        F: Future<Output = Option<Result<V, Error<E>>>>,
    {
        // Clocks are slow: it is still that time until the loader has run.
        let Begun { mut load, at: begun } = begun;
        let is_refresh = matches!(why, Why::Refresh { .. });
        // The caller has read, and found nothing that will do. In this process a flight is its own lease: what is left to do is to
        // look at what is there by now.
        let (former, is_there) = match self.store.get(key, begun).await {
            Ok(entry) if !why.calls_for_load(entry.as_ref(), begun) => {
                if is_refresh {
                    self.counters.add(Count::Ducked);
                }
                let fresh = entry.filter(|entry| begun < entry.fresh_until());
                return fresh.map(|entry| Ok(Landed::found(entry, begun)));
            }
            Ok(entry) => (entry, true),
            Err(error) => {
                self.store_failed(error);
                // The old value may still be there.
                if is_refresh {
                    return None;
                }
                (None, false)
            }
        };
        let (result, ended) = self.run(limit, begun, loader).await;
        let value = match result {
            Some(Ok(value)) => value,
            failed => {
                let error = failed.and_then(Result::err);
                self.failed(&load, error.as_ref(), former.is_some());
                return error.map(Err);
            }
        };
        let (mut published, mut panicked) = (Published::Uncached, None);
        if is_there {
            published = match copy(&value) {
                Ok(copy) => self.publish(key, &mut load, copy, [begun, ended], former.as_ref(), limit).await,
                Err(panic) => {
                    panicked = Some(panic);
                    Published::Failed
                }
            };
        }
        if published == Published::Invalidated {
            self.counters.add(Count::Invalidated);
        }
        self.settle(&mut load, is_refresh, published);
        Some(Ok(Landed::loaded(value, ended.since(begun), panicked)))
    }

    /// Runs a loader that began `at` that time, unless there are too many. Tells when it has ended, too.
    pub(crate) async fn run<T, E, F>(
        &self,
        limit: Option<Duration>,
        at: Time,
        loader: F,
    ) -> (Option<Result<T, Error<E>>>, Time)
    where
        F: Future<Output = Option<Result<T, Error<E>>>>,
    {
        let Some(_pass) = self.loading.pass() else {
            self.counters.add(Count::Overloaded);
            return (Some(Err(Error::Overloaded)), at);
        };
        let loader = pin!(loader);
        self.counters.add(Count::Loads);
        let _counts = CountsPanic(&self.counters);
        let result = match pinned_within(limit, &self.config.timer, loader).await {
            None => Some(Err(Error::LoadTimedOut)),
            Some(result) => result,
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
        loader: impl Future<Output = Result<V, Error<E>>>,
    ) -> Result<Fetched<V>, Error<E>> {
        let begun = self.now();
        self.counters.add(Count::Loads);
        let _counts = CountsPanic(&self.counters);
        let result = match within(limit, &self.config.timer, loader).await {
            // The limit is the call's.
            None => Err(Error::Deadline),
            Some(result) => result,
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
        load: &mut Load,
        value: V,
        times: [Time; 2],
        former: Option<&Entry<V>>,
        limit: Option<Duration>,
    ) -> Published
    where
        S: Store<K, V>,
    {
        let [begun, ended] = times;
        // The user's code, so not under the lock.
        let entry = self.config.entry(value, begun, ended, former.map(Entry::cost));
        if entry.is_none() && former.is_none() {
            return Published::Stored;
        }
        let weight = entry.as_ref().map_or(1, |entry| self.store.weigh(key, &entry.value));
        if self.is_immediate::<K>() {
            let stored = load.store_at_once(begun, || match entry {
                Some(entry) => at_once(self.store.put_weighed(key, entry, weight, ended)),
                None => at_once(self.store.remove(key)),
            });
            return match stored {
                Ok(stored) => self.published(Some(stored)),
                Err(unwanted) => unwanted.into(),
            };
        }
        let writing = self.loads.write(load.hash()).await;
        if let Err(unwanted) = load.may_store(begun) {
            drop(writing);
            return unwanted.into();
        }
        let put = async {
            match entry {
                Some(entry) => self.store.put_weighed(key, entry, weight, ended).await,
                // It is not to be kept, so what it replaces is not either.
                None => self.store.remove(key).await,
            }
        };
        // The value is there: its callers do not wait for ever for it to be stored.
        let put = within(limit, &self.config.timer, put).await;
        drop(writing);
        self.published(put)
    }

    /// What has become of a value that was put. `None`: that took too long. No lock is held here.
    fn published<T>(&self, put: Option<Result<T, impl std::error::Error + Send + Sync + 'static>>) -> Published {
        match put {
            Some(Ok(displaced)) => {
                drop(displaced);
                Published::Stored
            }
            Some(Err(error)) => {
                self.store_failed(error);
                Published::Unknown
            }
            None => {
                self.counters.add(Count::StoreErrors);
                Published::Unknown
            }
        }
    }
}

impl From<Unwanted> for Published {
    fn from(unwanted: Unwanted) -> Self {
        match unwanted {
            Unwanted::Void => Self::Invalidated,
            Unwanted::Superseded => Self::Superseded,
        }
    }
}

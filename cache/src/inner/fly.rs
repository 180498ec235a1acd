//! The flight of a key: how its value gets into the store.

use super::{Begun, Flown, Inner, Landed, OnDrop, Why, copy};
use crate::entry::{Entry, Fetched, Source};
use crate::error::Error;
use crate::fill::Published;
use crate::loads::{Load, Unwanted};
use crate::stats::Count;
use crate::store::Store;
use crate::time::{Time, at_once, within};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::pin::{Pin, pin};
use std::time::Duration;

/// What a flight finds when it begins, and is to replace.
pub(crate) struct Former<V> {
    pub(crate) entry: Option<Entry<V>>,
    /// The store has said so.
    is_known: bool,
    why: Why,
}

impl<V> Former<V> {
    /// Whether what may be there is to be replaced by what was loaded. Not if nobody could see whether there is a value, unless
    /// somebody has asked for another, whatever there is.
    fn is_to_go(&self) -> bool {
        self.is_known || self.why == Why::Asked
    }

    /// Whether there is, or may be, something to be replaced.
    fn may_be_there(&self) -> bool {
        self.entry.is_some() || !self.is_known
    }

    /// Whether that is still right if what replaces it cannot be stored: not if somebody has asked for another.
    fn may_stay(&self) -> bool {
        !self.may_be_there() || self.why != Why::Asked
    }
}

impl Why {
    pub(super) fn is_refresh(self) -> bool {
        matches!(self, Self::Refresh { .. })
    }

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
        // The caller has read, and found nothing that will do. In this process a flight is its own lease: what is left to do is to
        // look at what is there by now.
        let found = self.store.get(key, begun).await;
        let former = match self.look_again(found, why, begun) {
            Ok(former) => former,
            Err(flown) => return flown,
        };
        let panics = || self.back_off(&load, None::<&Error<E>>, former.entry.is_some());
        let (result, ended) = self.run(limit, begun, !why.is_refresh(), loader, panics).await;
        match result {
            Some(Ok(value)) => Some(Ok(self.land(key, &mut load, value, [begun, ended], &former, limit).await)),
            failed => {
                let error = failed.and_then(Result::err);
                self.count_failed(error.as_ref());
                self.back_off(&load, error.as_ref(), former.entry.is_some());
                error.map(Err)
            }
        }
    }

    /// What the flight that begins at that time finds. `Err`: that ends it.
    #[inline]
    pub(crate) fn look_again<E>(
        &self,
        found: Result<Option<Entry<V>>, impl std::error::Error + Send + Sync + 'static>,
        why: Why,
        begun: Time,
    ) -> Result<Former<V>, Flown<V, E>> {
        self.find_again(found.map_err(|error| _ = self.store_failed(error)), why, begun)
    }

    /// That, where it was counted already that the store has failed.
    #[inline]
    pub(crate) fn find_again<E>(
        &self,
        found: Result<Option<Entry<V>>, ()>,
        why: Why,
        begun: Time,
    ) -> Result<Former<V>, Flown<V, E>> {
        match found {
            Ok(entry) if !why.calls_for_load(entry.as_ref(), begun) => {
                if why.is_refresh() {
                    self.counters.add(Count::Ducked);
                }
                let fresh = entry.filter(|entry| begun < entry.fresh_until());
                Err(fresh.map(|entry| Ok(Landed::found(entry, begun))))
            }
            Ok(entry) => Ok(Former { entry, is_known: true, why }),
            // The old value may still be there.
            Err(()) if why.is_refresh() => Err(None),
            Err(()) => Ok(Former { entry: None, is_known: false, why }),
        }
    }

    /// Stores what was loaded from the one time to the other, unless it is not known what that would replace.
    #[inline]
    pub(crate) async fn land<K>(
        &self,
        key: &K,
        load: &mut Load,
        value: V,
        times: [Time; 2],
        former: &Former<V>,
        limit: Option<Duration>,
    ) -> Landed<V>
    where
        V: Clone,
        S: Store<K, V>,
    {
        let (mut published, mut panicked) = (Published::Uncached, None);
        if former.is_to_go() {
            published = match copy(&value) {
                Ok(copy) => self.publish(key, load, copy, times, former, limit).await,
                Err(panic) => {
                    panicked = Some(panic);
                    Published::Failed
                }
            };
        }
        if published == Published::Invalidated {
            self.counters.add(Count::Invalidated);
        }
        self.note_evictions::<K>();
        self.settle(load, former.why.is_refresh(), published);
        let [begun, ended] = times;
        Landed::loaded(value, ended.since(begun), panicked)
    }

    /// Runs a loader that began `at` that time, unless there are too many, or the cache is closed and that `ends_it`. Tells when it
    /// has ended, too. If it panics, and that is not caught, `panics` is done first.
    pub(crate) async fn run<T, E, F>(
        &self,
        limit: Option<Duration>,
        at: Time,
        ends_it: bool,
        loader: F,
        panics: impl Fn(),
    ) -> (Option<Result<T, Error<E>>>, Time)
    where
        F: Future<Output = Option<Result<T, Error<E>>>>,
    {
        if ends_it && self.is_closed() {
            return (Some(Err(Error::Closed)), at);
        }
        let Some(_pass) = self.loading.pass() else {
            self.counters.add(Count::Overloaded);
            return (Some(Err(Error::Overloaded)), at);
        };
        let loader = pin!(loader);
        self.counters.add(Count::Loads);
        let result = match within(limit, &self.config.timer, self.counting_panics(at, loader, panics)).await {
            None => Some(Err(Error::LoadTimedOut)),
            Some(result) => result,
        };
        let ended = self.count_run(at, result.as_ref());
        (result, ended)
    }

    /// Counts it if `load`, which began `at` that time, panics, which ends the call whose loader it is, and does what is to be done
    /// then.
    fn counting_panics<F: Future>(
        &self,
        at: Time,
        mut load: Pin<&mut F>,
        panics: impl Fn(),
    ) -> impl Future<Output = F::Output> {
        poll_fn(move |cx| {
            let panicked = OnDrop(|| {
                self.counters.add(Count::LoadErrors);
                self.count_run(at, None::<&Result<(), Error<Infallible>>>);
                panics();
            });
            let polled = load.as_mut().poll(cx);
            std::mem::forget(panicked);
            polled
        })
    }

    /// A loader that began `at` that time has ended, now. `None`: by a panic.
    fn count_run<T, E>(&self, at: Time, result: Option<&Result<T, Error<E>>>) -> Time {
        let ended = self.now();
        let took = ended.since(at);
        self.counters.took(took);
        self.note_cost(took);
        #[cfg(feature = "tracing")]
        match result {
            Some(Ok(_)) => tracing::debug!(target: "oneflight_cache", cache = self.name(), ?took, "loaded"),
            Some(Err(_)) => tracing::warn!(target: "oneflight_cache", cache = self.name(), ?took, "the load failed"),
            None => tracing::warn!(target: "oneflight_cache", cache = self.name(), ?took, "the loader panicked"),
        }
        #[cfg(not(feature = "tracing"))]
        let _ = result;
        ended
    }

    /// Loads as if there were no cache, but for its numbers.
    pub(crate) async fn bypass<T, E>(
        &self,
        limit: Option<Duration>,
        loader: impl Future<Output = Result<T, Error<E>>>,
    ) -> Result<Fetched<T>, Error<E>> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        let begun = self.now();
        self.counters.add(Count::Loads);
        let loader = pin!(loader);
        let result = match within(limit, &self.config.timer, self.counting_panics(begun, loader, || ())).await {
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
    async fn publish<K>(
        &self,
        key: &K,
        load: &mut Load,
        value: V,
        times: [Time; 2],
        former: &Former<V>,
        limit: Option<Duration>,
    ) -> Published
    where
        S: Store<K, V>,
    {
        let [begun, ended] = times;
        // The user's code, so not under the lock.
        let entry = self.config.entry(value, begun, ended, former.entry.as_ref().map(Entry::cost));
        if entry.is_none() && !former.may_be_there() && load.end_if_alone() {
            return Published::Stored;
        }
        let weight = entry.as_ref().map_or(1, |entry| self.store.weigh(key, &entry.value));
        let may_stay = former.may_stay();
        // What is removed comes along, as it is not to be dropped under a lock.
        if self.is_immediate::<K>() {
            let remove = || at_once(self.store.remove(key));
            let stored = load.store_at_once(begun, || match entry {
                Some(entry) => at_once(self.store.put_weighed(key, entry, weight, ended))
                    .map_err(|error| (error, (!may_stay).then(remove))),
                None => remove().map_err(|error| (error, None)),
            });
            return match stored {
                Ok(stored) => self.published(Some(stored)),
                Err(unwanted) => unwanted.into(),
            };
        }
        // In a box, as the others need not have the room.
        let put = Box::pin(async {
            let _writing = self.loads.write(load.hash()).await;
            load.may_store(begun)?;
            Ok(match entry {
                Some(entry) => match self.store.put_weighed(key, entry, weight, ended).await {
                    Err(error) if !may_stay => Err((error, Some(self.store.remove(key).await))),
                    stored => stored.map_err(|error| (error, None)),
                },
                // It is not to be kept, so what it replaces is not either, nor what a load that began earlier has stored.
                None => self.store.remove(key).await.map_err(|error| (error, None)),
            })
        });
        // The value is there: its callers do not wait for ever for it to be stored, nor for others that write.
        match within(limit, &self.config.timer, put).await.transpose() {
            Ok(stored) => self.published(stored),
            Err(unwanted) => Unwanted::into(unwanted),
        }
    }

    /// What has become of a value that was put. `None`: that took too long. No lock is held here.
    fn published<T, E>(&self, put: Option<Result<T, Unstored<T, E>>>) -> Published
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        match put {
            Some(Ok(displaced)) => {
                drop(displaced);
                Published::Stored
            }
            Some(Err((error, removed))) => {
                self.store_failed(error);
                self.removed(removed);
                Published::Unknown
            }
            None => {
                self.counters.add(Count::StoreErrors);
                Published::Unknown
            }
        }
    }
}

/// Why a value was not stored, and what has become of the one that it was to replace, if that was to go.
type Unstored<T, E> = (E, Option<Result<T, E>>);

impl From<Unwanted> for Published {
    fn from(unwanted: Unwanted) -> Self {
        match unwanted {
            Unwanted::Void => Self::Invalidated,
            Unwanted::Superseded => Self::Superseded,
        }
    }
}

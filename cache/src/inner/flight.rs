//! One flight of a key in a store that several processes share: what its fill says, done.

mod requests;
#[cfg(test)]
mod tests;

use super::leased::fill_time;
use super::{Begun, Flown, Inner, Landed, Panicked, Renewals, Side, Why};
use crate::entry::{Entry, Source};
use crate::error::Error;
use crate::fill::{self, Action, Event, Fallback, Fill, OnStale, Outcome};
use crate::lease::{Lease, Push, Told, Watch};
use crate::loads::Load;
use crate::nonce::nonce;
use crate::stats::Count;
use crate::store::Store;
use crate::time::Time;
use crate::time_limit::{TimeLimit, is_past, time_left};
use event_listener::EventListener;
use futures_lite::future::or;
use std::future::Future;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Instant;

/// A flight with a lease, or on the way to one. If it is dropped, it gives the lease up.
pub(crate) struct Flight<'f, K, V, E, S> {
    inner: &'f Inner<V, S>,
    key: &'f K,
    side: Box<dyn Side + 'f>,
    why: Why,
    fill: Fill,
    load: Load,
    begun: Time,
    now: Time,
    waker: Arc<event_listener::Event>,
    watch: Option<Box<dyn Watch>>,
    /// Armed before the lease is asked for.
    pushed: Option<EventListener>,
    has_waited: bool,
    /// What the store has said to who wanted the lease, if it was not given.
    unleased: Option<Unleased>,
    /// Whether there is an old value, which may be served if no new one is stored. If nobody knows, there may be.
    has_old: bool,
    /// Why there is no value, if there will be none.
    reason: Reason,
    found: Option<Entry<V>>,
    /// How often the key was written before its loader ran, if what that brings is to be kept near alone.
    near_writes: Option<u64>,
    loaded: Option<V>,
    error: Option<Error<E>>,
    panicked: Option<Panicked>,
}

#[derive(Clone, Copy, Debug)]
enum Reason {
    Store,
    Held,
}

/// Why a flight has no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unleased {
    /// The store refused, and does all else: it may have no room.
    Refused,
    /// There was no answer: it may have one.
    Unanswered,
}

/// What a flight cannot do by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Load { uncached: bool },
    Wait { until: fill::Time },
    Done(Outcome),
}

impl<'f, K, V, E, S> Flight<'f, K, V, E, S> {
    pub(crate) fn new(inner: &'f Inner<V, S>, key: &'f K, why: Why, begun: Begun, side: Box<dyn Side + 'f>) -> Self
    where
        S: Store<K, V>,
    {
        let Begun { load, at: now } = begun;
        let mut config = fill::Config { on_stale: OnStale::Replace, ..inner.config.sharing.fill };
        if why == Why::Asked {
            // Not the old value, which the caller has asked to be replaced.
            let instead = |how| if how == Fallback::ServeStale { Fallback::LoadUncached } else { how };
            (config.on_deadline, config.on_store_error) = (instead(config.on_deadline), instead(config.on_store_error));
        }
        let fill = match why {
            Why::Missing(_) | Why::Asked => Fill::read(config, nonce(), fill_time(now)),
            Why::Refresh { seen, .. } => Fill::refresh(config, nonce(), seen, fill_time(now)),
        };
        let waker = Arc::new(event_listener::Event::new());
        let told = told(Arc::clone(&waker), side.forgets());
        let time_limit = side.deadline().map(TimeLimit::until);
        let watch = inner.store.lease().and_then(|lease| lease.watch(key, told));
        drop(time_limit);
        Self {
            inner,
            key,
            side,
            why,
            fill,
            load,
            begun: now,
            now,
            waker,
            watch,
            pushed: None,
            has_waited: false,
            has_old: match why {
                Why::Missing(seen) => seen.is_some_and(|seen| seen.is_usable),
                Why::Refresh { .. } | Why::Asked => true,
            },
            unleased: None,
            reason: Reason::Store,
            found: None,
            near_writes: None,
            loaded: None,
            error: None,
            panicked: None,
        }
    }

    /// Goes on until there is something that it cannot do by itself.
    pub(crate) async fn go_on(&mut self) -> Next
    where
        K: Hash,
        V: Clone,
        S: Store<K, V>,
    {
        loop {
            let event = match self.fill.action() {
                Action::Read => self.read().await,
                Action::Acquire { seen } => self.acquire(seen).await,
                Action::Publish { epoch } => self.publish(epoch).await,
                Action::Release => self.release().await,
                Action::Load { uncached } => return Next::Load { uncached },
                Action::Wait { until } => return Next::Wait { until },
                Action::Done(outcome) => return Next::Done(outcome),
            };
            self.step(event);
        }
    }

    pub(crate) fn step(&mut self, event: Event) {
        self.now = self.inner.now();
        if let Err(refused) = self.fill.step(event, fill_time(self.now)) {
            panic!("{refused}");
        }
    }

    pub(crate) fn is_refresh(&self) -> bool {
        self.why.is_refresh()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.side.deadline()
    }

    pub(crate) fn is_too_late(&self) -> bool {
        is_past(self.deadline())
    }

    /// Whether something was pushed since the lease was asked for. If not, the next push wakes the task.
    pub(crate) fn poll_pushed(&mut self, cx: &mut Context<'_>) -> bool {
        let is_pushed = self.pushed.as_mut().is_some_and(|pushed| Pin::new(pushed).poll(cx).is_ready());
        if is_pushed {
            self.pushed = None;
        }
        is_pushed
    }

    /// Its caller's time is up: it brings nothing. Those who wait load for themselves. The next refresh waits: it would take as long.
    pub(crate) fn ends_late(self) -> Flown<V, E> {
        self.inner.back_off(&self.load, None::<&Error<E>>, self.is_refresh());
        None
    }

    /// Sleeps until something is pushed, or until then. Nothing is lost if it is dropped.
    pub(crate) async fn wait(&mut self, until: fill::Time) -> Event {
        let sleep = until.saturating_sub(fill_time(self.inner.now()));
        let sleep = time_left(self.deadline()).map_or(sleep, |left| left.min(sleep));
        let sleep = self.inner.config.timer.sleep(sleep);
        let ticks = async {
            sleep.await;
            Event::Tick
        };
        match &mut self.pushed {
            None => ticks.await,
            Some(pushed) => {
                let woken = async {
                    pushed.await;
                    Event::Woken
                };
                or(woken, ticks).await
            }
        }
    }

    /// What another flight of this process has left near since the caller looked, for one that is to load past the store.
    pub(crate) fn find_near(&self) -> Option<Landed<V>>
    where
        S: Store<K, V>,
    {
        if self.why == Why::Asked {
            return None;
        }
        let entry = self.inner.store.near(self.key, self.now)?;
        (self.now < entry.fresh_until()).then(|| Landed::found(entry, self.now))
    }

    /// Its loader begins to run.
    pub(crate) fn loads_from(&mut self, begun: Time) {
        self.begun = begun;
    }

    /// Its loader is about to run. If the store has failed, what that brings is kept near.
    pub(crate) fn about_to_load(&mut self)
    where
        S: Store<K, V>,
    {
        self.near_writes = self.unleased.and_then(|_| self.inner.store.near_writes(self.key));
    }

    /// Its loader panics, which ends it.
    pub(crate) fn panics(&self) {
        self.inner.back_off(&self.load, None::<&Error<E>>, self.has_old);
    }

    /// What `load` comes to, while the lease is renewed.
    pub(crate) async fn renewing<T>(&self, load: impl Future<Output = T>) -> T {
        match self.renewals() {
            None => load.await,
            Some(renewals) => or(load, async { match renewals.await {} }).await,
        }
    }

    /// Renews the lease, if it is to be renewed, until this is dropped.
    pub(crate) fn renewals(&self) -> Option<Renewals<'_>> {
        let at = self.fill.renewal()?;
        Some(self.side.renew(self.fill.clone(), at.saturating_sub(fill_time(self.inner.now()))))
    }

    /// What the flight brings to its callers.
    pub(crate) fn landed(mut self, outcome: Outcome) -> Flown<V, E> {
        let is_refresh = self.is_refresh();
        match outcome {
            Outcome::Loaded(published) => {
                #[cfg(feature = "tracing")]
                tracing::debug!(target: "oneflight_cache", cache = self.inner.name(), ?published, "a flight with a lease has ended");
                self.inner.settle(&mut self.load, is_refresh, published);
                let age = self.now.since(self.begun);
                self.loaded.take().map(|value| Ok(Landed::loaded(value, age, self.panicked.take())))
            }
            Outcome::LoadFailed => {
                let error = self.error.take();
                self.inner.back_off(&self.load, error.as_ref(), self.has_old);
                error.map(Err)
            }
            Outcome::Hit | Outcome::Filled => {
                if self.has_waited {
                    self.inner.counters.add(Count::Waited);
                }
                self.take_found()
            }
            Outcome::Ducked => {
                self.inner.counters.add(Count::Ducked);
                if self.has_waited {
                    // Another process is at it: no use in asking again at once.
                    self.inner.pause(self.load.hash());
                }
                self.take_found()
            }
            // Those who wait load for themselves.
            Outcome::StoreFailed if is_refresh => {
                self.inner.hold_up(self.load.hash());
                None
            }
            Outcome::TimedOut | Outcome::StoreFailed | Outcome::Stale { .. } => Some(Err(match self.reason {
                Reason::Held => Error::Held,
                Reason::Store => self.inner.last_store_error(),
            })),
        }
    }

    fn take_found(&mut self) -> Flown<V, E> {
        let source = if self.has_waited { Source::Joined } else { Source::Hit };
        self.found.take().map(|entry| Ok(Landed { source, ..Landed::found(entry, self.now) }))
    }
}

/// Who is told what is pushed about the key of a flight: wakes it, and lets nobody join it any more if the key was written.
fn told(waker: Arc<event_listener::Event>, forget: Box<dyn Fn() + Send + Sync>) -> Told {
    Box::new(move |push| {
        if push == Push::Written {
            // It may drop what is the user's. That does not harm who tells.
            let _ = catch_unwind(AssertUnwindSafe(&forget));
        }
        waker.notify(usize::MAX);
    })
}

impl<K, V, E, S> Drop for Flight<'_, K, V, E, S> {
    fn drop(&mut self) {
        if self.fill.may_hold() {
            self.side.abandon(self.fill.token());
        }
    }
}

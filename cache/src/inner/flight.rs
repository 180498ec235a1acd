//! One flight of a key in a store that several processes share: what its fill says, done.

use super::leased::clock;
use super::{Begun, Flown, Inner, Landed, Panicked, Renewals, Side, Why, copy};
use crate::entry::{Entry, Source};
use crate::error::Error;
use crate::fill::{self, Action, Event, Fallback, Fill, OnStale, Outcome, Version};
use crate::lease::{Acquired, Claim, Lease, Publication, Push, Told, Watch};
use crate::loads::Load;
use crate::nonce::nonce;
use crate::sharing::Failure;
use crate::stats::Count;
use crate::store::Store;
use crate::time::Time;
use crate::time_limit::TimeLimit;
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
    /// What came of asking for the lease, if it was not given.
    unleased: Option<Unleased>,
    /// Why there is no value, if there will be none.
    reason: Reason,
    found: Option<Entry<V>>,
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
            Why::Missing(_) | Why::Asked => Fill::read(config, nonce(), clock(now)),
            Why::Refresh { seen, .. } => Fill::refresh(config, nonce(), seen, clock(now)),
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
            unleased: None,
            reason: Reason::Store,
            found: None,
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
        if let Err(refused) = self.fill.step(event, clock(self.now)) {
            panic!("{refused}");
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.side.deadline()
    }

    pub(crate) fn is_too_late(&self) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= Instant::now())
    }

    fn lease(&self) -> &'f S::Lease
    where
        S: Store<K, V>,
    {
        self.inner.store.lease().expect("there are leases")
    }

    fn failed(&mut self, failure: Failure) -> Event {
        self.reason = Reason::Store;
        Event::StoreError { ambiguous: failure.is_ambiguous }
    }

    /// The caller has read before, unless it wants a new value whatever there is.
    async fn read(&mut self) -> Event
    where
        S: Store<K, V>,
    {
        match self.why {
            Why::Missing(Some(seen)) if seen.is_usable => Event::Stale { version: seen.version },
            Why::Missing(seen) => Event::Miss { unreadable: seen.map(|seen| seen.version) },
            _ => match self.inner.get(self.key, self.now).await {
                Ok(Some(entry)) => Event::Stale { version: entry.version() },
                Ok(None) => Event::Miss { unreadable: None },
                Err(failure) => self.failed(failure),
            },
        }
    }

    async fn acquire(&mut self, seen: Option<Version>) -> Event
    where
        S: Store<K, V>,
    {
        self.pushed = self.watch.is_some().then(|| self.waker.listen());
        let listening = self.watch.as_ref().is_some_and(|watch| watch.is_listening());
        let fill::Config { lease, epoch_life, .. } = self.inner.config.sharing.fill;
        let claim = Claim { token: self.fill.token(), lease, epoch_life, seen };
        let request = || self.lease().acquire(self.key, claim, self.now);
        let time_limit = self.deadline().map(TimeLimit::until);
        let acquired = self.inner.ask::<K, _, _>(request).await;
        drop(time_limit);
        match acquired {
            Ok(Acquired::Leader { epoch }) => {
                if self.has_waited {
                    self.inner.counters.add(Count::TakenOver);
                }
                Event::Acquired { epoch }
            }
            // Its caller wants none that was there before. What was seen may have been near, and this behind it.
            Ok(Acquired::Filled(entry)) if self.why == Why::Asked && !self.has_waited => {
                Event::Miss { unreadable: Some(entry.version()) }
            }
            Ok(Acquired::Filled(entry)) if self.inner.now() < entry.fresh_until() => {
                self.found = Some(entry);
                Event::Filled
            }
            // It has gone out of date meanwhile.
            Ok(Acquired::Filled(entry)) => Event::Miss { unreadable: Some(entry.version()) },
            Ok(Acquired::Unreadable { version }) => Event::Miss { unreadable: Some(version) },
            Ok(Acquired::Gone) => Event::Miss { unreadable: None },
            Ok(Acquired::Held { left, holder }) => {
                self.inner.counters.add(Count::Held);
                self.reason = Reason::Held;
                self.has_waited = true;
                Event::Held { left, holder, listening }
            }
            Err(failure) => {
                self.unleased = Some(if failure.is_ambiguous { Unleased::Unanswered } else { Unleased::Refused });
                self.failed(failure)
            }
        }
    }

    /// Whether something was pushed since the lease was asked for. If not, the next push wakes the task.
    pub(crate) fn poll_pushed(&mut self, cx: &mut Context<'_>) -> bool {
        let is_pushed = self.pushed.as_mut().is_some_and(|pushed| Pin::new(pushed).poll(cx).is_ready());
        if is_pushed {
            self.pushed = None;
        }
        is_pushed
    }

    /// Sleeps until something is pushed, or until then. Nothing is lost if it is dropped.
    pub(crate) async fn wait(&mut self, until: fill::Time) -> Event {
        let left = self.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let sleep = until.saturating_sub(clock(self.inner.now()));
        let sleep = left.map_or(sleep, |left| left.min(sleep));
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

    /// The time, as its loader begins to run.
    pub(crate) fn now_loading(&mut self) -> Time {
        self.begun = self.inner.now();
        self.begun
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
        Some(self.side.renew(self.fill.clone(), at.saturating_sub(clock(self.inner.now()))))
    }

    /// What the loader has come to. `None`: a panic that was caught.
    pub(crate) async fn loaded(&mut self, result: Option<Result<V, Error<E>>>, ended: Time)
    where
        K: Hash,
        V: Clone,
        S: Store<K, V>,
    {
        self.now = ended;
        let event = match result {
            Some(Ok(value)) => {
                let is_void = self.load.is_void();
                if is_void {
                    self.inner.counters.add(Count::Invalidated);
                }
                let store = !is_void && self.set_found(&value).await;
                if self.why == Why::Asked && self.unleased == Some(Unleased::Refused) {
                    self.remove_old().await;
                }
                self.loaded = Some(value);
                Event::LoadOk { store }
            }
            failed => {
                self.error = failed.and_then(Result::err);
                Event::LoadFailed
            }
        };
        self.step(event);
    }

    /// Makes the entry that is to be published, if the value is to be stored.
    async fn set_found(&mut self, value: &V) -> bool
    where
        V: Clone,
        S: Store<K, V>,
    {
        let former = match self.why {
            Why::Refresh { cost, .. } => Some(cost),
            _ => None,
        };
        match copy(value) {
            Ok(value) => self.found = self.inner.config.entry(value, self.begun, self.now, former),
            Err(panic) => {
                self.panicked = Some(panic);
                return false;
            }
        }
        if self.found.is_none() && matches!(self.why, Why::Refresh { .. }) {
            // It is not to be kept, so what it replaces is not either.
            self.remove_old().await;
        }
        self.found.is_some()
    }

    /// Removes what there is a newer value of that cannot be stored: it is not to be served as if it were still right. If that
    /// fails, it expires.
    async fn remove_old(&self)
    where
        S: Store<K, V>,
    {
        let removed = self.inner.ask::<K, _, _>(|| self.inner.store.remove(self.key)).await;
        drop(removed);
    }

    async fn publish(&mut self, epoch: fill::Epoch) -> Event
    where
        V: Clone,
        S: Store<K, V>,
    {
        // None if this load follows one that was published already, which no fill of ours does.
        let Some(entry) = self.found.take() else { return Event::StoreError { ambiguous: false } };
        let request = || self.lease().publish(self.key, self.fill.token(), epoch, entry, self.inner.now());
        let event = match self.inner.ask::<K, _, _>(request).await {
            Ok(Publication::Stored) => Event::Stored,
            Ok(Publication::Late) => Event::Late,
            Ok(Publication::Superseded) => Event::Superseded,
            Ok(Publication::Invalidated) => Event::Invalidated,
            Err(failure) => {
                if self.why == Why::Asked && !failure.is_ambiguous {
                    self.remove_old().await;
                }
                self.failed(failure)
            }
        };
        match event {
            Event::Late => self.inner.counters.add(Count::Late),
            Event::Superseded => self.inner.counters.add(Count::Superseded),
            Event::Invalidated => self.inner.counters.add(Count::Invalidated),
            _ => {}
        }
        event
    }

    async fn release(&mut self) -> Event
    where
        S: Store<K, V>,
    {
        if self.unleased == Some(Unleased::Unanswered) && self.is_too_late() {
            self.side.abandon(self.fill.token());
            return Event::Released;
        }
        // Of a store that does not answer it is not asked: a lease runs out, and each key of a batch has one.
        let request = || self.lease().release(self.key, self.fill.token());
        match self.inner.ask::<K, _, _>(request).await {
            Ok(()) => Event::Released,
            Err(failure) => Event::StoreError { ambiguous: failure.is_ambiguous },
        }
    }

    /// What the flight brings to its callers.
    pub(crate) fn landed(mut self, outcome: Outcome) -> Flown<V, E> {
        let is_refresh = matches!(self.why, Why::Refresh { .. });
        match outcome {
            Outcome::Loaded(published) => {
                #[cfg(feature = "tracing")]
                tracing::debug!(target: "oneflight_cache", ?published, "a flight with a lease has ended");
                self.inner.settle(&mut self.load, is_refresh, published);
                let age = self.now.since(self.begun);
                self.loaded.take().map(|value| Ok(Landed::loaded(value, age, self.panicked.take())))
            }
            Outcome::LoadFailed => {
                let error = self.error.take();
                self.inner.failed(&self.load, error.as_ref(), is_refresh);
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

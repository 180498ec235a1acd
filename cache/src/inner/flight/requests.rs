//! What a flight asks the store for, and what comes of it.

use super::{Flight, Reason, Unleased};
use crate::entry::Entry;
use crate::error::{Error, Message};
use crate::fill::{self, Event, Version};
use crate::inner::{Why, copy};
use crate::lease::{Acquired, Claim, Lease, Publication};
use crate::sharing::{Failure, IfOpen};
use crate::stats::Count;
use crate::store::Store;
use crate::time::Time;
use crate::time_limit::TimeLimit;
use std::hash::Hash;
use std::time::Duration;

impl<'f, K, V, E, S> Flight<'f, K, V, E, S> {
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
    pub(super) async fn read(&mut self) -> Event
    where
        S: Store<K, V>,
    {
        match self.why {
            Why::Missing(Some(seen)) if seen.is_usable => Event::Stale { version: seen.version },
            Why::Missing(seen) => Event::Miss { unreadable: seen.map(|seen| seen.version) },
            _ => {
                let time_limit = self.deadline().map(TimeLimit::until);
                let found = self.inner.get(self.key, self.now).await;
                drop(time_limit);
                match found {
                    Ok(Some(entry)) => Event::Stale { version: entry.version() },
                    Ok(None) => {
                        self.has_old = false;
                        Event::Miss { unreadable: None }
                    }
                    Err(failure) => self.without_lease(failure),
                }
            }
        }
    }

    pub(super) async fn acquire(&mut self, seen: Option<Version>) -> Event
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
        let acquired = match acquired {
            // It is somebody else's word, and no fill could go on from there.
            Ok(Acquired::Gone) if seen.is_none() => {
                Err(self.inner.senseless(Message("the store says that what was seen is gone, but nothing was")))
            }
            acquired => acquired,
        };
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
            Err(failure) => self.without_lease(failure),
        }
    }

    fn without_lease(&mut self, failure: Failure) -> Event {
        self.unleased = Some(if failure.is_ambiguous { Unleased::Unanswered } else { Unleased::Refused });
        self.failed(failure)
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
                let is_kept = !is_void && self.set_found(&value);
                // Not to be kept, so what it replaces is not either, nor, while the lease lasts, what a load that began earlier would store.
                let is_over = !is_void && !is_kept && self.panicked.is_none();
                if is_over && self.fill.may_hold() {
                    self.found = self.over(&value);
                }
                let store = self.found.is_some();
                let is_refused = self.why == Why::Asked && self.unleased == Some(Unleased::Refused);
                // Whoever has been waited for replaces it.
                let is_left = is_over && !self.fill.may_hold() && self.has_old && !self.has_waited;
                if is_refused || is_left {
                    self.remove_old().await;
                }
                // Unless what a later load has brought is there.
                if let Some(writes) = self.near_writes
                    && let Some(entry) = self.found.take()
                    && self.load.may_store(self.begun).is_ok()
                {
                    self.inner.store.keep_near(self.key, entry, writes);
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
    fn set_found(&mut self, value: &V) -> bool
    where
        V: Clone,
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
        self.found.is_some()
    }

    /// An entry whose time is up. Published, it removes what is there, unless the key was written since or the lease has run out.
    fn over(&mut self, value: &V) -> Option<Entry<V>>
    where
        V: Clone,
    {
        match copy(value) {
            Ok(value) => Some(Entry::new(value, 0, self.begun, Time::START, Time::START, Duration::ZERO)),
            Err(panic) => {
                self.panicked = Some(panic);
                None
            }
        }
    }

    /// Removes what there is a newer value of that cannot be stored, where there is no lease to do so by: it is not to be served as
    /// if it were still right. If that fails, it expires.
    async fn remove_old(&self)
    where
        S: Store<K, V>,
    {
        // Also of a store that is left alone for a while, if it keeps some near: that is removed without it.
        let if_open = if self.near_writes.is_some() { IfOpen::Ask } else { IfOpen::Refuse };
        let removed = self.inner.ask_with::<K, _, _>(if_open, || self.inner.store.remove(self.key)).await;
        drop(removed);
    }

    pub(super) async fn publish(&mut self, epoch: fill::Epoch) -> Event
    where
        V: Clone,
        S: Store<K, V>,
    {
        // None if this load follows one that was published already, which no fill of ours does.
        let Some(entry) = self.found.take() else { return Event::StoreError { ambiguous: false } };
        let removes = entry.stale_until() == Time::START;
        let event = match self.publish_entry(epoch, entry).await {
            Ok(Publication::Stored) => Event::Stored,
            Ok(Publication::Late) => Event::Late,
            Ok(Publication::Superseded) => Event::Superseded,
            Ok(Publication::Invalidated) => Event::Invalidated,
            Err(failure) => {
                if self.why == Why::Asked && !removes && !failure.is_ambiguous {
                    self.publish_over(epoch).await;
                }
                self.failed(failure)
            }
        };
        match event {
            // It was not to be stored.
            _ if removes => {}
            Event::Late => self.inner.counters.add(Count::Late),
            Event::Superseded => self.inner.counters.add(Count::Superseded),
            Event::Invalidated => self.inner.counters.add(Count::Invalidated),
            _ => {}
        }
        self.inner.note_evictions::<K>();
        event
    }

    async fn publish_entry(&self, epoch: fill::Epoch, entry: Entry<V>) -> Result<Publication, Failure>
    where
        S: Store<K, V>,
    {
        let request = || self.lease().publish(self.key, self.fill.token(), epoch, entry, self.inner.now());
        let published = self.inner.ask::<K, _, _>(request).await;
        if let Ok(Publication::Stored) = published {
            // What an earlier load brings is not kept near any more.
            let _ = self.load.may_store(self.begun);
        }
        published
    }

    /// The store refuses what was loaded, so nobody is to go on with what that replaces. If this fails, it expires.
    async fn publish_over(&mut self, epoch: fill::Epoch)
    where
        V: Clone,
        S: Store<K, V>,
    {
        let value = self.loaded.take();
        if let Some(entry) = value.as_ref().and_then(|value| self.over(value)) {
            drop(self.publish_entry(epoch, entry).await);
        }
        self.loaded = value;
    }

    pub(super) async fn release(&mut self) -> Event
    where
        S: Store<K, V>,
    {
        // Nothing has been loaded yet, so the caller's time counts. When it is up, the lease is given up beside it.
        let deadline = self.unleased.and_then(|_| self.deadline());
        if deadline.is_some() && self.is_too_late() {
            self.side.abandon(self.fill.token());
            return Event::Released;
        }
        // Of a store that does not answer it is not asked: a lease runs out, and each key of a batch has one.
        let request = || self.lease().release(self.key, self.fill.token());
        let time_limit = deadline.map(TimeLimit::until);
        let released = self.inner.ask::<K, _, _>(request).await;
        drop(time_limit);
        match released {
            Ok(()) => Event::Released,
            Err(_) if deadline.is_some() && self.is_too_late() => {
                self.side.abandon(self.fill.token());
                Event::Released
            }
            Err(failure) => Event::StoreError { ambiguous: failure.is_ambiguous },
        }
    }
}

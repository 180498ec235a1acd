//! What a task's read does when it is not simply a hit.

use super::{Shared, TaskSide};
use crate::call::Options;
use crate::config::Verdict;
use crate::entry::{Entry, Fetched, Source};
use crate::error::{Error, Loaded};
use crate::inner::{Begun, Flown, Leave, Why};
use crate::plan::Plan;
use crate::store::Store;
use crate::time::{Time, within};
use futures_lite::FutureExt;
use hashbrown::Equivalent;
use oneflight::{CallError, Role};
use std::future::Future;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

impl<K, V, E, S> Shared<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    pub(crate) async fn get_or_load<Q, L, F>(
        self: &Arc<Self>,
        key: &Q,
        options: Options,
        loader: L,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: Store<Q, V>,
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output: Loaded<V, E>> + Send + 'static,
    {
        if options.bypass {
            return self.inner.bypass(options.timeout, async { loader().await.told() }).await;
        }
        let now = self.inner.now();
        let look = self.inner.look::<Q>(key, now);
        let found = match options.timeout {
            None => look.await,
            // A store may hang as well.
            limit => match within(limit, &self.inner.config.timer, look).await {
                Some(found) => found,
                None => {
                    self.inner.missed_in_time();
                    let near = Store::<Q, V>::near(&self.inner.store, key, now);
                    let instead = near.filter(|entry| self.inner.config.judge(entry, now) != Verdict::Gone);
                    return self.inner.ended(Err(Error::Deadline), instead);
                }
            },
        };
        let found = match found {
            Some(entry) if entry.is_calm(now) => return Ok(self.inner.fetched(entry, Source::Hit, now)),
            found => found,
        };
        let left = options.timeout.map(|limit| limit.saturating_sub(self.inner.now().since(now)));
        self.read(key, Options { timeout: left, ..options }, now, found, loader).await
    }

    /// What is done with what was found. In a box, so that the future of a hit is small.
    pub(super) fn read<'a, Q, L, F>(
        self: &'a Arc<Self>,
        key: &'a Q,
        options: Options,
        now: Time,
        found: Option<Entry<V>>,
        loader: L,
    ) -> Pin<Box<impl Future<Output = Result<Fetched<V>, Error<E>>> + use<'a, K, V, E, S, Q, L, F>>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output: Loaded<V, E>> + Send + 'static,
    {
        Box::pin(self.read_on(key, options, now, found, loader))
    }

    async fn read_on<Q, L, F>(
        self: &Arc<Self>,
        key: &Q,
        options: Options,
        now: Time,
        found: Option<Entry<V>>,
        loader: L,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output: Loaded<V, E>> + Send + 'static,
    {
        let (seen, instead) = match self.inner.plan(found, now, || self.inner.loads.hash(key)) {
            Plan::Serve(fetched) => return Ok(fetched),
            Plan::Refresh { entry, source, leave } => {
                // In a box, as the others need not have the room.
                let refresh = Box::pin(self.refresh_early(key, options, (entry, source, leave), now, loader));
                return Ok(refresh.await);
            }
            Plan::Load { seen, instead } => (seen, instead),
        };
        let mut loader = Some(loader);
        let load = self.load(key, Why::Missing(seen), &mut loader);
        let loaded = within(options.timeout, &self.inner.config.timer, load).await;
        self.inner.ended(loaded.unwrap_or(Err(Error::Deadline)), instead)
    }

    /// Joins the flight of `key`, or loads.
    pub(crate) async fn load<Q, L, F>(
        self: &Arc<Self>,
        key: &Q,
        why: Why,
        loader: &mut Option<L>,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output: Loaded<V, E>> + Send + 'static,
    {
        let inner = &self.inner;
        let _calling = inner.call(|| inner.loads.hash(key))?;
        loop {
            if inner.is_closed() {
                return Err(Error::Closed);
            }
            let mut work = || {
                let begun = inner.begin(key);
                let loader = loader.take().expect("a call loads once at most");
                Arc::clone(self).fly(key.to_owned(), why, begun, async move { Some(loader().await.told()) })
            };
            let (flown, role) = if inner.coalescing.load(Ordering::Relaxed) {
                let call = self.group.call(key);
                let call = if self.detaches { call.detach() } else { call };
                match call.run(work).await {
                    Ok(outcome) => (outcome.value, outcome.role),
                    Err(CallError::Reentrant) => return Err(Error::Reentrant),
                    Err(error) => unreachable!("no limit was set: {error}"),
                }
            } else {
                (Box::pin(work()).await, Role::Led)
            };
            // None if it joined a refresh that came to nothing, say.
            if let Some(outcome) = inner.outcome(flown, why, role) {
                return outcome;
            }
        }
    }

    async fn fly<F>(self: Arc<Self>, key: K, why: Why, begun: Begun, loader: F) -> Flown<V, E>
    where
        F: Future<Output = Option<Result<V, Error<E>>>> + Send + 'static,
    {
        // Here, and not moved from call to call, as each would have room for it.
        let mut place = pin!(Some(loader));
        let loader = Placed(place.as_mut());
        let limit = self.inner.config.load_timeout;
        if self.inner.store.lease().is_none() {
            return self.inner.fly(&key, why, limit, begun, loader).await;
        }
        // In a box, as the others need not have the room.
        let side = Box::new(TaskSide { shared: &self, key: &key, renewals: None });
        Box::pin(self.inner.fly_leased(&key, why, limit, begun, loader, side)).await
    }

    /// Refreshes what this read has found: beside it where there is a spawner, otherwise before it returns.
    async fn refresh_early<Q, L, F>(
        self: &Arc<Self>,
        key: &Q,
        options: Options,
        (entry, source, leave): (Entry<V>, Source, Leave),
        now: Time,
        loader: L,
    ) -> Fetched<V>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output: Loaded<V, E>> + Send + 'static,
    {
        let why = Why::Refresh { seen: entry.version(), cost: entry.cost() };
        let refresh = Arc::clone(self).fly_refresh(key.to_owned(), why, leave, loader);
        match &self.spawner {
            Some(spawner) => {
                // Whatever the spawner does with it: if it is dropped, others may refresh.
                let _ = catch_unwind(AssertUnwindSafe(|| spawner(Box::pin(async move { drop(refresh.await) }))));
                self.inner.fetched(entry, source, now)
            }
            // Somebody is at it already, and this caller has a value.
            None if self.group.flight_info(key).is_some() => self.inner.fetched(entry, source, now),
            // Its own time limit ends the refresh too: the old value is at hand.
            None => {
                let flown = within(options.timeout, &self.inner.config.timer, refresh).await;
                if flown.is_none() {
                    self.inner.hangs(self.inner.loads.hash(key));
                }
                self.inner.refreshed(flown.flatten().and_then(Result::ok), entry, source)
            }
        }
    }

    async fn fly_refresh<L, F>(self: Arc<Self>, key: K, why: Why, leave: Leave, loader: L) -> Flown<V, E>
    where
        L: FnOnce() -> F + Send + 'static,
        F: Future<Output: Loaded<V, E>> + Send + 'static,
    {
        // Dropped last, when the value is there.
        let _leave = leave;
        // It may have waited at the executor's for a long time.
        if self.cancelled.load(Ordering::SeqCst) {
            return None;
        }
        let flight = async {
            let work = || {
                let begun = self.inner.begin(&key);
                let loader = async move { AssertUnwindSafe(async { loader().await.told() }).catch_unwind().await.ok() };
                Arc::clone(&self).fly(key.clone(), why, begun, loader)
            };
            let Ok(outcome) = AssertUnwindSafe(self.group.call(&key).run(work)).catch_unwind().await else {
                // The loader's panics are caught before. There is other code of the user's: `ttl_of`, a weigher, the store.
                self.inner.hold_up(self.inner.loads.hash(&key));
                return None;
            };
            outcome.ok()?.value
        };
        let cancelled = async {
            self.until_cancelled().await;
            None
        };
        flight.or(cancelled).await
    }

    /// Ends when the refreshes that are on are to end.
    pub(crate) async fn until_cancelled(&self) {
        let cancel = self.cancel.listen();
        if !self.cancelled.load(Ordering::SeqCst) {
            cancel.await;
        }
    }
}

/// A future whose place is elsewhere. It is dropped there when this is.
struct Placed<'p, F>(Pin<&'p mut Option<F>>);

impl<F: Future> Future for Placed<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().as_pin_mut().expect("it is there until this is dropped").poll(cx)
    }
}

impl<F> Drop for Placed<'_, F> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

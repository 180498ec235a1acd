//! What a thread's read does.

use super::side::ThreadSide;
use super::{Refresh, Shared};
use crate::call::Options;
use crate::entry::{Entry, Fetched, Source};
use crate::error::Error;
use crate::inner::{Begun, Flown, Landed, Leave, Seen, Why};
use crate::plan::Plan;
use crate::sharing::Failure;
use crate::store::BlockingStore;
use crate::time::{Time, block_on, block_on_pinned};
use crate::time_limit::{TimeLimit, deadline, is_past, time_left};
use hashbrown::Equivalent;
use oneflight::{CallError, Role};
use std::future::Future;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl<K, V, E, S> Shared<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    pub(crate) fn get_or_load<Q, L>(
        self: &Arc<Self>,
        key: &Q,
        options: Options,
        loader: L,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: BlockingStore<Q, V>,
        L: FnOnce() -> Result<V, Error<E>> + Send + 'static,
    {
        let until = options.timeout.and_then(deadline);
        let refresh = |entry: &Entry<V>, leave, loader| {
            let (key, why) = (key.to_owned(), Why::Refresh { seen: entry.version(), cost: entry.cost() });
            if self.helpers.is_none() {
                return self.refresh_here(&key, why, until, leave, loader);
            }
            // A refresh that waits for a helper does not keep the cache.
            let shared = Arc::downgrade(self);
            self.helpers.run(Box::new(move || {
                if let Some(shared) = shared.upgrade() {
                    drop(shared.refresh_here(&key, why, None, leave, loader));
                }
            }));
            None
        };
        self.read(key, options.bypass, until, loader, &refresh)
    }

    /// Does the refresh that it draws itself.
    #[inline]
    pub(crate) fn get_or_load_inline<Q, L>(
        self: &Arc<Self>,
        key: &Q,
        options: Options,
        loader: L,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: BlockingStore<Q, V>,
        L: FnOnce() -> Result<V, Error<E>>,
    {
        let until = options.timeout.and_then(deadline);
        let inline = |entry: &Entry<V>, leave, loader| {
            let why = Why::Refresh { seen: entry.version(), cost: entry.cost() };
            self.refresh_here(&key.to_owned(), why, until, leave, loader)
        };
        self.read(key, options.bypass, until, loader, &inline)
    }

    #[inline]
    fn read<Q, L>(
        self: &Arc<Self>,
        key: &Q,
        bypass: bool,
        until: Option<Instant>,
        loader: L,
        refresh: Refresh<'_, V, L>,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        S: BlockingStore<Q, V>,
        L: FnOnce() -> Result<V, Error<E>>,
    {
        if bypass {
            return block_on(self.inner.bypass(None, async { loader() }));
        }
        let now = self.inner.now();
        let store = &self.inner.store.0;
        let found = if BlockingStore::<Q, V>::lease(store).is_none() {
            BlockingStore::<Q, V>::get(store, key, now).map_err(|error| self.inner.refused(error))
        } else {
            self.get_in_time(key, until, now)
        };
        let found = match found {
            Ok(Some(entry)) if entry.is_calm(now) => return Ok(self.inner.fetched(entry, Source::Hit, now)),
            Ok(found) => found,
            Err(_) => BlockingStore::<Q, V>::near(store, key, now),
        };
        self.read_on(key, until, now, found, loader, refresh)
    }

    /// What another process's store says, within the time that the call has.
    fn get_in_time<Q>(&self, key: &Q, until: Option<Instant>, now: Time) -> Result<Option<Entry<V>>, Failure>
    where
        Q: ?Sized,
        S: BlockingStore<Q, V>,
    {
        let _time_limit = until.map(TimeLimit::until);
        block_on(self.inner.get::<Q>(key, now))
    }

    /// A read that is not simply a hit.
    #[cold]
    fn read_on<Q, L>(
        self: &Arc<Self>,
        key: &Q,
        until: Option<Instant>,
        now: Time,
        found: Option<Entry<V>>,
        loader: L,
        refresh: Refresh<'_, V, L>,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> Result<V, Error<E>>,
    {
        let inner = &self.inner;
        let (seen, instead) = match inner.plan(found, now, || inner.loads.hash(key)) {
            Plan::Serve(fetched) => return Ok(fetched),
            Plan::Refresh { entry, source, leave } => {
                let landed = refresh(&entry, leave, loader);
                return Ok(inner.refreshed(landed, entry, source));
            }
            Plan::Load { seen, instead } => (seen, instead),
        };
        inner.ended(self.load(key, Why::Missing(seen), until, loader), instead)
    }

    /// Joins the flight of `key`, or loads.
    pub(crate) fn load<Q, L>(
        self: &Arc<Self>,
        key: &Q,
        why: Why,
        until: Option<Instant>,
        loader: L,
    ) -> Result<Fetched<V>, Error<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        L: FnOnce() -> Result<V, Error<E>>,
    {
        let inner = &self.inner;
        let _calling = inner.call(|| inner.loads.hash(key))?;
        let mut loader = Some(loader);
        loop {
            if inner.is_closed() {
                return Err(Error::Closed);
            }
            let mut work = || {
                let loader = loader.take().expect("a call loads once at most");
                self.fly(&key.to_owned(), why, until, inner.begin(key), async move { Some(loader()) })
            };
            let (flown, role) = if inner.coalescing.load(Ordering::Relaxed) {
                let mut call = self.group.call(key);
                // Past the load timeout the flight takes no newcomers: one of those who leave it leads the next, unless they
                // have an old value.
                if let Some(wait) = time_left(until).into_iter().chain(inner.config.load_timeout).min() {
                    call = call.wait_timeout(wait);
                }
                match call.run(work) {
                    Ok(outcome) => (outcome.value, outcome.role),
                    Err(CallError::TimedOut) if is_past(until) => return Err(Error::Deadline),
                    Err(CallError::TimedOut) => match why {
                        // The old value will do, unless there is another by now, or it is not to be served any more. When the
                        // back-off is over, somebody leads.
                        Why::Missing(Some(seen)) if seen.is_usable && self.is_there_still(key, seen, until) => {
                            inner.hangs(inner.loads.hash(key));
                            return Err(Error::LoadTimedOut);
                        }
                        _ => continue,
                    },
                    Err(_) => return Err(Error::Reentrant),
                }
            } else {
                (work(), Role::Led)
            };
            // It gave up waiting for another process; others of this one may go on.
            if flown.is_none() && is_past(until) {
                return Err(Error::Deadline);
            }
            // None if it joined a refresh that came to nothing, say, or somebody who gave up.
            if let Some(outcome) = inner.outcome(flown, why, role) {
                return outcome;
            }
        }
    }

    /// Whether nothing has become of a value that was seen, as far as the store tells in time.
    fn is_there_still<Q>(&self, key: &Q, seen: Seen, until: Option<Instant>) -> bool
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        let _limit = until.map(TimeLimit::until);
        match block_on(self.inner.get::<K>(&key.to_owned(), self.inner.now())) {
            Ok(found) => found.is_some_and(|entry| entry.version() == seen.version),
            Err(_) => true,
        }
    }

    /// The flight of a key, in this thread.
    fn fly(
        self: &Arc<Self>,
        key: &K,
        why: Why,
        until: Option<Instant>,
        begun: Begun,
        loader: impl Future<Output = Option<Result<V, Error<E>>>>,
    ) -> Flown<V, E> {
        if self.inner.store.0.lease().is_none() {
            return block_on_pinned(pin!(self.inner.fly(key, why, None, begun, loader)));
        }
        let side = Box::new(ThreadSide { shared: self, key, until });
        block_on(self.inner.fly_leased(key, why, None, begun, loader, side))
    }

    /// Refreshes what a read has found, in this thread, whose caller has time `until` then. `None` if it came to nothing.
    fn refresh_here<L>(
        self: &Arc<Self>,
        key: &K,
        why: Why,
        until: Option<Instant>,
        leave: Leave,
        loader: L,
    ) -> Option<Landed<V>>
    where
        L: FnOnce() -> Result<V, Error<E>>,
    {
        // Dropped last, when the value is there.
        let _leave = leave;
        let inner = &self.inner;
        let work = || {
            let loader = async move { catch_unwind(AssertUnwindSafe(loader)).ok() };
            self.fly(key, why, until, inner.begin(key), loader)
        };
        // If somebody is at it already, there is nothing to wait for: this caller has a value.
        let call = self.group.call(key).wait_timeout(Duration::ZERO);
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| call.run(work))) else {
            // The loader's panics are caught before. There is other code of the user's: `ttl_of`, a weigher, the store.
            inner.hold_up(inner.loads.hash(key));
            return None;
        };
        outcome.ok()?.value?.ok()
    }
}

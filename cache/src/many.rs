//! Several keys in one call.

mod batch;
mod bypass;
mod fly;
mod leased;
mod lookups;
pub(crate) mod together;

use crate::blocking::{self, ThreadSide};
use crate::cache::{Cache, TaskSide};
use crate::entry::Fetched;
use crate::error::{Error, OfEach, of_each};
use crate::inner::{Side, Why, copy};
use crate::store::{BlockingStore, Store};
use crate::time::{block_on, within};
use crate::time_limit::{TimeLimit, is_past, time_left};
use async_lock::Semaphore;
use batch::Wanted;
use futures_lite::future::or;
use hashbrown::{Equivalent, HashMap, HashSet};
use oneflight::CallError;
use parking_lot::Mutex;
use std::future::{Future, pending, ready};
use std::hash::Hash;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The keys, each once, and for each of `keys` its place among these.
fn each_once<'q, Q: Hash + Eq + ?Sized>(keys: impl Iterator<Item = &'q Q>) -> (Vec<&'q Q>, Vec<usize>) {
    let mut places = HashMap::new();
    let mut once = Vec::new();
    let order = keys.map(|key| {
        *places.entry(key).or_insert_with(|| {
            once.push(key);
            once.len() - 1
        })
    });
    let order = order.collect();
    (once, order)
}

/// The keys that a load is for, owned, each with its reason.
fn owned<Q, K>(keys: &[&Q], why: &HashMap<&Q, Why>) -> Vec<(K, Why)>
where
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    keys.iter().map(|&key| (key.to_owned(), why[key])).collect()
}

impl<K, V, E, S> Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    /// The values of several keys, in their order. Those that are neither stored nor being loaded are loaded together: `loader`
    /// gets them and returns a value for each, in the same order. Keys may stand there more than once.
    ///
    /// Each key has a flight of its own, so single calls and overlapping batches share it, and batches that overlap never wait
    /// for each other in a circle. If the leader of a key is dropped or panics, `loader` is called again, for the keys that
    /// this call takes over.
    ///
    /// The loader runs inside this future: it may borrow, and if this call is dropped, others load with their own. A refresh that
    /// the batch draws, because of its policy or because a value is stale, is done before it returns, in the same load.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. The keys that it loads are taken over by those who wait for them.
    ///
    /// While it is kept and not polled, all who ask this cache for a key that it loads wait until it is polled or dropped,
    /// however long that takes. Unlike the load of a single call, nobody else can go on with this one, and the timer of
    /// [`load_timeout`](crate::Builder::load_timeout) is inside this future, too. So await nothing else while you keep it, as a
    /// `select!` in a loop does. A call can have a [time limit of its own](Self::call_many); its timer is inside this future, too.
    ///
    /// # Errors
    ///
    /// As [`get_or_load`](Self::get_or_load): the first error of a key that has no old value to be served.
    ///
    /// # Panics
    ///
    /// If `loader` panics, or returns another number of values than it was given keys.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # smol::block_on(async {
    /// let users: Cache<u32, String> = Cache::builder().build();
    /// users.put(&1, "Ada".to_owned()).await?;
    /// let load = |ids: Vec<&u32>| {
    ///     let names = ids.iter().map(|id| format!("user {id}")).collect();
    ///     async move { Ok(names) }
    /// };
    /// let names = users.get_or_load_many(&[3, 1, 3], load).await?;
    /// let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    /// assert_eq!(names, ["user 3", "Ada", "user 3"]);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub async fn get_or_load_many<'q, Q, L, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut loader: L,
    ) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: Store<Q, V>,
        L: FnMut(Vec<&'q Q>) -> F,
        F: Future<Output = Result<Vec<V>, E>>,
    {
        let load = move |missing: Vec<&'q Q>| {
            let loading = loader(missing);
            async { of_each(loading.await) }
        };
        self.load_many(keys, None, load).await
    }

    /// That, by a caller that has so much time.
    pub(crate) async fn load_many<'q, Q, L, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        timeout: Option<Duration>,
        loader: L,
    ) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: Store<Q, V>,
        L: FnMut(Vec<&'q Q>) -> F,
        F: Future<Output = OfEach<V, E>>,
    {
        let inner = &self.shared.inner;
        let limit = inner.config.load_timeout;
        let begun = timeout.map(|_| inner.now());
        let left = || Some(timeout?.saturating_sub(inner.now().since(begun?)));
        let keys: Vec<&'q Q> = keys.into_iter().collect();
        // A store may hang as well.
        let Some(mut batch) = within(timeout, &inner.config.timer, inner.look_many(&keys)).await else {
            let mut batch = inner.look_near(&keys);
            inner.refuse(&mut batch, &Error::Deadline)?;
            return Ok(batch.into_values());
        };
        let _calling = inner.call_many(&mut batch)?;
        // Several loads of this call may be on at once, all in this future.
        let loader = Mutex::new(loader);
        let renewals = Semaphore::new(leased::REQUESTS);
        while !batch.wanted.is_empty() {
            if inner.is_closed() {
                inner.refuse(&mut batch, &Error::Closed)?;
                break;
            }
            let why: HashMap<&Q, Why> = batch.wanted.iter().map(|wanted| (wanted.key, wanted.why())).collect();
            let (led, kept) = (Mutex::new(HashSet::new()), Mutex::new(HashMap::new()));
            let work = |missing: Vec<&'q Q>| {
                led.lock().extend(missing.iter().copied());
                let (owned, loader, renewals) = (owned(&missing, &why), &loader, Some(&renewals));
                let kept = timeout.map(|_| &kept);
                async move {
                    // Of the missing ones, those that are not there by now.
                    let load =
                        |indices: Vec<usize>| loader.lock()(indices.iter().map(|&index| missing[index]).collect());
                    let side = |key| Box::new(TaskSide { shared: &self.shared, key, renewals }) as Box<dyn Side + '_>;
                    let flown = inner.fly_many(&owned, limit, load, side).await;
                    // If the time is up while it waits for others, the group does not return these.
                    if let Some(kept) = kept {
                        kept.lock().extend(missing.into_iter().zip(flown.iter().map(copy)));
                    }
                    flown
                }
            };
            let keys = batch.wanted.iter().map(|wanted| wanted.key);
            let flight = async {
                if inner.coalescing.load(Ordering::Relaxed) {
                    return self.shared.group.run_many(keys, work).await.map_err(|_| Error::Reentrant);
                }
                let (once, order) = each_once(keys);
                let flown = work(once).await;
                Ok(order.into_iter().map(|index| flown[index].clone()).collect())
            };
            // As a refresh that is on by itself, one of nothing else ends if closing the cache has waited for it long enough.
            let ends = async {
                if batch.wanted.iter().all(Wanted::is_refresh) {
                    self.shared.until_cancelled().await;
                } else {
                    pending().await
                }
                Err(Error::Closed)
            };
            let flown = within(left(), &inner.config.timer, or(flight, ends)).await;
            let led = led.into_inner();
            let flown = match flown {
                None => {
                    inner.ends_late(&mut batch, &led, &kept.into_inner())?;
                    break;
                }
                Some(Err(Error::Closed)) => batch.wanted.iter().map(|_| Some(Err(Error::Closed))).collect(),
                Some(flown) => flown?,
            };
            inner.count_failed_joins(&batch, &led, &flown);
            inner.take_in(&mut batch, &led, flown)?;
            if left().is_some_and(|left| left.is_zero()) {
                inner.refuse(&mut batch, &Error::Deadline)?;
            }
        }
        Ok(batch.into_values())
    }
}

impl<K, V, E, S> blocking::Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    /// The values of several keys, in their order. Those that are neither stored nor being loaded are loaded together: `loader`
    /// gets them and returns a value for each, in the same order. Keys may stand there more than once.
    ///
    /// Each key has a flight of its own, so single calls and overlapping batches share it, and batches that overlap never wait
    /// for each other in a circle. If the leader of a key panics, `loader` is called again, for that key.
    ///
    /// A refresh that the batch draws, because of its policy or because a value is stale, is done before it returns, in the
    /// same load.
    ///
    /// # Blocking
    ///
    /// While it loads and waits for others' loads. Keys whose loads take longer than the cache's
    /// [`load_timeout`](crate::Builder::load_timeout) are loaded by one of those who wait, as with single calls, unless
    /// an old value [may be served](crate::Builder::stale_if_error). A [call of its own](Self::call_many) can have a time limit.
    ///
    /// # Errors
    ///
    /// As [`get_or_load`](Self::get_or_load): the first error of a key that has no old value to be served.
    ///
    /// # Panics
    ///
    /// If `loader` panics, or returns another number of values than it was given keys.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// let users: Cache<u32, String> = Cache::builder().build_blocking();
    /// users.put(&1, "Ada".to_owned())?;
    /// let load = |ids: Vec<&u32>| Ok(ids.iter().map(|id| format!("user {id}")).collect());
    /// let names = users.get_or_load_many(&[3, 1, 3], load)?;
    /// let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    /// assert_eq!(names, ["user 3", "Ada", "user 3"]);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn get_or_load_many<'q, Q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut loader: impl FnMut(Vec<&'q Q>) -> Result<Vec<V>, E>,
    ) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: BlockingStore<Q, V>,
    {
        self.load_many(keys, None, |missing| of_each(loader(missing)))
    }

    /// That, by a caller that has time `until` then.
    pub(crate) fn load_many<'q, Q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        until: Option<Instant>,
        mut loader: impl FnMut(Vec<&'q Q>) -> OfEach<V, E>,
    ) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: BlockingStore<Q, V>,
    {
        let inner = &self.shared.inner;
        let time_limit = until.map(TimeLimit::until);
        let keys: Vec<&'q Q> = keys.into_iter().collect();
        let mut batch = block_on(inner.look_many(&keys));
        drop(time_limit);
        let _calling = inner.call_many(&mut batch)?;
        while !batch.wanted.is_empty() {
            if inner.is_closed() {
                inner.refuse(&mut batch, &Error::Closed)?;
                break;
            }
            let why: HashMap<&Q, Why> = batch.wanted.iter().map(|wanted| (wanted.key, wanted.why())).collect();
            let (mut led, mut kept) = (HashSet::new(), HashMap::new());
            let mut work = |missing: Vec<&'q Q>| {
                led.extend(missing.iter().copied());
                let load = |indices: Vec<usize>| ready(loader(indices.iter().map(|&index| missing[index]).collect()));
                let side = |key| Box::new(ThreadSide { shared: &self.shared, key, until }) as Box<dyn Side + '_>;
                let flown = block_on(inner.fly_many(&owned(&missing, &why), None, load, side));
                // If it waits for others and gives up, the group does not return these.
                if led.len() < why.len() {
                    kept.extend(missing.into_iter().zip(flown.iter().map(copy)));
                }
                flown
            };
            let keys = batch.wanted.iter().map(|wanted| wanted.key);
            let flown = if inner.coalescing.load(Ordering::Relaxed) {
                // As for a single call: past the load timeout the flights take no newcomers.
                let wait = time_left(until).into_iter().chain(inner.config.load_timeout).min();
                match self.shared.group.run_many(keys, wait, work) {
                    Ok(flown) => flown,
                    Err(CallError::TimedOut) if is_past(until) => {
                        inner.ends_late(&mut batch, &led, &kept)?;
                        break;
                    }
                    Err(CallError::TimedOut) => {
                        // Also as there.
                        let time_limit = until.map(TimeLimit::until);
                        let hung = block_on(inner.hung(&batch, &led));
                        drop(time_limit);
                        for key in hung {
                            kept.insert(key, Ok(Some(Err(Error::LoadTimedOut))));
                        }
                        inner.take_in_kept(&mut batch, &led, &kept)?;
                        continue;
                    }
                    Err(_) => return Err(Error::Reentrant),
                }
            } else {
                let (once, order) = each_once(keys);
                let flown = work(once);
                order.into_iter().map(|index| flown[index].clone()).collect()
            };
            inner.count_failed_joins(&batch, &led, &flown);
            inner.take_in(&mut batch, &led, flown)?;
            // It gave up waiting for another process; others of this one may go on.
            if is_past(until) {
                inner.refuse(&mut batch, &Error::Deadline)?;
            }
        }
        Ok(batch.into_values())
    }
}

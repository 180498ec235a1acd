//! Several keys in one call.

mod leased;
pub(crate) mod together;

use crate::blocking::{self, ThreadSide};
use crate::cache::{Cache, TaskSide};
use crate::entry::{Entry, Fetched, Source};
use crate::error::{Error, Loaded};
use crate::fill::Published;
use crate::inner::{Flown, Inner, Landed, Leave, Seen, Side, Why, copy};
use crate::loads::Calling;
use crate::plan::Plan;
use crate::stats::Count;
use crate::store::{BlockingStore, Store};
use crate::time::{Time, block_on};
use async_lock::Semaphore;
use hashbrown::{Equivalent, HashMap, HashSet};
use oneflight::{CallError, Role};
use parking_lot::Mutex;
use std::future::{Future, ready};
use std::hash::Hash;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a batch knows of one of its keys.
struct Wanted<'q, Q: ?Sized, V> {
    /// Its place among the keys of the call.
    place: usize,
    key: &'q Q,
    /// An old value, for the case that there will be no new one.
    entry: Option<Entry<V>>,
    /// What is there, if it is too old.
    seen: Option<Seen>,
    /// As what it is served, and leave to refresh it, until it is refreshed.
    refresh: Option<(Source, Leave)>,
}

impl<Q: ?Sized, V> Wanted<'_, Q, V> {
    fn why(&self) -> Why {
        match (&self.refresh, &self.entry) {
            (Some(_), Some(entry)) => Why::Refresh { seen: entry.version(), cost: entry.cost() },
            _ => Why::Missing(self.seen),
        }
    }
}

/// A batch under way.
struct Batch<'q, Q: ?Sized, V> {
    now: Time,
    values: Vec<Option<Fetched<V>>>,
    wanted: Vec<Wanted<'q, Q, V>>,
}

impl<V, S> Inner<V, S> {
    /// What is there, and what is not.
    async fn look_many<'q, Q>(&self, keys: Vec<&'q Q>) -> Batch<'q, Q, V>
    where
        Q: Hash + Sync + ?Sized,
        V: Send,
        S: Store<Q, V>,
    {
        let now = self.now();
        let mut batch = Batch { now, values: Vec::with_capacity(keys.len()), wanted: Vec::new() };
        let all = self.ask::<Q, _, _>(|| self.store.get_many(&keys, now)).await;
        let all = all.unwrap_or_else(|_| keys.iter().map(|_| None).collect());
        for (place, (key, found)) in keys.into_iter().zip(all).enumerate() {
            let value = match self.plan(found, now, || self.loads.hash(key)) {
                Plan::Serve(fetched) => Some(fetched),
                Plan::Refresh { entry, source, leave } => {
                    let refresh = Some((source, leave));
                    batch.wanted.push(Wanted { place, key, seen: None, refresh, entry: Some(entry) });
                    None
                }
                Plan::Load { seen, instead } => {
                    batch.wanted.push(Wanted { place, key, seen, refresh: None, entry: instead });
                    None
                }
            };
            batch.values.push(value);
        }
        batch
    }

    /// Puts what has come into its place. What came to nothing stays wanted, and an error without an old value ends it all.
    /// `led` are the keys whose flights were this call's own.
    fn take_in<Q, E>(
        &self,
        batch: &mut Batch<'_, Q, V>,
        led: &HashSet<&Q>,
        flown: Vec<Flown<V, E>>,
    ) -> Result<(), Error<E>>
    where
        Q: Hash + Eq + ?Sized,
    {
        for (wanted, flown) in std::mem::take(&mut batch.wanted).into_iter().zip(flown) {
            let place = wanted.place;
            let role = if led.contains(wanted.key) { Role::Led } else { Role::Followed };
            batch.values[place] = match (flown, wanted) {
                (Some(Err(Error::Reentrant)), _) => return Err(Error::Reentrant),
                (flown, Wanted { refresh: Some((source, _leave)), entry: Some(entry), .. }) => {
                    Some(self.refreshed(flown.and_then(Result::ok), entry, source, batch.now))
                }
                (None, wanted) => {
                    batch.wanted.push(wanted);
                    None
                }
                (Some(flown), wanted) => {
                    let loaded = flown.map(|landed| {
                        let source = landed.source(role);
                        landed.panic_if_own(role);
                        self.arrived(landed, source)
                    });
                    Some(self.ended(loaded, wanted.entry, batch.now)?)
                }
            };
        }
        Ok(())
    }

    /// As [`fly`](Self::fly), for keys that are loaded together.
    async fn fly_many<'k, K, E, F>(
        &'k self,
        keys: &'k [(K, Why)],
        limit: Option<Duration>,
        mut loader: impl FnMut(Vec<usize>) -> F,
        side: impl Fn(&'k K) -> Box<dyn Side + 'k>,
    ) -> Vec<Flown<V, E>>
    where
        K: Hash,
        V: Clone,
        S: Store<K, V>,
        F: Future<Output = Result<Vec<V>, Error<E>>>,
    {
        if self.store.lease().is_some() {
            return Box::pin(self.fly_many_leased(keys, limit, loader, side)).await;
        }
        let begun = self.now();
        let mut loads: Vec<_> = keys.iter().map(|(key, _)| self.loads.begin(self.loads.hash(key))).collect();
        let mut flown: Vec<Flown<V, E>> = Vec::with_capacity(keys.len());
        let mut missing = Vec::new();
        let mut former = Vec::new();
        for (index, (key, why)) in keys.iter().enumerate() {
            let entry = self.look(key, begun).await;
            let is_new = |entry: &Entry<V>| !matches!(why, Why::Refresh { seen, .. } if *seen == entry.version());
            match (entry, why) {
                (Some(entry), _) if begun < entry.fresh_until() && is_new(&entry) => {
                    flown.push(Some(Ok(Landed::found(entry, begun))));
                }
                // What is to be refreshed is gone.
                (None, Why::Refresh { .. }) => flown.push(None),
                (entry, _) => {
                    flown.push(None);
                    missing.push(index);
                    former.push(entry);
                }
            }
        }
        let refreshes = |(_, why): &&(K, Why)| matches!(why, Why::Refresh { .. });
        let ducked =
            keys.iter().filter(refreshes).count() - missing.iter().map(|&index| &keys[index]).filter(refreshes).count();
        (0..ducked).for_each(|_| self.counters.add(Count::Ducked));
        if missing.is_empty() {
            return flown;
        }
        let loading = async { Some(loader(missing.clone()).await) };
        let (loaded, ended) = self.run(limit, begun, loading).await;
        match loaded {
            Some(Ok(values)) => {
                let (got, asked): (usize, usize) = (values.len(), missing.len());
                assert!(got == asked, "the loader returned {got} values for {asked} keys");
                for ((index, former), value) in missing.into_iter().zip(former).zip(values) {
                    let (key, load) = (&keys[index].0, &mut loads[index]);
                    let panicked = match copy(&value) {
                        Ok(value) => {
                            let times = [begun, ended];
                            let published = self.publish(key, load, value, times, former.as_ref(), limit).await;
                            if published == Published::Invalidated {
                                self.counters.add(Count::Invalidated);
                            }
                            None
                        }
                        Err(panic) => Some(panic),
                    };
                    load.succeed();
                    flown[index] = Some(Ok(Landed::loaded(value, ended.since(begun), panicked)));
                }
            }
            failed => {
                let error = failed.and_then(Result::err);
                for (index, former) in missing.into_iter().zip(former) {
                    self.failed(&loads[index], error.as_ref(), former.is_some());
                    flown[index] = error.clone().map(Err);
                }
            }
        }
        flown
    }

    /// One more caller for each key, unless one has too many.
    fn call_many<Q, E>(&self, batch: &Batch<'_, Q, V>) -> Result<Vec<Option<Calling<'_>>>, Error<E>>
    where
        Q: Hash + Eq + ?Sized,
    {
        // A key that stands there twice is waited for once, and one with a value to be refreshed not at all.
        let without = batch.wanted.iter().filter(|wanted| wanted.refresh.is_none());
        let keys: HashSet<&Q> = without.map(|wanted| wanted.key).collect();
        keys.into_iter().map(|key| self.call(|| self.loads.hash(key))).collect()
    }

    /// Ends a batch that may not load: by the old values, if each key has one.
    fn refuse<Q, E>(&self, batch: &mut Batch<'_, Q, V>, error: &Error<E>) -> Result<(), Error<E>>
    where
        Q: Hash + Eq + ?Sized,
    {
        let flown = batch.wanted.iter().map(|_| Some(Err(error.clone()))).collect();
        self.take_in(batch, &HashSet::new(), flown)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

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
        loader: L,
    ) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: Store<Q, V>,
        L: FnMut(Vec<&'q Q>) -> F,
        F: Future<Output = Result<Vec<V>, E>>,
    {
        self.load_many(keys, loader).await
    }

    pub(crate) async fn load_many<'q, Q, L, F>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        loader: L,
    ) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: Store<Q, V>,
        L: FnMut(Vec<&'q Q>) -> F,
        F: Future<Output: Loaded<Vec<V>, E>>,
    {
        let inner = &self.shared.inner;
        let limit = inner.config.load_timeout;
        let mut batch = inner.look_many(keys.into_iter().collect()).await;
        let _calling = match inner.call_many(&batch) {
            Ok(calling) => calling,
            Err(error) => {
                inner.refuse(&mut batch, &error)?;
                Vec::new()
            }
        };
        // Several loads of this call may be on at once, all in this future.
        let loader = Mutex::new(loader);
        let renewals = Semaphore::new(leased::REQUESTS);
        while !batch.wanted.is_empty() {
            if inner.is_closed() {
                inner.refuse(&mut batch, &Error::Closed)?;
                break;
            }
            let why: HashMap<&Q, Why> = batch.wanted.iter().map(|wanted| (wanted.key, wanted.why())).collect();
            let led = Mutex::new(HashSet::new());
            let work = |missing: Vec<&'q Q>| {
                led.lock().extend(missing.iter().copied());
                let (owned, loader, renewals) = (owned(&missing, &why), &loader, Some(&renewals));
                async move {
                    // Of the missing ones, those that are not there by now.
                    let load = |indices: Vec<usize>| {
                        let loading = loader.lock()(indices.iter().map(|&index| missing[index]).collect());
                        async { loading.await.told() }
                    };
                    let side = |key| Box::new(TaskSide { shared: &self.shared, key, renewals }) as Box<dyn Side + '_>;
                    inner.fly_many(&owned, limit, load, side).await
                }
            };
            let keys = batch.wanted.iter().map(|wanted| wanted.key);
            let flown = if inner.coalescing.load(Ordering::Relaxed) {
                match self.shared.group.run_many(keys, work).await {
                    Ok(flown) => flown,
                    Err(_) => return Err(Error::Reentrant),
                }
            } else {
                let (once, order) = each_once(keys);
                let flown = work(once).await;
                order.into_iter().map(|index| flown[index].clone()).collect()
            };
            inner.take_in(&mut batch, &led.into_inner(), flown)?;
        }
        Ok(batch.values.into_iter().map(|value| value.expect("each key has one")).collect())
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
    /// [`load_timeout`](crate::Builder::load_timeout) are loaded by one of those who wait, as with single calls.
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
        self.load_many(keys, |missing| loader(missing).told())
    }

    pub(crate) fn load_many<'q, Q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut loader: impl FnMut(Vec<&'q Q>) -> Result<Vec<V>, Error<E>>,
    ) -> Result<Vec<Fetched<V>>, Error<E>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized + 'q,
        S: BlockingStore<Q, V>,
    {
        let inner = &self.shared.inner;
        let mut batch = block_on(inner.look_many(keys.into_iter().collect()));
        let _calling = match inner.call_many(&batch) {
            Ok(calling) => calling,
            Err(error) => {
                inner.refuse(&mut batch, &error)?;
                Vec::new()
            }
        };
        while !batch.wanted.is_empty() {
            if inner.is_closed() {
                inner.refuse(&mut batch, &Error::Closed)?;
                break;
            }
            let why: HashMap<&Q, Why> = batch.wanted.iter().map(|wanted| (wanted.key, wanted.why())).collect();
            let mut led = HashSet::new();
            let mut work = |missing: Vec<&'q Q>| {
                led.extend(missing.iter().copied());
                let load = |indices: Vec<usize>| ready(loader(indices.iter().map(|&index| missing[index]).collect()));
                let side = |key| Box::new(ThreadSide { shared: &self.shared, key, until: None }) as Box<dyn Side + '_>;
                block_on(inner.fly_many(&owned(&missing, &why), None, load, side))
            };
            let keys = batch.wanted.iter().map(|wanted| wanted.key);
            let flown = if inner.coalescing.load(Ordering::Relaxed) {
                // As for a single call: past that the flights take no newcomers.
                match self.shared.group.run_many(keys, inner.config.load_timeout, work) {
                    Ok(flown) => flown,
                    Err(CallError::TimedOut) => continue,
                    Err(_) => return Err(Error::Reentrant),
                }
            } else {
                let (once, order) = each_once(keys);
                let flown = work(once);
                order.into_iter().map(|index| flown[index].clone()).collect()
            };
            inner.take_in(&mut batch, &led, flown)?;
        }
        Ok(batch.values.into_iter().map(|value| value.expect("each key has one")).collect())
    }
}

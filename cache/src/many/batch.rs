//! What a batch has found, what it is to load, and what it makes of that: the same for tasks and threads.

use crate::entry::{Entry, Fetched, Source};
use crate::error::{Error, StoreError};
use crate::inner::{Flown, Inner, Leave, Panicked, Seen, Why};
use crate::loads::Calling;
use crate::plan::Plan;
use crate::stats::Count;
use crate::store::Store;
use crate::time::Time;
use hashbrown::{HashMap, HashSet};
use oneflight::Role;
use std::hash::Hash;

/// What a batch knows of one of its keys.
pub(super) struct Wanted<'q, Q: ?Sized, V> {
    /// Its place among the keys of the call.
    place: usize,
    pub(super) key: &'q Q,
    /// An old value, for the case that there will be no new one.
    entry: Option<Entry<V>>,
    /// What is there, if it is too old.
    seen: Option<Seen>,
    /// As what it is served, and leave to refresh it, until it is refreshed.
    refresh: Option<(Source, Leave)>,
}

impl<Q: ?Sized, V> Wanted<'_, Q, V> {
    pub(super) fn why(&self) -> Why {
        match (&self.refresh, &self.entry) {
            (Some(_), Some(entry)) => Why::Refresh { seen: entry.version(), cost: entry.cost() },
            _ => Why::Missing(self.seen),
        }
    }

    pub(super) fn is_refresh(&self) -> bool {
        self.refresh.is_some()
    }

    /// The version of the value that there is if no other comes.
    fn old(&self) -> Option<u32> {
        self.entry.as_ref().map(Entry::version)
    }
}

/// A batch under way.
pub(super) struct Batch<'q, Q: ?Sized, V> {
    pub(super) values: Vec<Option<Fetched<V>>>,
    pub(super) wanted: Vec<Wanted<'q, Q, V>>,
}

impl<Q: ?Sized, V> Batch<'_, Q, V> {
    /// The values, once nothing is wanted any more.
    pub(super) fn into_values(self) -> Vec<Fetched<V>> {
        self.values.into_iter().map(|value| value.expect("each key has one")).collect()
    }
}

/// What is near of several keys, and which of them are not.
struct NearMany<'q, Q: ?Sized, V> {
    found: Vec<Option<Entry<V>>>,
    missing: Vec<&'q Q>,
}

impl<Q: ?Sized, V> NearMany<'_, Q, V> {
    /// All, in their order, with what was told of the missing ones.
    fn with<E>(self, told: Vec<Result<Option<Entry<V>>, E>>) -> Vec<Result<Option<Entry<V>>, E>> {
        let mut told = told.into_iter();
        let found = self.found.into_iter();
        found.map(|near| near.map_or_else(|| told.next().unwrap_or(Ok(None)), |near| Ok(Some(near)))).collect()
    }
}

impl<V, S> Inner<V, S> {
    /// What is there, and what is not.
    pub(super) async fn look_many<'q, Q>(&self, keys: &[&'q Q]) -> Batch<'q, Q, V>
    where
        Q: Hash + Sync + ?Sized,
        V: Send,
        S: Store<Q, V>,
    {
        let now = self.now();
        let all = self.find_many(keys, now).await;
        let found = keys.iter().zip(all).map(|(&key, found)| found.unwrap_or_else(|_| self.store.near(key, now)));
        self.plan_many(keys, found, now)
    }

    /// What is near, for who has no time to ask the store.
    pub(super) fn look_near<'q, Q>(&self, keys: &[&'q Q]) -> Batch<'q, Q, V>
    where
        Q: Hash + ?Sized,
        S: Store<Q, V>,
    {
        let now = self.now();
        self.plan_many(keys, keys.iter().map(|&key| self.store.near(key, now)), now)
    }

    fn plan_many<'q, Q: Hash + ?Sized>(
        &self,
        keys: &[&'q Q],
        found: impl Iterator<Item = Option<Entry<V>>>,
        now: Time,
    ) -> Batch<'q, Q, V> {
        let mut batch = Batch { values: Vec::with_capacity(keys.len()), wanted: Vec::new() };
        for (place, (&key, found)) in keys.iter().zip(found).enumerate() {
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

    /// What is near and may be served, and of the rest what the store says. `Err`: it has failed, which was counted.
    pub(super) async fn find_many<Q>(&self, keys: &[&Q], now: Time) -> Vec<Result<Option<Entry<V>>, StoreError>>
    where
        Q: Sync + ?Sized,
        V: Send,
        S: Store<Q, V>,
    {
        match self.near_many(keys, now) {
            None => self.ask_many(keys, now).await,
            Some(near) => {
                let told = self.ask_many(&near.missing, now).await;
                near.with(told)
            }
        }
    }

    /// `None` if nothing is near, as in most stores.
    fn near_many<'q, Q>(&self, keys: &[&'q Q], now: Time) -> Option<NearMany<'q, Q, V>>
    where
        Q: ?Sized,
        S: Store<Q, V>,
    {
        let near = |(place, key): (usize, &&Q)| Some((place, self.near(*key, now)?));
        let near: Vec<_> = keys.iter().enumerate().filter_map(near).collect();
        if near.is_empty() {
            return None;
        }
        let mut found: Vec<_> = keys.iter().map(|_| None).collect();
        for (place, entry) in near {
            found[place] = Some(entry);
        }
        let is_missing = |(place, _): &(usize, &&Q)| found[*place].is_none();
        let missing = keys.iter().enumerate().filter(is_missing).map(|(_, key)| *key).collect();
        Some(NearMany { found, missing })
    }

    async fn ask_many<Q>(&self, keys: &[&Q], now: Time) -> Vec<Result<Option<Entry<V>>, StoreError>>
    where
        Q: Sync + ?Sized,
        V: Send,
        S: Store<Q, V>,
    {
        if keys.is_empty() {
            return Vec::new();
        }
        match self.ask::<Q, _, _>(|| self.store.get_many(keys, now)).await {
            Ok(all) => all.into_iter().map(|found| found.map_err(|error| self.store_failed(error))).collect(),
            Err(failure) => keys.iter().map(|_| Err(StoreError::clone(&failure.error))).collect(),
        }
    }

    /// Counts the keys whose loads by others have failed.
    pub(super) fn count_failed_joins<Q, E>(&self, batch: &Batch<'_, Q, V>, led: &HashSet<&Q>, flown: &[Flown<V, E>])
    where
        Q: Hash + Eq + ?Sized,
    {
        for (wanted, flown) in batch.wanted.iter().zip(flown) {
            if matches!(flown, Some(Err(_))) && !wanted.is_refresh() && !led.contains(wanted.key) {
                self.counters.add(Count::Joins);
            }
        }
    }

    /// Puts what has come into its place. What came to nothing stays wanted, and the first error without an old value ends it all,
    /// once the others have come. `led` are the keys whose flights were this call's own.
    pub(super) fn take_in<Q, E>(
        &self,
        batch: &mut Batch<'_, Q, V>,
        led: &HashSet<&Q>,
        flown: Vec<Flown<V, E>>,
    ) -> Result<(), Error<E>>
    where
        Q: Hash + Eq + ?Sized,
    {
        let mut all = Ok(());
        for (wanted, flown) in std::mem::take(&mut batch.wanted).into_iter().zip(flown) {
            let place = wanted.place;
            let role = if led.contains(wanted.key) { Role::Led } else { Role::Followed };
            let value = match (flown, wanted) {
                (Some(Err(Error::Reentrant)), _) => Err(Error::Reentrant),
                (flown, Wanted { refresh: Some((source, _leave)), entry: Some(entry), .. }) => {
                    Ok(self.refreshed(flown.and_then(Result::ok), entry, source))
                }
                (None, wanted) => {
                    batch.wanted.push(wanted);
                    continue;
                }
                (Some(flown), wanted) => self.ended(flown.map(|landed| self.landed(landed, role)), wanted.entry),
            };
            match value {
                Ok(value) => batch.values[place] = Some(value),
                Err(error) => all = all.and(Err(error)),
            }
        }
        all
    }

    /// As [`take_in`](Self::take_in), of some of the keys. The others stay wanted.
    pub(super) fn take_in_kept<Q, E>(
        &self,
        batch: &mut Batch<'_, Q, V>,
        led: &HashSet<&Q>,
        kept: &HashMap<&Q, Result<Flown<V, E>, Panicked>>,
    ) -> Result<(), Error<E>>
    where
        Q: Hash + Eq + ?Sized,
        V: Clone,
    {
        let is_kept = |wanted: &Wanted<'_, Q, V>| kept.contains_key(wanted.key);
        let (come, others): (Vec<_>, _) = std::mem::take(&mut batch.wanted).into_iter().partition(is_kept);
        batch.wanted = come;
        let copied = |wanted: &Wanted<'_, Q, V>| match &kept[wanted.key] {
            Ok(flown) => flown.clone(),
            Err(panicked) => {
                panicked.resume();
                None
            }
        };
        let flown = batch.wanted.iter().map(copied).collect();
        let all = self.take_in(batch, led, flown);
        batch.wanted.extend(others);
        // As errors are told in the order of the keys.
        batch.wanted.sort_unstable_by_key(|wanted| wanted.place);
        all
    }

    /// Those of the keys whose loads by others were waited for in vain, and whose old values will do.
    pub(super) async fn hung<'q, Q>(&self, batch: &Batch<'q, Q, V>, led: &HashSet<&Q>) -> Vec<&'q Q>
    where
        Q: Hash + Eq + Sync + ?Sized,
        V: Send,
        S: Store<Q, V>,
    {
        let others = batch.wanted.iter().filter(|wanted| !led.contains(wanted.key));
        let (keys, old): (Vec<_>, Vec<_>) = others.filter_map(|wanted| Some((wanted.key, wanted.old()?))).unzip();
        if keys.is_empty() {
            return keys;
        }
        // A load that is over has left another value, and a write may have left none. Also near, where a store that does not answer
        // is not asked.
        let all = self.find_many(&keys, self.now()).await;
        let mut hung = Vec::new();
        for ((key, found), old) in keys.into_iter().zip(all).zip(old) {
            if found.map_or(true, |entry| entry.is_some_and(|entry| entry.version() == old)) {
                self.hangs(self.loads.hash(key));
                hung.push(key);
            }
        }
        hung
    }

    /// One more caller for each key. A key that has too many gets its old value, and without one ends it all.
    pub(super) fn call_many<Q, E>(&self, batch: &mut Batch<'_, Q, V>) -> Result<Vec<Calling<'_>>, Error<E>>
    where
        Q: Hash + Eq + ?Sized,
        V: Clone,
    {
        let Some(max) = self.config.max_waiters else { return Ok(Vec::new()) };
        // A key that stands there twice is waited for once, and one with a value to be refreshed not at all.
        let without = batch.wanted.iter().filter(|wanted| wanted.refresh.is_none());
        let keys: HashSet<&Q> = without.map(|wanted| wanted.key).collect();
        let (mut calling, mut refused) = (Vec::with_capacity(keys.len()), HashMap::new());
        for key in keys {
            match self.loads.call(self.loads.hash(key), max) {
                Some(one) => calling.push(one),
                None => _ = refused.insert(key, Ok(Some(Err(Error::Overloaded)))),
            }
        }
        if !refused.is_empty() {
            // One call, however many of its keys.
            self.counters.add(Count::Overloaded);
            self.take_in_kept(batch, &HashSet::new(), &refused)?;
        }
        Ok(calling)
    }

    /// The time of the batch is up. What it has `kept` counts, and its refreshes end with it: the next ones wait.
    pub(super) fn ends_late<Q, E>(
        &self,
        batch: &mut Batch<'_, Q, V>,
        led: &HashSet<&Q>,
        kept: &HashMap<&Q, Result<Flown<V, E>, Panicked>>,
    ) -> Result<(), Error<E>>
    where
        Q: Hash + Eq + ?Sized,
        V: Clone,
    {
        let come = self.take_in_kept(batch, led, kept);
        for wanted in batch.wanted.iter().filter(|wanted| wanted.is_refresh()) {
            self.hold_up(self.loads.hash(wanted.key));
        }
        come.and(self.refuse(batch, &Error::Deadline))
    }

    /// Ends a batch that may not load: by the old values, if each key has one.
    pub(super) fn refuse<Q, E>(&self, batch: &mut Batch<'_, Q, V>, error: &Error<E>) -> Result<(), Error<E>>
    where
        Q: Hash + Eq + ?Sized,
    {
        let flown = batch.wanted.iter().map(|_| Some(Err(error.clone()))).collect();
        self.take_in(batch, &HashSet::new(), flown)
    }
}

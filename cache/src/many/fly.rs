//! The flights of a batch: how the values that it loads together get into the store.

use super::leased::REQUESTS;
use super::together::together;
use crate::entry::Entry;
use crate::error::{Error, OfEach};
use crate::inner::{Flown, Inner, Side, Why};
use crate::stats::Count;
use crate::store::Store;
use crate::time::Time;
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

impl<V, S> Inner<V, S> {
    /// As [`fly`](Self::fly), for keys that are loaded together.
    pub(super) async fn fly_many<'k, K, E, F>(
        &'k self,
        keys: &'k [(K, Why)],
        limit: Option<Duration>,
        mut loader: impl FnMut(Vec<usize>) -> F,
        side: impl Fn(&'k K) -> Box<dyn Side + 'k>,
    ) -> Vec<Flown<V, E>>
    where
        K: Hash + Sync,
        V: Clone + Send,
        S: Store<K, V>,
        F: Future<Output = OfEach<V, E>>,
    {
        if self.store.lease().is_some() {
            return Box::pin(self.fly_many_leased(keys, limit, loader, side)).await;
        }
        let begun = self.now();
        let loads: Vec<_> = keys.iter().map(|(key, _)| self.loads.begin(self.loads.hash(key))).collect();
        // What never waits is asked key by key, and anything else once.
        let is_immediate = self.is_immediate::<K>();
        let mut all = if is_immediate { None } else { Some(self.find_again_many(keys, begun).await.into_iter()) };
        let mut flown: Vec<Flown<V, E>> = Vec::with_capacity(keys.len());
        let mut missing = Vec::new();
        for (index, ((key, why), load)) in keys.iter().zip(loads).enumerate() {
            let found = match &mut all {
                Some(all) => self.find_again(all.next().unwrap_or(Err(())), *why, begun),
                None => self.look_again(self.store.get(key, begun).await, *why, begun),
            };
            flown.push(match found {
                Ok(former) => {
                    missing.push((index, load, former));
                    None
                }
                Err(flown) => flown,
            });
        }
        if missing.is_empty() {
            return flown;
        }
        let indices: Vec<usize> = missing.iter().map(|(index, ..)| *index).collect();
        let loading = async { Some(counted(loader(indices).await, missing.len())) };
        let panics = || {
            for (_, load, former) in &missing {
                self.back_off(load, None::<&Error<E>>, former.entry.is_some());
            }
        };
        let (loaded, ended) = self.run(limit, begun, true, loading, panics).await;
        let results = self.apart(loaded, missing.len());
        let landings = missing.into_iter().zip(results).map(|((index, mut load, former), result)| async move {
            let landed = match result {
                Ok(value) => {
                    // All of them have that time together.
                    let spent = |limit: Duration| limit.saturating_sub(self.now().since(ended));
                    let left = limit.filter(|_| !is_immediate).map(spent);
                    Ok(self.land(&keys[index].0, &mut load, value, [begun, ended], &former, left).await)
                }
                Err(error) => {
                    self.back_off(&load, Some(&error), former.entry.is_some());
                    Err(error)
                }
            };
            (index, landed)
        });
        if is_immediate {
            for landing in landings {
                let (index, landed) = landing.await;
                flown[index] = Some(landed);
            }
        } else {
            for (index, landed) in together(REQUESTS, landings.collect()).await {
                flown[index] = Some(landed);
            }
        }
        flown
    }

    /// The entry of each key, in one request. `Err`: the store has failed, which was counted.
    async fn find_again_many<K>(&self, keys: &[(K, Why)], now: Time) -> Vec<Result<Option<Entry<V>>, ()>>
    where
        K: Sync,
        V: Send,
        S: Store<K, V>,
    {
        let refs: Vec<&K> = keys.iter().map(|(key, _)| key).collect();
        match self.store.get_many(&refs, now).await {
            Ok(all) => all.into_iter().map(|found| found.map_err(|error| _ = self.store_failed(error))).collect(),
            Err(error) => {
                self.store_failed(error);
                keys.iter().map(|_| Err(())).collect()
            }
        }
    }

    /// What a run of a loader has come to, for each of so many keys. It is counted once if it failed, for some of them or all.
    pub(super) fn apart<E>(&self, loaded: Option<OfEach<V, E>>, asked: usize) -> Vec<Result<V, Error<E>>> {
        match loaded.expect("no panic of it is caught") {
            Ok(results) => {
                let failed = results.iter().filter(|result| result.is_err()).count();
                if failed > 0 {
                    self.counters.add(Count::LoadErrors);
                    #[cfg(feature = "tracing")]
                    tracing::warn!(target: "oneflight_cache", cache = self.name(), failed, "the load failed for some keys");
                }
                results
            }
            Err(error) => {
                self.count_failed(Some(&error));
                (0..asked).map(|_| Err(error.clone())).collect()
            }
        }
    }
}

/// What a loader of so many keys has come to. Another number of values is a panic of that run, and counted as such.
pub(super) fn counted<V, E>(loaded: OfEach<V, E>, asked: usize) -> OfEach<V, E> {
    let got = loaded.as_ref().map_or(asked, Vec::len);
    assert!(got == asked, "the loader returned {got} values for {asked} keys");
    loaded
}

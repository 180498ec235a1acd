//! What a [`Memory`](super::Memory) holds: entries that count as one each, or entries with their weights.

use super::Pushed;
use crate::entry::Entry;
use hashbrown::Equivalent;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, Options, UnitWeighter, Weighter};
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

pub(super) type Weigh<K, V> = Arc<dyn Fn(&K, &V) -> u64 + Send + Sync>;

/// Two kinds, so that entries that count as one need no room for a weight.
pub(super) enum Entries<K, V, H> {
    Counted(Cache<K, Entry<V>, UnitWeighter, H, HandsOut>),
    Weighed(Cache<K, Weighed<V>, Noted, H, HandsOut>, Weigh<K, V>),
}

/// An entry, and what it was found to weigh before it was stored. [`quick_cache`] asks for weights in the middle of its work on its
/// lists, where a panic, or another answer than before, would be undefined behaviour.
#[derive(Clone)]
pub(super) struct Weighed<V> {
    entry: Entry<V>,
    weight: u64,
}

/// The weight that was noted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted;

impl<K, V> Weighter<K, Weighed<V>> for Noted {
    fn weight(&self, _: &K, weighed: &Weighed<V>) -> u64 {
        weighed.weight
    }
}

/// Hands out what was pushed out, so that it is dropped where no lock is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandsOut;

impl<K, V> Lifecycle<K, Entry<V>> for HandsOut {
    type RequestState = Pushed<K, V>;

    fn on_evict(&self, pushed: &mut Pushed<K, V>, key: K, entry: Entry<V>) {
        pushed.add(key, entry);
    }
}

impl<K, V> Lifecycle<K, Weighed<V>> for HandsOut {
    type RequestState = Pushed<K, V>;

    fn on_evict(&self, pushed: &mut Pushed<K, V>, key: K, weighed: Weighed<V>) {
        pushed.add(key, weighed.entry);
    }
}

impl<K: Hash + Eq, V: Clone, H: BuildHasher + Clone> Entries<K, V, H> {
    pub(super) fn counted(options: Options, hasher: H) -> Self {
        Self::Counted(Cache::with_options(options, UnitWeighter, hasher, HandsOut))
    }

    pub(super) fn weighed(options: Options, weigh: Weigh<K, V>, hasher: H) -> Self {
        Self::Weighed(Cache::with_options(options, Noted, hasher, HandsOut), weigh)
    }

    /// Runs the user's code, so not to be called where a lock is held.
    #[inline]
    pub(super) fn weigh<Q>(&self, key: &Q, value: &V) -> u64
    where
        Q: ToOwned<Owned = K> + ?Sized,
    {
        match self {
            Self::Counted(_) => 1,
            // What weighs nothing would never be given up.
            Self::Weighed(_, weigh) => weigh(&key.to_owned(), value).max(1),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Counted(entries) => entries.len(),
            Self::Weighed(entries, _) => entries.len(),
        }
    }

    pub(super) fn weight(&self) -> u64 {
        match self {
            Self::Counted(entries) => entries.weight(),
            Self::Weighed(entries, _) => entries.weight(),
        }
    }

    #[inline]
    pub(super) fn get<Q>(&self, key: &Q) -> Option<Entry<V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        match self {
            Self::Counted(entries) => entries.get(key),
            Self::Weighed(entries, _) => entries.get(key).map(|weighed| weighed.entry),
        }
    }

    pub(super) fn insert(&self, key: K, entry: Entry<V>, weight: u64, pushed: &mut Pushed<K, V>) {
        let insert = || match self {
            Self::Counted(entries) => entries.insert_with_lifecycle(key, entry, pushed),
            Self::Weighed(entries, _) => entries.insert_with_lifecycle(key, Weighed { entry, weight }, pushed),
        };
        // To make room, it hashes keys again when it has counted them out already. After a panic of `Hash` its numbers would be wrong
        // for ever, and after some of those it would keep nothing any more.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(insert)) {
            self.forget_all();
            resume_unwind(panic);
        }
    }

    /// Empties it without a look at the keys.
    #[cold]
    fn forget_all(&self) {
        match self {
            Self::Counted(entries) => entries.clear(),
            Self::Weighed(entries, _) => entries.clear(),
        }
    }

    pub(super) fn remove<Q>(&self, key: &Q) -> Option<(K, Entry<V>)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        match self {
            Self::Counted(entries) => entries.remove(key),
            Self::Weighed(entries, _) => entries.remove(key).map(|(key, weighed)| (key, weighed.entry)),
        }
    }

    pub(super) fn remove_if<Q>(&self, key: &Q, is_old: impl FnOnce(&Entry<V>) -> bool) -> Option<(K, Entry<V>)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        match self {
            Self::Counted(entries) => entries.remove_if(key, is_old),
            Self::Weighed(entries, _) => {
                let removed = entries.remove_if(key, |weighed| is_old(&weighed.entry));
                removed.map(|(key, weighed)| (key, weighed.entry))
            }
        }
    }

    pub(super) fn take_all(&self) -> Vec<(K, Entry<V>)> {
        match self {
            Self::Counted(entries) => entries.drain().collect(),
            Self::Weighed(entries, _) => entries.drain().map(|(key, weighed)| (key, weighed.entry)).collect(),
        }
    }
}

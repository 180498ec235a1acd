//! What two tiers keep in memory, and what keeps old values out of it.

use crate::entry::Entry;
use crate::lease::{Acquired, Publication};
use crate::memory::Memory;
use crate::primitive::Mutex;
use crate::store::BlockingStore;
use crate::time::Time;
use crossbeam_utils::CachePadded;
use hashbrown::Equivalent;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// By the numbers of keys, as others' writes are told by these.
pub(super) struct Near<K, V> {
    pub(super) memory: Memory<u64, Kept<K, V>>,
    /// How often keys were written whose number falls on each. What is kept or removed because of it is so under the same lock, where
    /// none of the user's code runs. Whoever only looks takes none.
    writes: Box<[CachePadded<Mutex<u64>>]>,
}

pub(super) struct Kept<K, V> {
    pub(super) key: Arc<K>,
    pub(super) value: V,
    until: Time,
}

// Not derived: `K` need not be `Clone`.
impl<K, V: Clone> Clone for Kept<K, V> {
    fn clone(&self) -> Self {
        Self { key: Arc::clone(&self.key), value: self.value.clone(), until: self.until }
    }
}

const STRIPES: usize = if cfg!(loom) { 1 } else { 64 };

/// What is to be kept of an entry, a copy of its own, and what it weighs.
pub(super) struct Copied<K, V>(Entry<Kept<K, V>>, u64);

impl<K: Send + Sync + 'static, V: Clone + Send + Sync + 'static> Near<K, V> {
    pub(super) fn new(memory: Memory<u64, Kept<K, V>>) -> Self {
        Self { memory, writes: (0..STRIPES).map(|_| CachePadded::default()).collect() }
    }

    pub(super) fn find<Q: Equivalent<K> + ?Sized>(&self, number: u64, key: &Q, now: Time) -> Option<Entry<V>> {
        let Entry { life, value: kept } = self.memory.find(&number, now)?;
        (now < kept.until && key.equivalent(&kept.key)).then_some(Entry { life, value: kept.value })
    }

    /// How often keys were written whose number falls where this one does.
    pub(super) fn writes(&self, number: u64) -> u64 {
        *self.stripe(number).lock()
    }

    fn stripe(&self, number: u64) -> &Mutex<u64> {
        &self.writes[number as usize % self.writes.len()]
    }

    /// Keeps it, unless the key was written after there were so many `writes`.
    fn keep(&self, number: u64, Copied(entry, weight): Copied<K, V>, writes: u64) {
        let written = self.stripe(number).lock();
        let displaced = if *written == writes { Some(self.memory.keep(number, entry, weight)) } else { None };
        drop(written);
        drop(displaced);
    }

    /// Keeps what was published, if the key was not written after there were so many `writes`. It counts as a write: what was read before
    /// it is not kept after it.
    fn keep_published(&self, number: u64, copied: Option<Copied<K, V>>, writes: u64) {
        let mut written = self.stripe(number).lock();
        let is_current = *written == writes;
        *written += 1;
        let displaced = match copied {
            Some(Copied(entry, weight)) if is_current => Ok(self.memory.keep(number, entry, weight)),
            unkept => Err((unkept, self.memory.take(&number))),
        };
        drop(written);
        drop(displaced);
    }

    pub(super) fn written(&self, number: u64) {
        let mut written = self.stripe(number).lock();
        *written += 1;
        let removed = self.memory.take(&number);
        drop(written);
        drop(removed);
    }

    pub(super) fn all_written(&self) {
        for stripe in &self.writes {
            *stripe.lock() += 1;
        }
        // What was kept before it was counted is there by now.
        drop(self.memory.take_all());
    }
}

/// A request about a key that may have been written while it was under way.
pub(super) struct Request<'t, K, V> {
    near: &'t Near<K, V>,
    number: u64,
    writes: u64,
    until: Time,
}

impl<'t, K: Send + Sync + 'static, V: Clone + Send + Sync + 'static> Request<'t, K, V> {
    pub(super) fn new(near: &'t Near<K, V>, number: u64, until: Time) -> Self {
        Self::since(near, number, near.writes(number), until)
    }

    /// One that has begun when there were so many `writes`.
    pub(super) fn since(near: &'t Near<K, V>, number: u64, writes: u64, until: Time) -> Self {
        Self { near, number, writes, until }
    }

    /// What would be kept of it. `None` if the user's code panics: then it is not kept near, and whoever asked has it all the same.
    pub(super) fn copy<Q: ToOwned<Owned = K> + ?Sized>(&self, key: &Q, entry: &Entry<V>) -> Option<Copied<K, V>> {
        catch_unwind(AssertUnwindSafe(|| self.kept(key, entry.clone()))).ok()
    }

    fn kept<Q: ToOwned<Owned = K> + ?Sized>(&self, key: &Q, Entry { life, value }: Entry<V>) -> Copied<K, V> {
        let kept = Kept { key: Arc::new(key.to_owned()), value, until: self.until };
        // Where no lock is held.
        let weight = BlockingStore::weigh(&self.near.memory, &self.number, &kept);
        Copied(Entry { life, value: kept }, weight)
    }

    /// Keeps an entry that the store has not.
    pub(super) fn filled<Q: ToOwned<Owned = K> + ?Sized>(&self, key: &Q, entry: Entry<V>) {
        self.keep(catch_unwind(AssertUnwindSafe(|| self.kept(key, entry))).ok());
    }

    fn keep(&self, copied: Option<Copied<K, V>>) {
        match copied {
            Some(copied) => self.near.keep(self.number, copied, self.writes),
            // What is there is older than what whoever asked has.
            None => self.near.written(self.number),
        }
    }

    pub(super) fn got<Q: ToOwned<Owned = K> + ?Sized>(&self, key: &Q, got: Option<Entry<V>>) -> Option<Entry<V>> {
        got.inspect(|entry| self.keep(self.copy(key, entry)))
    }

    pub(super) fn acquired<Q: ToOwned<Owned = K> + ?Sized>(&self, key: &Q, acquired: Acquired<V>) -> Acquired<V> {
        if let Acquired::Filled(entry) = &acquired {
            self.keep(self.copy(key, entry));
        }
        acquired
    }

    /// The copy is made before, as the store takes the entry.
    pub(super) fn published(&self, copied: Option<Copied<K, V>>, publication: Publication) -> Publication {
        match publication {
            Publication::Stored | Publication::Late => self.near.keep_published(self.number, copied, self.writes),
            // What is here is out of date.
            Publication::Superseded | Publication::Invalidated => self.near.written(self.number),
        }
        publication
    }
}

/// What is near of several keys, and what has to be asked for.
pub(super) struct NearMany<'t, 'q, Q: ?Sized, K, V> {
    pub(super) found: Vec<Option<Entry<V>>>,
    pub(super) missing: Vec<&'q Q>,
    /// Of the missing ones, each with its place.
    pub(super) requests: Vec<(usize, Request<'t, K, V>)>,
}

impl<Q, K, V> NearMany<'_, '_, Q, K, V>
where
    Q: ToOwned<Owned = K> + ?Sized,
    K: Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// All, in their order, with what was got of the missing ones.
    pub(super) fn with<E>(self, got: Vec<Result<Option<Entry<V>>, E>>) -> Vec<Result<Option<Entry<V>>, E>> {
        let mut found: Vec<_> = self.found.into_iter().map(Ok).collect();
        for (((place, request), key), got) in self.requests.into_iter().zip(self.missing).zip(got) {
            found[place] = got.map(|got| request.got(key, got));
        }
        found
    }
}

/// A write under way: what is kept before it begins or until it has ended is not kept.
pub(super) struct Writing<'t, K: Send + Sync + 'static, V: Clone + Send + Sync + 'static>(&'t Near<K, V>, Option<u64>);

impl<'t, K: Send + Sync + 'static, V: Clone + Send + Sync + 'static> Writing<'t, K, V> {
    pub(super) fn begin(near: &'t Near<K, V>, number: Option<u64>) -> Self {
        let writing = Self(near, number);
        writing.write();
        writing
    }

    fn write(&self) {
        match self.1 {
            Some(number) => self.0.written(number),
            None => self.0.all_written(),
        }
    }
}

impl<K: Send + Sync + 'static, V: Clone + Send + Sync + 'static> Drop for Writing<'_, K, V> {
    fn drop(&mut self) {
        self.write();
    }
}

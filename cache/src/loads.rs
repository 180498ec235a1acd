//! Which keys are being loaded, refreshed or written, and which have failed of late.
//!
//! Keys are known here by their hashes, of 64 bits and seeded. If two keys should ever share one, a write of the one keeps a load
//! of the other out of the store, and it is loaded once more.

mod load;

pub(crate) use load::{Load, Unwanted};

use crate::primitive::{Mutex, WriteLock, Writing};
use crate::room::after_burst;
use crate::time::Time;
use crossbeam_utils::CachePadded;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

/// A key, as it is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

pub(crate) struct Loads {
    hasher: DefaultHashBuilder,
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    /// Held while a value of the shard is written to the store, so that a write and the end of a load are one after the other.
    writing: Box<[WriteLock]>,
}

#[derive(Default)]
struct Shard {
    keys: HashTable<State>,
    /// How many keys there may be before those are looked for that are of no more use.
    sweep_at: usize,
    marks: u64,
}

/// What is known of a key while anything is.
struct State {
    hash: KeyHash,
    /// Changes with each write. What was begun before must not be stored after.
    epoch: u64,
    loading: u32,
    /// When the newest load began whose value was stored while others were on.
    stored: Time,
    /// How many were stored while others were on.
    stores: u32,
    calling: u32,
    /// The number of the refresh that is on.
    refreshing: Option<u64>,
    /// Since when.
    refreshing_since: Time,
    failures: u32,
    /// When it may be refreshed again, after a failure.
    not_before: Time,
    /// The newest load was waited for in vain, which counts as one failure, however many have waited.
    hangs: bool,
}

/// How long refreshes wait after failures: `first`, then twice as long each time, `longest` at most, and up to a quarter less, by
/// `random` from 0 to 1.
#[derive(Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
    pub(crate) random: f64,
}

impl State {
    fn new(hash: KeyHash) -> Self {
        Self {
            hash,
            epoch: 0,
            loading: 0,
            stored: Time::START,
            stores: 0,
            calling: 0,
            refreshing: None,
            refreshing_since: Time::START,
            failures: 0,
            not_before: Time::START,
            hangs: false,
        }
    }

    fn fail(&mut self, now: Time, Backoff { first, longest, random }: Backoff) {
        let wait = first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(longest);
        self.failures += 1;
        self.not_before = now.after(wait - wait.mul_f64(random.clamp(0.0, 1.0) / 4.0));
    }

    fn succeed(&mut self) {
        self.failures = 0;
        self.not_before = Time::START;
    }

    /// What is being loaded or refreshed is not to be stored any more.
    fn void(&mut self) {
        self.epoch += 1;
        self.refreshing = None;
    }

    fn is_idle(&self) -> bool {
        self.loading == 0 && self.calling == 0 && self.refreshing.is_none()
    }
}

impl Shard {
    fn find(&mut self, hash: KeyHash) -> Option<&mut State> {
        self.keys.find_mut(hash.0, |state| state.hash == hash)
    }

    fn get(&mut self, hash: KeyHash) -> &mut State {
        let entry = self.keys.entry(hash.0, |state| state.hash == hash, |state| state.hash.0);
        entry.or_insert_with(|| State::new(hash)).into_mut()
    }

    /// Whether the value of a load of that epoch, which began `at` that time, is to be stored.
    fn may_store(&mut self, hash: KeyHash, epoch: u64, at: Time) -> Result<(), Unwanted> {
        match self.find(hash) {
            Some(state) if state.epoch != epoch => Err(Unwanted::Void),
            Some(state) if state.stored > at => Err(Unwanted::Superseded),
            Some(state) => {
                state.stored = at;
                state.stores = state.stores.wrapping_add(1);
                Ok(())
            }
            None => Err(Unwanted::Void),
        }
    }

    /// Something has ended, and the key is forgotten if there is nothing more to know about it.
    fn end(&mut self, hash: KeyHash, end: impl FnOnce(&mut State)) {
        if let Ok(mut entry) = self.keys.find_entry(hash.0, |state| state.hash == hash) {
            let state = entry.get_mut();
            end(state);
            if state.is_idle() && state.not_before == Time::START {
                entry.remove();
                self.shrink();
            }
        }
    }

    /// Keys that have failed and that nobody has asked for since would pile up.
    fn sweep(&mut self, now: Time) {
        if self.keys.len() >= self.sweep_at {
            self.keys.retain(|state| !state.is_idle() || state.not_before > now);
            self.sweep_at = (self.keys.len() * 2).max(64);
            self.shrink();
        }
    }

    /// Gives memory back, once many keys are forgotten.
    #[inline]
    fn shrink(&mut self) {
        if let Some(room) = after_burst(self.keys.len(), self.keys.capacity()) {
            self.keys.shrink_to(room, |state| state.hash.0);
        }
    }
}

impl Loads {
    pub(crate) fn new() -> Self {
        Self {
            hasher: DefaultHashBuilder::default(),
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            writing: (0..SHARDS).map(|_| WriteLock::new()).collect(),
        }
    }

    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> KeyHash {
        KeyHash(self.hasher.hash_one(key))
    }

    fn shard(&self, hash: KeyHash) -> &Mutex<Shard> {
        &self.shards[Self::index(hash)]
    }

    fn index(hash: KeyHash) -> usize {
        (hash.0 >> 32) as usize & (SHARDS - 1)
    }

    /// Waits until nobody else writes to the store for this key, or for one of those that share its lock.
    pub(crate) async fn write(&self, hash: KeyHash) -> Writing<'_> {
        self.writing[Self::index(hash)].lock().await
    }

    /// Waits until nobody else writes to the store.
    pub(crate) async fn write_all(&self) -> Vec<Writing<'_>> {
        let mut all = Vec::with_capacity(SHARDS);
        for lock in &self.writing {
            all.push(lock.lock().await);
        }
        all
    }

    /// A load of the key begins.
    pub(crate) fn begin(self: &Arc<Self>, hash: KeyHash) -> Load {
        let mut shard = self.shard(hash).lock();
        let state = shard.get(hash);
        state.loading += 1;
        state.hangs = false;
        let (epoch, stores) = (state.epoch, state.stores);
        drop(shard);
        Load::new(Arc::clone(self), hash, epoch, stores)
    }

    /// A write of the key begins: what is being loaded or refreshed is not to be stored any more.
    pub(crate) fn void(&self, hash: KeyHash) {
        if let Some(state) = self.shard(hash).lock().find(hash) {
            state.void();
        }
    }

    /// Does that, and writes to a store that never waits, in one: `write` is run under the lock of the key's shard. So it and the end
    /// of a load are one after the other, without the lock that tasks can wait for. `is_put`: a value is put.
    pub(crate) fn write_at_once<T, E>(
        &self,
        hash: KeyHash,
        is_put: bool,
        write: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut shard = self.shard(hash).lock();
        if let Some(state) = shard.find(hash) {
            state.void();
        }
        let written = write();
        if is_put && written.is_ok() {
            shard.end(hash, State::succeed);
        }
        written
    }

    /// As [`void`](Self::void), for every key.
    pub(crate) fn void_all(&self) {
        for shard in &self.shards {
            shard.lock().keys.iter_mut().for_each(State::void);
        }
    }

    /// Whether a key whose last load has failed may be tried again.
    pub(crate) fn may_try(&self, hash: KeyHash, now: Time) -> bool {
        self.shard(hash).lock().find(hash).is_none_or(|state| state.not_before <= now)
    }

    /// A refresh begins, unless one is on or the last has just failed. One that has been on for longer than `limit` holds up
    /// nobody.
    pub(crate) fn begin_refresh(self: &Arc<Self>, hash: KeyHash, now: Time, limit: Option<Duration>) -> Option<Mark> {
        let mut shard = self.shard(hash).lock();
        let mark = shard.marks;
        let state = shard.get(hash);
        let is_on = state.refreshing.is_some() && limit.is_none_or(|limit| now <= state.refreshing_since.after(limit));
        if is_on || state.not_before > now {
            return None;
        }
        state.refreshing = Some(mark);
        state.refreshing_since = now;
        shard.marks += 1;
        drop(shard);
        Some(Mark { loads: Arc::clone(self), hash, mark })
    }

    /// A load or a refresh has failed. The next refresh has to wait.
    pub(crate) fn fail(&self, hash: KeyHash, now: Time, backoff: Backoff) {
        let mut shard = self.shard(hash).lock();
        shard.sweep(now);
        shard.get(hash).fail(now, backoff);
    }

    /// A load of the key has been waited for in vain. Of all who have waited since a load began, the first lets the next refresh
    /// wait, unless it has to wait as it is.
    pub(crate) fn hangs(&self, hash: KeyHash, now: Time, backoff: Backoff) {
        let mut shard = self.shard(hash).lock();
        shard.sweep(now);
        let state = shard.get(hash);
        if !state.hangs && state.not_before <= now {
            state.hangs = true;
            state.fail(now, backoff);
        }
    }

    /// The next refresh has to wait until then.
    pub(crate) fn pause(&self, hash: KeyHash, now: Time, until: Time) {
        let mut shard = self.shard(hash).lock();
        shard.sweep(now);
        let state = shard.get(hash);
        state.not_before = state.not_before.max(until);
    }

    /// A value was put.
    pub(crate) fn succeed(&self, hash: KeyHash) {
        self.end(hash, State::succeed);
    }

    /// One more caller has to wait or to load, unless there are `max` and one already.
    pub(crate) fn call(&self, hash: KeyHash, max: usize) -> Option<Calling<'_>> {
        let mut shard = self.shard(hash).lock();
        let state = shard.get(hash);
        // One of them loads.
        if state.calling as usize > max {
            return None;
        }
        state.calling += 1;
        drop(shard);
        Some(Calling { loads: self, hash })
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().keys.len()).sum()
    }

    /// How many keys the largest shard has room for.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().keys.capacity()).max().unwrap_or(0)
    }

    fn end(&self, hash: KeyHash, end: impl FnOnce(&mut State)) {
        self.shard(hash).lock().end(hash, end);
    }
}

/// A refresh that is on, until it is dropped, wherever it is then.
pub(crate) struct Mark {
    loads: Arc<Loads>,
    hash: KeyHash,
    mark: u64,
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.loads.end(self.hash, |state| {
            // A write may have ended this one, and another have begun.
            if state.refreshing == Some(self.mark) {
                state.refreshing = None;
            }
        });
    }
}

/// A caller that has found no value, until it is dropped.
pub(crate) struct Calling<'l> {
    loads: &'l Loads,
    hash: KeyHash,
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        self.loads.end(self.hash, |state| state.calling -= 1);
    }
}

#[cfg(test)]
mod tests;

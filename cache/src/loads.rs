//! Which keys are being loaded, refreshed or written, and which have failed of late.
//!
//! Keys are known here by their hashes, of 64 bits and seeded. If two keys should ever share one, a write of the one keeps a load
//! of the other out of the store, and it is loaded once more.

use crate::primitive::{Mutex, WriteLock, Writing};
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
    calling: u32,
    /// The number of the refresh that is on.
    refreshing: Option<u64>,
    /// Since when.
    refreshing_since: Time,
    failures: u32,
    /// When it may be refreshed again, after a failure.
    not_before: Time,
}

impl State {
    fn new(hash: KeyHash) -> Self {
        Self {
            hash,
            epoch: 0,
            loading: 0,
            stored: Time::START,
            calling: 0,
            refreshing: None,
            refreshing_since: Time::START,
            failures: 0,
            not_before: Time::START,
        }
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
            }
        }
    }

    /// Keys that have failed and that nobody has asked for since would pile up.
    fn sweep(&mut self, now: Time) {
        if self.keys.len() >= self.sweep_at {
            self.keys.retain(|state| !state.is_idle() || state.not_before > now);
            self.sweep_at = (self.keys.len() * 2).max(64);
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
        let epoch = state.epoch;
        drop(shard);
        Load { loads: Arc::clone(self), hash, epoch, has_succeeded: false, is_over: false }
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

    /// A load or a refresh has failed. The next refresh has to wait: `first`, then twice as long each time, `longest` at most,
    /// and up to a quarter less, by `random` from 0 to 1.
    pub(crate) fn fail(&self, hash: KeyHash, now: Time, first: Duration, longest: Duration, random: f64) {
        let mut shard = self.shard(hash).lock();
        shard.sweep(now);
        let state = shard.get(hash);
        let wait = first.saturating_mul(1_u32.checked_shl(state.failures).unwrap_or(u32::MAX)).min(longest);
        state.failures += 1;
        state.not_before = now.after(wait - wait.mul_f64(random.clamp(0.0, 1.0) / 4.0));
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
    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().keys.len()).sum()
    }

    fn end(&self, hash: KeyHash, end: impl FnOnce(&mut State)) {
        self.shard(hash).lock().end(hash, end);
    }
}

/// A load that is on, until it is dropped.
pub(crate) struct Load {
    loads: Arc<Loads>,
    hash: KeyHash,
    epoch: u64,
    has_succeeded: bool,
    /// Its value was stored, and that was the end of it.
    is_over: bool,
}

/// Why the value of a load is not to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwanted {
    /// The key was written since the load began.
    Void,
    /// The value of a later load was stored already.
    Superseded,
}

impl Load {
    /// Whether the value is to be stored, of this load, which began `at` that time. To be asked while [`Loads::write`] is held.
    pub(crate) fn may_store(&self, at: Time) -> Result<(), Unwanted> {
        self.loads.shard(self.hash).lock().may_store(self.hash, self.epoch, at)
    }

    /// Stores the value in a store that never waits, if it is to be stored, as [`Loads::write_at_once`] writes: `store` is run under the
    /// same lock. Once it is stored, the load is over.
    pub(crate) fn store_at_once<T, E>(
        &mut self,
        at: Time,
        store: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T, E>, Unwanted> {
        let mut shard = self.loads.shard(self.hash).lock();
        shard.may_store(self.hash, self.epoch, at)?;
        let stored = store();
        if stored.is_ok() {
            shard.end(self.hash, |state| {
                state.loading -= 1;
                state.succeed();
            });
            self.is_over = true;
        }
        Ok(stored)
    }

    /// Whether the key was written since the load began.
    pub(crate) fn is_void(&self) -> bool {
        self.loads.shard(self.hash).lock().find(self.hash).is_none_or(|state| state.epoch != self.epoch)
    }

    /// It has brought a value.
    pub(crate) fn succeed(&mut self) {
        self.has_succeeded = true;
    }

    pub(crate) fn hash(&self) -> KeyHash {
        self.hash
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.loads.end(self.hash, |state| {
            state.loading -= 1;
            if self.has_succeeded {
                state.succeed();
            }
        });
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
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Time {
        Time::from_start(Duration::from_secs(seconds))
    }

    #[test]
    fn a_load_is_void_from_the_next_write_on_and_later_ones_are_not() {
        let loads = Arc::new(Loads::new());
        let (hash, other) = (loads.hash("a"), loads.hash("b"));
        let before = loads.begin(hash);
        let elsewhere = loads.begin(other);
        let is_void = |load: &Load| load.may_store(at(0)) == Err(Unwanted::Void);
        assert!(!is_void(&before));
        loads.void(hash);
        let after = loads.begin(hash);
        assert_eq!([&before, &after, &elsewhere].map(is_void), [true, false, false]);
        loads.void_all();
        assert_eq!([&before, &after, &elsewhere].map(is_void), [true, true, true]);
        drop((before, after, elsewhere));
        assert_eq!(loads.len(), 0);
    }

    #[test]
    fn of_loads_that_are_on_at_once_the_latest_stays() {
        let loads = Arc::new(Loads::new());
        let hash = loads.hash("a");
        let (old, new) = (loads.begin(hash), loads.begin(hash));
        assert_eq!(new.may_store(at(2)), Ok(()));
        drop(new);
        assert_eq!(old.may_store(at(1)), Err(Unwanted::Superseded));
        drop(old);
        assert_eq!(loads.begin(hash).may_store(at(1)), Ok(()), "nobody knows of the others any more");
    }

    #[test]
    fn what_is_stored_at_once_ends_its_load_and_what_is_void_is_not_stored() {
        let loads = Arc::new(Loads::new());
        let hash = loads.hash("a");
        let (mut first, mut second, mut void) = (loads.begin(hash), loads.begin(hash), loads.begin(hash));
        assert_eq!(second.store_at_once(at(2), || Ok::<_, ()>(2)), Ok(Ok(2)));
        let unwanted = first.store_at_once(at(1), || -> Result<(), ()> { panic!("a later one is there") });
        assert_eq!(unwanted, Err(Unwanted::Superseded));
        // A store that has failed may be asked again.
        assert_eq!(void.store_at_once(at(3), || Err::<(), _>(3)), Ok(Err(3)));
        assert_eq!(loads.write_at_once(hash, false, || Ok::<_, ()>(4)), Ok(4));
        let unwanted = void.store_at_once(at(4), || -> Result<(), ()> { panic!("it is void") });
        assert_eq!(unwanted, Err(Unwanted::Void));
        drop((first, second, void));
        assert_eq!(loads.len(), 0, "each load has ended once");
    }

    #[test]
    fn a_value_that_is_put_at_once_ends_the_wait_after_a_failure_and_one_that_is_not_does_not() {
        let loads = Arc::new(Loads::new());
        let hash = loads.hash("a");
        loads.fail(hash, at(0), SECOND, SECOND, 0.0);
        assert_eq!(loads.write_at_once(hash, true, || Err::<(), _>(())), Err(()));
        assert_eq!(loads.write_at_once(hash, false, || Ok::<_, ()>(())), Ok(()));
        assert!(!loads.may_try(hash, at(0)));
        assert_eq!(loads.write_at_once(hash, true, || Ok::<_, ()>(())), Ok(()));
        assert!(loads.may_try(hash, at(0)));
        assert_eq!(loads.len(), 0);
    }

    #[test]
    fn one_refresh_at_a_time_and_a_write_makes_room_for_the_next() {
        let loads = Arc::new(Loads::new());
        let hash = loads.hash("a");
        let first = loads.begin_refresh(hash, at(0), None).expect("none is on");
        assert!(loads.begin_refresh(hash, at(0), None).is_none());
        loads.void(hash);
        let second = loads.begin_refresh(hash, at(0), None).expect("the first is void");
        drop(first);
        assert!(loads.begin_refresh(hash, at(0), None).is_none(), "the second is on");
        assert!(loads.begin_refresh(hash, at(9), Some(SECOND * 9)).is_none());
        let third = loads.begin_refresh(hash, at(10), Some(SECOND * 9)).expect("the second is stuck");
        drop(second);
        assert!(loads.begin_refresh(hash, at(10), None).is_none(), "the third is on");
        drop(third);
        assert_eq!(loads.len(), 0);
    }

    #[test]
    fn failures_hold_refreshes_up_twice_as_long_each_time_until_one_succeeds() {
        let loads = Arc::new(Loads::new());
        let hash = loads.hash("a");
        for wait in [1, 2, 4, 8, 8] {
            loads.fail(hash, at(0), SECOND, SECOND * 8, 0.0);
            assert!(!loads.may_try(hash, at(wait - 1)) && loads.begin_refresh(hash, at(wait - 1), None).is_none());
            assert!(loads.may_try(hash, at(wait)) && loads.begin_refresh(hash, at(wait), None).is_some());
        }
        loads.succeed(hash);
        assert!(loads.may_try(hash, at(0)));
        assert_eq!(loads.len(), 0);
        // A quarter less, at most.
        loads.fail(hash, at(0), SECOND * 4, SECOND * 8, 1.0);
        assert!(!loads.may_try(hash, at(2)) && loads.may_try(hash, at(3)));
        for _ in 0..200 {
            loads.fail(hash, at(0), Duration::MAX, Duration::MAX, 0.5);
        }
    }

    #[test]
    fn keys_that_failed_long_ago_do_not_pile_up() {
        let loads = Arc::new(Loads::new());
        for key in 0..100_000_u64 {
            loads.fail(loads.hash(&key), at(key), SECOND, SECOND, 0.0);
        }
        assert!(loads.len() <= SHARDS * 64 * 2, "{}", loads.len());
    }

    #[test]
    fn one_caller_loads_and_so_many_wait() {
        let loads = Loads::new();
        let hash = loads.hash("a");
        let inside: Vec<_> = (0..3).filter_map(|_| loads.call(hash, 1)).collect();
        assert_eq!(inside.len(), 2);
        drop(inside);
        assert!(loads.call(hash, 0).is_some());
        assert_eq!(loads.len(), 0);
    }
}

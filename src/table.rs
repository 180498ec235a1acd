//! Which key is in flight: look-up, insertion, removal by identity.
//!
//! The table is cut into shards, each a lock around a hash table; a key belongs to the shard that its hash names. Entries
//! are found again by the identity of their flight, never by the key alone, so an old leader cannot touch a newer flight of
//! the same key. Nothing of the user's but `Hash` and `Eq` runs under a lock: owned keys are made before it is taken, and
//! removed entries are handed out to be dropped after it is released.

use crate::flight::Admission;
use crate::outcome::Stats;
use crate::primitive::{AgeClock, Mutex, ThreadNumber};
use alloc::boxed::Box;
use core::hash::{BuildHasher, Hash};
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;
use hashbrown::Equivalent;
use hashbrown::hash_table::{Entry as TableEntry, HashTable, OccupiedEntry};

/// The flights of a group. `T` is what a flight gets when somebody joins it.
pub(crate) struct Table<K, T, S> {
    shards: Box<[CachePadded<Shard<K, T>>]>,
    hasher: S,
    clock: Option<AgeClock>,
}

struct Shard<K, T> {
    /// The number of entries as of the last unlock. Readers only guess by it.
    occupied: AtomicUsize,
    entries: Mutex<Entries<K, T>>,
}

/// What a shard's lock guards.
pub(crate) struct Entries<K, T> {
    table: HashTable<Entry<K, T>>,
    last_sequence: u32,
    /// What has happened in this shard since the group was made.
    pub(crate) counts: Stats,
}

/// One flight. With a key of eight bytes it takes 32.
#[derive(Debug)]
pub(crate) struct Entry<K, T> {
    pub(crate) key: K,
    /// Made by the first caller that joins, unless the leader needs it: a lone thread's flight has none.
    pub(crate) shared: Option<T>,
    hash: u32,
    sequence: u32,
    /// The thread that runs the work. `None` for a vacant flight, and for a lead that belongs to no thread.
    pub(crate) leader: Option<ThreadNumber>,
    pub(crate) admission: Admission,
}

/// A moment, in ticks of the group's clock, and the age from which on a flight is too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Time {
    now: NonZeroU32,
    limit: Option<u32>,
}

/// The hash of a key, computed once a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHash(u64);

/// The identity of a flight: no two flights that are in the table at the same time have the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlightId {
    hash: KeyHash,
    sequence: u32,
}

/// What [`Table::join_or_lead`] did.
#[derive(Debug)]
pub(crate) enum Found<R, K, M> {
    /// A flight that takes newcomers was there; this is what the caller's closure made of it. What was to become its key is
    /// of no use, and its destructor may panic: not to be dropped before the caller's place in the flight is safe.
    Joined(FlightId, R, Unneeded<K, M>),
    /// There was none, so the caller leads a new one.
    Led(FlightId),
}

/// An owned key that no flight needs, or what would have made it.
#[derive(Debug)]
pub(crate) enum Unneeded<K, M> {
    Key(K),
    Maker(M),
}

/// Whether an entry stays after [`Table::update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Remove,
}

impl KeyHash {
    /// Spreads the bits first: users bring hashers whose high or low bits are all alike.
    fn new(hash: u64) -> Self {
        Self(hash.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The part that names the shard: disjoint from the part below.
    fn shard(self, shards: usize) -> usize {
        (self.0 >> 48) as usize & (shards - 1)
    }

    /// The part that entries keep: enough to find their place again when a shard grows.
    fn in_shard(self) -> u32 {
        (self.0 >> 16) as u32
    }
}

/// hashbrown takes the position from the low bits and a tag from the top seven.
fn table_hash(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl<K, T, S> Table<K, T, S> {
    /// The most shards that a hash can name.
    pub(crate) const MAX_SHARDS: usize = 1 << 16;

    /// `shards` is rounded up to a power of two, and down to [`MAX_SHARDS`](Self::MAX_SHARDS).
    pub(crate) fn new(shards: usize, hasher: S, clock: Option<AgeClock>) -> Self {
        let shards = shards.clamp(1, Self::MAX_SHARDS).next_power_of_two();
        let shards = (0..shards).map(|_| CachePadded::new(Shard::new())).collect();
        Self { shards, hasher, clock }
    }

    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> KeyHash
    where
        S: BuildHasher,
    {
        KeyHash::new(self.hasher.hash_one(key))
    }

    pub(crate) fn clock(&self) -> Option<&AgeClock> {
        self.clock.as_ref()
    }

    /// The number of flights, forgotten ones included. Takes no lock; exact while nothing changes.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.occupied.load(Ordering::Relaxed)).sum()
    }

    /// Joins the flight of `key` by way of `join`, or begins one that is led by `leader`.
    ///
    /// `make_key` runs outside the lock, only if this caller seems to lead. A new flight gets what `shared` makes, under the
    /// lock.
    #[inline]
    pub(crate) fn join_or_lead<Q, R, M>(
        &self,
        hash: KeyHash,
        key: &Q,
        make_key: M,
        leader: Option<ThreadNumber>,
        shared: impl FnOnce() -> Option<T>,
        mut join: impl FnMut(&mut Entry<K, T>, &mut Stats) -> R,
    ) -> Found<R, K, M>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        M: FnOnce() -> K,
    {
        let shard = self.shard(hash);
        // A key without a destructor has no heap of its own, and in an empty shard nobody can be joined: making the key at
        // once saves a look-up. Elsewhere a follower would pay for a key that it does not need.
        let make_at_once = !core::mem::needs_drop::<K>() || shard.occupied.load(Ordering::Relaxed) == 0;
        if !make_at_once {
            let joined = shard.with(|entries| entries.join(hash, key, self.time(), &mut join));
            if let Some((id, answer)) = joined {
                return Found::Joined(id, answer, Unneeded::Maker(make_key));
            }
        }
        let owned = make_key();
        // Beside the result, which for a caller that leads is a number and stays in a register.
        let mut joined = None;
        let led = shard.with(|entries| {
            entries.join_or_insert(hash, key, owned, leader, shared, self.time(), |id, owned, entry, counts| {
                joined = Some((id, join(entry, counts), owned));
            })
        });
        match led {
            Some(sequence) => Found::Led(FlightId { hash, sequence }),
            None => {
                let (id, answer, owned) = joined.expect("whoever does not lead has joined");
                Found::Joined(id, answer, Unneeded::Key(owned))
            }
        }
    }

    /// Calls `f` with the flight of `key` that newcomers may join, if there is one.
    pub(crate) fn peek<Q, R>(&self, key: &Q, f: impl FnOnce(Option<&mut Entry<K, T>>, &mut Stats) -> R) -> R
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: BuildHasher,
    {
        let hash = self.hash(key);
        self.shard(hash).with(|entries| {
            let (in_shard, time) = (hash.in_shard(), self.time());
            let entry = entries.table.find_mut(table_hash(in_shard), |entry| entry.matches(in_shard, key, time));
            f(entry, &mut entries.counts)
        })
    }

    /// Calls `f` with the entry of the flight `id`, and takes the entry out if `f` says so.
    ///
    /// The entry comes back to be dropped outside the lock, after whoever must be woken was woken. `None` if the flight is
    /// no longer in the table.
    #[inline]
    pub(crate) fn update<R>(
        &self,
        id: FlightId,
        f: impl FnOnce(&mut Entry<K, T>, &mut Stats) -> (Verdict, R),
    ) -> Option<(R, Option<Entry<K, T>>)> {
        self.shard(id.hash).with(|entries| {
            let mut occupied = find(&mut entries.table, id)?;
            let (verdict, answer) = f(occupied.get_mut(), &mut entries.counts);
            if verdict == Verdict::Keep {
                return Some((answer, None));
            }
            let (entry, _) = occupied.remove();
            entries.shrink_after_burst();
            Some((answer, Some(entry)))
        })
    }

    /// Takes the entry of the flight `id` out if nobody has ever joined it, and returns its key to be dropped outside the lock.
    ///
    /// It is what [`update`](Self::update) could do as well, for the one path that must not move a whole entry about.
    #[inline]
    pub(crate) fn remove_unshared(&self, id: FlightId) -> Option<K> {
        self.shard(id.hash).with(|entries| {
            let occupied = find(&mut entries.table, id)?;
            if occupied.get().shared.is_some() {
                return None;
            }
            let (Entry { key, .. }, _) = occupied.remove();
            entries.shrink_after_burst();
            Some(key)
        })
    }

    /// Calls `f` with the entries of each shard in turn, under its lock.
    pub(crate) fn for_each_shard(&self, mut f: impl FnMut(&Entries<K, T>)) {
        self.shards.iter().for_each(|shard| shard.with(|entries| f(entries)));
    }

    #[inline]
    fn shard(&self, hash: KeyHash) -> &Shard<K, T> {
        &self.shards[hash.shard(self.shards.len())]
    }

    /// The time. Read under the lock: no flight that is met there began after it. No clock is read without a limit.
    #[inline]
    fn time(&self) -> Time {
        match &self.clock {
            None => Time { now: NonZeroU32::MIN, limit: None },
            Some(clock) => Time { now: clock.now(), limit: Some(clock.limit()) },
        }
    }
}

impl<K, T> Shard<K, T> {
    fn new() -> Self {
        let entries = Entries { table: HashTable::new(), last_sequence: 0, counts: Stats::default() };
        Self { occupied: AtomicUsize::new(0), entries: Mutex::new(entries) }
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Entries<K, T>) -> R) -> R {
        self.entries.with(|entries| {
            let answer = f(entries);
            self.occupied.store(entries.table.len(), Ordering::Relaxed);
            answer
        })
    }
}

impl<K, T> Entries<K, T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<K, T>> {
        self.table.iter()
    }

    /// Joins the flight of `key` that takes newcomers, if there is one.
    fn join<Q, R>(
        &mut self,
        hash: KeyHash,
        key: &Q,
        time: Time,
        join: impl FnOnce(&mut Entry<K, T>, &mut Stats) -> R,
    ) -> Option<(FlightId, R)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let in_shard = hash.in_shard();
        let entry = self.table.find_mut(table_hash(in_shard), |entry| entry.matches(in_shard, key, time))?;
        let id = FlightId { hash, sequence: entry.sequence };
        Some((id, join(entry, &mut self.counts)))
    }

    /// Joins the flight of `key` by way of `join`, which gets the owned key back; or begins a flight, and returns its number.
    #[expect(clippy::too_many_arguments, reason = "the lock's half of `Table::join_or_lead`, called once")]
    #[inline]
    fn join_or_insert<Q>(
        &mut self,
        hash: KeyHash,
        key: &Q,
        owned: K,
        leader: Option<ThreadNumber>,
        shared: impl FnOnce() -> Option<T>,
        time: Time,
        join: impl FnOnce(FlightId, K, &mut Entry<K, T>, &mut Stats),
    ) -> Option<u32>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let in_shard = hash.in_shard();
        if time.limit.is_some() {
            self.close_aged(in_shard, time);
        }
        let mut sequence = self.last_sequence.wrapping_add(1);
        let mut taken = false;
        // A search that finds nothing has seen every entry of this hash, so it also tells whether the next number is still
        // worn by a flight of 2^32 flights ago.
        let sought = |entry: &Entry<K, T>| {
            taken |= entry.sequence == sequence && entry.hash == in_shard;
            entry.matches(in_shard, key, time)
        };
        let rehash = |entry: &Entry<K, T>| table_hash(entry.hash);
        match self.table.entry(table_hash(in_shard), sought, rehash) {
            TableEntry::Occupied(mut occupied) => {
                let entry = occupied.get_mut();
                let id = FlightId { hash, sequence: entry.sequence };
                join(id, owned, entry, &mut self.counts);
                None
            }
            TableEntry::Vacant(vacant) => {
                if taken {
                    sequence = free_sequence(vacant.into_table(), in_shard, sequence);
                    let entry = Entry::new(owned, shared(), in_shard, sequence, leader, time.now);
                    self.table.insert_unique(table_hash(in_shard), entry, rehash);
                } else {
                    vacant.insert(Entry::new(owned, shared(), in_shard, sequence, leader, time.now));
                }
                self.last_sequence = sequence;
                self.counts.flights += 1;
                Some(sequence)
            }
        }
    }

    /// Closes flights that are too old for good: a flight that lasts until the clock has gone round would look young again.
    #[cold]
    fn close_aged(&mut self, hash: u32, time: Time) {
        let alike = self.table.iter_hash_mut(table_hash(hash)).filter(|entry| entry.hash == hash);
        alike.filter(|entry| !entry.admission.admits(time.now, time.limit)).for_each(|entry| entry.admission.forget());
    }

    /// Gives memory back once most of it is unused. What a few flights need is kept, and the room left is twice what is
    /// used, so neither a lone caller nor a steady load pays for it.
    #[inline]
    fn shrink_after_burst(&mut self) {
        const ALWAYS_KEPT: usize = 14;
        if self.table.capacity() > ALWAYS_KEPT && self.table.len() < self.table.capacity() / 8 {
            let room = (self.table.len() * 2).max(ALWAYS_KEPT);
            self.table.shrink_to(room, |entry| table_hash(entry.hash));
        }
    }
}

/// Finds the entry of a flight by its identity, which is its number, not its key: no code of the user's runs.
#[inline]
fn find<K, T>(table: &mut HashTable<Entry<K, T>>, id: FlightId) -> Option<OccupiedEntry<'_, Entry<K, T>>> {
    let hash = id.hash.in_shard();
    let is_it = |entry: &Entry<K, T>| entry.sequence == id.sequence && entry.hash == hash;
    table.find_entry(table_hash(hash), is_it).ok()
}

#[cold]
fn free_sequence<K, T>(table: &HashTable<Entry<K, T>>, hash: u32, mut sequence: u32) -> u32 {
    while table.iter_hash(table_hash(hash)).any(|e| e.hash == hash && e.sequence == sequence) {
        sequence = sequence.wrapping_add(1);
    }
    sequence
}

impl<K, T> Entry<K, T> {
    fn new(key: K, shared: Option<T>, hash: u32, sequence: u32, leader: Option<ThreadNumber>, now: NonZeroU32) -> Self {
        Self { key, shared, hash, sequence, leader, admission: Admission::open(now) }
    }

    #[inline]
    fn matches<Q>(&self, hash: u32, key: &Q, time: Time) -> bool
    where
        Q: Equivalent<K> + ?Sized,
    {
        self.hash == hash && self.admission.admits(time.now, time.limit) && key.equivalent(&self.key)
    }
}

#[cfg(test)]
mod tests;

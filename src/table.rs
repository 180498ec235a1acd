//! Which key is in flight: look-up, insertion, removal by identity.
//!
//! The table is cut into shards, each a lock around its flights; a key belongs to the shard that its hash names. Entries
//! are found again by the identity of their flight, never by the key alone, so an old leader cannot touch a newer flight of
//! the same key. Nothing of the user's but `Hash` and `Eq` runs under a lock: owned keys are made before it is taken, and
//! removed entries are handed out to be dropped after it is released.

use crate::flight::Admission;
use crate::outcome::Stats;
use crate::primitive::{AgeClock, AtomicUsize, Mutex, ThreadNumber};
use alloc::boxed::Box;
use core::hash::{BuildHasher, Hash};
use core::num::NonZeroU32;
use core::sync::atomic::Ordering;
use crossbeam_utils::CachePadded;
use flights::Flights;
use hashbrown::Equivalent;

mod flights;

/// The flights of a group. `T` is what a flight gets when somebody joins it.
pub(crate) struct Table<K, T, S> {
    shards: Box<[CachePadded<Shard<K, T>>]>,
    hasher: S,
    clock: Option<AgeClock>,
}

/// What a lone call writes stands at the start, in one cache line if the key is small: the number of entries, the lock, the
/// number of flights, and the newest of them.
#[repr(C)]
struct Shard<K, T> {
    /// The number of entries as of the last unlock. Without the lock it is a guess.
    occupied: AtomicUsize,
    entries: Mutex<Entries<K, T>>,
}

/// What a shard's lock guards.
#[repr(C)]
pub(crate) struct Entries<K, T> {
    /// Flights begun in this shard since the group was made. The number of the last one comes of it.
    begun: u64,
    flights: Flights<K, T>,
    counts: Counts,
}

/// What else has happened in a shard since the group was made.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) joins: u64,
    pub(crate) take_overs: u64,
    pub(crate) abandons: u64,
    pub(crate) timeouts: u64,
    pub(crate) forgets: u64,
}

/// Tells apart the flights of a shard whose keys have the same hash. Never zero, so that an optional entry is no larger than
/// an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sequence(NonZeroU32);

/// One flight. With a key of eight bytes it takes 32.
#[derive(Debug)]
pub(crate) struct Entry<K, T> {
    pub(crate) key: K,
    /// Made by the first caller that joins, or by a leader whose work has to wait: a lone thread's flight has none.
    pub(crate) shared: Option<T>,
    hash: u32,
    sequence: Sequence,
    /// The thread that runs the work, or a number of its own. `None` for a vacant flight, and for a lead that belongs to no thread.
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
    sequence: Sequence,
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

    /// The number of flights, forgotten ones included.
    ///
    /// Looks under the lock where there seem to be any: a follower may already have the value of a flight whose entry is
    /// being removed at this moment, and must not find it here.
    pub(crate) fn len(&self) -> usize {
        let flights = |shard: &CachePadded<Shard<K, T>>| match shard.occupied.load(Ordering::Relaxed) {
            0 => 0,
            _ => shard.with(|entries| entries.flights.len()),
        };
        self.shards.iter().map(flights).sum()
    }

    /// The same without a lock, also by whoever holds one. Flights that are ending may be among them.
    pub(crate) fn len_at_a_glance(&self) -> usize {
        self.shards.iter().map(|shard| shard.occupied.load(Ordering::Relaxed)).sum()
    }

    /// Joins the flight of `key` by way of `join`, or begins one that is led by `leader`.
    ///
    /// `make_key` runs outside the lock, only if this caller seems to lead.
    #[inline]
    pub(crate) fn join_or_lead<Q, R, M>(
        &self,
        hash: KeyHash,
        key: &Q,
        make_key: M,
        leader: Option<ThreadNumber>,
        mut join: impl FnMut(&mut Entry<K, T>, &mut Counts) -> R,
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
        // Stays out here until it is needed: if `Eq` panics, it must not be dropped under the lock.
        let mut owned = Some(make_key());
        let found = shard.with(|entries| {
            let new = New { key: &mut owned, leader };
            // The straight way of a lone caller: nobody to compare the key or the number of the flight with.
            if shard.occupied.load(Ordering::Relaxed) == 0 || !entries.flights.has_alike(hash.in_shard()) {
                return Ok(entries.begin(hash, entries.sequence(), new, self.time()));
            }
            entries.join_or_begin(hash, key, new, self.time(), &mut join)
        });
        match (found, owned) {
            (Err((id, answer)), Some(owned)) => Found::Joined(id, answer, Unneeded::Key(owned)),
            (Ok(id) | Err((id, _)), _) => Found::Led(id),
        }
    }

    /// Calls `f` with the flight of `key` that newcomers may join, if there is one.
    pub(crate) fn peek<Q, R>(&self, key: &Q, f: impl FnOnce(Option<&mut Entry<K, T>>, &mut Counts) -> R) -> R
    where
        Q: Hash + Equivalent<K> + ?Sized,
        S: BuildHasher,
    {
        let hash = self.hash(key);
        self.shard(hash).with(|entries| {
            let (in_shard, time) = (hash.in_shard(), self.time());
            f(entries.flights.find(in_shard, |entry| entry.matches(in_shard, key, time)), &mut entries.counts)
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
        f: impl FnOnce(&mut Entry<K, T>, &mut Counts) -> (Verdict, R),
    ) -> Option<(R, Option<Entry<K, T>>)> {
        self.shard(id.hash).with(|entries| {
            let mut answer = None;
            let ask = |entry: &mut Entry<K, T>| {
                let (verdict, given) = f(entry, &mut entries.counts);
                answer = Some(given);
                verdict == Verdict::Remove
            };
            let removed = entries.flights.remove_if(id, ask, |entry| entry)?;
            Some((answer?, removed))
        })
    }

    /// Takes the entry of the flight `id` out if nobody has ever joined it, or if `is_over` says so of what it got when somebody
    /// did, and returns its key to be dropped outside the lock.
    ///
    /// It is what [`update`](Self::update) could do as well, for the one path that must not move a whole entry about. So what
    /// the flight got is dropped under the lock: there may be nothing of the user's in it.
    #[inline]
    pub(crate) fn remove_unshared(&self, id: FlightId, is_over: impl FnOnce(&T) -> bool) -> Option<K> {
        let may_go = |entry: &mut Entry<K, T>| entry.shared.as_ref().is_none_or(is_over);
        self.shard(id.hash).with(|entries| entries.flights.remove_if(id, may_go, |entry| entry.key)?)
    }

    /// Calls `f` with the entries of each shard in turn, under its lock.
    pub(crate) fn for_each_shard(&self, mut f: impl FnMut(&Entries<K, T>)) {
        self.shards.iter().for_each(|shard| shard.with(|entries| f(entries)));
    }

    /// Lets no newcomer join any flight that is on. Nothing of it is atomic but each shard.
    pub(crate) fn forget_all(&self) {
        for shard in &self.shards {
            // Also of those that look empty: whoever begins a flight there after this sees what was written before this.
            shard.with(|entries| {
                let Entries { flights, counts, .. } = entries;
                for entry in flights.iter_mut().filter(|entry| !entry.admission.is_forgotten()) {
                    entry.admission.forget();
                    counts.forgets += 1;
                }
            });
        }
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
        let entries = Entries { begun: 0, flights: Flights::new(), counts: Counts::default() };
        Self { occupied: AtomicUsize::new(0), entries: Mutex::new(entries) }
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Entries<K, T>) -> R) -> R {
        self.entries.with(|entries| {
            let answer = f(entries);
            self.occupied.store(entries.flights.len(), Ordering::Relaxed);
            answer
        })
    }
}

impl<K, T> Entries<K, T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<K, T>> {
        self.flights.iter()
    }

    /// What has happened in this shard since the group was made.
    pub(crate) fn stats(&self) -> Stats {
        let Counts { joins, take_overs, abandons, timeouts, forgets } = self.counts;
        Stats { flights: self.begun, joins, take_overs, abandons, timeouts, forgets }
    }

    /// Joins the flight of `key` that takes newcomers, if there is one.
    fn join<Q, R>(
        &mut self,
        hash: KeyHash,
        key: &Q,
        time: Time,
        join: impl FnOnce(&mut Entry<K, T>, &mut Counts) -> R,
    ) -> Option<(FlightId, R)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let in_shard = hash.in_shard();
        let entry = self.flights.find(in_shard, |entry| entry.matches(in_shard, key, time))?;
        let id = FlightId { hash, sequence: entry.sequence };
        Some((id, join(entry, &mut self.counts)))
    }

    /// Joins the flight of `key`, and leaves the owned key where it is; or begins a flight.
    fn join_or_begin<Q, R>(
        &mut self,
        hash: KeyHash,
        key: &Q,
        new: New<'_, K>,
        time: Time,
        join: impl FnOnce(&mut Entry<K, T>, &mut Counts) -> R,
    ) -> Result<FlightId, (FlightId, R)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let in_shard = hash.in_shard();
        if time.limit.is_some() {
            self.close_aged(in_shard, time);
        }
        let mut sequence = self.sequence();
        let mut taken = false;
        // A search that finds nothing has seen every entry of this hash, so it also tells whether the next number is still
        // worn by a flight of 2^32 flights ago.
        let sought = |entry: &Entry<K, T>| {
            taken |= entry.is(FlightId { hash, sequence });
            entry.matches(in_shard, key, time)
        };
        if let Some(entry) = self.flights.find(in_shard, sought) {
            let id = FlightId { hash, sequence: entry.sequence };
            return Err((id, join(entry, &mut self.counts)));
        }
        if taken {
            sequence = self.free_sequence(hash, sequence);
        }
        Ok(self.begin(hash, sequence, new, time))
    }

    /// Begins a flight of a key that has none.
    #[inline]
    fn begin(&mut self, hash: KeyHash, sequence: Sequence, new: New<'_, K>, time: Time) -> FlightId {
        let New { key, leader } = new;
        let admission = Admission::open(time.now);
        let hash_in_shard = hash.in_shard();
        let key = key.take().expect("a flight begins once");
        self.flights.insert_with(|| Entry { key, shared: None, hash: hash_in_shard, sequence, leader, admission });
        self.begun += 1;
        FlightId { hash, sequence }
    }

    /// The number of the next flight, if no old one wears it.
    #[inline]
    fn sequence(&self) -> Sequence {
        Sequence::of(self.begun.wrapping_add(1))
    }

    #[cold]
    fn free_sequence(&self, hash: KeyHash, mut sequence: Sequence) -> Sequence {
        while self.flights.iter_alike(hash.in_shard()).any(|entry| entry.is(FlightId { hash, sequence })) {
            sequence = sequence.next();
        }
        sequence
    }

    /// Closes flights that are too old for good: a flight that lasts until the clock has gone round would look young again.
    #[cold]
    fn close_aged(&mut self, hash: u32, time: Time) {
        let alike = self.flights.iter_alike_mut(hash).filter(|entry| entry.hash == hash);
        alike.filter(|entry| !entry.admission.admits(time.now, time.limit)).for_each(|entry| entry.admission.forget());
    }
}

impl Sequence {
    /// The number of zero is that of a flight as long ago as can be.
    #[inline]
    fn of(number: u64) -> Self {
        const OF_ZERO: NonZeroU32 = NonZeroU32::MIN.saturating_add((1 << 31) - 1);
        Self(NonZeroU32::new(number as u32).unwrap_or(OF_ZERO))
    }

    fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(NonZeroU32::MIN))
    }
}

/// A flight that is about to begin, unless it turns out that there is one.
struct New<'k, K> {
    key: &'k mut Option<K>,
    leader: Option<ThreadNumber>,
}

impl<K, T> Entry<K, T> {
    #[inline]
    fn is(&self, id: FlightId) -> bool {
        self.sequence == id.sequence && self.hash == id.hash.in_shard()
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

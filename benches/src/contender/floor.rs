//! The least that coalescing can cost: find out that nobody is at it, say that one is, work, say that one is done.

use super::Blocking;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher as _, Hash};
use crossbeam_utils::CachePadded;
use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::{Entry, HashTable};
use parking_lot::Mutex;

/// A set of keys in 256 shards. One hash, an insertion and a removal by key, two lock sections; nobody ever waits, and two
/// callers of one key both work.
pub struct Floor<K> {
    shards: Box<[CachePadded<Mutex<HashTable<K>>>]>,
    hasher: DefaultHashBuilder,
}

impl<K> Floor<K> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shards: (0..256).map(|_| CachePadded::new(Mutex::new(HashTable::new()))).collect(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl<K> Default for Floor<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for Floor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Floor").finish_non_exhaustive()
    }
}

impl<Q, K, V> Blocking<Q, V> for Floor<K>
where
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    K: Borrow<Q> + Send,
{
    #[inline]
    fn call(&self, key: &Q, work: impl Fn() -> V) -> V {
        let hash = self.hasher.hash_one(key);
        // hashbrown takes the position from the low bits and a tag from the top seven: the shard is named by others.
        let shard = &self.shards[(hash >> 40) as usize % self.shards.len()];
        let is_it = |other: &K| other.borrow() == key;
        {
            let mut table = shard.lock();
            let rehash = |other: &K| self.hasher.hash_one(other.borrow());
            if let Entry::Vacant(vacant) = table.entry(hash, is_it, rehash) {
                vacant.insert(key.to_owned());
            }
        }
        let value = work();
        let removed = {
            let mut table = shard.lock();
            table.find_entry(hash, is_it).ok().map(|found| found.remove().0)
        };
        drop(removed);
        value
    }
}

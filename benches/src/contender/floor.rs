//! The least that coalescing can cost: find out that nobody is at it, say that one is, work, say that one is done.

use super::tasks::Coalesces;
use super::{Blocking, Key};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use core::borrow::Borrow;
use core::fmt;
use core::future::Future;
use core::hash::{BuildHasher as _, Hash};
use core::hint::black_box;
use core::pin::Pin;
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

impl<K> Floor<K> {
    #[inline]
    fn shard(&self, hash: u64) -> &Mutex<HashTable<K>> {
        // hashbrown takes the position from the low bits and a tag from the top seven: the shard is named by others.
        &self.shards[(hash >> 40) as usize % self.shards.len()]
    }

    /// Says that one is at it. Returns the hash.
    #[inline]
    pub(crate) fn enter<Q>(&self, key: &Q) -> u64
    where
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        K: Borrow<Q>,
    {
        let hash = self.hasher.hash_one(key);
        let mut table = self.shard(hash).lock();
        let rehash = |other: &K| self.hasher.hash_one(other.borrow());
        if let Entry::Vacant(vacant) = table.entry(hash, |other| other.borrow() == key, rehash) {
            vacant.insert(key.to_owned());
        }
        hash
    }

    /// Says that one is done.
    #[inline]
    fn leave<Q>(&self, hash: u64, key: &Q)
    where
        Q: Eq + ?Sized,
        K: Borrow<Q>,
    {
        let removed = {
            let mut table = self.shard(hash).lock();
            table.find_entry(hash, |other| other.borrow() == key).ok().map(|found| found.remove().0)
        };
        drop(removed);
    }
}

impl<Q, K, V> Blocking<Q, V> for Floor<K>
where
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    K: Borrow<Q> + Send,
{
    #[inline]
    fn call(&self, key: &Q, work: impl Fn() -> V) -> V {
        let hash = self.enter(key);
        let value = work();
        self.leave(hash, key);
        value
    }
}

/// The same for work that runs inside the caller's future.
impl<Q: Key + ?Sized> Coalesces<Q> for Floor<Q::Owned> {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> u64
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let hash = self.enter(key);
        let value = work().await;
        self.leave(hash, key);
        value
    }
}

/// The same for work that a flight owns: one box more.
#[derive(Debug)]
pub struct Boxed<K>(Floor<K>);

impl<K> Default for Boxed<K> {
    fn default() -> Self {
        Self(Floor::new())
    }
}

impl<Q: Key + ?Sized> Coalesces<Q> for Boxed<Q::Owned> {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> u64
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let hash = self.0.enter(key);
        let work: Pin<Box<dyn Future<Output = u64> + Send>> = Box::pin(work());
        let value = black_box(work).await;
        self.0.leave(hash, key);
        value
    }
}

//! A store for threads as one for tasks.

use super::{BlockingStore, FoundMany, Store};
use crate::entry::Entry;
use crate::fill::{Epoch, Token};
use crate::lease::{Acquired, BlockingLease, Claim, Lease, Publication, Told, Watch, leases};
use crate::time::Time;
use std::future::{Future, ready};
use std::time::Duration;

/// A blocking store as one for tasks, whose futures are ready at once: so a store of your own that never waits, a map say, need
/// be written only once. One that asks a server would hold up its task's whole thread, and if a load is dropped, its
/// [lease](crate::lease) is not given up: it runs out.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Blocking, Cache, Memory};
///
/// # smol::block_on(async {
/// // `Memory` stands for a blocking store; it happens to be one for tasks already.
/// let users = Cache::<u64, String>::builder().store(Blocking(Memory::new(100))).build();
/// users.put(&7, "Ada".to_owned()).await?;
/// assert_eq!(users.store().0.len(), 1);
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Blocking<S>(pub S);

impl<K: ?Sized, V: Send, S: BlockingStore<K, V>> Store<K, V> for Blocking<S> {
    type Error = S::Error;
    type Displaced = S::Displaced;
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        self.0.lease().map(|_| self)
    }

    fn near(&self, key: &K, now: Time) -> Option<Entry<V>> {
        self.0.near(key, now)
    }

    fn near_writes(&self, key: &K) -> Option<u64> {
        self.0.near_writes(key)
    }

    fn keep_near(&self, key: &K, entry: Entry<V>, writes: u64) {
        self.0.keep_near(key, entry, writes);
    }

    fn get(&self, key: &K, now: Time) -> impl Future<Output = Result<Option<Entry<V>>, S::Error>> + Send {
        ready(self.0.get(key, now))
    }

    fn get_many(&self, keys: &[&K], now: Time) -> impl Future<Output = FoundMany<V, S::Error>> + Send {
        ready(self.0.get_many(keys, now))
    }

    fn put(&self, key: &K, entry: Entry<V>, now: Time) -> impl Future<Output = Result<S::Displaced, S::Error>> + Send {
        ready(self.0.put(key, entry, now))
    }

    fn weigh(&self, key: &K, value: &V) -> u64 {
        self.0.weigh(key, value)
    }

    fn put_weighed(
        &self,
        key: &K,
        entry: Entry<V>,
        weight: u64,
        now: Time,
    ) -> impl Future<Output = Result<S::Displaced, S::Error>> + Send {
        ready(self.0.put_weighed(key, entry, weight, now))
    }

    fn remove(&self, key: &K) -> impl Future<Output = Result<S::Displaced, S::Error>> + Send {
        ready(self.0.remove(key))
    }

    fn clear(&self) -> impl Future<Output = Result<S::Displaced, S::Error>> + Send {
        ready(self.0.clear())
    }

    fn evictions(&self) -> u64 {
        self.0.evictions()
    }

    fn is_immediate(&self) -> bool {
        self.0.is_immediate()
    }
}

/// The leases of the store, which has some if these are asked for.
impl<K: ?Sized, V: Send, S: BlockingStore<K, V>> Lease<K, V> for Blocking<S> {
    type Error = S::Error;

    fn acquire(&self, key: &K, claim: Claim, now: Time) -> impl Future<Output = Result<Acquired<V>, S::Error>> + Send {
        ready(leases(self.0.lease()).acquire(key, claim, now))
    }

    fn renew(&self, key: &K, token: Token, lease: Duration) -> impl Future<Output = Result<bool, S::Error>> + Send {
        ready(leases(self.0.lease()).renew(key, token, lease))
    }

    fn publish(
        &self,
        key: &K,
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> impl Future<Output = Result<Publication, S::Error>> + Send {
        ready(leases(self.0.lease()).publish(key, token, epoch, entry, now))
    }

    fn release(&self, key: &K, token: Token) -> impl Future<Output = Result<(), S::Error>> + Send {
        ready(leases(self.0.lease()).release(key, token))
    }

    /// Nothing, as [`release`](BlockingLease::release) may wait for a server and a drop must not: the lease runs out. The cache for
    /// threads does it in a thread of its own, and not by this.
    fn abandon(&self, _: &K, _: Token) {}

    fn is_ambiguous(&self, error: &S::Error) -> bool {
        leases(self.0.lease()).is_ambiguous(error)
    }

    fn watch(&self, key: &K, told: Told) -> Option<Box<dyn Watch>> {
        leases(self.0.lease()).watch(key, told)
    }
}

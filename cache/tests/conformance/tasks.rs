//! A store for tasks, asked by a thread that waits for its answers.

use oneflight_cache::fill::{Epoch, Token};
use oneflight_cache::lease::{Acquired, BlockingLease, Claim, Lease, Publication, Told, Watch};
use oneflight_cache::{BlockingStore, Entry, FoundMany, Store, Time};
use smol::block_on;
use std::time::Duration;

pub(crate) struct Tasks<S>(pub(crate) S);

impl<K, V, S> BlockingStore<K, V> for Tasks<S>
where
    K: ?Sized + Sync,
    V: Send,
    S: Store<K, V> + Lease<K, V, Error = <S as Store<K, V>>::Error>,
{
    type Error = <S as Store<K, V>>::Error;
    type Displaced = S::Displaced;
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        self.0.lease().map(|_| self)
    }

    fn get(&self, key: &K, now: Time) -> Result<Option<Entry<V>>, Self::Error> {
        block_on(self.0.get(key, now))
    }

    fn get_many(&self, keys: &[&K], now: Time) -> FoundMany<V, Self::Error> {
        block_on(self.0.get_many(keys, now))
    }

    fn put(&self, key: &K, entry: Entry<V>, now: Time) -> Result<S::Displaced, Self::Error> {
        block_on(self.0.put(key, entry, now))
    }

    fn remove(&self, key: &K) -> Result<S::Displaced, Self::Error> {
        block_on(self.0.remove(key))
    }

    fn clear(&self) -> Result<S::Displaced, Self::Error> {
        block_on(self.0.clear())
    }
}

impl<K, V, S> BlockingLease<K, V> for Tasks<S>
where
    K: ?Sized + Sync,
    V: Send,
    S: Lease<K, V>,
{
    type Error = S::Error;

    fn acquire(&self, key: &K, claim: Claim, now: Time) -> Result<Acquired<V>, S::Error> {
        block_on(self.0.acquire(key, claim, now))
    }

    fn renew(&self, key: &K, token: Token, lease: Duration) -> Result<bool, S::Error> {
        block_on(self.0.renew(key, token, lease))
    }

    fn publish(
        &self,
        key: &K,
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> Result<Publication, S::Error> {
        block_on(self.0.publish(key, token, epoch, entry, now))
    }

    fn release(&self, key: &K, token: Token) -> Result<(), S::Error> {
        block_on(self.0.release(key, token))
    }

    fn is_ambiguous(&self, error: &S::Error) -> bool {
        self.0.is_ambiguous(error)
    }

    fn watch(&self, key: &K, told: Told) -> Option<Box<dyn Watch>> {
        self.0.watch(key, told)
    }
}

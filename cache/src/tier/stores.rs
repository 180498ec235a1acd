//! Two tiers as one store, for tasks and for threads.

use super::Tiered;
use super::near::Writing;
use crate::entry::Entry;
use crate::fill::{Epoch, Token};
use crate::lease::{Acquired, Announces, BlockingLease, Claim, Lease, Publication, Told, Watch, leases};
use crate::store::{BlockingStore, FoundMany, Store};
use crate::time::Time;
use hashbrown::Equivalent;
use std::hash::Hash;
use std::time::Duration;

impl<Q, K, V, S> Store<Q, V> for Tiered<K, V, S>
where
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized,
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    S: Store<Q, V> + Announces<Q>,
{
    type Error = S::Error;
    type Displaced = S::Displaced;
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        self.far.lease().map(|_| self)
    }

    fn near(&self, key: &Q, now: Time) -> Option<Entry<V>> {
        self.find(key, now)
    }

    fn near_writes(&self, key: &Q) -> Option<u64> {
        Some(self.near.writes(self.far.key_number(key)))
    }

    fn keep_near(&self, key: &Q, entry: Entry<V>, writes: u64) {
        self.keep(key, entry, writes);
    }

    async fn get(&self, key: &Q, now: Time) -> Result<Option<Entry<V>>, S::Error> {
        if let Some(entry) = self.find_fresh(key, now) {
            return Ok(Some(entry));
        }
        let request = self.request(key, now);
        Ok(request.got(key, self.far.get(key, now).await?))
    }

    async fn get_many(&self, keys: &[&Q], now: Time) -> FoundMany<V, S::Error> {
        let near = self.near_many(keys, now);
        let got = if near.missing.is_empty() { Vec::new() } else { self.far.get_many(&near.missing, now).await? };
        Ok(near.with(got))
    }

    async fn put(&self, key: &Q, entry: Entry<V>, now: Time) -> Result<S::Displaced, S::Error> {
        let _writing = self.write(key);
        self.far.put(key, entry, now).await
    }

    async fn remove(&self, key: &Q) -> Result<S::Displaced, S::Error> {
        let _writing = self.write(key);
        self.far.remove(key).await
    }

    async fn clear(&self) -> Result<S::Displaced, S::Error> {
        let _writing = Writing::begin(&*self.near, None);
        self.far.clear().await
    }

    fn evictions(&self) -> u64 {
        self.far.evictions()
    }
}

impl<Q, K, V, S> Lease<Q, V> for Tiered<K, V, S>
where
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized,
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    S: Store<Q, V> + Announces<Q>,
{
    type Error = S::Error;

    async fn acquire(&self, key: &Q, claim: Claim, now: Time) -> Result<Acquired<V>, S::Error> {
        let request = self.request(key, now);
        Ok(request.acquired(key, leases(self.far.lease()).acquire(key, claim, now).await?))
    }

    async fn renew(&self, key: &Q, token: Token, lease: Duration) -> Result<bool, S::Error> {
        leases(self.far.lease()).renew(key, token, lease).await
    }

    async fn publish(
        &self,
        key: &Q,
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> Result<Publication, S::Error> {
        if entry.stale_until() <= now {
            // Not to be kept: so what is here is not either, whatever the store says.
            let _writing = self.write(key);
            return leases(self.far.lease()).publish(key, token, epoch, entry, now).await;
        }
        let request = self.request(key, now);
        let copied = request.copy(key, &entry);
        let publication = leases(self.far.lease()).publish(key, token, epoch, entry, now).await?;
        Ok(request.published(copied, publication))
    }

    async fn release(&self, key: &Q, token: Token) -> Result<(), S::Error> {
        leases(self.far.lease()).release(key, token).await
    }

    fn abandon(&self, key: &Q, token: Token) {
        leases(self.far.lease()).abandon(key, token);
    }

    fn is_ambiguous(&self, error: &S::Error) -> bool {
        leases(self.far.lease()).is_ambiguous(error)
    }

    fn watch(&self, key: &Q, told: Told) -> Option<Box<dyn Watch>> {
        leases(self.far.lease()).watch(key, told)
    }
}

impl<Q, K, V, S> BlockingStore<Q, V> for Tiered<K, V, S>
where
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized,
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    S: BlockingStore<Q, V> + Announces<Q>,
{
    type Error = S::Error;
    type Displaced = S::Displaced;
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        self.far.lease().map(|_| self)
    }

    fn near(&self, key: &Q, now: Time) -> Option<Entry<V>> {
        self.find(key, now)
    }

    fn near_writes(&self, key: &Q) -> Option<u64> {
        Some(self.near.writes(self.far.key_number(key)))
    }

    fn keep_near(&self, key: &Q, entry: Entry<V>, writes: u64) {
        self.keep(key, entry, writes);
    }

    fn get(&self, key: &Q, now: Time) -> Result<Option<Entry<V>>, S::Error> {
        if let Some(entry) = self.find_fresh(key, now) {
            return Ok(Some(entry));
        }
        let request = self.request(key, now);
        Ok(request.got(key, self.far.get(key, now)?))
    }

    fn get_many(&self, keys: &[&Q], now: Time) -> FoundMany<V, S::Error> {
        let near = self.near_many(keys, now);
        let got = if near.missing.is_empty() { Vec::new() } else { self.far.get_many(&near.missing, now)? };
        Ok(near.with(got))
    }

    fn put(&self, key: &Q, entry: Entry<V>, now: Time) -> Result<S::Displaced, S::Error> {
        let _writing = self.write(key);
        self.far.put(key, entry, now)
    }

    fn remove(&self, key: &Q) -> Result<S::Displaced, S::Error> {
        let _writing = self.write(key);
        self.far.remove(key)
    }

    fn clear(&self) -> Result<S::Displaced, S::Error> {
        let _writing = Writing::begin(&*self.near, None);
        self.far.clear()
    }

    fn evictions(&self) -> u64 {
        self.far.evictions()
    }
}

impl<Q, K, V, S> BlockingLease<Q, V> for Tiered<K, V, S>
where
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + Sync + ?Sized,
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    S: BlockingStore<Q, V> + Announces<Q>,
{
    type Error = S::Error;

    fn acquire(&self, key: &Q, claim: Claim, now: Time) -> Result<Acquired<V>, S::Error> {
        let request = self.request(key, now);
        Ok(request.acquired(key, leases(self.far.lease()).acquire(key, claim, now)?))
    }

    fn renew(&self, key: &Q, token: Token, lease: Duration) -> Result<bool, S::Error> {
        leases(self.far.lease()).renew(key, token, lease)
    }

    fn publish(
        &self,
        key: &Q,
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> Result<Publication, S::Error> {
        if entry.stale_until() <= now {
            // Not to be kept: so what is here is not either, whatever the store says.
            let _writing = self.write(key);
            return leases(self.far.lease()).publish(key, token, epoch, entry, now);
        }
        let request = self.request(key, now);
        let copied = request.copy(key, &entry);
        let publication = leases(self.far.lease()).publish(key, token, epoch, entry, now)?;
        Ok(request.published(copied, publication))
    }

    fn release(&self, key: &Q, token: Token) -> Result<(), S::Error> {
        leases(self.far.lease()).release(key, token)
    }

    fn is_ambiguous(&self, error: &S::Error) -> bool {
        leases(self.far.lease()).is_ambiguous(error)
    }

    fn watch(&self, key: &Q, told: Told) -> Option<Box<dyn Watch>> {
        leases(self.far.lease()).watch(key, told)
    }
}

//! Keys and values as bytes on a server.

use super::codec::Codec;
use super::error::Error;
use super::header::{Header, Keep, LENGTH, version_of};
use super::key::CacheKey;
use super::link::Link;
use super::reply::{Raw, Taken};
use super::steps::{Seen, Steps};
use crate::entry::Entry;
use crate::fill::{Epoch, Token, Version};
use crate::lease::{Acquired, Claim, Publication, Told, ToldWritten, Watch};
use crate::store::FoundMany;
use crate::time::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A store, whichever link it is on.
pub(crate) struct Values<L, C> {
    pub(crate) steps: Arc<Steps<L>>,
    codec: C,
    unreadable: AtomicU64,
}

impl<L: Link, C> Values<L, C> {
    pub(crate) fn new(steps: Steps<L>, codec: C) -> Self {
        Self { steps: Arc::new(steps), codec, unreadable: AtomicU64::new(0) }
    }

    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    pub(crate) async fn get<V>(&self, key: &(impl CacheKey + ?Sized), now: Time) -> Result<Option<Entry<V>>, Error>
    where
        C: Codec<V>,
    {
        let mut name = self.steps.name(key);
        let raw = self.steps.read(&mut name).await?;
        Ok(raw.and_then(|raw| self.entry(&raw, now).ok()))
    }

    pub(crate) async fn get_many<V>(&self, keys: &[&(impl CacheKey + ?Sized)], now: Time) -> FoundMany<V, Error>
    where
        C: Codec<V>,
    {
        let mut names: Vec<_> = keys.iter().map(|key| self.steps.name(*key)).collect();
        let found = self.steps.read_many(&mut names).await?;
        let entry = |raw: Option<Raw>| raw.and_then(|raw| self.entry(&raw, now).ok());
        Ok(found.into_iter().map(|raw| raw.map(entry)).collect())
    }

    pub(crate) async fn acquire<V>(
        &self,
        key: &(impl CacheKey + ?Sized),
        claim: Claim,
        now: Time,
    ) -> Result<Acquired<V>, Error>
    where
        C: Codec<V>,
    {
        let mut name = self.steps.name(key);
        let seen = claim.seen.map_or(Seen::Nothing, Seen::Version);
        Ok(match self.steps.acquire(&mut name, claim.token, claim.lease, claim.epoch_life, seen).await? {
            Taken::Leader(epoch) => Acquired::Leader { epoch },
            Taken::Gone => Acquired::Gone,
            Taken::Held { left, holder } => Acquired::Held { left, holder },
            Taken::Filled(raw) => match self.entry(&raw, now) {
                Ok(entry) => Acquired::Filled(entry),
                Err(version) => Acquired::Unreadable { version },
            },
        })
    }

    pub(crate) async fn publish<V>(
        &self,
        key: &(impl CacheKey + ?Sized),
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> Result<Publication, Error>
    where
        C: Codec<V>,
    {
        let (bytes, keep) = self.bytes(&entry, now)?;
        self.steps.publish(&mut self.steps.name(key), token, epoch, &bytes, keep).await
    }

    pub(crate) async fn renew(
        &self,
        key: &(impl CacheKey + ?Sized),
        token: Token,
        lease: Duration,
    ) -> Result<bool, Error> {
        self.steps.renew(&mut self.steps.name(key), token, lease, None).await
    }

    pub(crate) async fn release(&self, key: &(impl CacheKey + ?Sized), token: Token) -> Result<(), Error> {
        self.steps.release(&mut self.steps.name(key), token).await.map(drop)
    }

    pub(crate) async fn put<V>(&self, key: &(impl CacheKey + ?Sized), entry: Entry<V>, now: Time) -> Result<(), Error>
    where
        C: Codec<V>,
    {
        let (bytes, keep) = self.bytes(&entry, now)?;
        self.steps.put(&mut self.steps.name(key), &bytes, keep).await
    }

    pub(crate) async fn remove(&self, key: &(impl CacheKey + ?Sized)) -> Result<(), Error> {
        self.steps.remove(&mut self.steps.name(key)).await
    }

    pub(crate) fn watch(&self, key: &(impl CacheKey + ?Sized), told: Told) -> Box<dyn Watch> {
        self.steps.watch(&self.steps.name(key), told)
    }

    pub(crate) fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch> {
        self.steps.watch_writes(told)
    }

    pub(crate) fn key_number(&self, key: &(impl CacheKey + ?Sized)) -> u64 {
        self.steps.name(key).id()
    }

    fn bytes<V>(&self, entry: &Entry<V>, now: Time) -> Result<(Vec<u8>, Keep), Error>
    where
        C: Codec<V>,
    {
        let (header, keep) = Header::of(entry, now);
        let mut bytes = Vec::with_capacity(LENGTH);
        if keep != Keep::Not {
            header.write(self.codec.id(), &mut bytes);
            self.codec.encode(entry.value(), &mut bytes).map_err(|error| Error::Encode(error.into()))?;
        }
        Ok((bytes, keep))
    }

    /// What was found, or the version of what cannot be read. That is counted.
    fn entry<V>(&self, raw: &Raw, now: Time) -> Result<Entry<V>, Version>
    where
        C: Codec<V>,
    {
        let read = Header::parse(self.codec.id(), &raw.bytes)
            .and_then(|(header, value)| Some(header.entry(self.codec.decode(value).ok()?, raw.left, now)));
        read.ok_or_else(|| {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
            version_of(&raw.bytes)
        })
    }
}

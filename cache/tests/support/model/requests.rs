//! The requests, by tasks and by threads.

use super::server::{ModelError, Watcher};
use super::{ModelStore, Watching};
use oneflight_cache::fill::{Epoch, Token};
use oneflight_cache::lease::{Acquired, BlockingLease, Claim, Lease, Publication, Push, Told, Watch};
use oneflight_cache::{BlockingStore, Entry, FoundMany, Store, Time};
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

impl<K, V> BlockingStore<K, V> for ModelStore<V>
where
    K: AsRef<[u8]> + ?Sized,
    V: Clone + Send + Sync + 'static,
{
    type Error = ModelError;
    type Displaced = ();
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        Some(self)
    }

    fn get(&self, key: &K, now: Time) -> Result<Option<Entry<V>>, ModelError> {
        self.request("get", |server| server.get(key.as_ref(), now))
    }

    /// What is no value is an error of that key alone.
    fn get_many(&self, keys: &[&K], now: Time) -> FoundMany<V, ModelError> {
        let found = keys.iter().map(|key| match BlockingStore::get(self, *key, now) {
            Err(ModelError::WrongType) => Ok(Err(ModelError::WrongType)),
            found => found.map(Ok),
        });
        found.collect()
    }

    fn put(&self, key: &K, entry: Entry<V>, now: Time) -> Result<(), ModelError> {
        self.request("put", |server| server.write(key.as_ref(), Some(entry), now))?;
        self.push(Some(key.as_ref()), Push::Written);
        Ok(())
    }

    fn remove(&self, key: &K) -> Result<(), ModelError> {
        self.request("remove", |server| server.write(key.as_ref(), None, Time::START))?;
        self.push(Some(key.as_ref()), Push::Written);
        Ok(())
    }

    fn clear(&self) -> Result<(), ModelError> {
        self.request("clear", |server| {
            server.slots.clear();
            Ok(())
        })?;
        self.push(None, Push::Written);
        Ok(())
    }
}

impl<K, V> BlockingLease<K, V> for ModelStore<V>
where
    K: AsRef<[u8]> + ?Sized,
    V: Clone + Send + Sync + 'static,
{
    type Error = ModelError;

    fn acquire(&self, key: &K, claim: Claim, now: Time) -> Result<Acquired<V>, ModelError> {
        self.request("acquire", |server| server.acquire(key.as_ref(), claim, now))
    }

    fn renew(&self, key: &K, token: Token, lease: Duration) -> Result<bool, ModelError> {
        self.request("renew", |server| Ok(server.renew(key.as_ref(), token, lease)))
    }

    fn publish(
        &self,
        key: &K,
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> Result<Publication, ModelError> {
        let what = self.request("publish", |server| server.publish(key.as_ref(), token, epoch, &entry, now))?;
        if let Publication::Stored | Publication::Late = what {
            self.push(Some(key.as_ref()), Push::Released);
        }
        Ok(what)
    }

    fn release(&self, key: &K, token: Token) -> Result<(), ModelError> {
        if self.request("release", |server| Ok(server.release(key.as_ref(), token)))? {
            self.push(Some(key.as_ref()), Push::Released);
        }
        Ok(())
    }

    fn is_ambiguous(&self, error: &ModelError) -> bool {
        *error == ModelError::NoAnswer
    }

    fn watch(&self, key: &K, told: Told) -> Option<Box<dyn Watch>> {
        let told: Arc<dyn Fn(Push) + Send + Sync> = told.into();
        let number = self.with(|server| {
            let number = server.draw();
            let (process, key, told) = (self.process, key.as_ref().to_owned(), Arc::clone(&told));
            server.watchers.push(Watcher { number, process, key, told });
            number
        });
        if self.with(|server| !server.is_deaf) {
            told(Push::Listening);
        }
        Some(Box::new(Watching { store: self.clone(), number }))
    }
}

impl<K, V> Store<K, V> for ModelStore<V>
where
    K: AsRef<[u8]> + Sync + ?Sized,
    V: Clone + Send + Sync + 'static,
{
    type Error = ModelError;
    type Displaced = ();
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        Some(self)
    }

    fn get(&self, key: &K, now: Time) -> impl Future<Output = Result<Option<Entry<V>>, ModelError>> + Send {
        ready(BlockingStore::get(self, key, now))
    }

    fn get_many(&self, keys: &[&K], now: Time) -> impl Future<Output = FoundMany<V, ModelError>> + Send {
        ready(BlockingStore::get_many(self, keys, now))
    }

    fn put(&self, key: &K, entry: Entry<V>, now: Time) -> impl Future<Output = Result<(), ModelError>> + Send {
        ready(BlockingStore::put(self, key, entry, now))
    }

    fn remove(&self, key: &K) -> impl Future<Output = Result<(), ModelError>> + Send {
        ready(BlockingStore::<K, V>::remove(self, key))
    }

    fn clear(&self) -> impl Future<Output = Result<(), ModelError>> + Send {
        ready(BlockingStore::<K, V>::clear(self))
    }
}

impl<K, V> Lease<K, V> for ModelStore<V>
where
    K: AsRef<[u8]> + Sync + ?Sized,
    V: Clone + Send + Sync + 'static,
{
    type Error = ModelError;

    fn acquire(
        &self,
        key: &K,
        claim: Claim,
        now: Time,
    ) -> impl Future<Output = Result<Acquired<V>, ModelError>> + Send {
        ready(BlockingLease::acquire(self, key, claim, now))
    }

    fn renew(&self, key: &K, token: Token, lease: Duration) -> impl Future<Output = Result<bool, ModelError>> + Send {
        ready(BlockingLease::<K, V>::renew(self, key, token, lease))
    }

    fn publish(
        &self,
        key: &K,
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> impl Future<Output = Result<Publication, ModelError>> + Send {
        ready(BlockingLease::publish(self, key, token, epoch, entry, now))
    }

    fn release(&self, key: &K, token: Token) -> impl Future<Output = Result<(), ModelError>> + Send {
        ready(BlockingLease::<K, V>::release(self, key, token))
    }

    fn abandon(&self, key: &K, token: Token) {
        let _ = BlockingLease::<K, V>::release(self, key, token);
    }

    fn is_ambiguous(&self, error: &ModelError) -> bool {
        BlockingLease::<K, V>::is_ambiguous(self, error)
    }

    fn watch(&self, key: &K, told: Told) -> Option<Box<dyn Watch>> {
        BlockingLease::<K, V>::watch(self, key, told)
    }
}

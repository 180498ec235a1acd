//! What the caches of a round keep their values in: memory, or a server that both are processes of.

use super::model::{Failure, ModelError, ModelStore};
use super::world::Datum;
use crate::alarm::Alarm;
use futures_lite::future::yield_now;
use oneflight_cache::fill::{Epoch, Token};
use oneflight_cache::lease::{Acquired, Announces, BlockingLease, Claim, Lease, Publication, Told, ToldWritten, Watch};
use oneflight_cache::{BlockingStore, Entry, FoundMany, Memory, Store, Tiered, Time};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A store for tasks and for threads.
pub(crate) trait Shelf: Store<u32, Datum> + BlockingStore<u32, Datum> {
    /// How many values it holds in this process.
    fn held(&self) -> usize;
}

impl Shelf for Memory<u32, Datum> {
    fn held(&self) -> usize {
        self.len()
    }
}

/// A process's way to the server, on which requests take their time, and are lost now and then.
pub(crate) struct Process {
    server: ModelStore<Datum>,
    rng: Mutex<fastrand::Rng>,
    /// One request in so many fails.
    fails: Option<u32>,
    alarm: Alarm,
}

impl Shelf for Process {
    fn held(&self) -> usize {
        0
    }
}

impl Shelf for Tiered<u32, Datum, Process> {
    fn held(&self) -> usize {
        self.near_len()
    }
}

/// What becomes of a request.
struct Fate {
    before: Duration,
    after: Duration,
    failure: Option<Failure>,
}

impl Process {
    pub(crate) fn new(server: ModelStore<Datum>, rng: fastrand::Rng, fails: Option<u32>, alarm: Alarm) -> Self {
        Self { server, rng: Mutex::new(rng), fails, alarm }
    }

    fn fate(&self) -> Fate {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pause = || Duration::from_micros(if rng.u8(..4) == 0 { rng.u64(..300) } else { 0 });
        let (before, after) = (pause(), pause());
        let fails = self.fails.is_some_and(|one_in| rng.u32(..one_in) == 0);
        let failure = fails.then(|| match rng.u8(..3) {
            0 => Failure::Refuses,
            1 => Failure::LosesRequest,
            _ => Failure::LosesAnswer,
        });
        Fate { before, after, failure }
    }

    fn ask<T>(&self, request: impl FnOnce(&ModelStore<Datum>) -> Result<T, ModelError>) -> Result<T, ModelError> {
        let fate = self.fate();
        pause(fate.before);
        let answer = fate.meet(|| request(&self.server));
        pause(fate.after);
        answer
    }

    async fn send<T>(
        &self,
        request: impl FnOnce(&ModelStore<Datum>) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        let fate = self.fate();
        self.pause(fate.before).await;
        let answer = fate.meet(|| request(&self.server));
        self.pause(fate.after).await;
        answer
    }

    async fn pause(&self, time: Duration) {
        if time.is_zero() {
            yield_now().await;
        } else {
            self.alarm.sleep(time).await;
        }
    }
}

fn pause(time: Duration) {
    if time.is_zero() {
        thread::yield_now();
    } else {
        thread::sleep(time);
    }
}

impl Fate {
    fn meet<T>(&self, request: impl FnOnce() -> Result<T, ModelError>) -> Result<T, ModelError> {
        match self.failure {
            None => request(),
            Some(Failure::Refuses) => Err(ModelError::Refused),
            Some(Failure::LosesRequest) => Err(ModelError::NoAnswer),
            Some(Failure::LosesAnswer) => request().and(Err(ModelError::NoAnswer)),
        }
    }
}

fn name(key: &u32) -> [u8; 4] {
    key.to_le_bytes()
}

fn names(keys: &[&u32]) -> Vec<[u8; 4]> {
    keys.iter().map(|key| name(key)).collect()
}

impl BlockingStore<u32, Datum> for Process {
    type Error = ModelError;
    type Displaced = ();
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        Some(self)
    }

    fn get(&self, key: &u32, now: Time) -> Result<Option<Entry<Datum>>, ModelError> {
        self.ask(|server| BlockingStore::get(server, &name(key), now))
    }

    fn get_many(&self, keys: &[&u32], now: Time) -> FoundMany<Datum, ModelError> {
        self.ask(|server| BlockingStore::get_many(server, &names(keys).iter().collect::<Vec<_>>(), now))
    }

    fn put(&self, key: &u32, entry: Entry<Datum>, now: Time) -> Result<(), ModelError> {
        self.ask(|server| BlockingStore::put(server, &name(key), entry, now))
    }

    fn remove(&self, key: &u32) -> Result<(), ModelError> {
        self.ask(|server| BlockingStore::remove(server, &name(key)))
    }

    fn clear(&self) -> Result<(), ModelError> {
        self.ask(BlockingStore::<[u8; 4], Datum>::clear)
    }
}

impl BlockingLease<u32, Datum> for Process {
    type Error = ModelError;

    fn acquire(&self, key: &u32, claim: Claim, now: Time) -> Result<Acquired<Datum>, ModelError> {
        self.ask(|server| BlockingLease::acquire(server, &name(key), claim, now))
    }

    fn renew(&self, key: &u32, token: Token, lease: Duration) -> Result<bool, ModelError> {
        self.ask(|server| BlockingLease::renew(server, &name(key), token, lease))
    }

    fn publish(
        &self,
        key: &u32,
        token: Token,
        epoch: Epoch,
        entry: Entry<Datum>,
        now: Time,
    ) -> Result<Publication, ModelError> {
        self.ask(|server| BlockingLease::publish(server, &name(key), token, epoch, entry, now))
    }

    fn release(&self, key: &u32, token: Token) -> Result<(), ModelError> {
        self.ask(|server| BlockingLease::release(server, &name(key), token))
    }

    fn is_ambiguous(&self, error: &ModelError) -> bool {
        BlockingLease::<[u8; 4], Datum>::is_ambiguous(&self.server, error)
    }

    fn watch(&self, key: &u32, told: Told) -> Option<Box<dyn Watch>> {
        BlockingLease::watch(&self.server, &name(key), told)
    }
}

impl Store<u32, Datum> for Process {
    type Error = ModelError;
    type Displaced = ();
    type Lease = Self;

    fn lease(&self) -> Option<&Self> {
        Some(self)
    }

    async fn get(&self, key: &u32, now: Time) -> Result<Option<Entry<Datum>>, ModelError> {
        self.send(|server| BlockingStore::get(server, &name(key), now)).await
    }

    async fn get_many(&self, keys: &[&u32], now: Time) -> FoundMany<Datum, ModelError> {
        self.send(|server| BlockingStore::get_many(server, &names(keys).iter().collect::<Vec<_>>(), now)).await
    }

    async fn put(&self, key: &u32, entry: Entry<Datum>, now: Time) -> Result<(), ModelError> {
        self.send(|server| BlockingStore::put(server, &name(key), entry, now)).await
    }

    async fn remove(&self, key: &u32) -> Result<(), ModelError> {
        self.send(|server| BlockingStore::remove(server, &name(key))).await
    }

    async fn clear(&self) -> Result<(), ModelError> {
        self.send(BlockingStore::<[u8; 4], Datum>::clear).await
    }
}

impl Lease<u32, Datum> for Process {
    type Error = ModelError;

    async fn acquire(&self, key: &u32, claim: Claim, now: Time) -> Result<Acquired<Datum>, ModelError> {
        self.send(|server| BlockingLease::acquire(server, &name(key), claim, now)).await
    }

    async fn renew(&self, key: &u32, token: Token, lease: Duration) -> Result<bool, ModelError> {
        self.send(|server| BlockingLease::renew(server, &name(key), token, lease)).await
    }

    async fn publish(
        &self,
        key: &u32,
        token: Token,
        epoch: Epoch,
        entry: Entry<Datum>,
        now: Time,
    ) -> Result<Publication, ModelError> {
        self.send(|server| BlockingLease::publish(server, &name(key), token, epoch, entry, now)).await
    }

    async fn release(&self, key: &u32, token: Token) -> Result<(), ModelError> {
        self.send(|server| BlockingLease::release(server, &name(key), token)).await
    }

    fn abandon(&self, key: &u32, token: Token) {
        Lease::abandon(&self.server, &name(key), token);
    }

    fn is_ambiguous(&self, error: &ModelError) -> bool {
        BlockingLease::is_ambiguous(self, error)
    }

    fn watch(&self, key: &u32, told: Told) -> Option<Box<dyn Watch>> {
        BlockingLease::watch(self, key, told)
    }
}

impl Announces<u32> for Process {
    fn key_number(&self, key: &u32) -> u64 {
        Announces::key_number(&self.server, &name(key))
    }

    fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch> {
        Announces::<[u8; 4]>::watch_writes(&self.server, told)
    }
}

//! A group under test: its settings, its keys, its ledger.

use super::ledger::Ledger;
use super::script::Terms;
use crate::things::{Answer, Hashing, Id, Key};
use oneflight::{AsyncGroup, FlightInfo, Lead, OnAbandon, Stats, SyncGroup};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Threads = SyncGroup<Key, Answer, Hashing>;
pub(crate) type Tasks = AsyncGroup<Key, Answer, Hashing>;
pub(crate) type Detached = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a round is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) keys: u32,
    shards: usize,
    mask: u64,
    pub(crate) age: Option<Duration>,
    attempts: Option<u32>,
    on_abandon: OnAbandon,
    shares_ok_only: bool,
    pub(crate) wait_timeout: Option<Duration>,
    pub(crate) forgets: bool,
    pub(crate) bombs: bool,
    pub(crate) faulty_wakers: bool,
    pub(crate) nested: bool,
}

impl Settings {
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        let mut one_in = |n: u32| rng.u32(..n) == 0;
        let (aged, attempts, fails, shares) = (one_in(4), one_in(4), one_in(5), one_in(4));
        let (limited, forgets, bombs, faulty, nested) = (one_in(4), one_in(2), one_in(2), one_in(3), one_in(2));
        Self {
            keys: rng.u32(1..9),
            shards: 1 << rng.u32(..9),
            mask: if rng.u8(..4) == 0 { 0x0f0f_0000_0000_0001 } else { u64::MAX },
            age: aged.then(|| Duration::from_micros(rng.u64(20..2_000))),
            attempts: attempts.then(|| rng.u32(1..4)),
            on_abandon: if fails { OnAbandon::Fail } else { OnAbandon::TakeOver },
            shares_ok_only: shares,
            wait_timeout: limited.then(|| Duration::from_micros(rng.u64(..2_000))),
            forgets,
            bombs,
            faulty_wakers: faulty,
            nested,
        }
    }

    pub(crate) fn terms(&self) -> Terms {
        Terms { keys: self.keys, forgets: self.forgets, nested: self.nested }
    }

    pub(crate) fn threads(&self) -> Threads {
        let mut builder = SyncGroup::builder().shards(self.shards).on_abandon(self.on_abandon);
        if let Some(age) = self.age {
            builder = builder.max_flight_age(age);
        }
        if let Some(attempts) = self.attempts {
            builder = builder.max_attempts(attempts);
        }
        if let Some(timeout) = self.wait_timeout {
            builder = builder.wait_timeout(timeout);
        }
        if self.shares_ok_only {
            builder = builder.share_if(Result::is_ok);
        }
        builder.hasher(Hashing::new(self.mask)).build()
    }

    pub(crate) fn tasks(&self, spawner: impl Fn(Detached) + Send + Sync + 'static) -> Tasks {
        let mut builder = AsyncGroup::builder().shards(self.shards).on_abandon(self.on_abandon).spawner(spawner);
        if let Some(age) = self.age {
            builder = builder.max_flight_age(age);
        }
        if let Some(attempts) = self.attempts {
            builder = builder.max_attempts(attempts);
        }
        if self.shares_ok_only {
            builder = builder.share_if(Result::is_ok);
        }
        builder.hasher(Hashing::new(self.mask)).build()
    }
}

/// A group, and what is known of it.
#[derive(Debug)]
pub(crate) struct Arena<G> {
    pub(crate) group: G,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) settings: Settings,
    pub(crate) ids: Vec<Id>,
}

impl<G> Arena<G> {
    pub(crate) fn new(group: G, settings: Settings) -> Self {
        let ledger = Arc::new(Ledger::new(settings.keys as usize, settings.age));
        Self { group, ledger, settings, ids: (0..settings.keys).map(Id).collect() }
    }

    pub(crate) fn id(&self, key: u32) -> &Id {
        &self.ids[key as usize]
    }

    /// A few keys, some of them twice.
    pub(crate) fn some_keys(&self, rng: &mut fastrand::Rng) -> Vec<u32> {
        (0..rng.usize(1..5)).map(|_| rng.u32(..self.settings.keys)).collect()
    }
}

/// What both groups have.
pub(crate) trait Group: Send + Sync + 'static {
    fn try_lead(&self, id: &Id) -> Option<Lead<'_, Key, Answer, Hashing>>;
    fn try_lead_with(&self, id: &Id) -> Option<Lead<'_, Key, Answer, Hashing>>;
    fn forget(&self, id: &Id) -> bool;
    fn forget_unshared(&self, id: &Id) -> bool;
    fn forget_all(&self);
    fn in_flight(&self) -> usize;
    fn waiters(&self, id: &Id) -> usize;
    fn flight_info(&self, id: &Id) -> Option<FlightInfo>;
    fn snapshot(&self) -> Vec<FlightInfo>;
    fn stats(&self) -> Stats;
}

macro_rules! forward {
    ($group:ty) => {
        impl Group for $group {
            fn try_lead(&self, id: &Id) -> Option<Lead<'_, Key, Answer, Hashing>> {
                self.try_lead(id)
            }
            fn try_lead_with(&self, id: &Id) -> Option<Lead<'_, Key, Answer, Hashing>> {
                self.try_lead_with(id, || Key::new(id.0))
            }
            fn forget(&self, id: &Id) -> bool {
                self.forget(id)
            }
            fn forget_unshared(&self, id: &Id) -> bool {
                self.forget_unshared(id)
            }
            fn forget_all(&self) {
                self.forget_all();
            }
            fn in_flight(&self) -> usize {
                self.in_flight()
            }
            fn waiters(&self, id: &Id) -> usize {
                self.waiters(id)
            }
            fn flight_info(&self, id: &Id) -> Option<FlightInfo> {
                self.flight_info(id)
            }
            fn snapshot(&self) -> Vec<FlightInfo> {
                self.snapshot()
            }
            fn stats(&self) -> Stats {
                self.stats()
            }
        }
    };
}
forward!(Threads);
forward!(Tasks);

//! What the suite needs of a store and of its server.

use oneflight_cache::fill::{Epoch, Token, Version};
use oneflight_cache::lease::{Acquired, BlockingLease, Claim, Publication};
use oneflight_cache::{BlockingStore, Entry, Time};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const MILLI: Duration = Duration::from_millis(1);
/// A lease that a case lets run out.
pub(crate) const SHORT: Duration = Duration::from_millis(30);
/// Longer than any case takes.
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// The key of most cases.
pub(crate) const KEY: &str = "key";

/// All that is asked of a store.
pub(crate) trait Steps:
    BlockingStore<String, Vec<u8>, Error = Self::Failure> + BlockingLease<String, Vec<u8>, Error = Self::Failure>
{
    type Failure: std::error::Error + Send + Sync + 'static;
}

impl<E, S> Steps for S
where
    E: std::error::Error + Send + Sync + 'static,
    S: BlockingStore<String, Vec<u8>, Error = E> + BlockingLease<String, Vec<u8>, Error = E>,
{
    type Failure = E;
}

/// A server of its own, for one case.
pub(crate) trait Bench: Sync {
    type Store: Steps;

    fn new() -> Self;
    /// The store of a process that has none yet.
    fn store(&self) -> Self::Store;
    fn now(&self) -> Time;
    /// Lets so much time pass, at least.
    fn pass(&self, time: Duration);
    /// The server forgets everything, and nobody is told.
    fn flush(&self);
    /// The epoch of the key is evicted.
    fn lose_epoch(&self);
    /// Puts something under the name of the key's value that cannot be read. The key has neither a lease nor an epoch.
    fn set_unreadable(&self);
    /// The same with something that is no value at all.
    fn set_foreign(&self);
    fn is_foreign(&self) -> bool;
    /// Whether the server has no room for anything new.
    fn set_full(&self, is_full: bool);
    fn is_wrong_type(error: &<Self::Store as Steps>::Failure) -> bool;
    /// Gives up the lease of the key beside whatever else goes on.
    fn abandon(&self, store: &Self::Store, token: Token);

    /// Yet another flight, of another process.
    fn caller(&self) -> Caller<'_, Self>
    where
        Self: Sized,
    {
        static TOKENS: AtomicU64 = AtomicU64::new(1);
        let token = u128::from(TOKENS.fetch_add(1, Ordering::Relaxed)) << 64 | 0xf1;
        Caller { bench: self, store: self.store(), token, key: KEY.to_owned() }
    }
}

/// Asks a store for things about one key, as one flight.
pub(crate) struct Caller<'a, B: Bench> {
    pub(crate) bench: &'a B,
    pub(crate) store: B::Store,
    pub(crate) token: Token,
    pub(crate) key: String,
}

impl<B: Bench> Caller<'_, B> {
    pub(crate) fn claim(&self) -> Claim {
        Claim { token: self.token, lease: HOUR, epoch_life: HOUR * 2, seen: None }
    }

    #[track_caller]
    pub(crate) fn acquire(&self, claim: Claim) -> Acquired<Vec<u8>> {
        self.store.acquire(&self.key, claim, self.bench.now()).unwrap()
    }

    /// Takes the lease, which is free, for so long.
    #[track_caller]
    pub(crate) fn lead_for(&self, lease: Duration) -> Epoch {
        epoch_of(self.acquire(Claim { lease, ..self.claim() }))
    }

    #[track_caller]
    pub(crate) fn lead(&self) -> Epoch {
        self.lead_for(HOUR)
    }

    /// Takes the lease, which is free, to replace a value.
    #[track_caller]
    pub(crate) fn lead_over(&self, value: &[u8]) -> Epoch {
        epoch_of(self.acquire(Claim { seen: Some(version(value)), ..self.claim() }))
    }

    /// Whether another has the lease.
    #[track_caller]
    pub(crate) fn is_kept_out(&self) -> bool {
        matches!(self.acquire(self.claim()), Acquired::Held { .. })
    }

    #[track_caller]
    pub(crate) fn publish(&self, epoch: Epoch, value: &[u8]) -> Publication {
        self.try_publish(epoch, value).unwrap()
    }

    pub(crate) fn try_publish(&self, epoch: Epoch, value: &[u8]) -> Result<Publication, <B::Store as Steps>::Failure> {
        self.store.publish(&self.key, self.token, epoch, self.entry(value), self.bench.now())
    }

    /// A value that is not to be kept.
    #[track_caller]
    pub(crate) fn publish_over(&self, epoch: Epoch) -> Publication {
        let entry = self.entry_for(b"over", Duration::ZERO);
        self.store.publish(&self.key, self.token, epoch, entry, self.bench.now()).unwrap()
    }

    #[track_caller]
    pub(crate) fn renew(&self, lease: Duration) -> bool {
        self.store.renew(&self.key, self.token, lease).unwrap()
    }

    #[track_caller]
    pub(crate) fn release(&self) {
        self.store.release(&self.key, self.token).unwrap();
    }

    #[track_caller]
    pub(crate) fn get(&self) -> Option<Vec<u8>> {
        self.find().map(|entry| entry.value().clone())
    }

    #[track_caller]
    pub(crate) fn find(&self) -> Option<Entry<Vec<u8>>> {
        self.store.get(&self.key, self.bench.now()).unwrap()
    }

    #[track_caller]
    pub(crate) fn put(&self, value: &[u8]) {
        self.store.put(&self.key, self.entry(value), self.bench.now()).map(drop).unwrap();
    }

    #[track_caller]
    pub(crate) fn remove(&self) {
        self.store.remove(&self.key).map(drop).unwrap();
    }

    #[track_caller]
    pub(crate) fn clear(&self) {
        self.store.clear().map(drop).unwrap();
    }

    /// Fresh for an hour.
    pub(crate) fn entry(&self, value: &[u8]) -> Entry<Vec<u8>> {
        self.entry_for(value, HOUR)
    }

    pub(crate) fn entry_for(&self, value: &[u8], life: Duration) -> Entry<Vec<u8>> {
        let now = self.bench.now();
        let until = now.after(life);
        Entry::new(value.to_owned(), version(value), now, until, until, MILLI * 5)
    }
}

/// The version of the entries that the cases make.
pub(crate) fn version(value: &[u8]) -> Version {
    1 + value.first().copied().map_or(0, u32::from)
}

#[track_caller]
pub(crate) fn epoch_of<V: Debug>(acquired: Acquired<V>) -> Epoch {
    match acquired {
        Acquired::Leader { epoch } => epoch,
        other => panic!("it was to lead, and it is {other:?}"),
    }
}

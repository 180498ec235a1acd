//! Who of several processes loads: what a store of one's own implements if several processes share it.
//!
//! The Redis store (feature `redis`) has leases. For a table in a database, [`Lease`] is one transaction for each step, on a row
//! that it locks first:
//!
//! ```sql
//! CREATE TABLE cached (
//!     key bytea PRIMARY KEY,
//!     value bytea, version integer, fresh_until timestamptz, expires timestamptz, -- null: no value
//!     token uuid, leased_until timestamptz,                                       -- null: no lease
//!     epoch uuid                                                                  -- null: nobody may publish
//! );
//! -- acquire: SELECT .. FOR UPDATE; look at value, version and expires; if token is null, or $token, or leased_until is past:
//! UPDATE cached SET token = $token, leased_until = now() + $lease, epoch = coalesce(epoch, gen_random_uuid()) WHERE key = $key;
//! -- renew
//! UPDATE cached SET leased_until = now() + $lease WHERE key = $key AND token = $token AND leased_until > now();
//! -- publish, if epoch = $epoch and token = $token and leased_until > now()
//! UPDATE cached SET value = $value, version = .., token = null, epoch = null WHERE key = $key;
//! -- publish late, if epoch = $epoch and there is no value
//! UPDATE cached SET value = $value, version = .. WHERE key = $key;
//! -- release
//! UPDATE cached SET token = null WHERE key = $key AND token = $token;
//! -- put and remove
//! UPDATE cached SET value = $value, version = .., token = null, epoch = null WHERE key = $key;
//! ```
//!
//! Where a lease is an advisory lock (`pg_try_advisory_lock`) of a session that the store keeps, it ends with the session:
//! `renew` has nothing to do, and [`Acquired::Held`] has [`Duration::MAX`] left. `NOTIFY` pushes, for [`Lease::watch`].

mod none;
mod push;

pub use none::NoLease;
pub use push::{Announces, Push, Told, ToldWritten, Watch, Written};

use crate::entry::Entry;
use crate::fill::{Epoch, Token, Version};
use crate::time::Time;
use std::error::Error;
use std::future::Future;
use std::time::Duration;

/// What a lease is asked for: the key, for a while, unless there is a value.
///
/// # Examples
///
/// ```
/// use oneflight_cache::lease::Claim;
/// use std::time::Duration;
///
/// let (lease, epoch_life) = (Duration::from_secs(5), Duration::from_secs(600));
/// let claim = Claim { token: 7, lease, epoch_life, seen: None };
/// assert_eq!(Claim { seen: Some(1), ..claim }.token, 7); // the same lease, to refresh the value of version 1
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who asks: a number that no other flight of any process has.
    pub token: Token,
    /// How long the lease lasts if it is not renewed.
    pub lease: Duration,
    /// How long the store remembers in which epoch the lease was acquired, at least.
    pub epoch_life: Duration,
    /// The value that is to be replaced, if there is one: one to be refreshed, or one that cannot be read.
    pub seen: Option<Version>,
}

/// What came of a [`Claim`].
///
/// # Examples
///
/// ```
/// use oneflight_cache::lease::Acquired;
///
/// fn is_to_load(acquired: &Acquired<String>) -> bool {
///     matches!(acquired, Acquired::Leader { .. })
/// }
/// assert!(is_to_load(&Acquired::Leader { epoch: 9 }));
/// assert!(!is_to_load(&Acquired::Held { left: std::time::Duration::from_secs(5), holder: 8 }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired<V> {
    /// The lease is the one's who asked.
    Leader {
        /// The epoch of the key, which each write changes.
        epoch: Epoch,
    },
    /// There is a value other than the one that was seen.
    Filled(Entry<V>),
    /// There is a value other than the one that was seen, and it cannot be read.
    Unreadable {
        /// Which one: to be claimed as seen.
        version: Version,
    },
    /// The value that was seen is gone. If none was, it is an error of the store.
    Gone,
    /// Another has the lease.
    Held {
        /// How long it lasts if it is not renewed; [`Duration::MAX`] if it never ends.
        left: Duration,
        /// Whose it is.
        holder: Token,
    },
}

/// What came of publishing.
///
/// # Examples
///
/// ```
/// use oneflight_cache::lease::Publication;
///
/// let others_read_it = |publication| matches!(publication, Publication::Stored | Publication::Late);
/// assert!(others_read_it(Publication::Stored));
/// assert!(!others_read_it(Publication::Invalidated));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "the value may not have been stored"]
pub enum Publication {
    /// Stored, and the lease given up.
    Stored,
    /// Stored, though the lease had been lost, as there was no value.
    Late,
    /// Not stored: the lease had been lost, and there is a value, be it one from before.
    Superseded,
    /// Not stored: the key was written since the lease was acquired.
    Invalidated,
}

/// The leases of a store that several processes share: which of them loads a key. All steps are atomic.
///
/// It makes loads fewer. It does not make them exclusive: a leader that is paused for longer than its lease does not know that
/// it has lost it. So it protects nothing outside the cache.
///
/// For each key a store remembers up to three things: the value; the lease, a token that expires; and the epoch, a random
/// number that exists while anybody may publish. Each write ([`put`](crate::Store::put), [`remove`](crate::Store::remove),
/// [`clear`](crate::Store::clear)) removes the lease and the epoch together with what it does to the value.
///
/// # Cancel safety
///
/// As with [stores](crate::Store): the cache drops these futures in the middle, that of [`renew`](Lease::renew) whenever a load
/// ends. A lease that may be held then is [abandoned](Lease::abandon).
///
/// # Examples
///
/// ```
/// // A table of one row, which a database would lock for each step.
/// use oneflight_cache::fill::{Epoch, Token};
/// use oneflight_cache::lease::{Acquired, Claim, Lease, Publication};
/// use oneflight_cache::{Entry, Time};
/// use std::convert::Infallible;
/// use std::sync::Mutex;
/// use std::time::{Duration, Instant};
///
/// #[derive(Default)]
/// struct Row {
///     value: Option<Entry<u32>>,
///     lease: Option<(Token, Instant)>,
///     epoch: Option<Epoch>,
/// }
///
/// impl Row {
///     fn is_held(&self) -> bool {
///         self.lease.is_some_and(|(_, until)| until > Instant::now())
///     }
///
///     fn is_held_by(&self, token: Token) -> bool {
///         self.is_held() && self.lease.is_some_and(|(holder, _)| holder == token)
///     }
/// }
///
/// #[derive(Default)]
/// struct Table(Mutex<Row>);
///
/// impl Lease<str, u32> for Table {
///     type Error = Infallible;
///
///     async fn acquire(&self, _: &str, claim: Claim, now: Time) -> Result<Acquired<u32>, Infallible> {
///         let mut row = self.0.lock().unwrap();
///         match (row.value.as_ref().filter(|entry| entry.stale_until() > now), claim.seen) {
///             (Some(entry), seen) if seen != Some(entry.version()) => return Ok(Acquired::Filled(entry.clone())),
///             (None, Some(_)) => return Ok(Acquired::Gone),
///             _ => {}
///         }
///         match row.lease {
///             Some((holder, until)) if holder != claim.token && until > Instant::now() => {
///                 Ok(Acquired::Held { left: until - Instant::now(), holder })
///             }
///             _ => {
///                 row.lease = Some((claim.token, Instant::now() + claim.lease));
///                 let epoch = *row.epoch.get_or_insert(claim.token); // any random number
///                 Ok(Acquired::Leader { epoch })
///             }
///         }
///     }
///
///     async fn renew(&self, _: &str, token: Token, lease: Duration) -> Result<bool, Infallible> {
///         let mut row = self.0.lock().unwrap();
///         let is_held = row.is_held_by(token);
///         if is_held {
///             row.lease = Some((token, Instant::now() + lease));
///         }
///         Ok(is_held)
///     }
///
///     async fn publish(
///         &self,
///         _: &str,
///         token: Token,
///         epoch: Epoch,
///         entry: Entry<u32>,
///         now: Time,
///     ) -> Result<Publication, Infallible> {
///         let mut row = self.0.lock().unwrap();
///         let has_value = row.value.as_ref().is_some_and(|entry| entry.stale_until() > now);
///         if row.epoch != Some(epoch) {
///             let is_superseded = has_value && row.epoch.is_none();
///             return Ok(if is_superseded { Publication::Superseded } else { Publication::Invalidated });
///         }
///         let is_write = entry.stale_until() <= now && !row.is_held();
///         if row.is_held_by(token) || is_write {
///             *row = Row { value: Some(entry), ..Row::default() };
///             Ok(Publication::Stored)
///         } else if !has_value {
///             row.value = Some(entry);
///             Ok(Publication::Late)
///         } else {
///             Ok(Publication::Superseded)
///         }
///     }
///
///     async fn release(&self, _: &str, token: Token) -> Result<(), Infallible> {
///         self.abandon("", token);
///         Ok(())
///     }
///
///     fn abandon(&self, _: &str, token: Token) {
///         let mut row = self.0.lock().unwrap();
///         if row.is_held_by(token) {
///             row.lease = None;
///         }
///     }
/// }
///
/// # smol::block_on(async {
/// let (table, now, second) = (Table::default(), Time::START, Duration::from_secs(1));
/// let claim = Claim { token: 7, lease: second * 5, epoch_life: second * 600, seen: None };
/// let Acquired::Leader { epoch } = table.acquire("k", claim, now).await? else { panic!("it is free") };
/// let other = table.acquire("k", Claim { token: 8, ..claim }, now).await?;
/// assert!(matches!(other, Acquired::Held { holder: 7, .. }));
/// assert!(table.renew("k", 7, second * 5).await?);
///
/// let entry = Entry::new(42, 1, now, now.after(second * 60), now.after(second * 60), second);
/// assert_eq!(table.publish("k", 7, epoch, entry, now).await?, Publication::Stored);
/// let other = table.acquire("k", Claim { token: 8, ..claim }, now).await?;
/// assert!(matches!(other, Acquired::Filled(entry) if *entry.value() == 42));
/// # Ok::<(), Infallible>(())
/// # }).unwrap();
/// ```
pub trait Lease<K: ?Sized, V>: Send + Sync {
    /// Why it failed.
    type Error: Error + Send + Sync + 'static;

    /// Looks at the value, and takes the lease:
    ///
    /// | the value is | `seen: None` | `seen: Some(version)` |
    /// |---|---|---|
    /// | absent | takes the lease | [`Gone`](Acquired::Gone) |
    /// | of the version `seen` | | takes the lease |
    /// | another | [`Filled`](Acquired::Filled), [`Unreadable`](Acquired::Unreadable) | the same |
    ///
    /// Takes the lease: if it is free or this token's already, sets it to last `claim.lease` from now, makes a new epoch if
    /// there is none, sets that to last `claim.epoch_life` at least, and is [`Leader`](Acquired::Leader). Otherwise it is
    /// [`Held`](Acquired::Held).
    fn acquire(
        &self,
        key: &K,
        claim: Claim,
        now: Time,
    ) -> impl Future<Output = Result<Acquired<V>, Self::Error>> + Send;

    /// If the lease is this token's, sets it to last `lease` from now, and is true.
    fn renew(&self, key: &K, token: Token, lease: Duration) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// In this order:
    ///
    /// 1. the key's epoch is not `epoch`: [`Invalidated`](Publication::Invalidated), or
    ///    [`Superseded`](Publication::Superseded) if there is a value and no epoch;
    /// 2. the lease is this token's, or nobody's and the entry is over: stores the value, removes the lease and the epoch, tells those
    ///    who watch: [`Stored`](Publication::Stored);
    /// 3. there is no value: stores it, leaves the lease and the epoch, tells those who watch: [`Late`](Publication::Late);
    /// 4. otherwise [`Superseded`](Publication::Superseded).
    ///
    /// An entry that is over by `now` ([`Entry::stale_until`]) stands for a value that is not to be kept: no value is stored, the one that
    /// was there is removed, and all else is the same. While nobody has the lease it is as a write: nothing that was loaded before is
    /// stored after it.
    fn publish(
        &self,
        key: &K,
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> impl Future<Output = Result<Publication, Self::Error>> + Send;

    /// If the lease is this token's, removes it, and tells those who watch. Works when the store is full.
    fn release(&self, key: &K, token: Token) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// As [`release`](Self::release), beside whatever else goes on: for a flight that is dropped, so it must not block. The lease
    /// runs out by itself if it does nothing.
    fn abandon(&self, key: &K, token: Token);

    /// Whether the store may have done what it was asked to, though it has failed: the answer was lost. If in doubt, true.
    fn is_ambiguous(&self, error: &Self::Error) -> bool {
        let _ = error;
        true
    }

    /// Begins to listen, and tells what is pushed about `key` from then on. `None` if nothing is pushed: then those who wait look
    /// at the store every few milliseconds.
    ///
    /// Pushes are hints: they may be lost, or come too often.
    fn watch(&self, key: &K, told: Told) -> Option<Box<dyn Watch>> {
        let _ = (key, told);
        None
    }
}

/// The same for threads.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "redis")]
/// # fn example() -> Result<(), oneflight_cache::redis::Error> {
/// use oneflight_cache::lease::{Acquired, BlockingLease, Claim, Publication};
/// use oneflight_cache::redis::blocking::RedisStore;
/// use oneflight_cache::{Entry, Time};
/// use std::time::Duration;
///
/// let store = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
/// let (now, second) = (Time::START, Duration::from_secs(1));
/// let claim = Claim { token: 7, lease: second * 5, epoch_life: second * 600, seen: None };
/// let acquired: Acquired<String> = store.acquire("k", claim, now)?;
/// if let Acquired::Leader { epoch } = acquired {
///     let entry = Entry::new("Ada".to_owned(), 1, now, now.after(second * 60), now.after(second * 60), second);
///     assert_eq!(store.publish("k", 7, epoch, entry, now)?, Publication::Stored);
/// }
/// # Ok(())
/// # }
/// ```
pub trait BlockingLease<K: ?Sized, V>: Send + Sync {
    /// Why it failed.
    type Error: Error + Send + Sync + 'static;

    /// See [`Lease::acquire`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn acquire(&self, key: &K, claim: Claim, now: Time) -> Result<Acquired<V>, Self::Error>;

    /// See [`Lease::renew`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn renew(&self, key: &K, token: Token, lease: Duration) -> Result<bool, Self::Error>;

    /// See [`Lease::publish`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn publish(
        &self,
        key: &K,
        token: Token,
        epoch: Epoch,
        entry: Entry<V>,
        now: Time,
    ) -> Result<Publication, Self::Error>;

    /// See [`Lease::release`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn release(&self, key: &K, token: Token) -> Result<(), Self::Error>;

    /// See [`Lease::is_ambiguous`].
    fn is_ambiguous(&self, error: &Self::Error) -> bool {
        let _ = error;
        true
    }

    /// See [`Lease::watch`].
    fn watch(&self, key: &K, told: Told) -> Option<Box<dyn Watch>> {
        let _ = (key, told);
        None
    }
}

/// The leases of a store, which has some if these are asked for.
pub(crate) fn leases<L>(lease: Option<&L>) -> &L {
    lease.expect("only a store with leases is asked for one")
}

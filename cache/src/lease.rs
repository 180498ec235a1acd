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
//! -- publish, if epoch = $epoch, and the lease is $token or there is no value; it keeps the lease of another
//! UPDATE cached SET value = $value, version = .., token = null, epoch = null WHERE key = $key;
//! -- release
//! UPDATE cached SET token = null WHERE key = $key AND token = $token;
//! -- put and remove
//! UPDATE cached SET value = $value, version = .., token = null, epoch = null WHERE key = $key;
//! ```
//!
//! Where a lease is an advisory lock (`pg_try_advisory_lock`) of a session that the store keeps, it ends with the session:
//! `renew` has nothing to do, and [`Acquired::Held`] has [`Duration::MAX`] left. `NOTIFY` pushes, for [`Lease::watch`].

use crate::entry::Entry;
use crate::fill::{Epoch, Token, Version};
use crate::time::Time;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// What a lease is asked for: the key, for a while, unless there is a value.
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
    /// The value that was seen is gone.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Publication {
    /// Stored, and the lease given up.
    Stored,
    /// Stored, though the lease had been lost, as there was no value.
    Late,
    /// Not stored: the lease had been lost, and there is a value.
    Superseded,
    /// Not stored: the key was written since the lease was acquired.
    Invalidated,
}

/// What is pushed about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Push {
    /// From now on what happens to the key is pushed, until a connection fails.
    Listening,
    /// A value was published, or the lease given up.
    Released,
    /// Another process has written the key.
    Written,
}

/// Listens to what is pushed about a key, until it is dropped.
pub trait Watch: Send + Sync {
    /// Whether it does at this moment. [`Push::Listening`] has been told, if so.
    fn is_listening(&self) -> bool;
}

/// Who is told what is pushed: must neither block nor call the store.
pub type Told = Box<dyn Fn(Push) + Send + Sync>;

/// What other processes have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Written {
    /// The key of this number, as [`Announces::key_number`] has it.
    Key(u64),
    /// Any key may have been: all were, or nobody has listened for a while.
    Any,
}

/// Who is told what other processes write: must neither block nor call the store.
pub type ToldWritten = Box<dyn Fn(Written) + Send + Sync>;

/// A store that tells what other processes write, as it happens: what a [`Tiered`](crate::Tiered) one is made of.
pub trait Announces<K: ?Sized> {
    /// The number by which it tells of this key. If two keys share one, what is told of the one is told of the other.
    fn key_number(&self, key: &K) -> u64;

    /// Tells what other processes write until what it returns is dropped. What is told may come late, or be lost.
    fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch>;
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
/// With a table in a database, say, each step is one transaction; [`renew`](Self::renew) has nothing to do where a lease is a
/// lock that lasts as long as the session.
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
    /// 2. the lease is this token's: stores the value, removes the lease and the epoch, tells those who watch:
    ///    [`Stored`](Publication::Stored);
    /// 3. there is no value: stores it, leaves the lease, tells those who watch: [`Late`](Publication::Late);
    /// 4. otherwise [`Superseded`](Publication::Superseded).
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

/// The lease of a store that is one process's own: there is none, as the flights of the process are enough.
///
/// `E` is the store's error.
pub struct NoLease<E = Infallible> {
    never: Infallible,
    error: std::marker::PhantomData<fn() -> E>,
}

impl<E> fmt::Debug for NoLease<E> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.never {}
    }
}

impl<K: ?Sized, V: Send, E: Error + Send + Sync + 'static> Lease<K, V> for NoLease<E> {
    type Error = E;

    fn acquire(&self, _: &K, _: Claim, _: Time) -> impl Future<Output = Result<Acquired<V>, E>> + Send {
        self.none()
    }

    fn renew(&self, _: &K, _: Token, _: Duration) -> impl Future<Output = Result<bool, E>> + Send {
        self.none()
    }

    fn publish(
        &self,
        _: &K,
        _: Token,
        _: Epoch,
        _: Entry<V>,
        _: Time,
    ) -> impl Future<Output = Result<Publication, E>> + Send {
        self.none()
    }

    fn release(&self, _: &K, _: Token) -> impl Future<Output = Result<(), E>> + Send {
        self.none()
    }

    fn abandon(&self, _: &K, _: Token) {
        match self.never {}
    }
}

impl<K: ?Sized, V, E: Error + Send + Sync + 'static> BlockingLease<K, V> for NoLease<E> {
    type Error = E;

    fn acquire(&self, _: &K, _: Claim, _: Time) -> Result<Acquired<V>, E> {
        match self.never {}
    }

    fn renew(&self, _: &K, _: Token, _: Duration) -> Result<bool, E> {
        match self.never {}
    }

    fn publish(&self, _: &K, _: Token, _: Epoch, _: Entry<V>, _: Time) -> Result<Publication, E> {
        match self.never {}
    }

    fn release(&self, _: &K, _: Token) -> Result<(), E> {
        match self.never {}
    }
}

impl<E> NoLease<E> {
    fn none<T>(&self) -> std::future::Ready<T> {
        match self.never {}
    }
}

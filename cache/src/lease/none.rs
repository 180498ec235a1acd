//! The lease of a store that has none.

use super::{Acquired, BlockingLease, Claim, Lease, Publication};
use crate::entry::Entry;
use crate::fill::{Epoch, Token};
use crate::time::Time;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// The lease of a store that is one process's own: there is none, as the flights of the process are enough.
///
/// `E` is the store's error.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Memory, Store};
///
/// let memory: Memory<u64, String> = Memory::new(100);
/// assert!(Store::<u64, String>::lease(&memory).is_none());
/// ```
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

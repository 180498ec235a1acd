//! What a cache needs beside a store that several processes share.

use crate::breaker::{Allowed, Breaker, NOT_ASKED};
use crate::config;
use crate::error::StoreError;
use crate::inner::{Inner, OnDrop};
use crate::lease::Lease;
use crate::stats::Count;
use crate::store::Store;
use crate::time_limit::TimeLimit;
use async_lock::Semaphore;
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;

pub(crate) struct Sharing {
    /// Bounds the loads past the store.
    pub(crate) uncached: Semaphore,
    breaker: Breaker,
    last_error: Mutex<Option<StoreError>>,
}

impl Sharing {
    pub(crate) fn new(config: &config::Sharing) -> Self {
        Self {
            uncached: Semaphore::new(config.max_uncached_loads),
            breaker: Breaker::new(config.breaker_failures, config.breaker_open),
            last_error: Mutex::default(),
        }
    }

    /// Why the store failed the last time.
    pub(crate) fn last_error(&self) -> StoreError {
        self.last_error.lock().clone().unwrap_or_else(|| Arc::new(NOT_ASKED))
    }
}

/// What becomes of a request while the breaker is open, as the store has not answered of late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfOpen {
    Refuse,
    /// It is made all the same: it cannot be made later.
    Ask,
}

impl<V, S> Inner<V, S> {
    /// What the store says, unless it has not answered of late.
    #[inline]
    pub(crate) async fn ask<Q, T, F>(&self, request: impl FnOnce() -> F) -> Result<T, Failure>
    where
        Q: ?Sized,
        S: Store<Q, V>,
        F: Future<Output = Result<T, S::Error>>,
    {
        self.ask_with::<Q, T, F>(IfOpen::Refuse, request).await
    }

    #[inline]
    pub(crate) async fn ask_with<Q, T, F>(&self, if_open: IfOpen, request: impl FnOnce() -> F) -> Result<T, Failure>
    where
        Q: ?Sized,
        S: Store<Q, V>,
        F: Future<Output = Result<T, S::Error>>,
    {
        if self.store.lease().is_none() {
            return request().await.map_err(|error| self.refused(error));
        }
        self.ask_server(if_open, request).await
    }

    /// Nobody else is asked, so there is nothing to be done about a store that fails but to say so.
    #[cold]
    pub(crate) fn refused(&self, error: impl std::error::Error + Send + Sync + 'static) -> Failure {
        Failure::new(self.store_failed(error), true)
    }

    /// What it answers makes no sense, so nobody knows what it has done.
    #[cold]
    pub(crate) fn senseless(&self, error: impl std::error::Error + Send + Sync + 'static) -> Failure {
        let error = self.store_failed(error);
        if let Some(sharing) = &self.sharing {
            *sharing.last_error.lock() = Some(Arc::clone(&error));
        }
        Failure::new(error, true)
    }

    async fn ask_server<Q, T, F>(&self, if_open: IfOpen, request: impl FnOnce() -> F) -> Result<T, Failure>
    where
        Q: ?Sized,
        S: Store<Q, V>,
        F: Future<Output = Result<T, S::Error>>,
    {
        let (lease, sharing) = self.store.lease().zip(self.sharing.as_ref()).expect("there are leases");
        let allowed = if if_open == IfOpen::Ask { Allowed::Yes } else { sharing.breaker.allows(self.now()) };
        let _probe = match allowed {
            Allowed::Yes => None,
            Allowed::Probe => Some(OnDrop(|| sharing.breaker.probed(self.now(), self.config.random()))),
            Allowed::No => return Err(Failure::new(Arc::new(NOT_ASKED), false)),
        };
        match request().await {
            Ok(answer) => {
                sharing.breaker.answered();
                Ok(answer)
            }
            Err(error) => {
                let is_ambiguous = lease.is_ambiguous(&error);
                if TimeLimit::is_over() {
                    // The caller's time was up, as if a task had been dropped: it says nothing about the server.
                    return Err(Failure::new(Arc::new(error), is_ambiguous));
                }
                // What is refused was answered, or never sent: it says nothing about whether the server is there.
                if is_ambiguous && sharing.breaker.unanswered(self.now(), || self.config.random()) {
                    self.counters.add(Count::BreakerOpened);
                }
                let error = self.store_failed(error);
                *sharing.last_error.lock() = Some(Arc::clone(&error));
                Err(Failure::new(error, is_ambiguous))
            }
        }
    }
}

/// Why a request to the store has brought nothing.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: StoreError,
    /// It may have been carried out all the same.
    pub(crate) is_ambiguous: bool,
}

impl Failure {
    fn new(error: StoreError, is_ambiguous: bool) -> Self {
        Self { error, is_ambiguous }
    }
}

//! What a task does beside its flight with a lease: nothing that needs another task.

use super::Shared;
use crate::fill::{Fill, Token};
use crate::inner::{Renewals, Side};
use crate::lease::Lease;
use crate::store::Store;
use async_lock::Semaphore;
use std::future::pending;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct TaskSide<'f, K, V, E, S> {
    pub(crate) shared: &'f Arc<Shared<K, V, E, S>>,
    pub(crate) key: &'f K,
    /// Bounds how many renewals are on at once, of the flights of a batch.
    pub(crate) renewals: Option<&'f Semaphore>,
}

impl<K, V, E, S> Side for TaskSide<'_, K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    /// Inside the future of the flight, so whoever drives the load renews its lease.
    fn renew(&self, mut fill: Fill, first: Duration) -> Renewals<'_> {
        Box::pin(async move {
            let mut wait = Some(first);
            while let Some(left) = wait {
                self.shared.inner.config.timer.sleep(left).await;
                let _turn = match self.renewals {
                    Some(renewals) => Some(renewals.acquire().await),
                    None => None,
                };
                wait = self
                    .shared
                    .inner
                    .renew(self.key, &mut fill, || false, || _ = self.shared.group.forget(self.key))
                    .await;
            }
            pending().await
        })
    }

    fn abandon(&self, token: Token) {
        if let Some(lease) = self.shared.inner.store.lease() {
            lease.abandon(self.key, token);
        }
    }

    fn forgets(&self) -> Box<dyn Fn() + Send + Sync> {
        let (shared, key) = (Arc::downgrade(self.shared), self.key.clone());
        Box::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.group.forget(&key);
            }
        })
    }
}

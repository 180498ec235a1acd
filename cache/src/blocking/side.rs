//! What happens beside a thread's flight with a lease, in the keeper's threads.

use super::Shared;
use crate::fill::{Fill, Token};
use crate::inner::{Renewals, Side};
use crate::lease::Lease;
use crate::store::{BlockingStore, Store};
use crate::time::block_on;
use std::future::pending;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct ThreadSide<'f, K, V, E, S> {
    pub(crate) shared: &'f Arc<Shared<K, V, E, S>>,
    pub(crate) key: &'f K,
    /// Until when the caller waits for others.
    pub(crate) until: Option<Instant>,
}

impl<K, V, E, S> Side for ThreadSide<'_, K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    fn renew(&self, mut fill: Fill, first: Duration) -> Renewals<'_> {
        let (shared, key) = (Arc::clone(self.shared), self.key.clone());
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let renew = move || {
            let is_over = || is_over.load(Ordering::SeqCst);
            block_on(shared.inner.renew(&key, &mut fill, is_over, || _ = shared.group.forget(&key)))
        };
        let kept = self.shared.keeper.keep(first, over, Box::new(renew));
        Box::pin(async move {
            let _kept = kept;
            pending().await
        })
    }

    fn abandon(&self, token: Token) {
        let (shared, key) = (Arc::clone(self.shared), self.key.clone());
        self.shared.keeper.soon(move || {
            let inner = &shared.inner;
            if let Some(lease) = Store::<K, V>::lease(&inner.store) {
                // If it fails, the lease runs out. Of a store that does not answer it is not asked: renewals wait for this.
                drop(block_on(inner.ask::<K, _, _>(|| lease.release(&key, token))));
            }
        });
    }

    fn forgets(&self) -> Box<dyn Fn() + Send + Sync> {
        let (shared, key) = (Arc::downgrade(self.shared), self.key.clone());
        Box::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.group.forget(&key);
            }
        })
    }

    fn deadline(&self) -> Option<Instant> {
        self.until
    }
}

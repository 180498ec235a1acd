//! foyer's cache in memory. It runs each load in a task that it spawns on tokio, so its callers must be on tokio.

use super::Key;
use super::tasks::Coalesces;
use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt;
use core::future::Future;
use core::hash::Hash;
use core::sync::atomic::{AtomicBool, Ordering};
use foyer_memory::Cache;

/// A cache out of which whoever ran the work takes the value again; large enough never to evict.
pub struct Foyer<K: Hash + Eq + Send + Sync + 'static>(Cache<K, u64>);

impl<K: Hash + Eq + Send + Sync + 'static> Default for Foyer<K> {
    fn default() -> Self {
        Self(Cache::builder(1 << 20).build())
    }
}

/// It takes a function, and calls it at once: the future of the work is made before it is known who leads.
impl<Q: Key + ?Sized> Coalesces<Q> for Foyer<Q::Owned> {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> u64
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let led = Arc::new(AtomicBool::new(false));
        let value = {
            let (work, told) = (work(), Arc::clone(&led));
            self.0.get_or_fetch(key, || async move {
                told.store(true, Ordering::Relaxed);
                Ok::<_, Infallible>(work.await)
            })
        };
        let value = *value.await.expect("no work fails here");
        if led.load(Ordering::Relaxed) {
            self.0.remove(key);
        }
        value
    }
}

impl<K: Hash + Eq + Send + Sync + 'static> fmt::Debug for Foyer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foyer").finish_non_exhaustive()
    }
}

//! What can be switched on a cache for threads, and seen of it.

use super::Cache;
use crate::stats::Stats;
use crate::store::BlockingStore;
use crate::time_limit;
use hashbrown::Equivalent;
use std::hash::Hash;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl<K, V, E, S> Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: BlockingStore<K, V>,
{
    /// Whether callers of a key share one load. On, unless it is switched off here, at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.set_coalescing(false);
    /// assert_eq!(*users.get_or_load(&7, || Ok("Ada".to_owned()))?, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn set_coalescing(&self, on: bool) {
        self.shared.inner.coalescing.store(on, Ordering::Relaxed);
    }

    /// Whether reads refresh values early, as the [policy](crate::Builder::early_refresh) says. May be switched at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.set_early_refresh(false);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn set_early_refresh(&self, on: bool) {
        self.shared.inner.early_refresh.store(on, Ordering::Relaxed);
    }

    /// Starts no refreshes and no loads from now on, and waits for the refreshes that are on and the helper threads that do
    /// them, until `deadline`. Returns whether all have ended; a loader that blocks cannot be stopped. What is stored is still
    /// served; calls that would have to load get [`Error::Closed`](crate::Error::Closed).
    ///
    /// The loader of a refresh that calls this waits for itself, so until `deadline`: it should give none, [`Duration::ZERO`].
    ///
    /// # Blocking
    ///
    /// For `deadline` at the longest.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// assert!(users.close(std::time::Duration::from_secs(5)));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn close(&self, deadline: Duration) -> bool {
        self.shared.inner.closed.store(true, Ordering::SeqCst);
        let deadline = time_limit::deadline(deadline);
        self.shared.helpers.close(deadline) & self.shared.inner.refreshing.wait_until_empty(deadline)
    }

    /// What the cache has done so far.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.get_or_load(&7, || Ok("Ada".to_owned()))?;
    /// assert_eq!((users.stats().loads, users.stats().hits), (1, 0));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.shared.inner.stats::<K>()
    }

    /// The store.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.put(&7, "Ada".to_owned())?;
    /// assert_eq!(users.store().len(), 1);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn store(&self) -> &S {
        &self.shared.inner.store.0
    }

    /// How many callers wait for the load of `key` that is on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// assert_eq!(users.waiters(&7), 0);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn waiters<Q>(&self, key: &Q) -> usize
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.shared.group.waiters(key)
    }

    /// How many loads and refreshes are on, with or without callers that wait, by key; those included that nobody joins any
    /// more since a write. Those that nobody could ever join, past the cache or without coalescing, are not counted.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// users.get_or_load(&7, || Ok("Ada".to_owned()))?;
    /// assert_eq!(users.in_flight(), 0);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.group.in_flight()
    }
}

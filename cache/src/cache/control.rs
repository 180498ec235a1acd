//! What can be switched on a cache for tasks, and seen of it.

use super::Cache;
use crate::stats::Stats;
use crate::store::Store;
use crate::time::within;
use hashbrown::Equivalent;
use std::hash::Hash;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl<K, V, E, S> Cache<K, V, E, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    E: Send + Sync + 'static,
    S: Store<K, V>,
{
    /// Whether callers of a key share one load. On, unless it is switched off here, at any time, say to find out whether a
    /// problem has to do with it: then each caller that misses loads.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.set_coalescing(false);
    /// assert_eq!(*users.get_or_load(&7, || async { Ok("Ada".to_owned()) }).await?, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_coalescing(&self, on: bool) {
        self.shared.inner.coalescing.store(on, Ordering::Relaxed);
    }

    /// Whether reads refresh values early, as the [policy](crate::Builder::early_refresh) says. May be switched at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.set_early_refresh(false);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_early_refresh(&self, on: bool) {
        self.shared.inner.early_refresh.store(on, Ordering::Relaxed);
    }

    /// Starts no refreshes and no loads from now on, waits for the refreshes that are on, and drops those that have not ended
    /// after `deadline`. Returns whether all had. What is stored is still served; calls that would have to load get
    /// [`Error::Closed`](crate::Error::Closed). A refresh in the load of a [batch](Self::get_or_load_many) that has keys
    /// without a value, too, is not dropped: that goes on, as other loads do.
    ///
    /// The loader of a refresh that awaits this waits for itself, so until `deadline`, and is dropped then.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, nothing new is started all the same; refreshes that are on go on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// assert!(users.close(Duration::from_secs(5)).await);
    /// # });
    /// ```
    pub async fn close(&self, deadline: Duration) -> bool {
        let inner = &self.shared.inner;
        inner.closed.store(true, Ordering::SeqCst);
        let ended = async {
            loop {
                let empty = inner.refreshing.listen();
                if inner.refreshing.is_empty() {
                    break;
                }
                empty.await;
            }
        };
        let ended = within(Some(deadline), &inner.config.timer, ended).await.is_some();
        self.shared.cancelled.store(true, Ordering::SeqCst);
        self.shared.cancel.notify(usize::MAX);
        ended
    }

    /// What the cache has done so far.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.get_or_load(&7, || async { Ok("Ada".to_owned()) }).await?;
    /// assert_eq!((users.stats().loads, users.stats().hits), (1, 0));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn stats(&self) -> Stats {
        self.shared.inner.stats::<K>()
    }

    /// The store.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.put(&7, "Ada".to_owned()).await?;
    /// assert_eq!(users.store().len(), 1);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn store(&self) -> &S {
        &self.shared.inner.store
    }

    /// How many callers wait for the load of `key` that is on.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// assert_eq!(users.waiters(&7), 0);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
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
    /// # use oneflight_cache::Cache;
    /// # smol::block_on(async {
    /// let users: Cache<u64, String> = Cache::builder().build();
    /// users.get_or_load(&7, || async { Ok("Ada".to_owned()) }).await?;
    /// assert_eq!(users.in_flight(), 0);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.group.in_flight()
    }
}

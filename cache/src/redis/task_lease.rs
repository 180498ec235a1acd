//! Leases without a cache, for tasks.

use super::any_link::AnyLink;
use super::builder::Builder;
use super::error::Error;
use super::key::CacheKey;
use super::standalone::{Held, Leases};
use crate::lease::Publication;
use futures_lite::future::or;
use futures_timer::Delay;
use std::fmt;
use std::future::Future;
use std::time::Duration;

/// Leases without a cache: of several processes one does something, and the others need not. With the feature `redis-smol` or
/// `redis-tokio`.
///
/// It saves work. It does not protect what must never be done twice at once: see [what a lease is
/// not](crate::redis#what-a-lease-is-not).
///
/// # Examples
///
/// ```no_run
/// use oneflight_cache::redis::RedisLease;
/// use std::time::Duration;
///
/// # smol::block_on(async {
/// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
/// let today = "2025-01-31";
/// if let Some(lease) = leases.acquire(today, Duration::from_secs(30)).await? {
///     // Another may have done it before.
///     if leases.get(today).await?.is_none() {
///         let report = b"all is well";
///         lease.store(report, Duration::from_secs(24 * 3_600)).await?;
///     }
/// }
/// # Ok::<(), oneflight_cache::redis::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct RedisLease(pub(super) Leases<AnyLink>);

impl RedisLease {
    /// Sets one up. Its [`codec`](Builder::codec) and [`generation_life`](Builder::generation_life) do not matter here.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # smol::block_on(async {
    /// use oneflight_cache::redis::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
    /// # let _ = (leases, Duration::ZERO);
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Takes the lease of `key` for `ttl`, in whole milliseconds; `None` if another has it. It is free again as soon as another has
    /// stored its value: [`get`](Self::get) tells whether there is one.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the lease is given up.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # smol::block_on(async {
    /// use oneflight_cache::redis::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
    /// if let Some(lease) = leases.acquire("daily", Duration::from_secs(30)).await? {
    ///     println!("it is ours: {lease:?}");
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn acquire<K: CacheKey + ?Sized + Sync>(
        &self,
        key: &K,
        ttl: Duration,
    ) -> Result<Option<HeldLease>, Error> {
        let mut lease = HeldLease(self.0.claim(key));
        Ok(lease.0.acquire(ttl).await?.then_some(lease))
    }

    /// What was [stored](HeldLease::store) last for `key`, while it lives.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # smol::block_on(async {
    /// use oneflight_cache::redis::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
    /// if let Some(report) = leases.get("daily").await? {
    ///     println!("{} bytes", report.len());
    /// }
    /// # let _ = Duration::ZERO;
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn get<K: CacheKey + ?Sized + Sync>(&self, key: &K) -> Result<Option<Vec<u8>>, Error> {
        self.0.get(key).await
    }
}

impl fmt::Debug for RedisLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisLease").field(self.0.link()).finish()
    }
}

/// A lease that is held. It is given up when this is dropped, by a task of its own; if that fails, it runs out by itself. With
/// the feature `redis-smol` or `redis-tokio`.
///
/// # Examples
///
/// ```no_run
/// # smol::block_on(async {
/// use oneflight_cache::redis::RedisLease;
/// use std::time::Duration;
///
/// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
/// if let Some(mut lease) = leases.acquire("daily", Duration::from_secs(30)).await? {
///     for page in ["one", "two"] {
///         println!("{page}");
///         if !lease.renew(Duration::from_secs(30)).await? {
///             break; // it is another's now
///         }
///     }
///     lease.release().await?;
/// }
/// # Ok::<(), oneflight_cache::redis::Error>(())
/// # }).unwrap();
/// ```
#[must_use = "a lease is given up when it is dropped"]
pub struct HeldLease(Held<AnyLink>);

impl HeldLease {
    /// Lets it last `ttl` from now. False if it was lost.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the lease lasts as long as it did, or `ttl` from when it was asked for; [`is_lost`](Self::is_lost) goes
    /// by what is sooner.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked: then it is as if this was dropped.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # smol::block_on(async {
    /// use oneflight_cache::redis::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
    /// if let Some(mut lease) = leases.acquire("daily", Duration::from_secs(30)).await? {
    ///     assert!(lease.renew(Duration::from_secs(60)).await?);
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn renew(&mut self, ttl: Duration) -> Result<bool, Error> {
        self.0.renew(ttl).await
    }

    /// Does `work`, and meanwhile lets the lease last `ttl` from now on, by renewing it at once and then each third of that. If it is
    /// lost, or may be, the work is dropped, and there is no output.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, so is the work. The lease is still held.
    ///
    /// # Panics
    ///
    /// If the work does. The lease is still held.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # smol::block_on(async {
    /// use oneflight_cache::redis::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
    /// let ttl = Duration::from_secs(30);
    /// if let Some(mut lease) = leases.acquire("2025-01-31", ttl).await? {
    ///     let slow_query = async { "all is well" };
    ///     if let Some(report) = lease.renew_while(ttl, slow_query).await {
    ///         lease.store(report.as_bytes(), Duration::from_secs(24 * 3_600)).await?;
    ///     }
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn renew_while<F: Future>(&mut self, ttl: Duration, work: F) -> Option<F::Output> {
        let renewing = self.0.keep(ttl, async |pause| {
            Delay::new(pause).await;
            true
        });
        or(async { Some(work.await) }, async {
            renewing.await;
            None
        })
        .await
    }

    /// Whether it is lost, or may be: its time is up as far as this process knows, or the server has said so. It asks nobody.
    /// False says nothing about the next moment.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # smol::block_on(async {
    /// use oneflight_cache::redis::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
    /// if let Some(lease) = leases.acquire("daily", Duration::from_secs(30)).await? {
    ///     assert!(!lease.is_lost());
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Stores `value` for `life`, and gives the lease up, in one step; a life of zero removes what was stored. It is refused if
    /// the lease was lost and a value is there, be it from before the lease: so what is older never replaces what is newer. A life of
    /// zero is refused only if another has the lease, or has stored a value since.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the value may be stored or not. The lease is given up.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked: then it may have been stored or not. If it refuses, as it has no room: then it was not stored,
    /// and the lease is given up.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # smol::block_on(async {
    /// use oneflight_cache::redis::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
    /// use oneflight_cache::lease::Publication;
    ///
    /// if let Some(lease) = leases.acquire("daily", Duration::from_secs(30)).await? {
    ///     let stored = lease.store(b"all is well", Duration::from_secs(24 * 3_600)).await?;
    ///     assert_eq!(stored, Publication::Stored);
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn store(mut self, value: &[u8], life: Duration) -> Result<Publication, Error> {
        self.0.store(value, life).await
    }

    /// Gives it up. False if it was lost.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the lease is given up all the same.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # smol::block_on(async {
    /// use oneflight_cache::redis::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
    /// if let Some(lease) = leases.acquire("daily", Duration::from_secs(30)).await? {
    ///     assert!(lease.release().await?);
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn release(mut self) -> Result<bool, Error> {
        self.0.release().await
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        if !self.0.is_over {
            self.0.steps.abandon(self.0.name.clone(), self.0.token);
        }
    }
}

impl fmt::Debug for HeldLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLease").field("is_lost", &self.is_lost()).finish_non_exhaustive()
    }
}

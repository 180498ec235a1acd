//! Leases without a cache, for threads.

use super::builder::Builder;
use super::error::Error;
use super::key::CacheKey;
use super::link::BlockingLink;
use super::standalone::{Held, Leases};
use crate::lease::Publication;
use crate::time::block_on;
use std::fmt;
use std::future::ready;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Leases without a cache, for threads: of several processes one does something, and the others need not.
///
/// It saves work. It does not protect what must never be done twice at once: see [what a lease is
/// not](crate::redis#what-a-lease-is-not).
///
/// # Blocking
///
/// Each request, of this and of a [`HeldLease`], for as long as the limits for a connection and a reply allow.
///
/// # Examples
///
/// ```no_run
/// use oneflight_cache::redis::blocking::RedisLease;
/// use std::time::Duration;
///
/// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
/// let today = "2025-01-31";
/// if let Some(lease) = leases.acquire(today, Duration::from_secs(30))? {
///     // Another may have done it before.
///     if leases.get(today)?.is_none() {
///         let report = b"all is well";
///         lease.store(report, Duration::from_secs(24 * 3_600))?;
///     } else {
///         lease.release()?;
///     }
/// }
/// # Ok::<(), oneflight_cache::redis::Error>(())
/// ```
#[derive(Clone)]
pub struct RedisLease(pub(super) Leases<BlockingLink>);

impl RedisLease {
    /// Sets one up. Its [`codec`](Builder::codec) and [`generation_life`](Builder::generation_life) do not matter here.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
    /// # let _ = (leases, Duration::ZERO);
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Takes the lease of `key` for `ttl`, in whole milliseconds; `None` if another has it. It is free again as soon as another has
    /// stored its value: [`get`](Self::get) tells whether there is one.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked. The lease may have been taken all the same: then it runs out by itself.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use oneflight_cache::redis::blocking::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
    /// if let Some(lease) = leases.acquire("daily", Duration::from_secs(30))? {
    ///     println!("it is ours: {lease:?}");
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn acquire<K: CacheKey + ?Sized>(&self, key: &K, ttl: Duration) -> Result<Option<HeldLease>, Error> {
        let mut lease = self.0.claim(key);
        Ok(block_on(lease.acquire(ttl))?.then_some(HeldLease(lease)))
    }

    /// What was [stored](HeldLease::store) last for `key`, while it lives.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use oneflight_cache::redis::blocking::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
    /// if let Some(report) = leases.get("daily")? {
    ///     println!("{} bytes", report.len());
    /// }
    /// # let _ = Duration::ZERO;
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn get<K: CacheKey + ?Sized>(&self, key: &K) -> Result<Option<Vec<u8>>, Error> {
        block_on(self.0.get(key))
    }
}

impl fmt::Debug for RedisLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisLease").field(self.0.link()).finish()
    }
}

/// A lease that is held. Dropping it does not give it up, as that would block: it runs out by itself.
///
/// # Examples
///
/// ```no_run
/// use oneflight_cache::redis::blocking::RedisLease;
/// use std::time::Duration;
///
/// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
/// if let Some(mut lease) = leases.acquire("daily", Duration::from_secs(30))? {
///     for page in ["one", "two"] {
///         println!("{page}");
///         if !lease.renew(Duration::from_secs(30))? {
///             break; // it is another's now
///         }
///     }
///     lease.release()?;
/// }
/// # Ok::<(), oneflight_cache::redis::Error>(())
/// ```
#[must_use = "a lease that nobody gives up blocks others until it runs out"]
pub struct HeldLease(Held<BlockingLink>);

impl HeldLease {
    /// Lets it last `ttl` from now. False if it was lost.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked: then it lasts as long as it did, or `ttl` from when it was asked for, and
    /// [`is_lost`](Self::is_lost) goes by what is sooner.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use oneflight_cache::redis::blocking::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
    /// if let Some(mut lease) = leases.acquire("daily", Duration::from_secs(30))? {
    ///     assert!(lease.renew(Duration::from_secs(60))?);
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn renew(&mut self, ttl: Duration) -> Result<bool, Error> {
        block_on(self.0.renew(ttl))
    }

    /// Does `work`, and meanwhile lets the lease last `ttl` from now on, by renewing it at once and then each third of that, in a thread
    /// of its own. If it is lost, or may be, the work goes on all the same: [`is_lost`](Self::is_lost) tells it afterwards, and
    /// [`store`](Self::store) does not replace what is newer.
    ///
    /// # Blocking
    ///
    /// For as long as the work takes, and a renewal that has begun.
    ///
    /// # Panics
    ///
    /// If the work does, and before it begins if the system has no thread. The lease is still held.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use oneflight_cache::redis::blocking::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
    /// let ttl = Duration::from_secs(30);
    /// if let Some(mut lease) = leases.acquire("2025-01-31", ttl)? {
    ///     let slow_query = || "all is well";
    ///     let report = lease.renew_while(ttl, slow_query);
    ///     lease.store(report.as_bytes(), Duration::from_secs(24 * 3_600))?;
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn renew_while<T>(&mut self, ttl: Duration, work: impl FnOnce() -> T) -> T {
        let (done, pause) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let lease = &mut self.0;
            scope.spawn(move || {
                block_on(lease.keep(ttl, |time| ready(pause.recv_timeout(time) == Err(RecvTimeoutError::Timeout))));
            });
            // Dropped as soon as the work has ended, however it does.
            let _done = done;
            work()
        })
    }

    /// Whether it is lost, or may be: its time is up as far as this process knows, or the server has said so. It asks nobody.
    /// False says nothing about the next moment.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use oneflight_cache::redis::blocking::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
    /// if let Some(lease) = leases.acquire("daily", Duration::from_secs(30))? {
    ///     assert!(!lease.is_lost());
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Stores `value` for `life`, and gives the lease up, in one step; a life of zero removes what was stored. It is refused if
    /// the lease was lost and a value is there, be it from before the lease: so what is older never replaces what is newer. A life of
    /// zero is refused only if another has the lease, or has stored a value since.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked: then it may have been stored or not. If it refuses, as it has no room: then it was not stored,
    /// and the lease is given up.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use oneflight_cache::redis::blocking::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
    /// use oneflight_cache::lease::Publication;
    ///
    /// if let Some(lease) = leases.acquire("daily", Duration::from_secs(30))? {
    ///     let stored = lease.store(b"all is well", Duration::from_secs(24 * 3_600))?;
    ///     assert_eq!(stored, Publication::Stored);
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn store(mut self, value: &[u8], life: Duration) -> Result<Publication, Error> {
        block_on(self.0.store(value, life))
    }

    /// Gives it up. False if it was lost.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use oneflight_cache::redis::blocking::RedisLease;
    /// use std::time::Duration;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
    /// if let Some(lease) = leases.acquire("daily", Duration::from_secs(30))? {
    ///     assert!(lease.release()?);
    /// }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn release(mut self) -> Result<bool, Error> {
        block_on(self.0.release())
    }
}

impl fmt::Debug for HeldLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLease").field("is_lost", &self.is_lost()).finish_non_exhaustive()
    }
}

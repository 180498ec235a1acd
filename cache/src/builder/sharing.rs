//! The settings that matter for a store that several processes share.

use super::Builder;
use crate::fill::{self, Fallback};
use std::time::Duration;

/// These are for a store with [leases](crate::lease), such as Redis. Without one they do nothing.
impl<K, V, E, S> Builder<K, V, E, S> {
    /// How long a lease lasts that is not renewed: after so long others load if the one who did is dead. It is renewed after
    /// each third of that. Not less than a few round trips to the server; zero is a millisecond.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().lease(Duration::from_secs(2)).build();
    /// # let _ = cache;
    /// ```
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.sharing.fill.lease = lease.max(Duration::from_millis(1));
        self.remember_long_enough()
    }

    fn remember_long_enough(mut self) -> Self {
        let fill = &mut self.config.sharing.fill;
        let longest = fill.max_hold.saturating_add(fill.lease);
        fill.epoch_life = longest.saturating_mul(4).max(fill::Config::default().epoch_life);
        self
    }

    /// For how long a lease is renewed, counted from when it was acquired. A load that takes longer than that and a lease may be
    /// done by others too; whichever ends first is stored, a refresh not while the old value is there. Zero: leases are not
    /// renewed.
    ///
    /// What was loaded for more than twice as long as both together, but at least five minutes, is not stored: the store
    /// remembers for twice that time that somebody loads, so as to know whether the key was written meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().max_hold(Duration::from_secs(300)).build();
    /// # let _ = cache;
    /// ```
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.config.sharing.fill.max_hold = max_hold;
        self.remember_long_enough()
    }

    /// How long a call that loads waits for another process that is at it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().lease_wait(Duration::from_secs(1)).build();
    /// # let _ = cache;
    /// ```
    pub fn lease_wait(mut self, wait: Duration) -> Self {
        self.config.sharing.fill.wait = wait;
        self
    }

    /// What to do when the [time for waiting](Self::lease_wait) is up, or when the lease has passed from one process to another
    /// more than three times meanwhile. To fail is [`Error::Held`](crate::Error::Held).
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Fallback};
    ///
    /// let cache: Cache<String, String> = Cache::builder().on_wait_timeout(Fallback::Fail).build();
    /// # let _ = cache;
    /// ```
    pub fn on_wait_timeout(mut self, fallback: Fallback) -> Self {
        self.config.sharing.fill.on_deadline = fallback;
        self
    }

    /// What to do when the store fails before anything is loaded. To fail is [`Error::Store`](crate::Error::Store): choose it
    /// if what is behind the cache does not survive without it.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Fallback};
    ///
    /// let cache: Cache<String, String> = Cache::builder().on_store_error(Fallback::Fail).build();
    /// # let _ = cache;
    /// ```
    pub fn on_store_error(mut self, fallback: Fallback) -> Self {
        self.config.sharing.fill.on_store_error = fallback;
        self
    }

    /// How many loads past the store may be on at once in this process, of all keys; the others wait for their turn, as long as
    /// for another process ([`lease_wait`](Self::lease_wait)), and then are [`Error::Overloaded`](crate::Error::Overloaded). Zero
    /// is one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// let cache: Cache<String, String> = Cache::builder().max_uncached_loads(8).build();
    /// # let _ = cache;
    /// ```
    pub fn max_uncached_loads(mut self, loads: usize) -> Self {
        self.config.sharing.max_uncached_loads = loads.max(1);
        self
    }

    /// After how many requests in a row that the store did not answer none is made, and for how long: up to a quarter sooner or
    /// later at random. After that one is made, and if it is answered, so are the others. Zero failures: it is always asked.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().breaker(5, Duration::from_secs(2)).build();
    /// # let _ = cache;
    /// ```
    pub fn breaker(mut self, failures: u32, open: Duration) -> Self {
        (self.config.sharing.breaker_failures, self.config.sharing.breaker_open) = (failures, open);
        self
    }
}

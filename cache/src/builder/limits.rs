//! How many of each there may be at once, and how long a load may take.

use super::Builder;
use std::time::Duration;

/// How many of each there may be at once, and how long a load may take.
impl<K, V, E, S> Builder<K, V, E, S> {
    /// How long a load may take; `None` for ever. A task's load is dropped then, and its callers get
    /// [`Error::LoadTimedOut`](crate::Error::LoadTimedOut). A thread cannot be interrupted: there, whoever calls or waits longer
    /// than that loads itself, one of them; or gets the old value, if one may be served [if a load fails](Self::stale_if_error). Who
    /// waits so long for a batch that another thread of a [`blocking::Collector`](crate::blocking::Collector) loads gets the error that tasks get.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().load_timeout(Duration::from_secs(2)).build();
    /// # let _ = cache;
    /// let patient: Cache<String, String> = Cache::builder().load_timeout(None).build();
    /// # let _ = patient;
    /// ```
    pub fn load_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.config.load_timeout = timeout.into();
        self
    }

    /// How many loads, of all keys, may be on at once; one of a batch is one. Past it callers get [`Error::Overloaded`](crate::Error::Overloaded).
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Error};
    ///
    /// let none: oneflight_cache::blocking::Cache<u64, String> = Cache::builder().max_loads(0).build_blocking();
    /// assert!(matches!(none.get_or_load(&7, || Ok("Ada".to_owned())), Err(Error::Overloaded)));
    /// ```
    pub fn max_loads(mut self, loads: usize) -> Self {
        self.config.max_loads = loads;
        self
    }

    /// How many callers may wait for the load of one key. Past it they get [`Error::Overloaded`](crate::Error::Overloaded).
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().max_waiters(1_000).build();
    /// # let _ = cache;
    /// ```
    pub fn max_waiters(mut self, waiters: usize) -> Self {
        self.config.max_waiters = Some(waiters);
        self
    }

    /// How many refreshes, of all keys, may be on at once. Past it none is started; the value is served as it is.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().max_refreshes(8).build();
    /// # let _ = cache;
    /// ```
    pub fn max_refreshes(mut self, refreshes: usize) -> Self {
        self.config.max_refreshes = refreshes;
        self
    }
}

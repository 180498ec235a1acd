//! How long values live, and when they are refreshed.

use super::Builder;
use crate::config::Ttl;
use oneflight::refresh::Policy;
use std::sync::Arc;
use std::time::Duration;

/// How long values live, and when they are refreshed.
impl<K, V, E, S> Builder<K, V, E, S> {
    /// How long a value is fresh after its load. Zero: it is not stored at all, and callers of the same time still share one
    /// load. Less than a millisecond counts as one; what is too long to count does not end.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().ttl(Duration::from_secs(30)).build();
    /// # let _ = cache;
    /// ```
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.config.ttl = Ttl::Fixed(ttl);
        self
    }

    /// How long a value is fresh, as the value itself says: a token that expires, say. Called outside all locks.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use oneflight_cache::Cache;
    ///
    /// #[derive(Clone)]
    /// struct Token {
    ///     expires_in: Duration,
    /// }
    /// let tokens: Cache<String, Token> = Cache::builder().ttl_of(|token: &Token| token.expires_in).build();
    /// # let _ = tokens;
    /// ```
    pub fn ttl_of(mut self, ttl: impl Fn(&V) -> Duration + Send + Sync + 'static) -> Self {
        self.config.ttl = Ttl::Of(Arc::new(ttl));
        self
    }

    /// Shortens each time to live at random by up to this fraction, so that values that were loaded together do not expire
    /// together. 0: not at all. What is outside of 0 to 1 counts as the nearest that is inside.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().ttl_jitter(0.2).build();
    /// # let _ = cache;
    /// ```
    pub fn ttl_jitter(mut self, fraction: f64) -> Self {
        self.config.ttl_jitter = if fraction.is_nan() { 0.0 } else { fraction };
        self
    }

    /// When a read refreshes a value that is still fresh. [`Policy::Never`]: it expires, and the next caller waits for its load.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::{Cache, Policy};
    ///
    /// let cache: Cache<String, String> =
    ///     Cache::builder().early_refresh(Policy::XFetch { beta: 2.0, max_window: 0.5 }).build();
    /// # let _ = cache;
    /// ```
    pub fn early_refresh(mut self, policy: Policy) -> Self {
        self.config.early_refresh = policy;
        self
    }

    /// For how long after a value has expired it is still served, while one refresh is on. What counts is when a call begins: a
    /// caller that refreshes itself, and whose load fails, gets the old value at the end of that load, however long it took.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().stale_while_revalidate(Duration::from_secs(10)).build();
    /// # let _ = cache;
    /// ```
    pub fn stale_while_revalidate(mut self, window: Duration) -> Self {
        self.config.stale_while_revalidate = window;
        self
    }

    /// For how long after a value has expired it is served if the load fails, takes too long, or is refused. After a failure
    /// callers get the old value at once, until the [back-off](Self::backoff) is over. What counts is when a call begins: if its
    /// load fails after a long time, it gets the old value though the window has ended meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().stale_if_error(Duration::from_secs(600)).build();
    /// # let _ = cache;
    /// ```
    pub fn stale_if_error(mut self, window: Duration) -> Self {
        self.config.stale_if_error = window;
        self
    }

    /// How long after a failed load the next refresh of that key waits: `first`, then twice as long after each further one,
    /// `longest` at most, up to a quarter less at random. The first success resets it. A key that has no value is not held up.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::Cache;
    /// # use std::time::Duration;
    /// let cache: Cache<String, String> = Cache::builder().backoff(Duration::from_millis(100), Duration::from_secs(10)).build();
    /// # let _ = cache;
    /// ```
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        (self.config.first_backoff, self.config.longest_backoff) = (first, longest);
        self
    }
}

impl<K, T, E, S> Builder<K, Option<T>, E, S> {
    /// How long `None` is kept: that there is nothing, which a loader has found out. Zero: not at all.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source};
    /// # use std::time::Duration;
    /// # smol::block_on(async {
    /// let users: Cache<u64, Option<String>> = Cache::builder().negative_ttl(Duration::from_secs(5)).build();
    /// assert_eq!(*users.get_or_load(&7, || async { Ok(None) }).await?, None);
    /// assert_eq!(users.get_or_load(&7, || async { Ok(None) }).await?.source, Source::Hit);
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    pub fn negative_ttl(mut self, ttl: Duration) -> Self {
        self.config.negative_ttl = Some((Option::is_none, ttl));
        self
    }
}

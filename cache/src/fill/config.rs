//! How a fill goes about it.

use core::time::Duration;

/// How a [`Fill`](super::Fill) goes about it. All times are monotonic durations; nothing here is a time of day.
///
/// # Examples
///
/// ```
/// use oneflight_cache::fill::Config;
/// use std::time::Duration;
///
/// let patient = Config { wait: Duration::from_secs(30), ..Config::default() };
/// assert_eq!(patient.lease, Duration::from_secs(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// How long a lease lasts that is not renewed. A leader renews it after each third of that. Default: 5 s.
    pub lease: Duration,
    /// A lease is renewed for so long after it was acquired, and no longer. Zero: never renewed. Default: 60 s.
    pub max_hold: Duration,
    /// How long a fill waits for another's load, counted from its own beginning. Default: 5 s.
    pub wait: Duration,
    /// How often a fill that waits may see the lease pass to yet another leader, which is what happens when leaders die, fail
    /// or are invalidated one after the other. Once more, and it is as if the time for waiting were up. Default: 3.
    pub max_take_overs: u8,
    /// How long a fill that waits sleeps before its first look at the store; then 1.6 times as long each time. Each sleep is
    /// jittered: between half of it and all of it. Default: 2 ms.
    pub first_poll: Duration,
    /// The longest of these sleeps. Default: 25 ms.
    pub longest_poll: Duration,
    /// The sleep between two looks while pushes are listened for, so that looks are only the net for a push that is lost;
    /// jittered too. Default: 100 ms.
    pub listening_poll: Duration,
    /// How long an epoch lasts after the last time that the lease was acquired in it, at least: so the store forgets the
    /// epochs of keys that nobody loads any more. Whoever loads for longer cannot publish, so it should be a few times the
    /// longest load. Default: 10 minutes.
    ///
    /// What was acquired longer ago than half of that is not published, and the store is not even asked. That is a belt beside
    /// the braces: a random number that has ended does not come back. It makes a difference only for a store that says an
    /// epoch is the same when it is not.
    pub epoch_life: Duration,
    /// What to do with a value in its stale window. Default: serve it.
    pub on_stale: OnStale,
    /// What to do when the time for waiting is up. Default: load without the store.
    pub on_deadline: Fallback,
    /// What to do when the store fails before anything is loaded. Default: load without it.
    pub on_store_error: Fallback,
    /// Whether a caller whose loader fails gets the stale value that it saw while reading. Default: no, it gets the failure.
    pub stale_if_load_fails: bool,
    /// Whether a read loads once more, and only once, if there was an invalidation while it loaded. Default: no, its caller
    /// gets what it loaded, and nobody else does.
    pub reload_invalidated: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(5),
            max_hold: Duration::from_secs(60),
            wait: Duration::from_secs(5),
            max_take_overs: 3,
            first_poll: Duration::from_millis(2),
            longest_poll: Duration::from_millis(25),
            listening_poll: Duration::from_millis(100),
            epoch_life: Duration::from_secs(600),
            on_stale: OnStale::default(),
            on_deadline: Fallback::default(),
            on_store_error: Fallback::default(),
            stale_if_load_fails: false,
            reload_invalidated: false,
        }
    }
}

/// What to do with a value that is no longer fresh and may still be used.
///
/// # Examples
///
/// ```
/// use oneflight_cache::fill::{Action, Config, Event, Fill, OnStale};
/// use std::time::Duration;
///
/// let config = Config { on_stale: OnStale::Replace, ..Config::default() };
/// let mut fill = Fill::read(config, 7, Duration::ZERO);
/// let action = fill.step(Event::Stale { version: 1 }, Duration::ZERO)?;
/// assert_eq!(action, Action::Acquire { seen: Some(1) }); // the default would be done now
/// # Ok::<(), oneflight_cache::fill::Refused>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnStale {
    /// Give it to the caller at once; the driver starts a refresh beside it.
    #[default]
    Serve,
    /// Load a fresh one, or wait for it. The stale one is kept for [`Fallback::ServeStale`] and
    /// [`Config::stale_if_load_fails`].
    Replace,
}

/// What to do without another's load, or without the store.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Cache, Fallback};
///
/// // What is behind the store does not survive all processes at once.
/// let cache: Cache<String, String> = Cache::builder().on_store_error(Fallback::Fail).build();
/// # let _ = cache;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// Load, and keep the value from the store.
    #[default]
    LoadUncached,
    /// End with a failure: [`Outcome::TimedOut`](super::Outcome::TimedOut) or
    /// [`Outcome::StoreFailed`](super::Outcome::StoreFailed).
    Fail,
    /// End with the stale value that was seen while reading, under [`OnStale::Replace`]. Without one, load uncached.
    ServeStale,
}

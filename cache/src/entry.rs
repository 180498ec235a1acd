//! What a store keeps, and what a caller gets.

use crate::time::{Time, millis};
use oneflight::refresh::Freshness;
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// A value in a store, with all that the cache must know to serve it.
///
/// All times are those of the cache's [`Clock`](crate::Clock). A store outside this process keeps durations instead, and adds
/// them to the time that it is given when it reads.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Entry, Time};
/// use std::time::Duration;
///
/// let (now, second) = (Time::START, Duration::from_secs(1));
/// let entry = Entry::new("Ada", 1, now, now.after(second * 60), now.after(second * 90), second / 5);
/// assert_eq!((*entry.value(), entry.version(), entry.cost()), ("Ada", 1, second / 5));
/// assert_eq!(entry.freshness(now.after(second * 10)).left, second * 50);
/// ```
// In this order each part is copied in the pieces in which it was written, which processors are good at.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<V> {
    pub(crate) life: Life,
    pub(crate) value: V,
}

/// All but the value. Small, as hits read it, and copied in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    loaded_at: Time,
    fresh_until: Time,
    /// How long before `fresh_until` reads begin to refresh it, in milliseconds, rather too long than too short; all the
    /// time if that is too long to be written down.
    early: u32,
    /// How long after that it is of any use, in milliseconds, rather too long too: what is served is settled by the settings.
    stale: u32,
    /// How long its load took, in microseconds; an hour if it was longer.
    cost: u32,
    version: u32,
}

/// In milliseconds, rounded up; the most that there can be if it is longer than seven weeks.
fn few_millis(duration: Duration) -> u32 {
    u32::try_from(millis(duration)).unwrap_or(u32::MAX)
}

impl<V> Entry<V> {
    /// An entry as a store finds it.
    ///
    /// - `version` tells it from the other values that the key has had: a random number that is stored with it;
    /// - `loaded_at` is when its load began;
    /// - until `fresh_until` it is served without a second thought;
    /// - until `stale_until` it is of some use: while it is being refreshed, or if it cannot be;
    /// - `cost` is how long the load took.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Entry, Time};
    /// # use std::time::Duration;
    /// let (now, second) = (Time::START, Duration::from_secs(1));
    /// let entry = Entry::new("Ada", 1, now, now.after(second * 60), now.after(second * 90), second / 5);
    /// assert_eq!(entry.value(), &"Ada");
    /// ```
    #[must_use]
    pub fn new(value: V, version: u32, loaded_at: Time, fresh_until: Time, stale_until: Time, cost: Duration) -> Self {
        Self::stale_for(value, version, loaded_at, fresh_until, stale_until.since(fresh_until), cost)
    }

    /// One that is of use for so long after `fresh_until`.
    pub(crate) fn stale_for(
        value: V,
        version: u32,
        loaded_at: Time,
        fresh_until: Time,
        stale: Duration,
        cost: Duration,
    ) -> Self {
        let micros = cost.as_secs().saturating_mul(1_000_000).saturating_add(cost.subsec_micros().into());
        let cost = u32::try_from(micros).unwrap_or(u32::MAX);
        Self { value, life: Life { loaded_at, fresh_until, early: u32::MAX, stale: few_millis(stale), cost, version } }
    }

    /// The value.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Entry, Time};
    /// # use std::time::Duration;
    /// let (now, second) = (Time::START, Duration::from_secs(1));
    /// let entry = Entry::new("Ada", 1, now, now.after(second * 60), now.after(second * 90), second / 5);
    /// assert_eq!(*entry.value(), "Ada");
    /// ```
    pub fn value(&self) -> &V {
        &self.value
    }

    /// A number that tells it from the other values that the key has had.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Entry, Time};
    /// # use std::time::Duration;
    /// let (now, second) = (Time::START, Duration::from_secs(1));
    /// let entry = Entry::new("Ada", 1, now, now.after(second * 60), now.after(second * 90), second / 5);
    /// assert_eq!(entry.version(), 1);
    /// ```
    #[must_use]
    pub fn version(&self) -> u32 {
        self.life.version
    }

    /// When its load began.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Entry, Time};
    /// # use std::time::Duration;
    /// let (now, second) = (Time::START, Duration::from_secs(1));
    /// let entry = Entry::new("Ada", 1, now, now.after(second * 60), now.after(second * 90), second / 5);
    /// assert_eq!(entry.loaded_at(), now);
    /// ```
    #[must_use]
    #[inline]
    pub fn loaded_at(&self) -> Time {
        self.life.loaded_at
    }

    /// Until when it is served without a second thought.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Entry, Time};
    /// # use std::time::Duration;
    /// let (now, second) = (Time::START, Duration::from_secs(1));
    /// let entry = Entry::new("Ada", 1, now, now.after(second * 60), now.after(second * 90), second / 5);
    /// assert_eq!(entry.fresh_until().since(now), second * 60);
    /// ```
    #[must_use]
    #[inline]
    pub fn fresh_until(&self) -> Time {
        self.life.fresh_until
    }

    /// Until when it is of any use. The store may drop it then, and never returns it after that.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Entry, Time};
    /// # use std::time::Duration;
    /// let (now, second) = (Time::START, Duration::from_secs(1));
    /// let entry = Entry::new("Ada", 1, now, now.after(second * 60), now.after(second * 90), second / 5);
    /// assert_eq!(entry.stale_until().since(now), second * 90);
    /// ```
    #[must_use]
    #[inline]
    pub fn stale_until(&self) -> Time {
        let Life { fresh_until, stale, .. } = self.life;
        if stale == u32::MAX { Time::NEVER } else { fresh_until.after_millis(stale) }
    }

    /// How long its load took, to the microsecond.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Entry, Time};
    /// # use std::time::Duration;
    /// let (now, second) = (Time::START, Duration::from_secs(1));
    /// let entry = Entry::new("Ada", 1, now, now.after(second * 60), now.after(second * 90), second / 5);
    /// assert_eq!(entry.cost(), Duration::from_millis(200));
    /// ```
    #[must_use]
    pub fn cost(&self) -> Duration {
        Duration::from_micros(self.life.cost.into())
    }

    /// What the policies of early refresh want to know.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Entry, Time};
    /// # use std::time::Duration;
    /// let (now, second) = (Time::START, Duration::from_secs(1));
    /// let entry = Entry::new("Ada", 1, now, now.after(second * 60), now.after(second * 90), second / 5);
    /// let freshness = entry.freshness(now.after(second * 10));
    /// assert_eq!((freshness.age, freshness.left), (second * 10, second * 50));
    /// ```
    #[must_use]
    pub fn freshness(&self, now: Time) -> Freshness {
        Freshness { age: now.since(self.loaded_at()), left: self.fresh_until().since(now), cost: self.cost() }
    }

    /// Whether it is fresh, and no read refreshes it, whatever its random number.
    #[inline]
    pub(crate) fn is_calm(&self, now: Time) -> bool {
        let Life { fresh_until, early, .. } = self.life;
        early != u32::MAX && now < fresh_until.before_millis(early)
    }

    /// From so long before the end reads refresh it.
    pub(crate) fn set_early(&mut self, window: Duration) {
        self.life.early = few_millis(window);
    }
}

/// Where a value came from.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::{Source, blocking::Cache};
/// let users: Cache<u64, String> = Cache::builder().build_blocking();
/// assert_eq!(users.get_or_load(&7, || Ok("Ada".to_owned()))?.source, Source::Loaded);
/// assert_eq!(users.get_or_load(&7, || Ok("Ada".to_owned()))?.source, Source::Hit);
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// It was there, and fresh.
    Hit,
    /// It was there, and fresh; this call has started a refresh, or done one.
    Early,
    /// What was there was not fresh any more: it is being refreshed, or could not be; or this call has just refreshed it and has the
    /// new value: see [`age`](Fetched::age).
    ///
    /// ```
    /// # use oneflight_cache::{Cache, Source, Time};
    /// # use std::sync::Arc;
    /// # use std::sync::atomic::{AtomicU64, Ordering};
    /// # use std::time::Duration;
    /// # let clock = Arc::new(AtomicU64::new(0));
    /// # let time = { let clock = clock.clone(); move || Time::from_start(Duration::from_secs(clock.load(Ordering::Relaxed))) };
    /// # smol::block_on(async {
    /// // Without a `spawner`, so the call does the refresh.
    /// let users: Cache<u64, String> = Cache::builder()
    ///     .ttl(Duration::from_secs(60))
    ///     .stale_while_revalidate(Duration::from_secs(60))
    /// #   .clock(time)
    ///     .build();
    /// users.put(&7, "Ada".to_owned()).await?;
    /// # clock.store(90, Ordering::Relaxed);
    /// // After 90 s:
    /// let name = users.get_or_load(&7, || async { Ok("Ada Lovelace".to_owned()) }).await?;
    /// assert_eq!((name.as_str(), name.source, name.age), ("Ada Lovelace", Source::Stale, Duration::ZERO));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// # }).unwrap();
    /// ```
    Stale,
    /// This caller has loaded it.
    Loaded,
    /// Another caller has loaded it while this one waited, in this process or in another.
    Joined,
}

/// A value, where it came from, and how old it is. It derefs to the value.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::{Source, blocking::Cache};
/// let users: Cache<u64, String> = Cache::builder().build_blocking();
/// let name = users.get_or_load(&7, || Ok("Ada".to_owned()))?;
/// assert_eq!(name.len(), 3);
/// assert!(name.age < std::time::Duration::from_secs(60));
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetched<V> {
    /// The value.
    pub value: V,
    /// Where it came from.
    pub source: Source,
    /// How long ago its load began, or it was put.
    pub age: Duration,
}

impl<V> Fetched<V> {
    /// The value alone.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::blocking::Cache;
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// let name: String = users.get_or_load(&7, || Ok("Ada".to_owned()))?.into_value();
    /// assert_eq!(name, "Ada");
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    pub fn into_value(self) -> V {
        self.value
    }

    /// Something made of the value, from the same source and as old.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::{Source, blocking::Cache};
    /// let users: Cache<u64, String> = Cache::builder().build_blocking();
    /// let name = users.get_or_load(&7, || Ok("Ada".to_owned()))?;
    /// let page = name.map_value(|name| format!("<h1>{name}</h1>"));
    /// assert_eq!((page.as_str(), page.source), ("<h1>Ada</h1>", Source::Loaded));
    /// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
    /// ```
    // Not `map`, which would hide that of a value that is an `Option`.
    pub fn map_value<T>(self, make: impl FnOnce(V) -> T) -> Fetched<T> {
        let Self { value, source, age } = self;
        Fetched { value: make(value), source, age }
    }
}

/// The value's.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::blocking::Cache;
/// let users: Cache<u64, String> = Cache::builder().build_blocking();
/// assert_eq!(format!("hello {:>5}", users.get_or_load(&7, || Ok("Ada".to_owned()))?), "hello   Ada");
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
impl<V: fmt::Display> fmt::Display for Fetched<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<V> Deref for Fetched<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn entry(ttl: Duration, stale: Duration) -> Entry<u8> {
        let loaded_at = Time::from_start(HOUR);
        let fresh_until = loaded_at.after(ttl);
        Entry::new(7, 9, loaded_at, fresh_until, fresh_until.after(stale), Duration::from_millis(3))
    }

    #[test]
    fn it_keeps_what_it_was_given() {
        let entry = entry(HOUR, HOUR * 2);
        assert_eq!((*entry.value(), entry.version(), entry.loaded_at()), (7, 9, Time::from_start(HOUR)));
        assert_eq!(entry.fresh_until(), Time::from_start(HOUR * 2));
        assert_eq!(entry.stale_until(), Time::from_start(HOUR * 4));
        assert_eq!(entry.cost(), Duration::from_millis(3));
    }

    #[test]
    fn what_is_rounded_is_rounded_to_the_safe_side() {
        let mut entry = entry(HOUR, Duration::from_nanos(1));
        assert!(entry.stale_until() >= entry.fresh_until().after(Duration::from_nanos(1)));
        entry.set_early(Duration::from_nanos(1));
        assert!(!entry.is_calm(Time::from_start(HOUR * 2 - Duration::from_nanos(1))));
        assert!(entry.is_calm(Time::from_start(HOUR * 2 - Duration::from_millis(2))));
    }

    #[test]
    fn what_does_not_end_does_not_end() {
        let mut entry = entry(Duration::MAX, Duration::MAX);
        assert_eq!((entry.fresh_until(), entry.stale_until()), (Time::NEVER, Time::NEVER));
        assert!(!entry.is_calm(Time::from_start(HOUR)), "its window is not known yet");
        entry.set_early(Duration::ZERO);
        assert!(entry.is_calm(Time::from_start(HOUR)));
        entry.set_early(Duration::MAX);
        assert!(!entry.is_calm(Time::from_start(HOUR)));
    }
}

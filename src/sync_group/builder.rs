//! The settings of a `SyncGroup`.

use super::SyncGroup;
use crate::settings::{Settings, common_settings};
use core::hash::BuildHasher;
use core::marker::PhantomData;
use core::time::Duration;
use hashbrown::DefaultHashBuilder;

/// Builds a [`SyncGroup`] with other settings than [`SyncGroup::new`] has.
///
/// | setting | default |
/// |---|---|
/// | [`shards`](Self::shards) | 256 |
/// | [`hasher`](Self::hasher) | hashbrown's default, seeded for each group |
/// | [`max_flight_age`](Self::max_flight_age) | none, and no clock is read |
/// | [`wait_timeout`](Self::wait_timeout) | none: wait as long as it takes |
/// | [`max_attempts`](Self::max_attempts) | no limit |
/// | [`on_abandon`](Self::on_abandon) | [`OnAbandon::TakeOver`](crate::OnAbandon::TakeOver) |
/// | [`share_if`](Self::share_if) | every value is shared |
///
/// # Examples
///
/// ```
/// use oneflight::SyncGroup;
/// use std::time::Duration;
///
/// let group: SyncGroup<String, u32> = SyncGroup::builder()
///     .shards(64)
///     .max_flight_age(Duration::from_secs(30))
///     .build();
/// assert_eq!(group.do_call("k", || 7), 7);
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct SyncGroupBuilder<K, V, S = DefaultHashBuilder> {
    settings: Settings<V, S>,
    key: PhantomData<fn() -> K>,
}

impl<K, V> SyncGroupBuilder<K, V> {
    pub(super) fn new() -> Self {
        Self { settings: Settings::new(), key: PhantomData }
    }
}

impl<K, V, S> SyncGroupBuilder<K, V, S> {
    common_settings!("SyncGroup");

    /// The default of [`Call::wait_timeout`](crate::Call::wait_timeout). The methods that return no `Result` wait as long
    /// as it takes, whatever is set here. Default: no limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{CallError, SyncGroup};
    /// use std::time::Duration;
    ///
    /// let group: SyncGroup<String, u32> = SyncGroup::builder().wait_timeout(Duration::from_millis(5)).build();
    /// let lead = group.try_lead("k");
    /// assert_eq!(group.call("k").run(|| 7), Err(CallError::TimedOut));
    /// # drop(lead);
    /// ```
    pub fn wait_timeout(mut self, timeout: Duration) -> Self {
        self.settings.defaults.wait_timeout = Some(timeout);
        self
    }

    /// How keys are hashed. A call hashes its key once. Default: hashbrown's, seeded for each group.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::SyncGroup;
    /// use std::hash::RandomState;
    ///
    /// let group: SyncGroup<String, u32, RandomState> = SyncGroup::builder().hasher(RandomState::new()).build();
    /// assert_eq!(group.do_call("k", || 7), 7);
    /// ```
    pub fn hasher<H: BuildHasher>(self, hasher: H) -> SyncGroupBuilder<K, V, H> {
        SyncGroupBuilder { settings: self.settings.with_hasher(hasher), key: PhantomData }
    }

    /// The group.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::builder().build();
    /// assert_eq!(group.do_call("k", || 7), 7);
    /// ```
    pub fn build(self) -> SyncGroup<K, V, S> {
        SyncGroup { group: self.settings.into_group() }
    }
}

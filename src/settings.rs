//! The settings that all kinds of group have, and the builder methods for them.

use crate::call::{Defaults, SharePredicate};
use crate::group::Group;
use crate::primitive::AgeClock;
use crate::table::Table;
use alloc::sync::Arc;
use core::fmt;
use hashbrown::DefaultHashBuilder;

/// What a builder collects.
pub(crate) struct Settings<V, S> {
    pub(crate) shards: usize,
    pub(crate) hasher: S,
    /// With a limit to the age of flights.
    pub(crate) clock: Option<AgeClock>,
    pub(crate) defaults: Defaults<V>,
}

impl<V> Settings<V, DefaultHashBuilder> {
    pub(crate) fn new() -> Self {
        // Measured: with two threads 256 shards collide noticeably less than 64. Without threads nothing collides, and under
        // loom each shard is one more object to track.
        let shards = if cfg!(all(feature = "std", not(loom))) { 256 } else { 1 };
        Self { shards, hasher: DefaultHashBuilder::default(), clock: None, defaults: Defaults::new() }
    }
}

impl<V, S> Settings<V, S> {
    pub(crate) fn with_hasher<H>(self, hasher: H) -> Settings<V, H> {
        let Self { shards, hasher: former, clock, defaults } = self;
        // Not with the new one on its way out, which would leak if the destructor panicked.
        drop(former);
        Settings { shards, hasher, clock, defaults }
    }

    pub(crate) fn set_share_if(&mut self, share_if: impl Fn(&V) -> bool + Send + Sync + 'static) {
        let share_if: Arc<SharePredicate<V>> = Arc::new(share_if);
        self.defaults.share_if = Some(share_if);
    }

    pub(crate) fn into_group<K>(self) -> Group<K, V, S> {
        #[cfg(feature = "std")]
        crate::primitive::count_cores();
        Group { table: Table::new(self.shards, self.hasher, self.clock), defaults: self.defaults }
    }
}

impl<V, S> fmt::Debug for Settings<V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("shards", &self.shards)
            .field("clock", &self.clock)
            .field("wait_timeout", &self.defaults.wait_timeout)
            .field("max_attempts", &self.defaults.max_attempts)
            .field("on_abandon", &self.defaults.on_abandon)
            .finish_non_exhaustive()
    }
}

/// The methods that every builder has, for a builder with a field `settings`, of the group that is named.
macro_rules! common_settings {
    ($group:literal) => {
        /// Into how many parts the table is cut, each with a lock of its own. Rounded up to a power of two, at most 65,536.
        /// A part takes 128 bytes, with keys of more than 8 bytes 256 or more. Default: 256, or 1 without `std`.
        ///
        /// # Panics
        ///
        /// If `shards` is zero.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = concat!("let group: oneflight::", $group, "<String, u32> = oneflight::", $group, "::builder().shards(64).build();")]
        /// # let _ = group;
        /// ```
        #[track_caller]
        pub fn shards(mut self, shards: usize) -> Self {
            assert!(shards > 0, "oneflight: a group needs at least one shard");
            self.settings.shards = shards;
            self
        }

        /// From this age on a flight takes no newcomer: the next caller leads a new flight, while those inside the old one
        /// are served by it. It bounds how many callers a stuck leader can hold up. Off by default, and then no clock is
        /// read.
        ///
        /// The age is measured to a 64th of `age`, but not finer than a microsecond. With less than that nobody ever joins.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::time::Duration;
        ///
        #[doc = concat!("let group: oneflight::", $group, "<String, u32> = oneflight::", $group, "::builder().max_flight_age(Duration::from_secs(2)).build();")]
        /// let lead = group.try_lead("k");
        /// assert!(group.flight_info("k").unwrap().age.is_some());
        /// # drop(lead);
        /// ```
        #[cfg(feature = "std")]
        pub fn max_flight_age(mut self, age: core::time::Duration) -> Self {
            self.settings.clock = Some(crate::primitive::AgeClock::new(age));
            self
        }

        /// The default of [`Call::max_attempts`](crate::Call::max_attempts). Default: no limit.
        ///
        /// # Panics
        ///
        /// If `max` is zero.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = concat!("let group: oneflight::", $group, "<String, u32> = oneflight::", $group, "::builder().max_attempts(3).build();")]
        /// # let _ = group;
        /// ```
        #[track_caller]
        pub fn max_attempts(mut self, max: u32) -> Self {
            self.settings.defaults.max_attempts = crate::call::checked_attempts(max);
            self
        }

        /// The default of [`Call::on_abandon`](crate::Call::on_abandon). Default:
        /// [`OnAbandon::TakeOver`](crate::OnAbandon::TakeOver).
        ///
        /// # Examples
        ///
        /// ```
        #[doc = concat!("use oneflight::{", $group, ", OnAbandon};")]
        ///
        #[doc = concat!("let group: ", $group, "<String, u32> = ", $group, "::builder().on_abandon(OnAbandon::Fail).build();")]
        /// # let _ = group;
        /// ```
        pub fn on_abandon(mut self, on_abandon: crate::OnAbandon) -> Self {
            self.settings.defaults.on_abandon = on_abandon;
            self
        }

        /// The default of [`Call::share_if`](crate::Call::share_if). Default: every value is shared.
        ///
        /// # Examples
        ///
        /// ```
        #[doc = concat!("use oneflight::", $group, ";")]
        ///
        #[doc = concat!("let group: ", $group, "<String, Result<u32, String>> = ", $group, "::builder().share_if(Result::is_ok).build();")]
        /// # let _ = group;
        /// ```
        pub fn share_if(mut self, share_if: impl Fn(&V) -> bool + Send + Sync + 'static) -> Self {
            self.settings.set_share_if(share_if);
            self
        }
    };
}
pub(crate) use common_settings;

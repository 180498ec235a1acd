//! What the contract suite knows of a group: that callers can be threads that block in it, whatever the group does inside.
//!
//! A [`Way`] is one entry point. The same case runs through all of them, so an implementor hides what makes it different:
//! that errors are panics, that a value is wrapped, that a future is driven to its end.

use super::work::{IntoWork, Work};
use core::hash::Hash;
use core::time::Duration;
use oneflight::{CallError, FlightInfo, OnAbandon, Outcome, Role, Stats};
use std::sync::Arc;

/// What keys of the suite can do.
pub(crate) trait Key: Clone + Eq + Hash + Send + Sync + 'static {}
impl<K: Clone + Eq + Hash + Send + Sync + 'static> Key for K {}

/// What values of the suite can do.
pub(crate) trait Value: Clone + Send + Sync + 'static {}
impl<V: Clone + Send + Sync + 'static> Value for V {}

/// One way to call a group.
pub(crate) trait Way: 'static {
    /// Groups that are called this way.
    type Group<K: Key, V: Value>: AnyGroup<K, V>;

    /// How many tests share the rounds of a case that has many, to meet rare moments: for ways that run it in many tests.
    const TESTS_OF_A_CASE: u32 = 1;

    /// This test's part of the rounds of a case.
    fn rounds(of_all: u32) -> u32 {
        of_all / Self::TESTS_OF_A_CASE
    }
}

/// A group with one way to call it. Clones are the same group.
pub(crate) trait AnyGroup<K: Key, V: Value>: Clone + Send + Sync + 'static {
    fn with(setup: Setup<V>) -> Self;

    /// Calls, and blocks the thread until the call has ended and what it held has been dropped.
    ///
    /// A way that has no `Result` panics with what it would have returned. One that does not know an option panics when it
    /// is given: the matrix leaves those cases out.
    fn call(&self, key: K, options: Options<V>, work: impl IntoWork<V>) -> Result<Answer<V>, CallError> {
        self.call_for(key, options, work.into_work())
    }

    fn call_for(&self, key: K, options: Options<V>, work: Work<V>) -> Result<Answer<V>, CallError>;

    fn forget(&self, key: &K) -> bool;
    fn forget_unshared(&self, key: &K) -> bool;
    fn forget_all(&self);
    fn waiters(&self, key: &K) -> usize;
    fn flight_info(&self, key: &K) -> Option<FlightInfo>;
    fn in_flight(&self) -> usize;
    fn stats(&self) -> Stats;

    /// How many calls have ended by their time limits; `None` where the group knows of no limits.
    fn timeouts(&self) -> Option<u64>;
}

/// A group called by way of `W`, with the defaults.
pub(crate) fn group<W: Way, K: Key, V: Value>() -> W::Group<K, V> {
    W::Group::with(Setup::default())
}

/// A group called by way of `W`.
pub(crate) fn group_with<W: Way, K: Key, V: Value>(setup: Setup<V>) -> W::Group<K, V> {
    W::Group::with(setup)
}

/// What a call came to. `None` where the way does not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer<V> {
    pub(crate) value: V,
    pub(crate) role: Option<Role>,
    pub(crate) shared: Option<bool>,
}

impl<V> From<Outcome<V>> for Answer<V> {
    fn from(outcome: Outcome<V>) -> Self {
        Self { role: Some(outcome.role), shared: Some(outcome.shared), value: outcome.value }
    }
}

impl<V> Answer<V> {
    /// From a way that tells nothing but the value.
    pub(crate) fn bare(value: V) -> Self {
        Self { value, role: None, shared: None }
    }

    /// Whether the role is this one, as far as the way tells.
    pub(crate) fn may_be(&self, role: Role) -> bool {
        self.role.is_none_or(|told| told == role)
    }
}

/// Sets what was asked for with a builder, but for the predicate, which depends on what the values are.
macro_rules! set_up {
    ($setup:expr, $builder:expr) => {{
        let $crate::support::way::Setup { shards, max_flight_age, max_attempts, on_abandon, share_if: _ } = $setup;
        let mut builder = $builder;
        if let Some(shards) = shards {
            builder = builder.shards(*shards);
        }
        if let Some(age) = max_flight_age {
            builder = builder.max_flight_age(*age);
        }
        if let Some(max) = max_attempts {
            builder = builder.max_attempts(*max);
        }
        if let Some(on_abandon) = on_abandon {
            builder = builder.on_abandon(*on_abandon);
        }
        builder
    }};
}
pub(crate) use set_up;

/// What is set for a whole group.
pub(crate) struct Setup<V> {
    pub(crate) shards: Option<usize>,
    pub(crate) max_flight_age: Option<Duration>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) on_abandon: Option<OnAbandon>,
    pub(crate) share_if: Option<Arc<dyn Fn(&V) -> bool + Send + Sync>>,
}

impl<V> Default for Setup<V> {
    fn default() -> Self {
        Self { shards: None, max_flight_age: None, max_attempts: None, on_abandon: None, share_if: None }
    }
}

impl<V> Setup<V> {
    /// One lock for all keys: one that is held where it should not be is found.
    pub(crate) fn one_shard() -> Self {
        Self { shards: Some(1), ..Self::default() }
    }

    pub(crate) fn max_flight_age(age: Duration) -> Self {
        Self { max_flight_age: Some(age), ..Self::default() }
    }

    pub(crate) fn max_attempts(max: u32) -> Self {
        Self { max_attempts: Some(max), ..Self::default() }
    }

    pub(crate) fn fail_on_abandon() -> Self {
        Self { on_abandon: Some(OnAbandon::Fail), ..Self::default() }
    }

    pub(crate) fn share_if(mut self, share_if: impl Fn(&V) -> bool + Send + Sync + 'static) -> Self {
        self.share_if = Some(Arc::new(share_if));
        self
    }
}

/// What is asked for by one call.
pub(crate) struct Options<V> {
    pub(crate) wait_timeout: Option<Duration>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) on_abandon: Option<OnAbandon>,
    pub(crate) share_if: Option<SharePredicate<V>>,
}

pub(crate) type SharePredicate<V> = Box<dyn FnOnce(&V) -> bool + Send>;

impl<V> Options<V> {
    pub(crate) fn none() -> Self {
        Self { wait_timeout: None, max_attempts: None, on_abandon: None, share_if: None }
    }

    pub(crate) fn wait_timeout(timeout: Duration) -> Self {
        Self { wait_timeout: Some(timeout), ..Self::none() }
    }

    pub(crate) fn max_attempts(max: u32) -> Self {
        Self { max_attempts: Some(max), ..Self::none() }
    }

    pub(crate) fn on_abandon(on_abandon: OnAbandon) -> Self {
        Self { on_abandon: Some(on_abandon), ..Self::none() }
    }

    pub(crate) fn share_if(share_if: impl FnOnce(&V) -> bool + Send + 'static) -> Self {
        Self { share_if: Some(Box::new(share_if)), ..Self::none() }
    }

    /// For ways that have none.
    #[track_caller]
    pub(crate) fn assert_none(&self) {
        let Self { wait_timeout, max_attempts, on_abandon, share_if } = self;
        let none = wait_timeout.is_none() && max_attempts.is_none() && on_abandon.is_none() && share_if.is_none();
        assert!(none, "this way to call has no such option");
    }
}

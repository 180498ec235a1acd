//! What a caller may ask for, in the same words for every kind of group.

use crate::group::Detach;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

/// What a follower does when the leader that it waits for leaves without a value.
///
/// # Examples
///
/// ```
/// use oneflight::{CallError, OnAbandon, SyncGroup};
///
/// let group: SyncGroup<String, u32> = SyncGroup::new();
/// let lead = group.try_lead("k");
/// std::thread::scope(|threads| {
///     let follower = threads.spawn(|| group.call("k").on_abandon(OnAbandon::Fail).run(|| 7));
///     while group.waiters("k") == 0 {
///         std::thread::yield_now();
///     }
///     drop(lead);
///     assert_eq!(follower.join().unwrap(), Err(CallError::Abandoned));
/// });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnAbandon {
    /// Take over, if no other follower is faster, and otherwise wait for the one that was. The default.
    #[default]
    TakeOver,
    /// Return [`CallError::Abandoned`](crate::CallError::Abandoned).
    Fail,
}

/// One call with its options, made by `call` or `call_with` of a [`SyncGroup`](crate::SyncGroup) or an
/// [`AsyncGroup`](crate::AsyncGroup). Nothing happens until [`run`](Self::run).
///
/// An option that is not set here has the group's default, which the group's builder sets.
///
/// # Examples
///
/// ```
/// use oneflight::{Call, SyncGroup};
/// use std::time::Duration;
///
/// let group: SyncGroup<String, u32> = SyncGroup::new();
/// let out = group.call("k").wait_timeout(Duration::from_millis(50)).max_attempts(2).run(|| 7)?;
/// assert_eq!(out.value, 7);
/// # Ok::<(), oneflight::CallError>(())
/// ```
#[must_use = "a call does nothing until it is run"]
pub struct Call<'a, G, V, Q: ?Sized, M, P> {
    pub(crate) group: &'a G,
    pub(crate) key: &'a Q,
    pub(crate) make_key: M,
    pub(crate) options: Options<P>,
    /// The group's own, for a call that sets none: its type says nothing of lifetimes, so that values may borrow.
    pub(crate) default_share_if: Option<Arc<SharePredicate<V>>>,
    /// Where flight-owned work goes on when its last caller leaves.
    pub(crate) detach: Option<Detach<V>>,
}

impl<'a, G, V, Q: ?Sized, M, P> Call<'a, G, V, Q, M, P> {
    /// How many leaders the flight may have, the first one included, counted when this caller's work ends without a value
    /// for the others. Past it nobody takes over: followers get the last value, whatever `share_if` says of it, or
    /// [`CallError::Abandoned`](crate::CallError::Abandoned) if there is none. Default: no limit.
    ///
    /// # Panics
    ///
    /// If `max` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// // The first leader's error is its own; the second one's is for all who wait.
    /// let group: oneflight::SyncGroup<String, Result<u32, String>> = oneflight::SyncGroup::new();
    /// let out = group.call("k").share_ok().max_attempts(2).run(|| Err("away".to_owned()))?;
    /// assert_eq!(out.value, Err("away".to_owned()));
    /// # Ok::<(), oneflight::CallError>(())
    /// ```
    #[track_caller]
    pub fn max_attempts(mut self, max: u32) -> Self {
        self.options.max_attempts = checked_attempts(max);
        self
    }

    /// What this caller does when a leader that it waits for leaves without a value. Default: [`OnAbandon::TakeOver`].
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{OnAbandon, SyncGroup};
    ///
    /// let group: SyncGroup<String, u32> = SyncGroup::new();
    /// let out = group.call("k").on_abandon(OnAbandon::Fail).run(|| 7)?;
    /// assert_eq!(out.value, 7);
    /// # Ok::<(), oneflight::CallError>(())
    /// ```
    pub fn on_abandon(mut self, on_abandon: OnAbandon) -> Self {
        self.options.on_abandon = on_abandon;
        self
    }

    /// Shares the value of this caller's work only if `share_if` approves of it. A value that it does not approve of stays
    /// with this caller, and the flight is abandoned: a follower takes over. Default: every value is shared.
    ///
    /// Called outside all locks, once at most, and not about a value that nobody else waits for. If it panics, the flight is abandoned and the panic reaches this caller.
    ///
    /// Without [`max_attempts`](Self::max_attempts) followers whose work fails in the same way run one after another.
    ///
    /// # Examples
    ///
    /// ```
    /// // No page that is empty, as one is while the template is being written, reaches others.
    /// let pages: oneflight::SyncGroup<String, String> = oneflight::SyncGroup::new();
    /// let out = pages.call("home").share_if(|page| !page.is_empty()).run(String::new)?;
    /// assert!(!out.shared);
    /// # Ok::<(), oneflight::CallError>(())
    /// ```
    pub fn share_if<F>(self, share_if: F) -> Call<'a, G, V, Q, M, F>
    where
        F: FnOnce(&V) -> bool,
    {
        let Self { group, key, make_key, options, default_share_if, detach } = self;
        // Before the new one is on its way out, as in `with_share_if`.
        drop(default_share_if);
        Call { group, key, make_key, options: options.with_share_if(share_if), default_share_if: None, detach }
    }
}

impl<'a, G, T, E, Q: ?Sized, M, P> Call<'a, G, Result<T, E>, Q, M, P> {
    /// [`share_if(Result::is_ok)`](Self::share_if): an error stays with the caller whose work it was.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, Result<u32, String>> = oneflight::SyncGroup::new();
    /// let out = group.call("k").share_ok().run(|| Err("away".to_owned()))?;
    /// assert_eq!(group.stats().flights, 1);
    /// assert!(out.value.is_err() && !out.shared);
    /// # Ok::<(), oneflight::CallError>(())
    /// ```
    pub fn share_ok(self) -> Call<'a, G, Result<T, E>, Q, M, fn(&Result<T, E>) -> bool> {
        self.share_if(Result::is_ok)
    }
}

impl<G, V, Q: ?Sized, M, P> fmt::Debug for Call<'_, G, V, Q, M, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { wait_timeout, max_attempts, on_abandon, .. } = &self.options;
        f.debug_struct("Call")
            .field("wait_timeout", wait_timeout)
            .field("max_attempts", max_attempts)
            .field("on_abandon", on_abandon)
            .finish_non_exhaustive()
    }
}

/// The options of one call, with the group's defaults filled in.
#[derive(Clone, Copy)]
pub(crate) struct Options<P> {
    /// How long to wait for others; `None` for ever.
    pub(crate) wait_timeout: Option<Duration>,
    /// How many leaders this caller's work allows its flight, itself included.
    pub(crate) max_attempts: u32,
    pub(crate) on_abandon: OnAbandon,
    /// Flight-owned work is dropped when its last caller leaves, whatever the group's default is. Here, where there is room for it.
    pub(crate) attached: bool,
    /// `None`: every value is shared.
    pub(crate) share_if: Option<P>,
}

/// A group's defaults.
pub(crate) struct Defaults<V> {
    pub(crate) wait_timeout: Option<Duration>,
    pub(crate) max_attempts: u32,
    pub(crate) on_abandon: OnAbandon,
    pub(crate) share_if: Option<Arc<SharePredicate<V>>>,
}

pub(crate) type SharePredicate<V> = dyn Fn(&V) -> bool + Send + Sync;

impl<V> Defaults<V> {
    pub(crate) const fn new() -> Self {
        Self { wait_timeout: None, max_attempts: u32::MAX, on_abandon: OnAbandon::TakeOver, share_if: None }
    }

    #[inline]
    pub(crate) fn shares(&self, value: &V) -> bool {
        self.share_if.as_ref().is_none_or(|share_if| share_if(value))
    }

    /// For work that outlives the call.
    pub(crate) fn owned_options(&self) -> Options<impl FnOnce(&V) -> bool + Send + use<V>> {
        self.options_with(self.share_if.clone().map(|share_if| move |value: &V| share_if(value)))
    }

    #[inline]
    pub(crate) fn options(&self) -> Options<impl FnOnce(&V) -> bool> {
        self.options_with(Some(|value: &V| self.shares(value)))
    }

    #[inline]
    pub(crate) fn options_with<P>(&self, share_if: Option<P>) -> Options<P> {
        let Self { wait_timeout, max_attempts, on_abandon, share_if: _ } = *self;
        Options { wait_timeout, max_attempts, on_abandon, attached: false, share_if }
    }
}

impl<P> Options<P> {
    /// With the group's predicate, if the call has none of its own.
    pub(crate) fn with_default<V>(
        self,
        default: Option<Arc<SharePredicate<V>>>,
    ) -> Options<impl FnOnce(&V) -> bool + use<V, P>>
    where
        P: FnOnce(&V) -> bool,
    {
        let Self { wait_timeout, max_attempts, on_abandon, attached, share_if: own } = self;
        let is_any = own.is_some() || default.is_some();
        let shares = move |value: &V| match own {
            Some(own) => own(value),
            None => default.is_none_or(|default| default(value)),
        };
        Options { wait_timeout, max_attempts, on_abandon, attached, share_if: is_any.then_some(shares) }
    }

    fn with_share_if<F>(self, share_if: F) -> Options<F> {
        let Self { wait_timeout, max_attempts, on_abandon, attached, share_if: former } = self;
        // Not with the new one on its way out, which would leak if the destructor panicked.
        drop(former);
        Options { wait_timeout, max_attempts, on_abandon, attached, share_if: Some(share_if) }
    }
}

/// The one check of what callers give as a number of attempts.
#[track_caller]
pub(crate) fn checked_attempts(max: u32) -> u32 {
    assert!(max > 0, "oneflight: max_attempts(0) would allow no leader at all; use 1 to allow only the first");
    max
}

//! The ways to call a `SyncGroup`.

use super::SyncGroup;
use crate::call::Call;
use crate::error::CallError;
use crate::group::Lead;
use crate::outcome::Outcome;
use alloc::borrow::ToOwned;
use alloc::sync::Arc;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use hashbrown::Equivalent;

impl<K, V, S: BuildHasher> SyncGroup<K, V, S> {
    /// Runs `work`, or waits for the flight of `key` that is on and shares its value.
    ///
    /// It is [`call(key).run(work)`](Self::call) with the group's defaults, for callers that want a value and nothing else:
    /// it waits as long as it takes, and where `run` would return [`CallError::Abandoned`] it goes on in a fresh flight.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flight lands.
    ///
    /// # Panics
    ///
    /// If its own `work` panics, with that panic. If it is called from inside the work of the same flight, or (feature
    /// `deadlock-detection`) would close a circle of waiting threads. If `Hash`, `Eq`, `ToOwned` or `Drop` of the key or
    /// `Clone` of the value panics.
    ///
    /// # Memory
    ///
    /// What the leader wrote before its work returned is visible when this returns.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// assert_eq!(group.do_call("k", || 7), 7);
    /// ```
    #[inline]
    #[track_caller]
    pub fn do_call<Q>(&self, key: &Q, work: impl FnOnce() -> V) -> V
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone,
    {
        self.group.do_call(key, work)
    }

    /// Like [`do_call`](Self::do_call), but waits for others at most for `timeout`. The time limit never interrupts this
    /// caller's own work, also when it takes over.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flight lands or the time is up. With zero it returns at once if it would have to wait;
    /// a limit too long for the clock is none.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](CallError::TimedOut), [`Reentrant`](CallError::Reentrant), [`Abandoned`](CallError::Abandoned) if the
    /// group's defaults limit attempts or do not let followers take over. [`WouldDeadlock`](CallError::WouldDeadlock)
    /// concerns waits without limit only.
    ///
    /// # Panics
    ///
    /// If its own `work` panics, with that panic; if code of the key or the value does.
    ///
    /// # Memory
    ///
    /// What the leader wrote before its work returned is visible when this returns a value.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{CallError, SyncGroup};
    /// use std::time::Duration;
    ///
    /// let group: SyncGroup<String, u32> = SyncGroup::new();
    /// let stuck = group.try_lead("k");
    /// let late = group.do_call_wait_timeout("k", Duration::from_millis(5), || 7);
    /// assert_eq!(late, Err(CallError::TimedOut));
    /// # drop(stuck);
    /// ```
    pub fn do_call_wait_timeout<Q>(&self, key: &Q, timeout: Duration, work: impl FnOnce() -> V) -> Result<V, CallError>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone,
    {
        self.call(key).wait_timeout(timeout).run(work).map(|outcome| outcome.value)
    }

    /// A call with options of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{Role, SyncGroup};
    /// use std::time::Duration;
    ///
    /// let group: SyncGroup<String, Result<u32, String>> = SyncGroup::new();
    /// let out = group.call("k").wait_timeout(Duration::from_secs(1)).share_ok().max_attempts(2).run(|| Ok(7))?;
    /// assert_eq!(out.value, Ok(7));
    /// assert_eq!(out.role, Role::Led);
    /// assert!(!out.shared);
    /// # Ok::<(), oneflight::CallError>(())
    /// ```
    pub fn call<'a, Q>(
        &'a self,
        key: &'a Q,
    ) -> Call<'a, Self, V, Q, impl FnOnce() -> K + use<'a, K, V, S, Q>, impl FnOnce(&V) -> bool + use<'a, K, V, S, Q>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.call_with(key, || key.to_owned())
    }

    /// A call whose owned key is made by `make_key`, for keys that [`ToOwned`] cannot make: `Arc<str>` from `&str`, a
    /// tuple of owned parts from a tuple of borrowed ones.
    ///
    /// `make_key` is called outside all locks and only by a caller that leads (or seemed to); if the type of the key has no
    /// destructor, by followers as well, as such keys cost less to make than to do without. It must make a key that is
    /// equal to `key`: one that is not would be in flight where no one finds it.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::SyncGroup;
    /// use std::sync::Arc;
    ///
    /// let group: SyncGroup<Arc<str>, u32> = SyncGroup::new();
    /// let out = group.call_with("k", || Arc::from("k")).run(|| 7)?;
    /// assert_eq!(out.value, 7);
    /// # Ok::<(), oneflight::CallError>(())
    /// ```
    pub fn call_with<'a, Q, M>(
        &'a self,
        key: &'a Q,
        make_key: M,
    ) -> Call<'a, Self, V, Q, M, impl FnOnce(&V) -> bool + use<'a, K, V, S, Q, M>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        M: FnOnce() -> K,
    {
        Call {
            group: self,
            key,
            make_key,
            options: self.group.defaults.options(),
            default_share_if: None,
            detach: None,
        }
    }

    /// The lead of `key` as a guard, if no flight is on that somebody leads. Never waits.
    ///
    /// A flight whose leader has left, and whose followers have not taken over yet, is led on: it counts as an attempt. The
    /// group's `max_attempts` applies.
    ///
    /// # Panics
    ///
    /// If `Hash`, `Eq` or `ToOwned` of the key panics.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<String, u32> = oneflight::SyncGroup::new();
    /// if let Some(lead) = group.try_lead("k") {
    ///     lead.land(7);
    /// }
    /// ```
    #[must_use = "dropping the lead abandons the flight"]
    pub fn try_lead<Q>(&self, key: &Q) -> Option<Lead<'_, K, V, S>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.try_lead_with(key, || key.to_owned())
    }

    /// [`try_lead`](Self::try_lead) for keys that [`ToOwned`] cannot make; see [`call_with`](Self::call_with).
    ///
    /// # Panics
    ///
    /// If `Hash` or `Eq` of the key or `make_key` panics.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let group: oneflight::SyncGroup<Arc<str>, u32> = oneflight::SyncGroup::new();
    /// assert!(group.try_lead_with("k", || Arc::from("k")).is_some());
    /// ```
    #[must_use = "dropping the lead abandons the flight"]
    pub fn try_lead_with<Q>(&self, key: &Q, make_key: impl FnOnce() -> K) -> Option<Lead<'_, K, V, S>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.group.try_lead_with(key, make_key)
    }
}

impl<K, T, E, S: BuildHasher> SyncGroup<K, Result<T, Arc<E>>, S> {
    /// [`do_call`](Self::do_call) for work that may fail: the error is shared like a value, in an `Arc`, so that it need
    /// not be `Clone`. Named for `Result`; it does wait.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flight lands.
    ///
    /// # Errors
    ///
    /// The leader's error, be this caller the leader or a follower.
    ///
    /// # Panics
    ///
    /// As [`do_call`](Self::do_call).
    ///
    /// # Memory
    ///
    /// What the leader wrote before its work returned is visible when this returns.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::SyncGroup;
    /// use std::sync::Arc;
    ///
    /// let group: SyncGroup<String, Result<u32, Arc<std::num::ParseIntError>>> = SyncGroup::new();
    /// assert_eq!(group.try_do_call("k", || "7".parse()), Ok(7));
    /// assert!(group.try_do_call("k", || "seven".parse()).is_err());
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_do_call<Q>(&self, key: &Q, work: impl FnOnce() -> Result<T, E>) -> Result<T, Arc<E>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        T: Clone,
    {
        self.do_call(key, || work().map_err(Arc::new))
    }
}

impl<K, V, S, Q, M, P> Call<'_, SyncGroup<K, V, S>, V, Q, M, P>
where
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
    M: FnOnce() -> K,
    P: FnOnce(&V) -> bool,
{
    /// Waits for others at most for `timeout`, then returns [`CallError::TimedOut`]. Never interrupts this caller's own
    /// work. Zero: do not wait. A limit too long for the clock is none. Default: no limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{CallError, SyncGroup};
    /// use std::time::Duration;
    ///
    /// let group: SyncGroup<String, u32> = SyncGroup::new();
    /// let lead = group.try_lead("k");
    /// assert_eq!(group.call("k").wait_timeout(Duration::ZERO).run(|| 7), Err(CallError::TimedOut));
    /// # drop(lead);
    /// ```
    pub fn wait_timeout(mut self, timeout: Duration) -> Self {
        self.options.wait_timeout = Some(timeout);
        self
    }

    /// Runs `work`, or waits for the flight that is on and shares its value.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flight lands or the caller's `wait_timeout` is up.
    ///
    /// # Errors
    ///
    /// - [`TimedOut`](CallError::TimedOut): the time limit for waiting is up.
    /// - [`Reentrant`](CallError::Reentrant): called from inside the work of the same flight.
    /// - [`WouldDeadlock`](CallError::WouldDeadlock): waiting, without time limit, would close a circle of threads (feature
    ///   `deadlock-detection`).
    /// - [`Abandoned`](CallError::Abandoned): the leader left without a value, and this caller was not to take over or no
    ///   further attempt was allowed.
    ///
    /// # Panics
    ///
    /// If this caller's own `work` or `share_if` panics, with that panic; if code of the key or the value does.
    ///
    /// # Memory
    ///
    /// What the leader wrote before its work returned is visible when this returns a value.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{OnAbandon, SyncGroup};
    ///
    /// let group: SyncGroup<String, u32> = SyncGroup::new();
    /// let out = group.call("k").on_abandon(OnAbandon::Fail).share_if(|n| *n > 0).run(|| 7)?;
    /// assert_eq!(out.value, 7);
    /// # Ok::<(), oneflight::CallError>(())
    /// ```
    pub fn run(self, work: impl FnOnce() -> V) -> Result<Outcome<V>, CallError>
    where
        V: Clone,
    {
        let Self { group, key, make_key, options, .. } = self;
        group.group.execute(key, make_key, work, options).map_err(|(error, _)| error)
    }
}

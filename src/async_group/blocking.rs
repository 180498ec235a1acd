//! Threads that call an `AsyncGroup`.

use super::AsyncGroup;
use crate::call::Call;
use crate::error::CallError;
use crate::outcome::Outcome;
use crate::primitive::ThreadNumber;
use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use hashbrown::Equivalent;

impl<K, V, S: BuildHasher> AsyncGroup<K, V, S> {
    /// A thread joins the same flights: it waits for one that is led, whoever leads it, and otherwise runs `work` itself.
    ///
    /// It never polls work that a flight owns, since that may belong to some runtime. If it must take over, it runs its own.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flight lands. **Hazard:** on a thread of an executor, it may block the very task that it
    /// waits for. [`do_call_blocking_wait_timeout`](Self::do_call_blocking_wait_timeout) bounds the waiting.
    ///
    /// # Panics
    ///
    /// As [`SyncGroup::do_call`](crate::SyncGroup::do_call).
    ///
    /// # Memory
    ///
    /// What the leader wrote before its work ended is visible when this returns.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// assert_eq!(group.do_call_blocking("k", || 7), 7);
    /// ```
    #[track_caller]
    pub fn do_call_blocking<Q>(&self, key: &Q, work: impl FnOnce() -> V) -> V
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone,
    {
        self.group.do_call(key, work)
    }

    /// Like [`do_call_blocking`](Self::do_call_blocking), but waits for others at most for `timeout`. The time limit never
    /// interrupts this caller's own work.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flight lands or the time is up. With zero it returns at once if it would have to wait.
    ///
    /// # Errors
    ///
    /// As [`SyncGroup::do_call_wait_timeout`](crate::SyncGroup::do_call_wait_timeout).
    ///
    /// # Panics
    ///
    /// If its own `work` panics, with that panic; if code of the key or the value does.
    ///
    /// # Memory
    ///
    /// What the leader wrote before its work ended is visible when this returns a value.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{AsyncGroup, CallError};
    /// use std::time::Duration;
    ///
    /// let group: AsyncGroup<String, u32> = AsyncGroup::new();
    /// let stuck = group.try_lead("k");
    /// let late = group.do_call_blocking_wait_timeout("k", Duration::from_millis(5), || 7);
    /// assert_eq!(late, Err(CallError::TimedOut));
    /// # drop(stuck);
    /// ```
    pub fn do_call_blocking_wait_timeout<Q>(
        &self,
        key: &Q,
        timeout: Duration,
        work: impl FnOnce() -> V,
    ) -> Result<V, CallError>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone,
    {
        let mut options = self.group.defaults.options();
        options.wait_timeout = Some(timeout);
        let called = self.group.execute(key, || key.to_owned(), work, options);
        called.map(|outcome| outcome.value).map_err(|(error, _)| error)
    }

    /// A thread's call with several keys, which meets the calls of tasks: see [`SyncGroup::do_many`](crate::SyncGroup::do_many).
    /// It waits for keys that are led, whoever leads them, and otherwise runs `work` itself, also for those that it takes over.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flights of all keys have landed, with the hazard of
    /// [`do_call_blocking`](Self::do_call_blocking). [`run_many_blocking`](Self::run_many_blocking) bounds the waiting.
    ///
    /// # Panics
    ///
    /// As [`SyncGroup::do_many`](crate::SyncGroup::do_many).
    ///
    /// # Memory
    ///
    /// What a leader wrote before its work ended is visible when this returns.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<u32, String> = oneflight::AsyncGroup::new();
    /// let names = group.do_many_blocking(&[3, 1, 3], |missing| missing.iter().map(|id| format!("user {id}")).collect());
    /// assert_eq!(names, ["user 3", "user 1", "user 3"]);
    /// ```
    #[track_caller]
    pub fn do_many_blocking<'q, Q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        work: impl FnMut(Vec<&'q Q>) -> Vec<V>,
    ) -> Vec<V>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        V: Clone,
    {
        match self.run_many_blocking(keys, None, work) {
            Ok(values) => values,
            Err(error) => error.refuse(),
        }
    }

    /// [`do_many_blocking`](Self::do_many_blocking) with a time limit for waiting, never for its own work, and errors in place of
    /// panics.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flights of all keys have landed, or for `wait_timeout` of waiting; `None` is no limit.
    ///
    /// # Errors
    ///
    /// As [`SyncGroup::run_many`](crate::SyncGroup::run_many).
    ///
    /// # Panics
    ///
    /// As [`SyncGroup::run_many`](crate::SyncGroup::run_many).
    ///
    /// # Memory
    ///
    /// What a leader wrote before its work ended is visible when this returns values.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{AsyncGroup, CallError};
    /// use std::time::Duration;
    ///
    /// let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    /// let stuck = group.try_lead(&1);
    /// let soon = Some(Duration::from_millis(5));
    /// let late = group.run_many_blocking(&[1, 2], soon, |missing| missing.into_iter().copied().collect());
    /// assert_eq!(late, Err(CallError::TimedOut));
    /// # drop(stuck);
    /// ```
    #[track_caller]
    pub fn run_many_blocking<'q, Q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        wait_timeout: Option<Duration>,
        work: impl FnMut(Vec<&'q Q>) -> Vec<V>,
    ) -> Result<Vec<V>, CallError>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        V: Clone,
    {
        self.group.run_many(ThreadNumber::of_work(), keys, wait_timeout, work)
    }
}

impl<K, V, S, Q, M, P> Call<'_, AsyncGroup<K, V, S>, V, Q, M, P>
where
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
    M: FnOnce() -> K,
{
    /// A thread joins the same flights: see [`AsyncGroup::do_call_blocking`], also for its hazard.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flight lands.
    ///
    /// # Errors
    ///
    /// As [`SyncGroup`](crate::SyncGroup)'s `run`, but that there is no time limit: with one,
    /// [`run_blocking_wait_timeout`](Self::run_blocking_wait_timeout).
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// # Memory
    ///
    /// What the leader wrote before its work ended is visible when this returns a value.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    /// assert_eq!(group.call("k").max_attempts(2).run_blocking(|| 7)?.value, 7);
    /// # Ok::<(), oneflight::CallError>(())
    /// ```
    pub fn run_blocking(self, work: impl FnOnce() -> V) -> Result<Outcome<V>, CallError>
    where
        V: Clone,
        P: FnOnce(&V) -> bool,
    {
        let Self { group, key, make_key, options, default_share_if, detach: _ } = self;
        let options = options.with_default(default_share_if);
        group.group.execute(key, make_key, work, options).map_err(|(error, _)| error)
    }

    /// Like [`run_blocking`](Self::run_blocking), but waits for others at most for `timeout`. The time limit never interrupts
    /// this caller's own work.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flight lands or the time is up. With zero it returns at once if it would have to wait; a
    /// limit too long for the clock is none.
    ///
    /// # Errors
    ///
    /// As [`SyncGroup`](crate::SyncGroup)'s `run` with a `wait_timeout`.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// # Memory
    ///
    /// What the leader wrote before its work ended is visible when this returns a value.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{AsyncGroup, CallError};
    /// use std::time::Duration;
    ///
    /// let group: AsyncGroup<String, u32> = AsyncGroup::new();
    /// let stuck = group.try_lead("k");
    /// let late = group.call("k").max_attempts(2).run_blocking_wait_timeout(Duration::from_millis(5), || 7);
    /// assert_eq!(late, Err(CallError::TimedOut));
    /// # drop(stuck);
    /// ```
    pub fn run_blocking_wait_timeout(
        mut self,
        timeout: Duration,
        work: impl FnOnce() -> V,
    ) -> Result<Outcome<V>, CallError>
    where
        V: Clone,
        P: FnOnce(&V) -> bool,
    {
        self.options.wait_timeout = Some(timeout);
        self.run_blocking(work)
    }
}

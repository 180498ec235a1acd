//! Calls with several keys.

use super::SyncGroup;
use crate::error::{CallError, one_error_for_all};
use crate::primitive::ThreadNumber;
use alloc::borrow::ToOwned;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use hashbrown::Equivalent;

impl<K, V, S: BuildHasher> SyncGroup<K, V, S> {
    /// A call with several keys: `work` gets those that are not in flight and returns their values, in the same order. The
    /// others are awaited. Returns a value for each key, in the order of `keys`; keys may stand there more than once.
    ///
    /// Each key has a flight of its own, so that single calls and overlapping batches share it. This caller's own keys land
    /// before it waits for others, so batches that overlap, in whatever order, never wait for each other in a circle. If
    /// the leader of a key leaves without a value, `work` is called again with that key alone.
    ///
    /// The group's defaults apply to each key, except `wait_timeout`.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flights of all keys have landed.
    ///
    /// # Panics
    ///
    /// If `work` panics, with that panic, or returns another number of values than it was given keys: its keys are free then,
    /// and followers take over. If it is called from inside the work of one of the keys, or (feature `deadlock-detection`)
    /// would close a circle of waiting threads. If code of a key or a value panics.
    ///
    /// # Memory
    ///
    /// What a leader wrote before its work returned is visible when this returns.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::SyncGroup<u32, String> = oneflight::SyncGroup::new();
    /// let names = group.do_many(&[3, 1, 3], |missing| missing.iter().map(|id| format!("user {id}")).collect());
    /// assert_eq!(names, ["user 3", "user 1", "user 3"]);
    /// ```
    #[track_caller]
    pub fn do_many<'q, Q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        work: impl FnMut(Vec<&'q Q>) -> Vec<V>,
    ) -> Vec<V>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        V: Clone,
    {
        match self.run_many(keys, None, work) {
            Ok(values) => values,
            Err(error) => error.refuse(),
        }
    }

    /// [`do_many`](Self::do_many) with a time limit for waiting, never for its own work, and errors in place of panics.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flights of all keys have landed, or for `wait_timeout` of waiting; `None` is no limit.
    ///
    /// # Errors
    ///
    /// - [`CallError::TimedOut`]: the limit has passed. The keys that this call led have landed; their values are lost to it.
    /// - [`CallError::Reentrant`]: it was called from inside the work of one of the keys. No work has run; keys that it led by
    ///   then are free again, and taken over by those who follow already.
    /// - [`CallError::WouldDeadlock`], with the feature `deadlock-detection`: it would close a circle of waiting threads.
    ///
    /// # Panics
    ///
    /// If `work` panics, or returns another number of values than it was given keys, as with `do_many`. If code of a key or a
    /// value panics.
    ///
    /// # Memory
    ///
    /// What a leader wrote before its work returned is visible when this returns values.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{CallError, SyncGroup};
    /// use std::time::Duration;
    ///
    /// let group: SyncGroup<u32, u32> = SyncGroup::new();
    /// let _leader = group.try_lead(&1);
    /// let soon = Some(Duration::from_millis(5));
    /// assert_eq!(group.run_many(&[1, 2], soon, |missing| missing.into_iter().copied().collect()), Err(CallError::TimedOut));
    /// ```
    #[track_caller]
    pub fn run_many<'q, Q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        wait_timeout: Option<Duration>,
        work: impl FnMut(Vec<&'q Q>) -> Vec<V>,
    ) -> Result<Vec<V>, CallError>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        V: Clone,
    {
        self.group.run_many(ThreadNumber::current(), keys, wait_timeout, work)
    }
}

impl<K, T, E, S: BuildHasher> SyncGroup<K, Result<T, Arc<E>>, S> {
    /// [`do_many`](Self::do_many) for work that may fail: its error is that of each key that it was given, in one `Arc`, so
    /// that it need not be `Clone`. Keys that others lead have what those came to. Named for `Result`; it does wait.
    ///
    /// # Blocking
    ///
    /// Blocks the thread until the flights of all keys have landed.
    ///
    /// # Errors
    ///
    /// For each key, the error of the work that had it, be this caller its leader or a follower.
    ///
    /// # Panics
    ///
    /// As [`do_many`](Self::do_many).
    ///
    /// # Memory
    ///
    /// What a leader wrote before its work returned is visible when this returns.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::SyncGroup;
    /// use std::sync::Arc;
    ///
    /// let group: SyncGroup<u32, Result<u32, Arc<String>>> = SyncGroup::new();
    /// let squares = group.try_do_many(&[2, 3], |missing| Ok(missing.into_iter().map(|id| id * id).collect()));
    /// assert_eq!(squares, [Ok(4), Ok(9)]);
    /// let failed = group.try_do_many(&[2, 3], |_| Err("the database is away".to_owned()));
    /// assert!(failed.iter().all(Result::is_err));
    /// ```
    #[track_caller]
    pub fn try_do_many<'q, Q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut work: impl FnMut(Vec<&'q Q>) -> Result<Vec<T>, E>,
    ) -> Vec<Result<T, Arc<E>>>
    where
        Q: Hash + Eq + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        T: Clone,
    {
        self.do_many(keys, move |missing| {
            let count = missing.len();
            one_error_for_all(work(missing), count)
        })
    }
}

//! The ways to call an `AsyncGroup`.

use super::AsyncGroup;
use super::inline::{InlineCall, PlainInlineCall};
use super::mapped::Mapped;
use super::owned::OwnedCall;
use crate::call::Call;
use crate::error::CallError;
use crate::group::Lead;
use alloc::borrow::ToOwned;
use alloc::sync::Arc;
use core::future::{Future, poll_fn};
use core::hash::{BuildHasher, Hash};
use core::task::{Poll, ready};
use hashbrown::Equivalent;

impl<K, V, S: BuildHasher> AsyncGroup<K, V, S> {
    /// Runs the work that `work` makes, or waits for the flight of `key` that is on and shares its value.
    ///
    /// The flight owns the work. It goes on as long as anybody waits for it, whoever that is: if the caller whose closure made
    /// the work is dropped, or is not polled any more, another drives the same work on. When the last caller leaves, the
    /// work is dropped.
    ///
    /// It is [`call(key).run(work)`](Self::call) with the group's defaults, for callers that want a value and nothing else:
    /// where `run` would return [`CallError::Abandoned`] it goes on in a fresh flight.
    ///
    /// Nothing happens before the first poll. The call joins then.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. Nobody else is affected, and if nobody else is there, nothing stays behind.
    ///
    /// # Panics
    ///
    /// If its own work panics, with that panic, also if another caller drove it at the time. If it is awaited inside the work
    /// of the same flight (with `std`). If `Hash`, `Eq`, `ToOwned` or `Drop` of the key or `Clone` of the value panics. If it
    /// is polled again after it has ended.
    ///
    /// # Memory
    ///
    /// What the work wrote before it ended is visible to every caller that gets its value.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    ///
    /// # smol::block_on(async {
    /// let group: AsyncGroup<String, u32> = AsyncGroup::new();
    /// assert_eq!(group.do_call("k", || async { 7 }).await, 7);
    /// # });
    /// ```
    pub fn do_call<'a, Q, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = V> + use<'a, K, V, S, Q, W, F>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone + Send + Sync + 'static,
        W: FnOnce() -> F,
        F: Future<Output = V> + Send + 'static,
    {
        let start = move |work| {
            let options = self.group.defaults.owned_options();
            OwnedCall::new(self, key, move || key.to_owned(), options, None, work)
        };
        let mut call = start(work);
        poll_fn(move |cx| {
            loop {
                match ready!(call.poll(cx)) {
                    Ok(outcome) => return Poll::Ready(outcome.value),
                    Err(CallError::Abandoned) => match call.take_unused() {
                        Some(work) => call = start(work),
                        None => CallError::Abandoned.refuse(),
                    },
                    Err(error) => error.refuse(),
                }
            }
        })
    }

    /// Like [`do_call`](Self::do_call), but a caller that leads runs its work inside its own future: the work may borrow, and
    /// need not be `Send`.
    ///
    /// **Hazard.** The work makes progress only while this caller is polled. If it leads and is then parked, in a `select!` or
    /// a `FuturesUnordered` that is not polled, its followers wait until it is polled or dropped;
    /// [`forget`](Self::forget) frees the key for others. If it is dropped, a follower starts over with its own work. Prefer
    /// [`do_call`](Self::do_call) where the work allows it.
    ///
    /// A caller that joins a flight that owns its work helps to drive that.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. If it led, its work is lost, and a follower takes over with its own.
    ///
    /// # Panics
    ///
    /// As [`do_call`](Self::do_call).
    ///
    /// # Memory
    ///
    /// What the work wrote before it ended is visible to every caller that gets its value.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    /// use std::rc::Rc;
    ///
    /// # smol::block_on(async {
    /// let group: AsyncGroup<String, usize> = AsyncGroup::new();
    /// let local = Rc::new(vec![1, 2, 3]);
    /// let length = group.do_call_inline("k", || async { local.len() }).await;
    /// assert_eq!(length, 3);
    /// # });
    /// ```
    pub fn do_call_inline<'a, Q, W, F>(
        &'a self,
        key: &'a Q,
        work: W,
    ) -> impl Future<Output = V> + use<'a, K, V, S, Q, W, F>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone,
        W: FnOnce() -> F,
        F: Future<Output = V>,
    {
        let make = |key: &'a Q| move || key.to_owned();
        let call = InlineCall::new(&*self.group, key, make(key), self.group.defaults.options(), work);
        PlainInlineCall::new(call, make)
    }

    /// A call with options of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::{AsyncGroup, Role};
    ///
    /// # smol::block_on(async {
    /// let group: AsyncGroup<String, Result<u32, String>> = AsyncGroup::new();
    /// let out = group.call("k").share_ok().max_attempts(2).run(|| async { Ok(7) }).await?;
    /// assert_eq!(out.value, Ok(7));
    /// assert_eq!(out.role, Role::Led);
    /// # Ok::<(), oneflight::CallError>(())
    /// # }).unwrap();
    /// ```
    pub fn call<'a, Q>(
        &'a self,
        key: &'a Q,
    ) -> Call<'a, Self, V, Q, impl FnOnce() -> K + use<'a, K, V, S, Q>, fn(&V) -> bool>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.call_with(key, move || key.to_owned())
    }

    /// A call whose owned key is made by `make_key`, for keys that [`ToOwned`] cannot make. See
    /// [`SyncGroup::call_with`](crate::SyncGroup::call_with).
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    /// use std::sync::Arc;
    ///
    /// # smol::block_on(async {
    /// let group: AsyncGroup<Arc<str>, u32> = AsyncGroup::new();
    /// let out = group.call_with("k", || Arc::from("k")).run(|| async { 7 }).await?;
    /// assert_eq!(out.value, 7);
    /// # Ok::<(), oneflight::CallError>(())
    /// # }).unwrap();
    /// ```
    pub fn call_with<'a, Q, M>(&'a self, key: &'a Q, make_key: M) -> Call<'a, Self, V, Q, M, fn(&V) -> bool>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        M: FnOnce() -> K,
    {
        let defaults = &self.group.defaults;
        let options = defaults.options_with(None);
        Call { group: self, key, make_key, options, default_share_if: defaults.share_if.clone(), detach: None }
    }

    /// The lead of `key` as a guard, if no flight is on that somebody leads. Never waits. See
    /// [`SyncGroup::try_lead`](crate::SyncGroup::try_lead).
    ///
    /// # Panics
    ///
    /// If `Hash`, `Eq` or `ToOwned` of the key panics.
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
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
    /// let group: oneflight::AsyncGroup<Arc<str>, u32> = oneflight::AsyncGroup::new();
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

impl<K, T, E, S: BuildHasher> AsyncGroup<K, Result<T, Arc<E>>, S> {
    /// [`do_call`](Self::do_call) for work that may fail: the error is shared like a value, in an `Arc`, so that it need
    /// not be `Clone`. Named for `Result`; it does wait.
    ///
    /// # Cancel safety
    ///
    /// As [`do_call`](Self::do_call).
    ///
    /// # Errors
    ///
    /// The error of the work, whoever's it was.
    ///
    /// # Panics
    ///
    /// As [`do_call`](Self::do_call).
    ///
    /// # Memory
    ///
    /// What the work wrote before it ended is visible to every caller that gets its value or its error.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    /// use std::num::ParseIntError;
    /// use std::sync::Arc;
    ///
    /// # smol::block_on(async {
    /// let group: AsyncGroup<String, Result<u32, Arc<ParseIntError>>> = AsyncGroup::new();
    /// assert_eq!(group.try_do_call("k", || async { "7".parse() }).await, Ok(7));
    /// # });
    /// ```
    pub fn try_do_call<'a, Q, W, F>(
        &'a self,
        key: &'a Q,
        work: W,
    ) -> impl Future<Output = Result<T, Arc<E>>> + use<'a, K, T, E, S, Q, W, F>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        T: Clone + Send + Sync + 'static,
        E: Send + Sync + 'static,
        W: FnOnce() -> F,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.do_call(key, || Mapped::new(work(), |result: Result<T, E>| result.map_err(Arc::new)))
    }
}

//! The ways to call an `AsyncGroup`.

use super::AsyncGroup;
use super::inline::InlineCall;
use super::owned::OwnedCall;
use crate::call::Call;
use crate::error::CallError;
use crate::group::Lead;
use crate::outcome::Outcome;
use alloc::borrow::ToOwned;
use core::future::{Future, poll_fn};
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use hashbrown::Equivalent;

impl<K, V, S: BuildHasher> AsyncGroup<K, V, S> {
    /// Runs the work that `work` makes, or waits for the flight of `key` that is on and shares its value.
    pub fn do_call<'a, Q, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = V> + use<'a, K, V, S, Q, W, F>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone + Send + Sync + 'static,
        W: FnOnce() -> F,
        F: Future<Output = V> + Send + 'static,
    {
        let start = move |work| {
            let options = self.group.defaults.owned_options();
            OwnedCall::new(&self.group, key, move || key.to_owned(), options, work)
        };
        let mut call = start(work);
        poll_fn(move |cx| {
            loop {
                match core::task::ready!(call.poll(cx)) {
                    Ok(outcome) => return core::task::Poll::Ready(outcome.value),
                    Err(CallError::Abandoned) => match call.take_unused() {
                        Some((work, _)) => call = start(work),
                        None => CallError::Abandoned.refuse(),
                    },
                    Err(error) => error.refuse(),
                }
            }
        })
    }

    /// Runs the work inside the caller's own future.
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
        let start = move |work| {
            let options = self.group.defaults.options();
            InlineCall::new(&*self.group, key, move || key.to_owned(), options, work)
        };
        async move {
            let mut call = core::pin::pin!(start(work));
            loop {
                match poll_fn(|cx| call.as_mut().poll(cx)).await {
                    Ok(outcome) => return outcome.value,
                    Err(CallError::Abandoned) => match call.as_mut().take_unused() {
                        Some((work, _)) => call.set(start(work)),
                        None => CallError::Abandoned.refuse(),
                    },
                    Err(error) => error.refuse(),
                }
            }
        }
    }

    /// A thread joins the same flights.
    #[cfg(feature = "std")]
    pub fn do_call_blocking<Q>(&self, key: &Q, work: impl FnOnce() -> V) -> V
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
        V: Clone,
    {
        self.group.do_call(key, work)
    }

    /// The lead of `key` as a guard.
    pub fn try_lead<Q>(&self, key: &Q) -> Option<Lead<'_, K, V, S>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        self.group.try_lead_with(key, || key.to_owned())
    }

    /// A call with options of its own.
    pub fn call<'a, Q>(
        &'a self,
        key: &'a Q,
    ) -> Call<'a, Self, V, Q, impl FnOnce() -> K + use<'a, K, V, S, Q>, impl FnOnce(&V) -> bool + Send + use<K, V, S, Q>>
    where
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    {
        let options = self.group.defaults.owned_options();
        Call { group: self, key, make_key: move || key.to_owned(), options, value: PhantomData }
    }
}

impl<'a, K, V, S, Q, M, P> Call<'a, AsyncGroup<K, V, S>, V, Q, M, P>
where
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
    M: FnOnce() -> K,
{
    /// Runs the work that `work` makes, or waits for the flight that is on and shares its value.
    pub fn run<W, F>(
        self,
        work: W,
    ) -> impl Future<Output = Result<Outcome<V>, CallError>> + use<'a, K, V, S, Q, M, P, W, F>
    where
        V: Clone + Send + Sync + 'static,
        P: FnOnce(&V) -> bool + Send + 'static,
        W: FnOnce() -> F,
        F: Future<Output = V> + Send + 'static,
    {
        let Self { group, key, make_key, options, value: _ } = self;
        let mut call = OwnedCall::new(&group.group, key, make_key, options, work);
        poll_fn(move |cx| call.poll(cx))
    }
}

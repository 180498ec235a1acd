//! Calls whose work the flight owns.

use super::place::{Arrival, Place};
use crate::call::Options;
use crate::error::CallError;
use crate::group::{Detach, Entered, Group, Leading, Newcomer, OwnedWork, Slot, Tasks, Work, flight_waker, own};
use crate::outcome::Outcome;
use crate::primitive::{Arc, ThreadNumber, resume_panic};
use alloc::boxed::Box;
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use hashbrown::Equivalent;
use pin_project_lite::pin_project;

/// A call whose work the flight owns, from entering the table to its end.
pub(super) struct OwnedCall<'a, K, V, S, Q: ?Sized, M, P, W> {
    group: &'a Group<K, V, S>,
    key: &'a Q,
    /// `None` once the table has been entered.
    make_key: Option<M>,
    options: Options<Option<P>>,
    /// `None` once the call has led.
    work: Option<W>,
    detach: Option<Detach<V>>,
    place: Option<Place<&'a Group<K, V, S>, K, V, S>>,
}

pin_project! {
    /// A future with what travels with it, in one box.
    struct Owned<V, F, P> {
        #[pin]
        future: F,
        share_if: Option<P>,
        is_last_attempt: bool,
        detach: Option<Detach<V>>,
    }
}

impl<V, F: Future<Output = V>, P: FnOnce(&V) -> bool> OwnedWork<V> for Owned<V, F, P> {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<V> {
        self.project().future.poll(cx)
    }

    fn shares(self: Pin<&mut Self>, value: &V) -> bool {
        self.project().share_if.take().is_none_or(|share_if| share_if(value))
    }

    fn is_last_attempt(&self) -> bool {
        self.is_last_attempt
    }

    fn take_detach(self: Pin<&mut Self>) -> Option<Detach<V>> {
        self.project().detach.take()
    }
}

impl<'a, K, V, S, Q, M, P, W, F> OwnedCall<'a, K, V, S, Q, M, P, W>
where
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
    V: Clone + Send + Sync + 'static,
    M: FnOnce() -> K,
    P: FnOnce(&V) -> bool + Send + 'static,
    W: FnOnce() -> F,
    F: Future<Output = V> + Send + 'static,
{
    pub(super) fn new(
        group: &'a Group<K, V, S>,
        key: &'a Q,
        make_key: M,
        options: Options<P>,
        detach: Option<Detach<V>>,
        work: W,
    ) -> Self {
        let options = options.map_share_if(Some);
        Self { group, key, make_key: Some(make_key), options, work: Some(work), detach, place: None }
    }

    /// The work, if it has not been used.
    pub(super) fn take_unused(&mut self) -> Option<W> {
        self.work.take()
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outcome<V>, CallError>> {
        let mut leads = match self.make_key.take().map(|make_key| self.enter(make_key)) {
            None => false,
            Some(Ok(leads)) => leads,
            Some(Err(error)) => return Poll::Ready(Err(error)),
        };
        loop {
            let place = self.place.as_mut().expect("a call is not polled after it has ended");
            let arrival = if leads {
                let work = self.work.take().expect("a call leads once at most");
                let (share_if, detach) = (self.options.share_if.take(), self.detach.take());
                let is_last_attempt = place.attempt() >= self.options.max_attempts;
                let make = || -> Work<V> { Box::pin(Owned { future: work(), share_if, is_last_attempt, detach }) };
                ready!(place.make(make, is_last_attempt, cx))
            } else {
                ready!(place.poll(cx))
            };
            let outcome = match arrival {
                Arrival::TookOver { attempt, waker } => {
                    let leading = Leading::new(self.group, place.id(), attempt, self.options.max_attempts);
                    drop(waker);
                    self.place = Some(Place::leading(self.group, leading, self.options.on_abandon));
                    leads = true;
                    continue;
                }
                Arrival::Landed(value, role) => Ok(Outcome { value: own(value), role, shared: true }),
                Arrival::Own(value, role) => Ok(Outcome { value, role, shared: false }),
                Arrival::Failed(error) => Err(error),
                Arrival::Panicked(payload) => resume_panic(payload),
            };
            self.place = None;
            return Poll::Ready(outcome);
        }
    }

    /// Enters the table. Whether the call leads, and must make its work.
    #[inline]
    fn enter(&mut self, make_key: M) -> Result<bool, CallError> {
        let Options { on_abandon, max_attempts, .. } = self.options;
        let newcomer = Newcomer { on_abandon, max_attempts, is_thread: false };
        let mut slot = None;
        let make_slot = || {
            let made = Arc::new(Slot::with_tasks(ThreadNumber::current(), Tasks::led(on_abandon, flight_waker)));
            slot = Some(Arc::clone(&made));
            Some(made)
        };
        let entered = self.group.enter(
            self.key,
            make_key,
            newcomer,
            make_slot,
            |shared, seat| shared.tasks.insert(on_abandon, Some(seat)),
            |group, id, slot, task| Place::waiting(group, id, slot, task, on_abandon),
        );
        let (place, leads) = match (entered, slot) {
            (Entered::Lead(leading), Some(slot)) => (Place::first(self.group, leading, slot, on_abandon), true),
            (Entered::Lead(leading), None) => (Place::leading(self.group, leading, on_abandon), true),
            (Entered::Wait(place), _) => (place, false),
            (Entered::Reentrant, _) => return Err(CallError::Reentrant),
        };
        self.place = Some(place);
        Ok(leads)
    }
}

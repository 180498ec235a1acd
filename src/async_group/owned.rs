//! Calls whose work the flight owns.

use super::place::{Arrival, Place};
use crate::call::Options;
use crate::error::CallError;
use crate::group::{Detach, Entered, Group, Leading, OwnedWork, Task, own};
use crate::outcome::Outcome;
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
    /// A future and what decides about its value, in one box.
    struct Owned<F, P> {
        #[pin]
        future: F,
        share_if: Option<P>,
    }
}

impl<V, F: Future<Output = V>, P: FnOnce(&V) -> bool> OwnedWork<V> for Owned<F, P> {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<V> {
        self.project().future.poll(cx)
    }

    fn shares(self: Pin<&mut Self>, value: &V) -> bool {
        self.project().share_if.take().is_none_or(|share_if| share_if(value))
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
        if let Some(make_key) = self.make_key.take() {
            let Options { on_abandon, max_attempts, .. } = self.options;
            let entered = self.group.enter(self.key, make_key, on_abandon, max_attempts, |shared, seat| {
                shared.tasks.insert(Task { waker: None, on_abandon, seat: Some(seat) })
            });
            match entered {
                Entered::Lead(leading) => self.start(leading),
                Entered::Wait(id, slot, task) => {
                    self.place = Some(Place::waiting(self.group, id, slot, task, on_abandon));
                }
                Entered::Reentrant => return Poll::Ready(Err(CallError::Reentrant)),
            }
        }
        loop {
            let place = self.place.as_mut().expect("a call is not polled after it has ended");
            let id = place.id();
            let outcome = match ready!(place.poll(cx)) {
                Arrival::TookOver { attempt } => {
                    self.place = None;
                    self.start(Leading::new(self.group, id, attempt, self.options.max_attempts));
                    continue;
                }
                Arrival::Landed(value, role) => Ok(Outcome { value: own(value), role, shared: true }),
                Arrival::Drove { value, role, shared } => Ok(Outcome { value: own(value), role, shared }),
                Arrival::Own(value, role) => Ok(Outcome { value, role, shared: false }),
                Arrival::Failed(error) => Err(error),
                Arrival::Panicked(payload) => crate::primitive::resume_panic(payload),
            };
            self.place = None;
            return Poll::Ready(outcome);
        }
    }

    /// Makes the work, outside all locks, and gives it to the flight. If the closure panics, the flight is abandoned.
    fn start(&mut self, leading: Leading<'a, K, V, S>) {
        let work = self.work.take().expect("a call leads once at most");
        let future = work();
        let owned = Owned { future, share_if: self.options.share_if.take() };
        self.place = Some(Place::driving(self.group, leading, owned, self.options.on_abandon, self.detach.take()));
    }
}

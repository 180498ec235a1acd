//! Calls whose work the flight owns.

use super::AsyncGroup;
use super::place::{Arrival, Place};
use crate::call::{OnAbandon, Options};
use crate::error::CallError;
use crate::group::{Detach, Entered, Group, Leading, Newcomer, OwnedWork, Slot, Work, flight_waker, own};
use crate::outcome::{Outcome, Role};
use crate::primitive::{Arc, FirstWaker, Lent, resume_panic};
use alloc::boxed::Box;
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use hashbrown::Equivalent;
use pin_project_lite::pin_project;

/// A call whose work the flight owns, from entering the table to its end.
pub(super) struct OwnedCall<'a, K, V, S, Q: ?Sized, M, P, W> {
    /// It comes first, so that it is dropped first: the flight is left before the closures are dropped, which may call it.
    place: Option<Place<&'a Group<K, V, S>, K, V, S>>,
    group: &'a AsyncGroup<K, V, S>,
    key: &'a Q,
    /// `None` once the table has been entered.
    make_key: Option<M>,
    max_attempts: u32,
    on_abandon: OnAbandon,
    /// Whether the group's default of `detach` does not apply.
    attached: bool,
    /// `None` if every value is shared, and once the flight has it.
    share_if: Option<P>,
    /// `None` once the call has led.
    work: Option<W>,
    /// `None` if the group's default applies, or the work stays attached.
    detach: Option<Detach<V>>,
    /// What its work was polled with at first, if that has kept it. Dropped after the place, and with it the work.
    first: Option<Lent>,
}

pin_project! {
    /// A future with what travels with it, in one box.
    struct Owned<V, F, P> {
        #[pin]
        future: F,
        // Most calls have none.
        terms: Option<Box<Terms<V, P>>>,
    }
}

/// What was agreed for the work, beyond the usual: its value is shared whatever it is, others may take over when it ends without
/// one, and it is dropped when its last caller leaves.
struct Terms<V, P> {
    share_if: Option<P>,
    is_last_attempt: bool,
    detach: Option<Detach<V>>,
}

impl<V, F, P> OwnedWork<V> for Owned<V, F, P>
where
    V: Send + Sync + 'static,
    F: Future<Output = V>,
    P: FnOnce(&V) -> bool,
{
    fn make_waker(&self, slot: &Arc<Slot<V>>) -> Waker {
        flight_waker(slot)
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<V> {
        self.project().future.poll(cx)
    }

    fn shares(self: Pin<&mut Self>, value: &V) -> bool {
        let share_if = self.project().terms.as_mut().and_then(|terms| terms.share_if.take());
        share_if.is_none_or(|share_if| share_if(value))
    }

    fn is_last_attempt(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.is_last_attempt)
    }

    fn take_detach(self: Pin<&mut Self>) -> Option<Detach<V>> {
        self.project().terms.as_mut()?.detach.take()
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
        group: &'a AsyncGroup<K, V, S>,
        key: &'a Q,
        make_key: M,
        options: Options<P>,
        detach: Option<Detach<V>>,
        work: W,
    ) -> Self {
        let Options { max_attempts, on_abandon, attached, share_if, .. } = options;
        let (make_key, work) = (Some(make_key), Some(work));
        let (place, first) = (None, None);
        Self { place, group, key, make_key, max_attempts, on_abandon, attached, share_if, work, detach, first }
    }

    /// The work, if it has not been used.
    pub(super) fn take_unused(&mut self) -> Option<W> {
        self.work.take()
    }

    #[inline]
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outcome<V>, CallError>> {
        let Some(make_key) = self.make_key.take() else { return self.resume(cx) };
        let (on_abandon, max_attempts) = (self.on_abandon, self.max_attempts);
        let newcomer = Newcomer { on_abandon, max_attempts };
        // Older than the lead, so dropped after it if the work panics.
        let mut made = None;
        let entered = self.group.group.enter(
            self.key,
            make_key,
            newcomer,
            |slot, shared, seat| shared.tasks.insert(slot, on_abandon, seat),
            |group, id, task| Place::waiting(group, id, task, on_abandon),
        );
        match entered {
            Entered::Lead(leading) => {
                let polled = self.lead(leading, &mut made, cx);
                // Not left to the end of this function: its value would leak if the destructor of the work panicked there.
                drop(made);
                polled
            }
            Entered::Wait(place) => {
                self.place = Some(place);
                self.resume(cx)
            }
            Entered::Reentrant => Poll::Ready(Err(CallError::Reentrant)),
        }
    }

    /// Makes the work, and polls it: if it is ready, the flight needs neither a slot nor a waker.
    #[inline]
    fn lead(
        &mut self,
        leading: Leading<'a, K, V, S>,
        made: &mut Option<Pin<Box<Owned<V, F, P>>>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Outcome<V>, CallError>> {
        // Without std nobody keeps the panic of work for the caller whose it was.
        let work = self.work.take().expect("oneflight: the work of this call panicked while another caller polled it");
        let work = made.insert(Box::pin(Owned { future: work(), terms: None }));
        let first = FirstWaker::new();
        match work.as_mut().project().future.poll(&mut first.context()) {
            Poll::Ready(value) => {
                first.keep();
                let share_if = &mut self.share_if;
                let outcome = leading.finish(value, |value| share_if.take().is_none_or(|share_if| share_if(value)));
                Poll::Ready(Ok(outcome))
            }
            Poll::Pending => {
                let mut work = made.take().expect("it has just been polled");
                *work.as_mut().project().terms = self.take_terms(leading.is_last_attempt());
                self.first = first.lend();
                self.publish(leading, work, &first, cx);
                first.keep();
                Poll::Pending
            }
        }
    }

    /// What the flight has to know of the work, if anything.
    fn take_terms(&mut self, is_last_attempt: bool) -> Option<Box<Terms<V, P>>> {
        let share_if = self.share_if.take();
        let detach = match self.detach.take() {
            None if !self.attached => self.group.default_detach(),
            own => own,
        };
        let is_usual = share_if.is_none() && !is_last_attempt && detach.is_none();
        (!is_usual).then(|| Box::new(Terms { share_if, is_last_attempt, detach }))
    }

    /// Gives the work, which has been polled, to the flight.
    #[inline(never)]
    fn publish(&mut self, leading: Leading<'a, K, V, S>, work: Work<V>, first: &FirstWaker, cx: &mut Context<'_>) {
        let place = self.place.insert(Place::leading(&self.group.group, leading, self.on_abandon));
        place.store(work, |flight| first.forward_to(flight), cx);
    }

    /// A call that waits, or that has been polled before.
    fn resume(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outcome<V>, CallError>> {
        let place = self.place.as_mut().expect("a call is not polled after it has ended");
        if let Some(value) = place.collect() {
            self.place = None;
            return Poll::Ready(Ok(Outcome { value, role: Role::Followed, shared: true }));
        }
        let outcome = match ready!(place.poll(cx)) {
            Arrival::Landed(value, role) => {
                self.place = None;
                return Poll::Ready(Ok(Outcome { value: own(value), role, shared: true }));
            }
            Arrival::TookOver { attempt, waker } => {
                let leading = Leading::new(&self.group.group, place.id(), attempt, self.max_attempts);
                drop(waker);
                self.place = None;
                let mut made = None;
                let polled = self.lead(leading, &mut made, cx);
                // As in `poll`.
                drop(made);
                return polled;
            }
            Arrival::Own(value, role) => Ok(Outcome { value, role, shared: false }),
            Arrival::Failed(error) => Err(error),
            Arrival::Panicked(payload) => resume_panic(payload),
        };
        self.place = None;
        Poll::Ready(outcome)
    }
}

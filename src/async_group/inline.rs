//! Calls whose work runs inside the caller's own future.

use super::place::{Arrival, Place};
use crate::call::{OnAbandon, Options};
use crate::error::CallError;
use crate::group::{Entered, Group, Leading, Newcomer, Polling, own};
use crate::outcome::{Outcome, Role};
use crate::primitive::ThreadNumber;
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use hashbrown::Equivalent;
use pin_project_lite::pin_project;

pin_project! {
    /// A call that runs its own work, from entering the table to its end.
    pub(super) struct InlineCall<'a, K, V, S, Q: ?Sized, M, P, W, F> {
        // It comes first, so that it is dropped first: the flight is left before the closures are dropped, which may call it.
        #[pin]
        stage: Stage<'a, K, V, S, F>,
        group: &'a Group<K, V, S>,
        key: &'a Q,
        make_key: Option<M>,
        max_attempts: u32,
        on_abandon: OnAbandon,
        share_if: Option<P>,
        work: Option<W>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<'a, K, V, S, F> {
        /// Not entered yet, or ended.
        Outside,
        Waiting { place: Place<&'a Group<K, V, S>, K, V, S> },
        // The lead comes first, so that it is dropped first: the flight is abandoned before the work is dropped.
        Leading {
            // `None` while the work is polled for the first time, and when it has panicked.
            leading: Option<Leading<'a, K, V, S>>,
            // Under which it leads once its work has had to wait.
            number: Option<ThreadNumber>,
            #[pin]
            future: F,
        },
    }
}

impl<'a, K, V, S, Q, M, P, W, F> InlineCall<'a, K, V, S, Q, M, P, W, F>
where
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
    V: Clone,
    M: FnOnce() -> K,
    P: FnOnce(&V) -> bool,
    W: FnOnce() -> F,
    F: Future<Output = V>,
{
    #[inline]
    pub(super) fn new(group: &'a Group<K, V, S>, key: &'a Q, make_key: M, options: Options<P>, work: W) -> Self {
        let Options { max_attempts, on_abandon, share_if, .. } = options;
        let (make_key, work) = (Some(make_key), Some(work));
        Self { stage: Stage::Outside, group, key, make_key, max_attempts, on_abandon, share_if, work }
    }

    /// Begins again, if there is work that has not been used.
    #[cold]
    fn restart(self: Pin<&mut Self>, key_maker: &impl Fn(&'a Q) -> M) -> bool {
        let this = self.project();
        *this.make_key = Some(key_maker(this.key));
        this.work.is_some()
    }

    /// Polls the work for the first time. The lead is a local meanwhile: if that panics, the flight is abandoned; and a lone call
    /// whose work is ready never writes it anywhere.
    #[inline]
    fn drive(
        mut stage: Pin<&mut Stage<'a, K, V, S, F>>,
        leading: Leading<'a, K, V, S>,
        share_if: &mut Option<P>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Outcome<V>, CallError>> {
        let StageProjection::Leading { leading: kept, number, future } = stage.as_mut().project() else {
            unreachable!("it leads")
        };
        let Poll::Ready(value) = future.poll(cx) else {
            // A call of its own key from inside the work would wait for itself, and is told so by the number that is noted:
            // that of the thread so far, by way of entering. One that goes from thread to thread is written down only once.
            *number = number.or_else(|| ThreadNumber::of_work().inspect(|work| leading.note_leader(Some(*work))));
            *kept = Some(leading);
            return Poll::Pending;
        };
        Self::land(stage, leading, value, share_if)
    }

    #[inline]
    fn land(
        mut stage: Pin<&mut Stage<'a, K, V, S, F>>,
        leading: Leading<'a, K, V, S>,
        value: V,
        share_if: &mut Option<P>,
    ) -> Poll<Result<Outcome<V>, CallError>> {
        let outcome = leading.finish(value, |value| share_if.take().is_none_or(|share_if| share_if(value)));
        // Only now is the finished work dropped.
        stage.set(Stage::Outside);
        Poll::Ready(Ok(outcome))
    }

    /// A call that waits, or that has been polled before.
    #[inline(never)]
    fn resume(
        mut stage: Pin<&mut Stage<'a, K, V, S, F>>,
        group: &'a Group<K, V, S>,
        max_attempts: u32,
        work: &mut Option<W>,
        share_if: &mut Option<P>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Outcome<V>, CallError>> {
        let outcome = match stage.as_mut().project() {
            StageProjection::Outside => panic!("a call is not polled after it has ended"),
            StageProjection::Leading { leading, number, future } => {
                assert!(leading.is_some(), "the work is not polled after it has ended");
                let kept = Kept(leading);
                let _polling = Polling::begin(*number);
                let Poll::Ready(value) = future.poll(cx) else {
                    mem::forget(kept);
                    return Poll::Pending;
                };
                let leading = kept.0.take().expect("it has not panicked");
                drop(kept);
                return Self::land(stage, leading, value, share_if);
            }
            StageProjection::Waiting { place } => {
                if let Some(value) = place.collect() {
                    stage.set(Stage::Outside);
                    return Poll::Ready(Ok(Outcome { value, role: Role::Followed, shared: true }));
                }
                let id = place.id();
                match ready!(place.poll(cx)) {
                    Arrival::TookOver { attempt, waker } => {
                        let leading = Leading::new(group, id, attempt, max_attempts);
                        drop(waker);
                        let work = work.take().expect("a call leads once at most");
                        stage.set(Stage::Leading { leading: None, number: None, future: work() });
                        return Self::drive(stage, leading, share_if, cx);
                    }
                    Arrival::Landed(value, role) => Ok(Outcome { value: own(value), role, shared: true }),
                    Arrival::Own(value, role) => Ok(Outcome { value, role, shared: false }),
                    Arrival::Failed(error) => Err(error),
                    Arrival::Panicked(payload) => crate::primitive::resume_panic(payload),
                }
            }
        };
        stage.set(Stage::Outside);
        Poll::Ready(outcome)
    }
}

/// A lead that stays where it is while the work is polled. If that panics, it is taken out, and so abandons the flight.
struct Kept<'l, L>(&'l mut Option<L>);

impl<L> Drop for Kept<'_, L> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

pin_project! {
    /// A call that goes on in a fresh flight where it would fail for an abandoned one.
    pub(super) struct PlainInlineCall<'a, K, V, S, Q: ?Sized, M, P, W, F, R> {
        #[pin]
        call: InlineCall<'a, K, V, S, Q, M, P, W, F>,
        // What makes of a key what makes the owned one.
        key_maker: R,
    }
}

impl<'a, K, V, S, Q: ?Sized, M, P, W, F, R> PlainInlineCall<'a, K, V, S, Q, M, P, W, F, R> {
    #[inline]
    pub(super) fn new(call: InlineCall<'a, K, V, S, Q, M, P, W, F>, key_maker: R) -> Self {
        Self { call, key_maker }
    }
}

impl<'a, K, V, S, Q, M, P, W, F, R> Future for PlainInlineCall<'a, K, V, S, Q, M, P, W, F, R>
where
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
    V: Clone,
    M: FnOnce() -> K,
    P: FnOnce(&V) -> bool,
    W: FnOnce() -> F,
    F: Future<Output = V>,
    R: Fn(&'a Q) -> M,
{
    type Output = V;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<V> {
        let mut this = self.project();
        loop {
            match ready!(this.call.as_mut().poll(cx)) {
                Ok(outcome) => return Poll::Ready(outcome.value),
                Err(CallError::Abandoned) if this.call.as_mut().restart(this.key_maker) => {}
                Err(error) => error.refuse(),
            }
        }
    }
}

/// A call that tells more than its value.
impl<'a, K, V, S, Q, M, P, W, F> Future for InlineCall<'a, K, V, S, Q, M, P, W, F>
where
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
    V: Clone,
    M: FnOnce() -> K,
    P: FnOnce(&V) -> bool,
    W: FnOnce() -> F,
    F: Future<Output = V>,
{
    type Output = Result<Outcome<V>, CallError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(make_key) = this.make_key.take() else {
            return Self::resume(this.stage, this.group, *this.max_attempts, this.work, this.share_if, cx);
        };
        let on_abandon = *this.on_abandon;
        let newcomer = Newcomer { on_abandon, max_attempts: *this.max_attempts };
        let entered = this.group.enter(
            *this.key,
            make_key,
            newcomer,
            |slot, shared, seat| shared.tasks.insert(slot, on_abandon, seat),
            |group, id, task| Place::waiting(group, id, task, on_abandon),
        );
        match entered {
            Entered::Lead(leading) => {
                let work = this.work.take().expect("a call leads once at most");
                this.stage.set(Stage::Leading { leading: None, number: None, future: work() });
                Self::drive(this.stage, leading, this.share_if, cx)
            }
            Entered::Wait(place) => {
                this.stage.set(Stage::Waiting { place });
                Self::resume(this.stage, this.group, *this.max_attempts, this.work, this.share_if, cx)
            }
            Entered::Reentrant => Poll::Ready(Err(CallError::Reentrant)),
        }
    }
}

//! Calls whose work runs inside the caller's own future.

use super::place::{Arrival, Place};
use crate::call::Options;
use crate::error::CallError;
use crate::group::{Entered, Group, Leading, Newcomer, own};
use crate::outcome::Outcome;
use crate::primitive::ThreadNumber;
use core::future::Future;
use core::hash::{BuildHasher, Hash};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use hashbrown::Equivalent;
use pin_project_lite::pin_project;

pin_project! {
    /// A call that runs its own work, from entering the table to its end.
    pub(super) struct InlineCall<'a, K, V, S, Q: ?Sized, M, P, W, F> {
        group: &'a Group<K, V, S>,
        key: &'a Q,
        make_key: Option<M>,
        options: Options<Option<P>>,
        work: Option<W>,
        #[pin]
        stage: Stage<'a, K, V, S, F>,
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
            leading: Option<Leading<'a, K, V, S>>,
            polled: bool,
            #[pin]
            future: F,
        },
    }
}

/// Abandons the flight if the poll of its work panics.
struct Abandons<'p, 'a, K, V, S>(&'p mut Option<Leading<'a, K, V, S>>);

impl<K, V, S> Drop for Abandons<'_, '_, K, V, S> {
    fn drop(&mut self) {
        self.0.take();
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
    pub(super) fn new(group: &'a Group<K, V, S>, key: &'a Q, make_key: M, options: Options<P>, work: W) -> Self {
        let options = options.map_share_if(Some);
        Self { group, key, make_key: Some(make_key), options, work: Some(work), stage: Stage::Outside }
    }

    /// The work, if it has not been used.
    pub(super) fn take_unused(self: Pin<&mut Self>) -> Option<W> {
        self.project().work.take()
    }

    pub(super) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Outcome<V>, CallError>> {
        let mut this = self.project();
        let Options { on_abandon, max_attempts, .. } = *this.options;
        if let Some(make_key) = this.make_key.take() {
            let newcomer = Newcomer { on_abandon, max_attempts, is_thread: true };
            let entered = this.group.enter(
                *this.key,
                make_key,
                newcomer,
                || None,
                |shared, seat| shared.tasks.insert(on_abandon, Some(seat)),
                |group, id, slot, task| Place::waiting(group, id, slot, task, on_abandon),
            );
            match entered {
                Entered::Lead(leading) => {
                    let work = this.work.take().expect("a call leads once at most");
                    let future = work();
                    this.stage.set(Stage::Leading { leading: Some(leading), polled: false, future });
                }
                Entered::Wait(place) => this.stage.set(Stage::Waiting { place }),
                Entered::Reentrant => return Poll::Ready(Err(CallError::Reentrant)),
            }
        }
        if let StageProjection::Waiting { place } = this.stage.as_mut().project() {
            let id = place.id();
            let outcome = match ready!(place.poll(cx)) {
                Arrival::TookOver { attempt, waker } => {
                    let leading = Leading::new(*this.group, id, attempt, max_attempts);
                    drop(waker);
                    let work = this.work.take().expect("a call leads once at most");
                    let future = work();
                    this.stage.set(Stage::Leading { leading: Some(leading), polled: false, future });
                    None
                }
                Arrival::Landed(value, role) => Some(Ok(Outcome { value: own(value), role, shared: true })),
                Arrival::Own(value, role) => Some(Ok(Outcome { value, role, shared: false })),
                Arrival::Failed(error) => Some(Err(error)),
                Arrival::Panicked(payload) => crate::primitive::resume_panic(payload),
            };
            if let Some(outcome) = outcome {
                this.stage.set(Stage::Outside);
                return Poll::Ready(outcome);
            }
        }
        let StageProjection::Leading { leading, polled, future } = this.stage.as_mut().project() else {
            panic!("a call is not polled after it has ended");
        };
        // While the work is polled, a call of its own key from inside it would wait for itself, and is told so by the thread
        // that is noted here. Entering has noted it for the first poll.
        if let Some(leading) = leading.as_ref().filter(|_| *polled) {
            leading.note_thread(ThreadNumber::current());
        }
        *polled = true;
        let abandons = Abandons(leading);
        let polled = future.poll(cx);
        let leading = &mut *abandons.0;
        let result = match polled {
            Poll::Pending => {
                if let Some(leading) = leading {
                    leading.note_thread(None);
                }
                core::mem::forget(abandons);
                return Poll::Pending;
            }
            Poll::Ready(value) => {
                let leading = leading.take().expect("the work is not polled after it has ended");
                let share_if = this.options.share_if.take();
                leading.finish(value, |value| share_if.is_none_or(|share_if| share_if(value)))
            }
        };
        drop(abandons);
        // Only now is the finished work dropped.
        this.stage.set(Stage::Outside);
        Poll::Ready(Ok(result))
    }
}

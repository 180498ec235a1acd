//! Work that goes on after its last caller has left.

use super::place::{Arrival, Place};
use crate::group::{Detach, Group};
use crate::primitive::{Arc, resume_panic};
use alloc::boxed::Box;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

/// A function of the user's that runs futures.
pub(super) type Spawner = dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync;

pub(super) const NO_SPAWNER: &str = "oneflight: detach() needs a group with a spawner, see AsyncGroupBuilder::spawner";

/// Makes what the last caller calls: [`detach`], of whose bounds only a group that detaches by default knows.
pub(super) type Detacher<K, V, S> = fn(&Arc<Group<K, V, S>>, &alloc::sync::Arc<Spawner>) -> Detach<V>;

/// Drives the work of a flight for nobody in particular. Dropping it leaves the flight like a caller.
struct Driver<K, V, S>(Place<Arc<Group<K, V, S>>, K, V, S>);

impl<K, V: Clone, S> Future for Driver<K, V, S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match ready!(self.0.poll(cx)) {
            Arrival::Panicked(payload) => resume_panic(payload),
            // It does not take over: it has no closure, and asked to be told of an abandoned flight instead.
            Arrival::Landed(..) | Arrival::Own(..) | Arrival::Failed(_) => Poll::Ready(()),
            Arrival::TookOver { .. } => unreachable!("a detached driver does not take over"),
        }
    }
}

/// What the last caller calls when it leaves.
pub(super) fn detach<K, V, S>(group: &Arc<Group<K, V, S>>, spawner: &alloc::sync::Arc<Spawner>) -> Detach<V>
where
    K: Send + 'static,
    V: Clone + Send + Sync + 'static,
    S: Send + Sync + 'static,
{
    let group = Arc::clone(group);
    let spawner = alloc::sync::Arc::clone(spawner);
    Box::new(move |id, slot, task| spawner(Box::pin(Driver(Place::detached(group, id, slot, task)))))
}

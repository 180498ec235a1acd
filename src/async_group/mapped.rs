//! Work whose output is turned into another.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use pin_project_lite::pin_project;

pin_project! {
    /// A future that is there until this is dropped, unlike one that is awaited: what a flight has come to lands before the
    /// destructors of its finished work run, which may panic or call the group.
    pub(super) struct Mapped<F, M> {
        #[pin]
        future: F,
        map: M,
    }
}

impl<F, M> Mapped<F, M> {
    pub(super) fn new(future: F, map: M) -> Self {
        Self { future, map }
    }
}

impl<F: Future, M: FnMut(F::Output) -> T, T> Future for Mapped<F, M> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = self.project();
        this.future.poll(cx).map(this.map)
    }
}

//! Who drives the connections of tasks.

use crate::redis::error::Error;
use crate::time::BoxFuture;
use std::future::{Future, poll_fn};
use std::pin::pin;

/// Who drives the connections. The tasks that send over them may run on any executor.
#[derive(Clone, Debug)]
pub(crate) enum Runtime {
    /// The threads that smol has for the whole process.
    #[cfg(feature = "redis-smol")]
    Smol,
    /// A runtime of tokio. It must live as long as the link is used, with its timers and its I/O enabled.
    #[cfg(feature = "redis-tokio")]
    Tokio(tokio::runtime::Handle),
}

impl Runtime {
    /// The tokio runtime that this is called in, with the feature `redis-tokio`; otherwise smol.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] outside of tokio, if there is only the feature `redis-tokio`.
    pub(crate) fn current() -> Result<Self, Error> {
        #[cfg(all(feature = "redis-smol", not(feature = "redis-tokio")))]
        return Ok(Self::Smol);
        #[cfg(feature = "redis-tokio")]
        match tokio::runtime::Handle::try_current() {
            Ok(handle) => Ok(Self::Tokio(handle)),
            #[cfg(feature = "redis-smol")]
            Err(_) => Ok(Self::Smol),
            #[cfg(not(feature = "redis-smol"))]
            Err(error) => Err(Error::Settings(std::sync::Arc::new(error))),
        }
    }

    /// Sees to it that `work` is done.
    pub(super) fn spawn(&self, work: BoxFuture) {
        match self {
            #[cfg(feature = "redis-smol")]
            Self::Smol => smol::spawn(work).detach(),
            #[cfg(feature = "redis-tokio")]
            Self::Tokio(handle) => drop(handle.spawn(work)),
        }
    }

    /// `future`, wherever it is polled: tokio's timers work only inside of tokio.
    pub(super) async fn entered<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            #[cfg(feature = "redis-tokio")]
            let _guard = self.enter();
            future.as_mut().poll(cx)
        })
        .await
    }

    #[cfg(feature = "redis-tokio")]
    fn enter(&self) -> Option<tokio::runtime::EnterGuard<'_>> {
        match self {
            #[cfg(feature = "redis-smol")]
            Self::Smol => None,
            Self::Tokio(handle) => Some(handle.enter()),
        }
    }
}

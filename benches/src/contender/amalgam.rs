//! amalgam-cache. Its keys are text, and its tasks must run on tokio, with a timer.

use super::tasks::Coalesces;
use alloc::sync::Arc;
use amalgam::Cache;
use core::convert::Infallible;
use core::fmt;
use core::future::{Future, IntoFuture as _};
use core::sync::atomic::{AtomicBool, Ordering};

/// A cache out of which whoever ran the work takes the value again.
///
/// Told to keep nothing in the first place (`with_skip_memory`), it does not coalesce: each caller runs its own work.
pub struct Amalgam(Cache<u64>);

impl Default for Amalgam {
    fn default() -> Self {
        Self(Cache::builder().try_build().expect("the defaults are valid"))
    }
}

/// It asks for work that lives as long as it likes: the future is made before it is known who leads.
impl Coalesces<str> for Amalgam {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a str, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let (work, led) = (work(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&led);
        let request = self.0.get_or_set(key, move |_| async move {
            told.store(true, Ordering::Relaxed);
            Ok::<_, Infallible>(work.await)
        });
        let value = request.into_future();
        async move {
            let value = value.await.expect("nothing fails in memory");
            if led.load(Ordering::Relaxed) {
                self.0.remove(key).await.expect("nothing fails in memory");
            }
            value
        }
    }
}

impl fmt::Debug for Amalgam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Amalgam").finish_non_exhaustive()
    }
}

//! amalgam-cache, told to keep nothing: a call neither looks into its memory nor writes into it, so nothing has to be removed
//! after a call. Its keys are text, and its tasks must run on tokio.

use super::tasks::Coalesces;
use amalgam::{Cache, EntryOptions};
use core::convert::Infallible;
use core::fmt;
use core::future::{Future, IntoFuture as _};

/// A cache that only coalesces.
pub struct Amalgam(Cache<u64>);

impl Default for Amalgam {
    fn default() -> Self {
        let options = EntryOptions::default().with_skip_memory(true, true);
        Self(Cache::builder().default_options(options).try_build().expect("the options are valid"))
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
        let work = work();
        let request = self.0.get_or_set(key, move |_| async move { Ok::<_, Infallible>(work.await) });
        let value = request.into_future();
        async move { value.await.expect("nothing fails in memory") }
    }
}

impl fmt::Debug for Amalgam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Amalgam").finish_non_exhaustive()
    }
}

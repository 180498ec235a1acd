//! How the crates that coalesce the calls of tasks are used.
//!
//! | crate | as it is used |
//! |---|---|
//! | singleflight-async | `SingleFlight::work` |
//! | async_singleflight | `Group::work` |
//! | uniflight | `Merger::execute` |
//! | rs-singleflight | `Group::do_call` |
//! | mea | `singleflight::Group::work` |
//! | quick_cache | `get_or_insert_async`, then `remove` by whoever ran the work; large enough never to evict |
//! | moka | `future::Cache::get_with_by_ref`, then `invalidate` by whoever ran the work; large enough never to evict |

use super::Key;
use super::tasks::Coalesces;
use core::convert::Infallible;
use core::future::Future;
use core::hash::Hash;
use futures_util::future::FutureExt as _;

/// A moka that never has to evict anything here.
pub(super) fn moka<K: Hash + Eq + Send + Sync + 'static>() -> moka::future::Cache<K, u64> {
    moka::future::Cache::new(1 << 20)
}

impl<Q: Key + ?Sized> Coalesces<Q> for singleflight_async::SingleFlight<Q::Owned, u64> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.work(key.to_owned(), work)
    }
}

/// It asks for the future of the work, not for a function that makes it.
impl<Q: Key + ?Sized> Coalesces<Q> for async_singleflight::Group<Q::Owned, u64, Infallible> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.work(key, work().map(Ok)).map(|value| value.expect("no work fails here"))
    }
}

impl<Q: Key + ?Sized> Coalesces<Q> for uniflight::Merger<Q::Owned, u64> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.execute(key, work).map(|value| value.expect("no work panics here"))
    }
}

impl<Q: Key + ?Sized> Coalesces<Q> for rs_singleflight::Group<Q::Owned, u64, Infallible> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.do_call(key.to_owned(), || work().map(Ok)).map(certain)
    }
}

impl<Q: Key + ?Sized> Coalesces<Q> for mea::singleflight::Group<Q::Owned, u64> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.work(key.to_owned(), async move || work().await)
    }
}

impl<Q: Key + ?Sized> Coalesces<Q> for quick_cache::sync::Cache<Q::Owned, u64> {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> u64
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let mut led = false;
        let value = self.get_or_insert_async(key, async {
            led = true;
            Ok(work().await)
        });
        let value = certain(value.await);
        if led {
            self.remove(key);
        }
        value
    }
}

impl<Q: Key + ?Sized> Coalesces<Q> for moka::future::Cache<Q::Owned, u64> {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> u64
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let mut led = false;
        let value = self.get_with_by_ref(key, async {
            led = true;
            work().await
        });
        let value = value.await;
        if led {
            self.invalidate(key).await;
        }
        value
    }
}

fn certain<T>(value: Result<T, Infallible>) -> T {
    match value {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

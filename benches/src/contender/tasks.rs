//! What coalesces the calls of tasks, behind one small trait. Keys and values are `u64`.
//!
//! | contender | as it is used |
//! |---|---|
//! | oneflight | `AsyncGroup::do_call` |
//! | oneflight, inline | `AsyncGroup::do_call_inline` |
//! | singleflight-async | `SingleFlight::work` |
//! | uniflight | `Merger::execute` |
//! | rs-singleflight | `Group::do_call` |
//! | quick_cache | `get_or_insert_async`, then `remove` by whoever ran the work; large enough never to evict |
//! | moka | `future::Cache::get_with`, then `invalidate` by whoever ran the work; large enough never to evict |
//! | [`SharedMap`] | what one writes by hand: a `Shared` of `futures` in a map |
//! | [`Floor`](super::floor::Floor), [`Boxed`](super::floor::Boxed) | what any of them must at least do, written by hand |

use alloc::boxed::Box;
use core::convert::Infallible;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use futures_util::future::{FutureExt as _, Shared};
use hashbrown::HashMap;
use oneflight::AsyncGroup;
use parking_lot::Mutex;

/// A way to coalesce the calls of tasks.
pub trait Coalesces: Send + Sync + 'static {
    /// The value of `key`: the result of `work`, or of the work of another caller that is at it.
    fn call<'a, W, F>(&'a self, key: &'a u64, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static;
}

/// An `AsyncGroup` whose callers run their work inside their own future.
#[derive(Debug, Default)]
pub struct Inline(pub AsyncGroup<u64, u64>);

/// One `Shared` for each key, under one lock; removed by whoever put it there. If that one is dropped, it stays for ever.
#[derive(Default)]
pub struct SharedMap(Mutex<HashMap<u64, Shared<BoxedWork>>>);

type BoxedWork = Pin<Box<dyn Future<Output = u64> + Send>>;

/// A moka that never has to evict anything here.
#[must_use]
pub fn moka() -> moka::future::Cache<u64, u64> {
    moka::future::Cache::new(1 << 20)
}

/// A quick_cache that never has to evict anything here. To be made on a thread that is not pinned: it counts the cores.
#[must_use]
pub fn quick_cache() -> quick_cache::sync::Cache<u64, u64> {
    super::quick_cache()
}

impl Coalesces for AsyncGroup<u64, u64> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a u64, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.do_call(key, work)
    }
}

impl Coalesces for Inline {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a u64, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.0.do_call_inline(key, work)
    }
}

impl Coalesces for singleflight_async::SingleFlight<u64, u64> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a u64, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.work(*key, work)
    }
}

impl Coalesces for uniflight::Merger<u64, u64> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a u64, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.execute(key, work).map(|value| value.expect("no work panics here"))
    }
}

impl Coalesces for rs_singleflight::Group<u64, u64, Infallible> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a u64, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.do_call(*key, || work().map(Ok)).map(certain)
    }
}

impl Coalesces for quick_cache::sync::Cache<u64, u64> {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a u64, work: W) -> u64
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

impl Coalesces for moka::future::Cache<u64, u64> {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a u64, work: W) -> u64
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let mut led = false;
        let value = self.get_with(*key, async {
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

impl Coalesces for SharedMap {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a u64, work: W) -> u64
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let mut led = false;
        let shared = {
            let mut map = self.0.lock();
            let make = || {
                led = true;
                let work: BoxedWork = Box::pin(work());
                work.shared()
            };
            map.entry(*key).or_insert_with(make).clone()
        };
        let value = shared.await;
        if led {
            let removed = self.0.lock().remove(key);
            drop(removed);
        }
        value
    }
}

impl fmt::Debug for SharedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMap").finish_non_exhaustive()
    }
}

fn certain<T>(value: Result<T, Infallible>) -> T {
    match value {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

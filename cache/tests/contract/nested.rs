//! E5: loaders that call the cache for other keys, on a small stack.

use crate::support::way::Fail;
use futures_lite::future::block_on;
use oneflight_cache::Cache;
use std::future::Future;
use std::pin::Pin;
use std::thread;

/// A build that is not optimised takes three times as much.
const STACK: usize = if cfg!(debug_assertions) { 640 << 10 } else { 256 << 10 };

type Depths = Cache<u32, u32, Fail>;

fn nest(cache: &Depths, depth: u32) -> Pin<Box<dyn Future<Output = Result<u32, Fail>> + Send>> {
    let cache = cache.clone();
    Box::pin(async move {
        let nested = cache.clone();
        let load = move || async move { if depth == 0 { Ok(0) } else { Ok(nest(&nested, depth - 1).await? + 1) } };
        Ok(cache.get_or_load(&depth, load).await.map_err(|_| Fail(depth))?.value)
    })
}

#[test]
fn e5_ten_calls_within_calls_fit_a_small_stack() {
    let small = thread::Builder::new().stack_size(STACK);
    let nested = small.spawn(|| block_on(nest(&Cache::builder().build(), 10)));
    assert_eq!(nested.expect("a thread").join().expect("no panic"), Ok(10));
}

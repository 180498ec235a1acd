#![allow(missing_docs)]
use oneflight_cache::Cache;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
fn main() {
    let keys: Vec<u64> = (0..1000).collect();
    let task: Cache<u64, Arc<u64>> = Cache::builder().capacity(20000).ttl(Duration::from_secs(3600)).build();
    for &k in &keys {
        let v = Arc::new(k);
        smol::block_on(task.get_or_load(&k, || async move { Ok(v) })).unwrap();
    }
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..30000 {
        for k in &keys {
            let f = std::pin::pin!(task.get_or_load(black_box(k), || async { Err("x".into()) }));
            black_box(match std::future::Future::poll(f, &mut cx) {
                std::task::Poll::Ready(Ok(ref v)) => *v.value,
                _ => 0,
            });
        }
    }
}

//! What a hit allocates: nothing, whichever the call; and how much a load does. Counted for the calling thread.

use allocation_counter::measure;
use futures_lite::future::block_on;
use oneflight_cache::{BoxError, Cache, Source, StoreError, blocking};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3_600);

/// After the first, which may make what its thread keeps.
#[track_caller]
fn allocates_nothing(mut hit: impl FnMut() -> Source) {
    assert_eq!(hit(), Source::Hit);
    assert_eq!(measure(|| assert_eq!(hit(), Source::Hit)).count_total, 0);
}

fn gone() -> StoreError {
    missing().into()
}

fn missing() -> BoxError {
    "it is there".into()
}

#[test]
fn hits_of_tasks_allocate_nothing() {
    let cache: Cache<u64, Arc<str>> = Cache::builder().ttl(LONG).build();
    let collector = cache.collector(|_| async { Err::<Vec<Arc<str>>, _>(gone()) }).build();
    block_on(async { cache.put(&7, "Ada".into()).await }).unwrap();
    allocates_nothing(|| block_on(cache.get_or_load(&7, || async { Err(missing()) })).unwrap().source);
    allocates_nothing(|| block_on(cache.call(&7).get_or_load(|| async { Err(missing()) })).unwrap().source);
    allocates_nothing(|| {
        block_on(cache.call(&7).timeout(LONG).get_or_load(|| async { Err(missing()) })).unwrap().source
    });
    allocates_nothing(|| block_on(collector.load(&7)).unwrap().source);
    allocates_nothing(|| block_on(cache.get(&7)).unwrap().unwrap().source);
}

#[test]
fn hits_of_threads_allocate_nothing() {
    let cache: blocking::Cache<u64, Arc<str>> = blocking::Cache::builder().ttl(LONG).build_blocking();
    let collector = cache.collector(|_| Err::<Vec<Arc<str>>, _>(gone())).build();
    cache.put(&7, "Ada".into()).unwrap();
    allocates_nothing(|| cache.get_or_load(&7, || Err(missing())).unwrap().source);
    allocates_nothing(|| cache.get_or_load_inline(&7, || Err(missing())).unwrap().source);
    allocates_nothing(|| cache.call(&7).timeout(LONG).get_or_load(|| Err(missing())).unwrap().source);
    allocates_nothing(|| collector.load(&7).unwrap().source);
    allocates_nothing(|| cache.get(&7).unwrap().unwrap().source);
}

/// The futures of a load are in boxes, and have no room for what other loads may need.
#[test]
fn a_load_of_a_task_needs_less_than_two_kilobytes() {
    let cache: Cache<u64, u64> = Cache::builder().ttl(LONG).build();
    let load = |key| {
        let fetched = block_on(cache.get_or_load(&key, move || async move { Ok(key) }));
        assert_eq!(fetched.unwrap().source, Source::Loaded);
    };
    load(1);
    let info = measure(|| load(2));
    assert!(info.bytes_max < 2_048, "{info:?}");
}

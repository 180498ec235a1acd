//! For tests of programs that use a cache (feature `test-util`).

mod clock;
mod faults;

pub use clock::ManualClock;
pub use faults::{Fault, Faults, FaultyStore};

use std::time::{Duration, Instant};

/// Lets others run until `count` callers wait, as `waiters` counts them: `wait_for_waiters(3, || cache.waiters("key"))`. For
/// threads; a task awaits [`async_wait_for_waiters`].
///
/// # Panics
///
/// If it takes more than 30 s.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{blocking::Cache, test_util::wait_for_waiters};
///
/// let users: Cache<u64, String> = Cache::builder().build_blocking();
/// std::thread::scope(|threads| {
///     let (go, gone) = std::sync::mpsc::channel();
///     let load = move || {
///         gone.recv()?;
///         Ok("Ada".to_owned())
///     };
///     threads.spawn(|| users.get_or_load(&7, load));
///     while users.stats().loads == 0 {
///         std::thread::yield_now();
///     }
///     threads.spawn(|| users.get_or_load(&7, || unreachable!("it joins")));
///     wait_for_waiters(1, || users.waiters(&7));
///     go.send(()).unwrap();
/// });
/// assert_eq!(users.stats().joins, 1);
/// ```
#[track_caller]
pub fn wait_for_waiters(count: usize, waiters: impl Fn() -> usize) {
    let begun = Instant::now();
    while waiters() < count {
        assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} in vain for {count} callers; there are {}", waiters());
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// As [`wait_for_waiters`], for tasks: yields to the others of its executor.
///
/// # Cancel safety
///
/// It may be dropped at any time.
///
/// # Panics
///
/// If it takes more than 30 s.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::{Cache, Source};
/// # smol::block_on(async {
/// let users: Cache<u64, String> = Cache::builder().build();
/// oneflight_cache::test_util::async_wait_for_waiters(0, || users.waiters(&7)).await;
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// # }).unwrap();
/// ```
pub async fn async_wait_for_waiters(count: usize, waiters: impl Fn() -> usize) {
    let begun = Instant::now();
    while waiters() < count {
        assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} in vain for {count} callers; there are {}", waiters());
        futures_lite::future::yield_now().await;
    }
}

const LIMIT: Duration = Duration::from_secs(30);

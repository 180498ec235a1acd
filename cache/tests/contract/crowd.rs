//! I9 where the memory keeps few of the keys. The soak does it with a million of them.

use crate::support::limits::within_limit;
use futures_lite::future::block_on;
use oneflight_cache::{BoxError, Cache, blocking};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

const KEYS: usize = 100_000;
const THREADS: usize = 16;
const CAPACITY: usize = 1_000;
/// The memory is divided, and rounds up what it shares out.
const MOST: usize = CAPACITY + CAPACITY / 10;

/// Which keys are being loaded, how many values are alive, and how many were at most.
#[derive(Debug)]
struct Census {
    loads: Vec<AtomicBool>,
    alive: AtomicUsize,
    most: AtomicUsize,
}

#[derive(Debug)]
struct Counted {
    key: usize,
    census: Arc<Census>,
}

impl Census {
    fn new() -> Arc<Self> {
        let loads = (0..KEYS).map(|_| AtomicBool::new(false)).collect();
        Arc::new(Self { loads, alive: AtomicUsize::new(0), most: AtomicUsize::new(0) })
    }

    /// The loader of `key`.
    fn load(self: &Arc<Self>, key: usize) -> Result<Counted, BoxError> {
        assert!(!self.loads[key].swap(true, Ordering::Relaxed), "two loads of one key at a time");
        let value = Counted::new(key, self);
        self.loads[key].store(false, Ordering::Relaxed);
        Ok(value)
    }

    /// Has sixteen threads ask for all keys, two for each at about the same time.
    fn ask_for_all(&self, ask: impl Fn(usize) -> Counted + Sync) {
        let share = KEYS / (THREADS / 2);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (ask, first) = (&ask, thread / 2 * share);
                scope.spawn(move || (first..first + share).for_each(|key| assert_eq!(ask(key).key, key)));
            }
        });
        // A thread may hold what it got, what it gives to the memory, and what that gives up for it.
        let most = self.most.load(Ordering::Relaxed);
        assert!(most <= MOST + 4 * THREADS, "{most} values at once");
    }

    fn alive(&self) -> usize {
        self.alive.load(Ordering::Relaxed)
    }
}

impl Counted {
    fn new(key: usize, census: &Arc<Census>) -> Self {
        let before = census.alive.fetch_add(1, Ordering::Relaxed);
        census.most.fetch_max(before + 1, Ordering::Relaxed);
        Self { key, census: Arc::clone(census) }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.key, &self.census)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.census.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn i9_of_100_000_keys_that_threads_ask_for_a_few_are_kept_and_nothing_else() {
    within_limit(|| {
        let census = Census::new();
        let cache = blocking::Cache::<usize, Counted>::builder().capacity(CAPACITY).build_blocking();
        census.ask_for_all(|key| {
            let census = Arc::clone(&census);
            cache.get_or_load(&key, move || census.load(key)).unwrap().value
        });
        assert_eq!(cache.in_flight(), 0);
        assert!(census.alive() <= MOST, "{} values", census.alive());
        drop(cache);
        assert_eq!(census.alive(), 0);
    });
}

#[test]
fn i9_of_100_000_keys_that_tasks_ask_for_a_few_are_kept_and_nothing_else() {
    within_limit(|| {
        let census = Census::new();
        let cache = Cache::<usize, Counted>::builder().capacity(CAPACITY).build();
        census.ask_for_all(|key| {
            let census = Arc::clone(&census);
            block_on(cache.get_or_load(&key, move || async move { census.load(key) })).unwrap().value
        });
        assert_eq!(cache.in_flight(), 0);
        assert!(census.alive() <= MOST, "{} values", census.alive());
        drop(cache);
        assert_eq!(census.alive(), 0);
    });
}

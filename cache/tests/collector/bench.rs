//! Collectors of both caches, and loaders that note what they are asked for.

use crate::support::limits::until;
use crate::support::run::{Running, run};
use crate::support::task_ways::{Executor, TaskCache, Tasks};
use crate::support::thread_way::Threads;
use crate::support::way::{Answer, AnyCache, AnyStore, Fail, Made, Way, cache};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{BatchOutput, Error, Fetched, Memory, blocking};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const WINDOW: Duration = Duration::from_millis(10);

/// The loader's own error becomes the cache's.
impl From<u32> for Fail {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

pub(crate) type Loaded = Result<Vec<u32>, u32>;
pub(crate) type Loader<R = Loaded> = Arc<dyn Fn(Vec<String>) -> R + Send + Sync>;

/// A collector whose calls block the thread until they have ended.
pub(crate) trait AnyCollector: Clone + Send + Sync + 'static {
    fn load(&self, key: &str) -> Answer<u32>;
    fn load_many(&self, keys: &[&str]) -> Result<Vec<Fetched<u32>>, Error<Fail>>;
    fn gathered(&self) -> usize;
}

pub(crate) trait CollectorWay: Way {
    type Collector<S: AnyStore<u32>>: AnyCollector;

    fn collector<S: AnyStore<u32>>(
        cache: &Self::Cache<u32, S>,
        window: Duration,
        max_batch: usize,
        loader: Loader,
    ) -> Self::Collector<S> {
        Self::collector_of(cache, window, max_batch, loader)
    }

    /// One whose loader returns whatever one may.
    fn collector_of<S: AnyStore<u32>, R: BatchOutput<u32, Fail> + Send + 'static>(
        cache: &Self::Cache<u32, S>,
        window: Duration,
        max_batch: usize,
        loader: Loader<R>,
    ) -> Self::Collector<S>;
}

impl<S: AnyStore<u32>> AnyCollector for blocking::Collector<String, u32, Fail, S> {
    fn load(&self, key: &str) -> Answer<u32> {
        Self::load(self, key)
    }

    fn load_many(&self, keys: &[&str]) -> Result<Vec<Fetched<u32>>, Error<Fail>> {
        Self::load_many(self, keys.iter().copied())
    }

    fn gathered(&self) -> usize {
        Self::gathered(self)
    }
}

impl CollectorWay for Threads {
    type Collector<S: AnyStore<u32>> = blocking::Collector<String, u32, Fail, S>;

    fn collector_of<S: AnyStore<u32>, R: BatchOutput<u32, Fail> + Send + 'static>(
        cache: &Self::Cache<u32, S>,
        window: Duration,
        max_batch: usize,
        loader: Loader<R>,
    ) -> Self::Collector<S> {
        cache.collector(move |keys| loader(keys)).window(window).max_batch(max_batch).build()
    }
}

std::thread_local! {
    static CHOSEN: Cell<Option<Executor>> = const { Cell::new(None) };
}

/// Where the tasks of caches and collectors run that this thread makes from now on.
pub(crate) fn choose(executor: Executor) {
    executor.choose();
    CHOSEN.set(Some(executor));
}

pub(crate) struct TaskCollector<S> {
    collector: oneflight_cache::Collector<String, u32, Fail, S>,
    executor: Executor,
}

impl<S> Clone for TaskCollector<S> {
    fn clone(&self) -> Self {
        Self { collector: self.collector.clone(), executor: self.executor }
    }
}

impl<S: AnyStore<u32>> AnyCollector for TaskCollector<S> {
    fn load(&self, key: &str) -> Answer<u32> {
        let (collector, key) = (self.collector.clone(), key.to_owned());
        self.executor.drive(async move { collector.load(key.as_str()).await })
    }

    fn load_many(&self, keys: &[&str]) -> Result<Vec<Fetched<u32>>, Error<Fail>> {
        let collector = self.collector.clone();
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        self.executor.drive(async move { collector.load_many(keys.iter().map(String::as_str)).await })
    }

    fn gathered(&self) -> usize {
        self.collector.gathered()
    }
}

impl CollectorWay for Tasks {
    type Collector<S: AnyStore<u32>> = TaskCollector<S>;

    fn collector_of<S: AnyStore<u32>, R: BatchOutput<u32, Fail> + Send + 'static>(
        cache: &TaskCache<u32, S>,
        window: Duration,
        max_batch: usize,
        loader: Loader<R>,
    ) -> Self::Collector<S> {
        let load = move |keys| {
            let loader = Arc::clone(&loader);
            smol::unblock(move || loader(keys))
        };
        let collector = cache.cache.collector(load).window(window).max_batch(max_batch).build();
        TaskCollector { collector, executor: CHOSEN.get().expect("the test has chosen one") }
    }
}

/// What a loader was asked for, call by call.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<Vec<String>>>>);

impl Calls {
    pub(crate) fn add(&self, keys: &[String]) -> usize {
        let mut calls = self.0.lock().unwrap();
        calls.push(keys.to_vec());
        calls.len()
    }

    /// The keys of each call in their order, as it depends on the threads who asks first.
    pub(crate) fn get(&self) -> Vec<Vec<String>> {
        let mut calls = self.0.lock().unwrap().clone();
        calls.iter_mut().for_each(|keys| keys.sort());
        calls
    }

    /// A loader that returns the keys as numbers, and notes them here.
    pub(crate) fn numbers(&self) -> Loader {
        let calls = self.clone();
        Arc::new(move |keys| {
            calls.add(&keys);
            Ok(numbers(&keys))
        })
    }
}

pub(crate) fn numbers(keys: &[String]) -> Vec<u32> {
    keys.iter().map(|key| key.parse().unwrap()).collect()
}

/// A cache, its clock, and a collector whose loader returns the keys as numbers, with what that was asked for.
pub(crate) struct Bench<W: CollectorWay> {
    pub(crate) cache: W::Cache<u32, Memory<String, u32>>,
    pub(crate) clock: ManualClock,
    pub(crate) collector: W::Collector<Memory<String, u32>>,
    pub(crate) calls: Calls,
}

impl<W: CollectorWay> Bench<W> {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder, 1_000)
    }

    pub(crate) fn with(set: impl FnOnce(Made<u32>) -> Made<u32>, max_batch: usize) -> Self {
        let calls = Calls::default();
        let (cache, clock) = cache::<W, u32>(set);
        let collector = W::collector(&cache, WINDOW, max_batch, calls.numbers());
        Self { cache, clock, collector, calls }
    }

    /// A caller in a thread of its own, whose key is in the batch that is being gathered.
    pub(crate) fn gathering(&self, key: &'static str) -> Running<Answer<u32>> {
        gathering(&self.collector, key)
    }

    /// A caller in a thread of its own.
    pub(crate) fn loading(&self, key: &'static str) -> Running<Answer<u32>> {
        let collector = self.collector.clone();
        run(move || collector.load(key))
    }

    /// A caller of several keys, in a thread of its own.
    pub(crate) fn loading_many(
        &self,
        keys: &'static [&'static str],
    ) -> Running<Result<Vec<Fetched<u32>>, Error<Fail>>> {
        let collector = self.collector.clone();
        run(move || collector.load_many(keys))
    }

    /// Until the batch that is being gathered has so many keys.
    pub(crate) fn until_gathered(&self, keys: usize) {
        until("the keys are gathered", || self.collector.gathered() == keys);
    }

    /// Until so many wait for the load of `key`.
    pub(crate) fn until_waiting(&self, key: &str, callers: usize) {
        until("they wait for the load", || self.cache.waiters(key) == callers);
    }
}

/// A caller in a thread of its own, whose key is in the batch that is being gathered.
pub(crate) fn gathering<C: AnyCollector>(collector: &C, key: &'static str) -> Running<Answer<u32>> {
    let before = collector.gathered();
    let caller = run({
        let collector = collector.clone();
        move || collector.load(key)
    });
    until("the key is gathered", || collector.gathered() > before);
    caller
}

/// The values, where all are there.
#[track_caller]
pub(crate) fn values(fetched: Result<Vec<Fetched<u32>>, Error<Fail>>) -> Vec<u32> {
    fetched.expect("there are values").iter().map(|fetched| fetched.value).collect()
}

/// A value whose first `Clone` panics.
#[derive(Debug, Default)]
pub(crate) struct Brittle(AtomicBool);

impl Clone for Brittle {
    fn clone(&self) -> Self {
        assert!(self.0.swap(true, Ordering::SeqCst), "brittle");
        Self(AtomicBool::new(true))
    }
}

/// A loader of values that are brittle.
pub(crate) fn brittle(calls: &Calls) -> impl Fn(Vec<String>) -> Result<Vec<Brittle>, u32> + Send + Sync + 'static {
    let calls = calls.clone();
    move |keys| {
        calls.add(&keys);
        Ok(keys.iter().map(|_| Brittle::default()).collect())
    }
}

//! The cache for tasks, on several executors. A loader that blocks becomes a future that is pending while it runs in a thread.

use super::way::{Answer, AnyCache, AnyStore, BatchLoader, Fail, Loader, Made, Refreshes, Value, Way};
use futures_lite::FutureExt;
use oneflight_cache::{BoxFuture, Cache, Error, Fetched, Stats};
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, LazyLock, mpsc};
use std::thread;
use std::time::Duration;

/// Where tasks run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Executor {
    Smol,
    Tokio,
    /// None: whoever calls polls.
    BlockOn,
}

std::thread_local! {
    static CHOSEN: Cell<Option<Executor>> = const { Cell::new(None) };
}

const THREADS: usize = 3;

impl Executor {
    /// The caches that this thread makes from now on are called there. Not a parameter of the type, so that the suite is
    /// compiled once for all of them.
    pub(crate) fn choose(self) {
        CHOSEN.set(Some(self));
    }

    fn chosen() -> Self {
        CHOSEN.get().expect("the test has chosen one")
    }

    pub(crate) fn spawn(self, task: BoxFuture) {
        static SMOL: LazyLock<Arc<smol::Executor<'static>>> = LazyLock::new(|| {
            let executor = Arc::new(smol::Executor::new());
            for _ in 0..THREADS {
                let executor = Arc::clone(&executor);
                thread::spawn(move || smol::block_on(executor.run(std::future::pending::<()>())));
            }
            executor
        });
        static TOKIO: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
            tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).build().expect("tokio can be started")
        });
        match self {
            Self::Smol => SMOL.spawn(task).detach(),
            Self::Tokio => drop(TOKIO.spawn(task)),
            Self::BlockOn => drop(thread::spawn(|| futures_lite::future::block_on(task))),
        }
    }

    /// Drives `call` to its end, and blocks the thread for as long. A panic of the call goes on here.
    pub(crate) fn drive<T: Send + 'static>(self, call: impl Future<Output = T> + Send + 'static) -> T {
        if let Self::BlockOn = self {
            return futures_lite::future::block_on(call);
        }
        let (end, ended) = mpsc::channel();
        self.spawn(Box::pin(async move {
            let result = AssertUnwindSafe(call).catch_unwind().await;
            // The receiver is gone if its test has failed.
            let _ = end.send(result);
        }));
        ended.recv().expect("the executor has dropped a task").unwrap_or_else(|payload| resume_unwind(payload))
    }
}

/// What a loader that blocks comes to. It begins at once, before the first poll.
fn begun<T: Send + 'static>(loader: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = T> + Send {
    smol::unblock(loader)
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

/// The cache for tasks, on the executor that was chosen.
pub(crate) struct Tasks;

/// A cache whose calls are tasks.
pub(crate) struct TaskCache<V, S> {
    pub(crate) cache: Cache<String, V, Fail, S>,
    executor: Executor,
}

impl<V, S> Clone for TaskCache<V, S> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), executor: self.executor }
    }
}

impl Way for Tasks {
    type Cache<V: Value, S: AnyStore<V>> = TaskCache<V, S>;
}

impl<V: Value, S: AnyStore<V>> AnyCache<V, S> for TaskCache<V, S> {
    fn with(builder: Made<V, S>, refreshes: Refreshes) -> Self {
        let executor = Executor::chosen();
        let builder =
            if refreshes == Refreshes::Beside { builder.spawner(move |task| executor.spawn(task)) } else { builder };
        Self { cache: builder.build(), executor }
    }

    fn boxed_get_or_load(&self, key: &str, loader: Loader<V>) -> Answer<V> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        self.executor.drive(async move { cache.get_or_load(key.as_str(), move || begun(loader)).await })
    }

    fn boxed_bypass(&self, key: &str, loader: Loader<V>) -> Answer<V> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        let call = async move { cache.call(key.as_str()).bypass().get_or_load(move || begun(loader)).await };
        self.executor.drive(call)
    }

    fn get(&self, key: &str) -> Result<Option<Fetched<V>>, Error<Fail>> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        self.executor.drive(async move { cache.get(key.as_str()).await })
    }

    fn get_many(&self, keys: &[&str]) -> Result<Vec<Option<Fetched<V>>>, Error<Fail>> {
        let (cache, keys) = (self.cache.clone(), owned(keys));
        self.executor.drive(async move { cache.get_many(keys.iter().map(String::as_str)).await })
    }

    fn put(&self, key: &str, value: V) -> Result<(), Error<Fail>> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        self.executor.drive(async move { cache.put(key.as_str(), value).await })
    }

    fn put_with_ttl(&self, key: &str, value: V, ttl: Duration) -> Result<(), Error<Fail>> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        self.executor.drive(async move { cache.put_with_ttl(key.as_str(), value, ttl).await })
    }

    fn invalidate(&self, key: &str) -> Result<(), Error<Fail>> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        self.executor.drive(async move { cache.invalidate(key.as_str()).await })
    }

    fn invalidate_many(&self, keys: &[&str]) -> Result<(), Error<Fail>> {
        let (cache, keys) = (self.cache.clone(), owned(keys));
        self.executor.drive(async move { cache.invalidate_many(keys.iter().map(String::as_str)).await })
    }

    fn invalidate_all(&self) -> Result<(), Error<Fail>> {
        let cache = self.cache.clone();
        self.executor.drive(async move { cache.invalidate_all().await })
    }

    fn boxed_refresh(&self, key: &str, loader: Loader<V>) -> Answer<V> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        self.executor.drive(async move { cache.refresh(key.as_str(), move || begun(loader)).await })
    }

    fn boxed_get_or_load_many(&self, keys: &[&str], loader: BatchLoader<V>) -> Result<Vec<Fetched<V>>, Error<Fail>> {
        let (cache, keys) = (self.cache.clone(), owned(keys));
        self.executor.drive(async move {
            let load = |keys: Vec<&str>| {
                let keys = keys.into_iter().map(str::to_owned).collect();
                let loader = Arc::clone(&loader);
                begun(move || loader(keys))
            };
            cache.get_or_load_many(keys.iter().map(String::as_str), load).await
        })
    }

    fn set_coalescing(&self, on: bool) {
        self.cache.set_coalescing(on);
    }

    fn set_early_refresh(&self, on: bool) {
        self.cache.set_early_refresh(on);
    }

    fn close(&self, deadline: Duration) -> bool {
        let cache = self.cache.clone();
        self.executor.drive(async move { cache.close(deadline).await })
    }

    fn stats(&self) -> Stats {
        self.cache.stats()
    }

    fn waiters(&self, key: &str) -> usize {
        self.cache.waiters(key)
    }

    fn store(&self) -> &S {
        self.cache.store()
    }
}

//! The cache for tasks, on several executors. A loader that blocks becomes a future that is pending while it runs in a thread.

use super::way::{Answer, AnyCache, AnyStore, Fail, Made, Refreshes, Value, Way};
use futures_lite::FutureExt;
use oneflight_cache::{BoxFuture, Cache, Error, Fetched, Stats};
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, LazyLock, mpsc};
use std::thread;
use std::time::Duration;

/// Where tasks run.
pub(crate) trait Executor: Send + Sync + 'static {
    fn spawn(task: BoxFuture);

    /// Drives `call` to its end, and blocks the thread for as long. A panic of the call goes on here.
    fn drive<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
        let (end, ended) = mpsc::channel();
        Self::spawn(Box::pin(async move {
            let result = AssertUnwindSafe(call).catch_unwind().await;
            // The receiver is gone if its test has failed.
            let _ = end.send(result);
        }));
        ended.recv().expect("the executor has dropped a task").unwrap_or_else(|payload| resume_unwind(payload))
    }
}

pub(crate) struct Smol;
pub(crate) struct Tokio;
/// No executor: whoever calls polls.
pub(crate) struct BlockOn;

const THREADS: usize = 3;

impl Executor for Smol {
    fn spawn(task: BoxFuture) {
        static SMOL: LazyLock<Arc<smol::Executor<'static>>> = LazyLock::new(|| {
            let executor = Arc::new(smol::Executor::new());
            for _ in 0..THREADS {
                let executor = Arc::clone(&executor);
                thread::spawn(move || smol::block_on(executor.run(std::future::pending::<()>())));
            }
            executor
        });
        SMOL.spawn(task).detach();
    }
}

impl Executor for Tokio {
    fn spawn(task: BoxFuture) {
        static TOKIO: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
            tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).build().expect("tokio can be started")
        });
        drop(TOKIO.spawn(task));
    }
}

impl Executor for BlockOn {
    fn spawn(task: BoxFuture) {
        thread::spawn(|| futures_lite::future::block_on(task));
    }

    fn drive<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
        futures_lite::future::block_on(call)
    }
}

/// What a loader that blocks comes to. Nothing happens before the first poll.
async fn begun_when_polled<T: Send + 'static>(loader: impl FnOnce() -> T + Send + 'static) -> T {
    smol::unblock(loader).await
}

/// A cache whose calls are tasks of `X`.
pub(crate) struct Tasks<X, V, S> {
    pub(crate) cache: Cache<String, V, Fail, S>,
    executor: PhantomData<X>,
}

impl<X, V, S> Clone for Tasks<X, V, S> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), executor: PhantomData }
    }
}

impl<X: Executor> Way for X {
    type Cache<V: Value, S: AnyStore<V>> = Tasks<X, V, S>;
}

impl<X: Executor, V: Value, S: AnyStore<V>> AnyCache<V, S> for Tasks<X, V, S> {
    fn with(builder: Made<V, S>, refreshes: Refreshes) -> Self {
        let builder = if refreshes == Refreshes::Beside { builder.spawner(X::spawn) } else { builder };
        Self { cache: builder.build(), executor: PhantomData }
    }

    fn get_or_load(&self, key: &str, loader: impl FnOnce() -> Result<V, Fail> + Send + 'static) -> Answer<V> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        X::drive(async move { cache.get_or_load(key.as_str(), || begun_when_polled(loader)).await })
    }

    fn bypass(&self, key: &str, loader: impl FnOnce() -> Result<V, Fail> + Send + 'static) -> Answer<V> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        X::drive(async move { cache.call(key.as_str()).bypass().get_or_load(|| begun_when_polled(loader)).await })
    }

    fn get(&self, key: &str) -> Result<Option<Fetched<V>>, Error<Fail>> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        X::drive(async move { cache.get(key.as_str()).await })
    }

    fn put(&self, key: &str, value: V) -> Result<(), Error<Fail>> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        X::drive(async move { cache.put(key.as_str(), value).await })
    }

    fn invalidate(&self, key: &str) -> Result<(), Error<Fail>> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        X::drive(async move { cache.invalidate(key.as_str()).await })
    }

    fn invalidate_all(&self) -> Result<(), Error<Fail>> {
        let cache = self.cache.clone();
        X::drive(async move { cache.invalidate_all().await })
    }

    fn refresh(&self, key: &str, loader: impl FnOnce() -> Result<V, Fail> + Send + 'static) -> Answer<V> {
        let (cache, key) = (self.cache.clone(), key.to_owned());
        X::drive(async move { cache.refresh(key.as_str(), || begun_when_polled(loader)).await })
    }

    fn get_or_load_many(
        &self,
        keys: &[&str],
        loader: impl Fn(Vec<String>) -> Result<Vec<V>, Fail> + Send + Sync + 'static,
    ) -> Result<Vec<Fetched<V>>, Error<Fail>> {
        let (cache, loader) = (self.cache.clone(), Arc::new(loader));
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        X::drive(async move {
            let load = |keys: Vec<&str>| {
                let keys = keys.into_iter().map(str::to_owned).collect();
                let loader = Arc::clone(&loader);
                begun_when_polled(move || loader(keys))
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
        X::drive(async move { cache.close(deadline).await })
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

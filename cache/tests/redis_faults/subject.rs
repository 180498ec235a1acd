//! The caches, as the tests use them: whatever is asked of one goes on beside whoever asks, and what came of it is told.

use super::settings::{Kind, Settings};
use oneflight_cache::fill::Fallback;
use oneflight_cache::redis::RedisStore;
use oneflight_cache::{BoxError, BoxFuture, Builder, Cache, Error, Fetched, Policy, blocking, redis};
use std::future::Future;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

pub(crate) type Failure = Error<BoxError>;
/// Loads; blocks while it does.
pub(crate) type Loader = Box<dyn FnOnce() -> String + Send>;
/// Is told what came of a call.
pub(crate) type Tell<T> = Box<dyn FnOnce(Result<T, Failure>) + Send>;

/// A cache. Nothing here blocks.
pub(crate) trait Subject: Send + Sync {
    fn get_or_load(&self, key: String, loader: Loader, tell: Tell<Fetched<String>>);
    fn get(&self, key: String, tell: Tell<Option<Fetched<String>>>);
    fn put(&self, key: String, value: String, tell: Tell<()>);
    fn invalidate(&self, key: String, tell: Tell<()>);
    /// How many callers wait for a value that another caller of this process loads or waits for.
    fn waiters(&self, key: &str) -> usize;
}

/// A cache of that kind with those settings, and a store.
pub(crate) fn subject(settings: &Settings) -> Arc<dyn Subject> {
    match settings.kind {
        Kind::Threads => Arc::new(Threads(threads_cache(settings))),
        kind => Arc::new(Tasks { cache: tasks_cache(settings), kind }),
    }
}

/// The cache for threads.
pub(crate) fn threads_cache(settings: &Settings) -> ThreadsCache {
    let store = with_limits(redis::blocking::RedisStore::builder(), settings);
    builder(settings).store(store.connect_blocking(&settings.url).expect("it is a URL")).build_blocking()
}

/// The cache for tasks.
pub(crate) fn tasks_cache(settings: &Settings) -> TasksCache {
    let kind = settings.kind;
    let store = with_limits(RedisStore::builder(), settings);
    // Within the executor, if there is one.
    let store = kind.drive(async { store.connect(&settings.url) }).expect("it is a URL");
    builder(settings).store(store).spawner(move |task| kind.spawn(task)).build()
}

/// No test is about how long it takes to connect.
fn with_limits(store: redis::Builder, settings: &Settings) -> redis::Builder {
    let connect = settings.response.max(Duration::from_secs(20));
    store.prefix("tests").response_timeout(settings.response).connect_timeout(connect)
}

type ThreadsCache = blocking::Cache<String, String, BoxError, redis::blocking::RedisStore>;
type TasksCache = Cache<String, String, BoxError, RedisStore>;

/// Nothing is refreshed before it is stale, and no life is shortened at random.
fn builder(settings: &Settings) -> Builder<String, String> {
    let fallback = if settings.fails_closed { Fallback::Fail } else { Fallback::LoadUncached };
    Cache::builder()
        .on_store_error(fallback)
        .on_wait_timeout(fallback)
        .ttl(settings.ttl)
        .ttl_jitter(0.0)
        .early_refresh(Policy::Never)
        .stale_while_revalidate(settings.stale_while_revalidate)
        .load_timeout(None)
        .lease(settings.lease)
        .max_hold(settings.max_hold)
        .lease_wait(settings.lease_wait)
}

impl Kind {
    /// Where tasks run.
    pub(crate) fn spawn(self, task: BoxFuture) {
        match self {
            Self::Smol => smol::spawn(task).detach(),
            Self::Tokio => drop(TOKIO.spawn(task)),
            Self::Threads | Self::BlockOn => {
                thread::spawn(|| futures_lite::future::block_on(task));
            }
        }
    }

    /// Drives `task` to its end, and blocks the thread for as long.
    pub(crate) fn drive<T>(self, task: impl Future<Output = T>) -> T {
        match self {
            Self::Tokio => TOKIO.block_on(task),
            _ => futures_lite::future::block_on(task),
        }
    }
}

static TOKIO: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("tokio can be started")
});

struct Threads(ThreadsCache);

impl Subject for Threads {
    fn get_or_load(&self, key: String, loader: Loader, tell: Tell<Fetched<String>>) {
        let cache = self.0.clone();
        thread::spawn(move || tell(cache.get_or_load(key.as_str(), || Ok(loader()))));
    }

    fn get(&self, key: String, tell: Tell<Option<Fetched<String>>>) {
        let cache = self.0.clone();
        thread::spawn(move || tell(cache.get(key.as_str())));
    }

    fn put(&self, key: String, value: String, tell: Tell<()>) {
        let cache = self.0.clone();
        thread::spawn(move || tell(cache.put(key.as_str(), value)));
    }

    fn invalidate(&self, key: String, tell: Tell<()>) {
        let cache = self.0.clone();
        thread::spawn(move || tell(cache.invalidate(key.as_str())));
    }

    fn waiters(&self, key: &str) -> usize {
        self.0.waiters(key)
    }
}

struct Tasks {
    cache: TasksCache,
    kind: Kind,
}

impl Subject for Tasks {
    fn get_or_load(&self, key: String, loader: Loader, tell: Tell<Fetched<String>>) {
        let cache = self.cache.clone();
        let load = || async { Ok(smol::unblock(loader).await) };
        self.kind.spawn(Box::pin(async move { tell(cache.get_or_load(key.as_str(), load).await) }));
    }

    fn get(&self, key: String, tell: Tell<Option<Fetched<String>>>) {
        let cache = self.cache.clone();
        self.kind.spawn(Box::pin(async move { tell(cache.get(key.as_str()).await) }));
    }

    fn put(&self, key: String, value: String, tell: Tell<()>) {
        let cache = self.cache.clone();
        self.kind.spawn(Box::pin(async move { tell(cache.put(key.as_str(), value).await) }));
    }

    fn invalidate(&self, key: String, tell: Tell<()>) {
        let cache = self.cache.clone();
        self.kind.spawn(Box::pin(async move { tell(cache.invalidate(key.as_str()).await) }));
    }

    fn waiters(&self, key: &str) -> usize {
        self.cache.waiters(key)
    }
}

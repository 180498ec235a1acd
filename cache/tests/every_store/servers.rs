//! Stores on a real server.

use crate::bench::{self, Bench};
use crate::redis_support::server::Server;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
use crate::support::task_ways::Executor;
use oneflight_cache::redis::{Builder, blocking::RedisStore};
use std::time::Duration;

fn settings() -> Builder {
    let limit = Duration::from_secs(60);
    RedisStore::builder().prefix("batches").connect_timeout(limit).response_timeout(limit)
}

pub(crate) fn threads() -> Bench {
    let server = Server::start();
    let caches = [(); 2].map(|()| bench::threads(settings().connect_blocking(&server.url()).unwrap()));
    Bench::shared(caches, server)
}

#[cfg(feature = "redis-smol")]
pub(crate) fn smol() -> Bench {
    let server = Server::start();
    let caches = [(); 2].map(|()| bench::tasks(settings().connect(&server.url()).unwrap(), Executor::Smol));
    Bench::shared(caches, server)
}

#[cfg(feature = "redis-smol")]
pub(crate) fn tiered() -> Bench {
    let server = Server::start();
    let near = || bench::tiered(settings().connect(&server.url()).unwrap());
    let caches = [(); 2].map(|()| bench::tasks(near(), Executor::BlockOn));
    Bench::shared(caches, server)
}

/// Driven by a runtime of tokio, and asked from another.
#[cfg(feature = "redis-tokio")]
pub(crate) fn tokio() -> Bench {
    static RUNTIME: std::sync::LazyLock<tokio::runtime::Runtime> = std::sync::LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    });
    let server = Server::start();
    let _inside = RUNTIME.enter();
    let caches = [(); 2].map(|()| bench::tasks(settings().connect(&server.url()).unwrap(), Executor::Tokio));
    Bench::shared(caches, server)
}

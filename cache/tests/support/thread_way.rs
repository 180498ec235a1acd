//! The cache for threads.

use super::way::{Answer, AnyCache, AnyStore, BatchLoader, Fail, Loader, Made, Refreshes, Value, Way};
use oneflight_cache::blocking::Cache;
use oneflight_cache::{Error, Fetched, Stats};
use std::time::Duration;

pub(crate) struct Threads;

impl Way for Threads {
    type Cache<V: Value, S: AnyStore<V>> = Cache<String, V, Fail, S>;
}

impl<V: Value, S: AnyStore<V>> AnyCache<V, S> for Cache<String, V, Fail, S> {
    fn with(builder: Made<V, S>, refreshes: Refreshes) -> Self {
        if refreshes == Refreshes::Inline { builder.helper_threads(0) } else { builder }.build_blocking()
    }

    fn boxed_get_or_load(&self, key: &str, loader: Loader<V>) -> Answer<V> {
        Self::get_or_load(self, key, loader)
    }

    fn boxed_bypass(&self, key: &str, loader: Loader<V>) -> Answer<V> {
        self.call(key).bypass().get_or_load(loader)
    }

    fn get(&self, key: &str) -> Result<Option<Fetched<V>>, Error<Fail>> {
        Self::get(self, key)
    }

    fn get_many(&self, keys: &[&str]) -> Result<Vec<Option<Fetched<V>>>, Error<Fail>> {
        Self::get_many(self, keys.iter().copied())
    }

    fn put(&self, key: &str, value: V) -> Result<(), Error<Fail>> {
        Self::put(self, key, value)
    }

    fn put_with_ttl(&self, key: &str, value: V, ttl: Duration) -> Result<(), Error<Fail>> {
        Self::put_with_ttl(self, key, value, ttl)
    }

    fn invalidate(&self, key: &str) -> Result<(), Error<Fail>> {
        Self::invalidate(self, key)
    }

    fn invalidate_many(&self, keys: &[&str]) -> Result<(), Error<Fail>> {
        Self::invalidate_many(self, keys.iter().copied())
    }

    fn invalidate_all(&self) -> Result<(), Error<Fail>> {
        Self::invalidate_all(self)
    }

    fn boxed_refresh(&self, key: &str, loader: Loader<V>) -> Answer<V> {
        Self::refresh(self, key, loader)
    }

    fn boxed_get_or_load_many(&self, keys: &[&str], loader: BatchLoader<V>) -> Result<Vec<Fetched<V>>, Error<Fail>> {
        let load = |keys: Vec<&str>| loader(keys.into_iter().map(str::to_owned).collect());
        Self::get_or_load_many(self, keys.iter().copied(), load)
    }

    fn set_coalescing(&self, on: bool) {
        Self::set_coalescing(self, on);
    }

    fn set_early_refresh(&self, on: bool) {
        Self::set_early_refresh(self, on);
    }

    fn close(&self, deadline: Duration) -> bool {
        Self::close(self, deadline)
    }

    fn stats(&self) -> Stats {
        Self::stats(self)
    }

    fn waiters(&self, key: &str) -> usize {
        Self::waiters(self, key)
    }

    fn store(&self) -> &S {
        Self::store(self)
    }
}

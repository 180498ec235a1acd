//! amalgam-cache: text keys; one cache for tasks and threads.

use super::{Call, Job, OnTasks, OnThreads, Peer};
use crate::clock::{Labour, Work};
use crate::values::{Got, Value};
use amalgam::{BlockingCache, Cache, CacheBuilder, EagerThreshold, EntryOptions, Result, source};
use std::time::Duration;

/// As tasks make it.
pub(super) type Tasks = Cache<Value>;

/// As threads make it, with a view of the same cache for tasks.
pub(super) struct Both(BlockingCache<Value>);

pub(super) fn both() -> Both {
    Both(BlockingCache::new().expect("the defaults are valid"))
}

/// Refreshes after the smallest part of the life.
fn eager() -> CacheBuilder<Value> {
    let options = EntryOptions::new(Duration::from_secs(3_600)).with_eager_refresh(EagerThreshold::new(1e-9));
    Cache::builder().default_options(options)
}

fn got(called: Result<Value>) -> Got {
    called.map_or_else(|error| Got::error(&error), |value| Got::Value(value.0))
}

fn stored(found: Result<Option<Value>>) -> Got {
    found.ok().flatten().map_or(Got::Refused, |value| Got::Value(value.0))
}

fn written(written: Result<()>) -> Got {
    written.map_or(Got::Refused, |()| Got::Value(0))
}

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move { got(self.get_or_set(key.to_string(), |_| async { work().await }).await) })
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Call> {
        Some(Box::pin(async move { written(self.set(key.to_string(), Value(number)).await) }))
    }

    fn invalidate(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move { written(self.remove(key.to_string()).await) }))
    }

    fn get(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move { stored(self.try_get(key.to_string()).await) }))
    }

    fn for_both(&'static self) -> Option<(&'static dyn Peer<OnTasks>, &'static dyn Peer<OnThreads>)> {
        let both: &'static Both = Box::leak(Box::new(both()));
        Some((both, both))
    }

    fn always_refreshing(&'static self) -> Option<&'static dyn Peer<OnTasks>> {
        let cache = eager().try_build().expect("the options are valid");
        Some(Box::leak(Box::new(cache)))
    }

    fn counts_keys(&self) -> bool {
        false
    }

    fn stores(&self) -> bool {
        true
    }
}

impl Peer<OnTasks> for Both {
    fn call(&'static self, key: u64, work: Work) -> Call {
        let cache: &'static Tasks = self.0.as_async();
        cache.call(key, work)
    }
}

impl Peer<OnThreads> for Both {
    fn call(&'static self, key: u64, work: Labour) -> Job {
        Box::new(move || got(self.0.get_or_set(key.to_string(), source::factory(|_| work())).execute()))
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Job> {
        Some(Box::new(move || written(self.0.set(key.to_string(), Value(number)).execute())))
    }

    fn invalidate(&'static self, key: u64) -> Option<Job> {
        Some(Box::new(move || written(self.0.remove(key.to_string()).execute())))
    }

    fn get(&'static self, key: u64) -> Option<Job> {
        Some(Box::new(move || stored(self.0.try_get(key.to_string()).execute())))
    }

    fn always_refreshing(&'static self) -> Option<&'static dyn Peer<OnThreads>> {
        let cache = BlockingCache::from_builder(eager()).expect("the options are valid");
        Some(Box::leak(Box::new(Both(cache))))
    }

    fn counts_keys(&self) -> bool {
        false
    }

    fn stores(&self) -> bool {
        true
    }
}

//! oneflight-cache: flights with a store behind them.

use super::{Call, Job, OnTasks, OnThreads, Peer, Side};
use crate::clock::{Labour, Work};
use crate::values::{Failure, Got, Key, Value};
use oneflight_cache::{Cache, Error, Fetched, Policy, blocking};

/// For tasks.
pub(super) type Tasks = Cache<Key, Value, Failure>;
/// For threads.
pub(super) type Threads = blocking::Cache<Key, Value, Failure>;

pub(super) fn tasks() -> Tasks {
    Cache::builder().build()
}

pub(super) fn threads() -> Threads {
    Cache::builder().build_blocking()
}

/// The paper's formula at its most eager.
const ALWAYS: Policy = Policy::XFetch { beta: f64::INFINITY, max_window: 1.0 };

fn got(fetched: Result<Fetched<Value>, Error<Failure>>) -> Got {
    match fetched {
        Ok(fetched) => Got::Value(fetched.value.0),
        Err(Error::Load(_)) => Got::Failure,
        Err(_) => Got::Refused,
    }
}

fn stored(fetched: Result<Option<Fetched<Value>>, Error<Failure>>) -> Got {
    fetched.ok().flatten().map_or(Got::Refused, |fetched| Got::Value(fetched.value.0))
}

fn written(written: Result<(), Error<Failure>>) -> Got {
    written.map_or(Got::Refused, |()| Got::Value(0))
}

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move { got(self.get_or_load(&Key::new(key), work).await) })
    }

    fn call_otherwise(&'static self, key: u64, work: Work) -> Option<Call> {
        Some(Box::pin(async move { got(Cache::call(self, &Key::new(key)).get_or_load(work).await) }))
    }

    fn many(&'static self, keys: Vec<u64>, work: <OnTasks as Side>::ManyWork) -> Option<Call> {
        Some(Box::pin(async move {
            let keys: Vec<Key> = keys.into_iter().map(Key::new).collect();
            let loader = |missing: Vec<&Key>| {
                let values = work(missing.iter().map(|key| key.number()).collect());
                async move { Ok(values.await.into_iter().map(Value).collect()) }
            };
            let values = self.get_or_load_many(&keys, loader).await;
            values.map_or(Got::Refused, |values| Got::Value(values.len() as u64))
        }))
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Call> {
        Some(Box::pin(async move { written(Cache::put(self, &Key::new(key), Value(number)).await) }))
    }

    fn invalidate(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move { written(Cache::invalidate(self, &Key::new(key)).await) }))
    }

    fn get(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move { stored(Cache::get(self, &Key::new(key)).await) }))
    }

    fn always_refreshing(&'static self) -> Option<&'static dyn Peer<OnTasks>> {
        let spawn = |refresh| drop(tokio::spawn(refresh));
        let cache: Tasks = Cache::builder().early_refresh(ALWAYS).spawner(spawn).build();
        Some(Box::leak(Box::new(cache)))
    }

    fn stores(&self) -> bool {
        true
    }
}

impl Peer<OnThreads> for Threads {
    fn call(&'static self, key: u64, work: Labour) -> Job {
        Box::new(move || got(self.get_or_load(&Key::new(key), work)))
    }

    fn call_otherwise(&'static self, key: u64, work: Labour) -> Option<Job> {
        Some(Box::new(move || got(self.get_or_load_inline(&Key::new(key), work))))
    }

    fn many(&'static self, keys: Vec<u64>, work: <OnThreads as Side>::ManyWork) -> Option<Job> {
        Some(Box::new(move || {
            let keys: Vec<Key> = keys.into_iter().map(Key::new).collect();
            let loader = |missing: Vec<&Key>| {
                Ok(work(missing.iter().map(|key| key.number()).collect()).into_iter().map(Value).collect())
            };
            let values = self.get_or_load_many(&keys, loader);
            values.map_or(Got::Refused, |values| Got::Value(values.len() as u64))
        }))
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Job> {
        Some(Box::new(move || written(blocking::Cache::put(self, &Key::new(key), Value(number)))))
    }

    fn invalidate(&'static self, key: u64) -> Option<Job> {
        Some(Box::new(move || written(blocking::Cache::invalidate(self, &Key::new(key)))))
    }

    fn get(&'static self, key: u64) -> Option<Job> {
        Some(Box::new(move || stored(blocking::Cache::get(self, &Key::new(key)))))
    }

    fn always_refreshing(&'static self) -> Option<&'static dyn Peer<OnThreads>> {
        let cache: Threads = Cache::builder().early_refresh(ALWAYS).helper_threads(1).build_blocking();
        Some(Box::leak(Box::new(cache)))
    }

    fn stores(&self) -> bool {
        true
    }
}

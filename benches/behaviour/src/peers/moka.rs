//! moka.

use super::{Call, Job, OnTasks, OnThreads, Peer};
use crate::clock::{Labour, Work};
use crate::values::{Got, Key, Value};

pub(super) type Tasks = moka::future::Cache<Key, Value>;
pub(super) type Threads = moka::sync::Cache<Key, Value>;

/// Far more than any case puts in.
pub(super) const ROOM: u64 = 1 << 16;

fn stored(value: Option<Value>) -> Got {
    value.map_or(Got::Refused, |value| Got::Value(value.0))
}

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move {
            let called = self.try_get_with(Key::new(key), async { work().await }).await;
            called.map_err(|error| *error).into()
        })
    }

    fn call_otherwise(&'static self, key: u64, work: Work) -> Option<Call> {
        let certain = async { work().await.expect("only works that do not fail are called like this") };
        Some(Box::pin(async move { Got::Value(self.get_with(Key::new(key), certain).await.0) }))
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Call> {
        Some(Box::pin(async move {
            self.insert(Key::new(key), Value(number)).await;
            Got::Value(number)
        }))
    }

    fn invalidate(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move {
            Tasks::invalidate(self, &Key::new(key)).await;
            Got::Value(0)
        }))
    }

    fn get(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move { stored(Tasks::get(self, &Key::new(key)).await) }))
    }

    fn stores(&self) -> bool {
        true
    }
}

impl Peer<OnThreads> for Threads {
    fn call(&'static self, key: u64, work: Labour) -> Job {
        Box::new(move || self.try_get_with(Key::new(key), work).map_err(|error| *error).into())
    }

    fn call_otherwise(&'static self, key: u64, work: Labour) -> Option<Job> {
        let certain = || work().expect("only works that do not fail are called like this");
        Some(Box::new(move || Got::Value(self.get_with(Key::new(key), certain).0)))
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Job> {
        Some(Box::new(move || {
            self.insert(Key::new(key), Value(number));
            Got::Value(number)
        }))
    }

    fn invalidate(&'static self, key: u64) -> Option<Job> {
        Some(Box::new(move || {
            Threads::invalidate(self, &Key::new(key));
            Got::Value(0)
        }))
    }

    fn get(&'static self, key: u64) -> Option<Job> {
        Some(Box::new(move || stored(Threads::get(self, &Key::new(key)))))
    }

    fn stores(&self) -> bool {
        true
    }
}

//! foyer's cache in memory. Its loads run in tasks that it spawns on tokio, and what it gives is a handle, of which it makes no clone.

use super::{Call, OnTasks, Peer};
use crate::clock::Work;
use crate::values::{Got, Key, Value};

pub(super) type Tasks = foyer_memory::Cache<Key, Value>;

pub(super) fn tasks() -> Tasks {
    // Far more than any case puts in.
    foyer_memory::Cache::builder(1 << 16).build()
}

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move {
            let called = self.get_or_fetch(&Key::new(key), || async { work().await }).await;
            called.map_or_else(|error| Got::error(&error), |entry| Got::Value(entry.0))
        })
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Call> {
        Some(Box::pin(async move {
            drop(self.insert(Key::new(key), Value(number)));
            Got::Value(number)
        }))
    }

    fn invalidate(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move {
            drop(self.remove(&Key::new(key)));
            Got::Value(0)
        }))
    }

    fn get(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move {
            let found = foyer_memory::Cache::get(self, &Key::new(key));
            found.map_or(Got::Refused, |entry| Got::Value(entry.0))
        }))
    }

    fn stores(&self) -> bool {
        true
    }
}

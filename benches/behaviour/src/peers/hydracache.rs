//! hydracache: text keys, values in bytes.

use super::{Call, OnTasks, Peer};
use crate::clock::Work;
use crate::values::{Got, Value};
use hydracache::{CacheOptions, HydraCache};

pub(super) type Tasks = HydraCache;

pub(super) fn tasks() -> Tasks {
    HydraCache::local().build()
}

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move {
            let called = self.get_or_load(&key.to_string(), CacheOptions::new(), work).await;
            called.map_or_else(|error| Got::error(&error), |value: Value| Got::Value(value.0))
        })
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Call> {
        Some(Box::pin(async move {
            let put = HydraCache::put(self, &key.to_string(), Value(number), CacheOptions::new()).await;
            put.map_or(Got::Refused, |()| Got::Value(number))
        }))
    }

    fn invalidate(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move { self.remove(&key.to_string()).await.map_or(Got::Refused, |_| Got::Value(0)) }))
    }

    fn get(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move {
            let found = HydraCache::get(self, &key.to_string()).await.ok().flatten();
            found.map_or(Got::Refused, |value: Value| Got::Value(value.0))
        }))
    }

    fn counts_keys(&self) -> bool {
        false
    }

    fn counts_values(&self) -> bool {
        false
    }

    fn stores(&self) -> bool {
        true
    }
}

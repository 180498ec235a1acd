//! quick_cache: one cache for tasks and threads.

use super::{Call, Job, OnTasks, OnThreads, Peer};
use crate::clock::{Labour, Work};
use crate::values::{Got, Key, Value};
use quick_cache::sync::{Cache, GuardResult};

pub(super) type Both = Cache<Key, Value>;

/// Far more than any case puts in.
pub(super) const ROOM: usize = 1 << 16;

fn stored(value: Option<Value>) -> Got {
    value.map_or(Got::Refused, |value| Got::Value(value.0))
}

impl Peer<OnTasks> for Both {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move { self.get_or_insert_async(&Key::new(key), async { work().await }).await.into() })
    }

    fn call_otherwise(&'static self, key: u64, work: Work) -> Option<Call> {
        Some(Box::pin(async move {
            match self.get_value_or_guard_async(&Key::new(key)).await {
                Ok(value) => Got::Value(value.0),
                Err(guard) => {
                    let answer = work().await;
                    if let Ok(value) = &answer {
                        // It fails if the key was removed meanwhile, which no case does.
                        let _inserted = guard.insert(value.clone());
                    }
                    answer.into()
                }
            }
        }))
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Call> {
        Some(Box::pin(async move {
            self.insert(Key::new(key), Value(number));
            Got::Value(number)
        }))
    }

    fn invalidate(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move {
            self.remove(&Key::new(key));
            Got::Value(0)
        }))
    }

    fn get(&'static self, key: u64) -> Option<Call> {
        Some(Box::pin(async move { stored(Cache::get(self, &Key::new(key))) }))
    }

    fn for_both(&'static self) -> Option<(&'static dyn Peer<OnTasks>, &'static dyn Peer<OnThreads>)> {
        Some((self, self))
    }

    fn stores(&self) -> bool {
        true
    }
}

impl Peer<OnThreads> for Both {
    fn call(&'static self, key: u64, work: Labour) -> Job {
        Box::new(move || self.get_or_insert_with(&Key::new(key), work).into())
    }

    fn call_otherwise(&'static self, key: u64, work: Labour) -> Option<Job> {
        Some(Box::new(move || match self.get_value_or_guard(&Key::new(key), None) {
            GuardResult::Value(value) => Got::Value(value.0),
            GuardResult::Guard(guard) => {
                let answer = work();
                if let Ok(value) = &answer {
                    let _inserted = guard.insert(value.clone());
                }
                answer.into()
            }
            GuardResult::Timeout => Got::Refused,
        }))
    }

    fn put(&'static self, key: u64, number: u64) -> Option<Job> {
        Some(Box::new(move || {
            self.insert(Key::new(key), Value(number));
            Got::Value(number)
        }))
    }

    fn invalidate(&'static self, key: u64) -> Option<Job> {
        Some(Box::new(move || {
            self.remove(&Key::new(key));
            Got::Value(0)
        }))
    }

    fn get(&'static self, key: u64) -> Option<Job> {
        Some(Box::new(move || stored(Cache::get(self, &Key::new(key)))))
    }

    fn stores(&self) -> bool {
        true
    }
}

//! async_singleflight.

use super::{Call, OnTasks, Peer};
use crate::clock::Work;
use crate::values::{Failure, Got, Key, Value};
use async_singleflight::GroupWorkError;

pub(super) type Tasks = async_singleflight::Group<Key, Value, Failure>;

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move {
            match self.work(&Key::new(key), async { work().await }).await {
                Ok(value) => Got::Value(value.0),
                Err(Some(Failure)) => Got::Failure,
                Err(None) => Got::Refused,
            }
        })
    }

    fn call_otherwise(&'static self, key: u64, work: Work) -> Option<Call> {
        Some(Box::pin(async move {
            match self.work_no_retry(&Key::new(key), async { work().await }).await {
                Ok(value) => Got::Value(value.0),
                Err(GroupWorkError::Error(Failure)) => Got::Failure,
                Err(_) => Got::Refused,
            }
        }))
    }
}

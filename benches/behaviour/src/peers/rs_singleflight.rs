//! rs-singleflight.

use super::{Call, OnTasks, Peer};
use crate::clock::Work;
use crate::values::{Failure, Got, Key, Value};

pub(super) type Tasks = rs_singleflight::Group<Key, Value, Failure>;

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move { self.do_call(Key::new(key), work).await.into() })
    }

    fn call_otherwise(&'static self, key: u64, work: Work) -> Option<Call> {
        Some(Box::pin(async move {
            self.do_call_shared(Key::new(key), work).await.map_or(Got::Failure, |value| Got::Value(value.0))
        }))
    }

    fn forget(&'static self, key: u64) -> Option<()> {
        rs_singleflight::Group::forget(self, &Key::new(key));
        Some(())
    }
}

//! request_coalescer.

use super::{Call, OnTasks, Peer};
use crate::clock::Work;
use crate::values::{Got, Key, Value};

pub(super) type Tasks = request_coalescer::CoalescingService<Key, Value>;

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move {
            let called = self.execute(Key::new(key), || async { Ok(work().await?) }).await;
            called.map_or_else(|error| Got::error((*error).as_ref()), |value| Got::Value(value.0))
        })
    }
}

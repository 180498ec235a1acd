//! uniflight.

use super::{Call, OnTasks, Peer};
use crate::clock::Work;
use crate::values::{Answer, Got, Key};

pub(super) type Tasks = uniflight::Merger<Key, Answer>;

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move { self.execute(&Key::new(key), work).await.map_or(Got::Refused, Got::from) })
    }
}

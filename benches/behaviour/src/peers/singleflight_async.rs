//! singleflight-async.

use super::{Call, OnTasks, Peer};
use crate::clock::Work;
use crate::values::{Answer, Key};

pub(super) type Tasks = singleflight_async::SingleFlight<Key, Answer>;

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move { self.work(Key::new(key), work).await.into() })
    }
}

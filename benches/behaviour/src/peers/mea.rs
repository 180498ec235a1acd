//! mea's singleflight.

use super::{Call, OnTasks, Peer};
use crate::clock::Work;
use crate::values::{Got, Key, Value};

pub(super) type Tasks = mea::singleflight::Group<Key, Value>;

impl Peer<OnTasks> for Tasks {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move { self.try_work(Key::new(key), async move || work().await).await.into() })
    }

    fn call_otherwise(&'static self, key: u64, work: Work) -> Option<Call> {
        let certain = async move || work().await.expect("only works that do not fail are called like this");
        Some(Box::pin(async move { Got::Value(self.work(Key::new(key), certain).await.0) }))
    }

    fn forget(&'static self, key: u64) -> Option<()> {
        mea::singleflight::Group::forget(self, &Key::new(key));
        Some(())
    }
}

//! once_map: no singleflight, but a map in which each value is made once.

use super::{Job, OnThreads, Peer};
use crate::clock::Labour;
use crate::values::{Got, Key, Value};
use once_map::sync::OnceMap;

pub(super) type Threads = OnceMap<Key, Value>;

impl Peer<OnThreads> for Threads {
    fn call(&'static self, key: u64, work: Labour) -> Job {
        Box::new(move || self.try_insert_cloned(Key::new(key), |_| work()).into())
    }

    fn call_otherwise(&'static self, key: u64, work: Labour) -> Option<Job> {
        let certain = |_: &Key| work().expect("only works that do not fail are called like this");
        Some(Box::new(move || Got::Value(self.insert_cloned(Key::new(key), certain).0)))
    }

    fn get(&'static self, key: u64) -> Option<Job> {
        Some(Box::new(move || self.get_cloned(&Key::new(key)).map_or(Got::Refused, |value| Got::Value(value.0))))
    }

    fn stores(&self) -> bool {
        true
    }
}

//! singleflight: text keys, and works that may be called again, which none is.

use super::{Job, OnThreads, Peer};
use crate::clock::Labour;
use crate::values::Answer;
use std::sync::Mutex;

pub(super) type Threads = singleflight::Group<Answer>;

impl Peer<OnThreads> for Threads {
    fn call(&'static self, key: u64, work: Labour) -> Job {
        Box::new(move || {
            let work = Mutex::new(Some(work));
            let once = || work.lock().ok().and_then(|mut work| work.take()).expect("called once");
            self.work(&key.to_string(), || once()()).into()
        })
    }

    fn counts_keys(&self) -> bool {
        false
    }
}

//! Work that goes on beside the callers.

use crate::breach::Breach;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Counts what is still on.
#[derive(Debug, Default)]
pub(crate) struct Outstanding(Arc<()>);

impl Outstanding {
    /// What makes one more, until what it returns is dropped.
    pub(crate) fn counter(&self) -> impl Fn() -> Option<Arc<()>> + Send + Sync + 'static {
        let count = Arc::downgrade(&self.0);
        move || Weak::upgrade(&count)
    }

    /// Waits until all have ended.
    pub(crate) fn wait(&self) {
        let begun = Instant::now();
        while Arc::strong_count(&self.0) > 1 {
            if begun.elapsed() > Duration::from_secs(60) {
                Breach::Lost(format!("{} tasks without a caller", Arc::strong_count(&self.0) - 1)).raise(None);
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
}

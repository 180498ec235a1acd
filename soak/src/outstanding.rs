//! Work that goes on beside the callers.

use crate::breach::Breach;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Counts what is still on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding(Arc<()>);

impl Outstanding {
    /// One more, until what it returns is dropped.
    pub(crate) fn hold(&self) -> Arc<()> {
        Arc::clone(&self.0)
    }

    /// Waits until all have ended; `others` hold on to this as well.
    pub(crate) fn wait_for(&self, others: usize) {
        let begun = Instant::now();
        while Arc::strong_count(&self.0) > 1 + others {
            if begun.elapsed() > Duration::from_secs(60) {
                Breach::Lost(format!("{} tasks without a caller", Arc::strong_count(&self.0) - 1 - others)).raise(None);
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
}

//! What is known of a connection.

use super::Limits;
use super::limits::DEAD;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is known of a connection.
pub(super) struct Health {
    made: Instant,
    /// Since when it has not answered, in milliseconds after it was made, and one more. 0: it has.
    silent_since: AtomicU64,
    is_mixed_up: AtomicBool,
}

impl Health {
    pub(super) fn new() -> Self {
        Self { made: Instant::now(), silent_since: AtomicU64::new(0), is_mixed_up: AtomicBool::new(false) }
    }

    pub(super) fn answers(&self) {
        if self.silent_since.load(Ordering::Relaxed) != 0 {
            self.silent_since.store(0, Ordering::Relaxed);
        }
    }

    /// An answer did not come, or not in time. Whether that has been so for long.
    pub(super) fn is_dead(&self, limits: Limits) -> bool {
        let now = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        match self.silent_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => false,
            Err(since) => Duration::from_millis(now.saturating_sub(since)) >= limits.response.saturating_mul(DEAD),
        }
    }

    /// What was pushed has been taken for a reply: from now on each reply may be another command's.
    pub(super) fn mix_up(&self) {
        self.is_mixed_up.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_mixed_up(&self) -> bool {
        self.is_mixed_up.load(Ordering::SeqCst)
    }
}

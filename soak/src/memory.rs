//! Whether the process grows.

use crate::breach::Breach;
use std::fs;
use std::time::{Duration, Instant};

/// The resident memory of the process, against what it was once the run was warm.
#[derive(Debug)]
pub(crate) struct Memory {
    begun: Instant,
    warm_after: Duration,
    warm: Option<u64>,
    most: u64,
}

/// By how much it may grow, in KiB. Some 50,000 calls a second: eight bytes lost in each are that much in a minute.
const BOUND: u64 = 16 * 1024;

impl Memory {
    /// It is warm after a tenth of the time.
    pub(crate) fn new(time: Duration) -> Self {
        Self { begun: Instant::now(), warm_after: time / 10, warm: None, most: 0 }
    }

    /// A round is over.
    pub(crate) fn look(&mut self) {
        let Some(now) = resident() else { return };
        self.most = self.most.max(now);
        if self.begun.elapsed() < self.warm_after {
            return;
        }
        let warm = *self.warm.get_or_insert(now.max(self.most));
        let by = now.saturating_sub(warm);
        if by > BOUND {
            Breach::Grown { by, bound: BOUND }.raise(None);
        }
    }

    /// For the report.
    pub(crate) fn tell(&self) -> String {
        match (self.warm, resident()) {
            (Some(warm), Some(now)) => format!("{warm} KiB when warm, {now} now, {} at most", self.most),
            (None, Some(now)) => format!("{now} KiB, not warm yet"),
            _ => "unknown".to_owned(),
        }
    }
}

/// In KiB, where the system tells.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

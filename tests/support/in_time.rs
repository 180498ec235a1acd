//! Cases in which time itself is the subject.

use core::time::Duration;

/// Plays a case with one limit after another, in milliseconds, until the machine was in time for one: `round` says whether it was.
#[track_caller]
pub(crate) fn in_time<const N: usize>(limits: [u64; N], mut round: impl FnMut(Duration) -> bool) {
    let was_in_time = limits.into_iter().any(|limit| round(Duration::from_millis(limit)));
    assert!(was_in_time, "in time in none of the rounds, with limits of {limits:?} ms");
}

//! When a lease is renewed, and how long a fill sleeps.

use super::{Config, Time, Token};
use core::time::Duration;

impl Config {
    /// When to renew a lease that was acquired at `since` and prolonged at `now`.
    pub(super) fn renewal(&self, since: Time, now: Time) -> Option<Time> {
        let next = now.saturating_add(self.lease / 3);
        (next.saturating_sub(since) <= self.max_hold).then_some(next)
    }
}

/// The end of a lease wakes nobody, so no sleep is longer. A lease with no time left may still be there, so none is zero.
pub(super) fn sleep(poll: Duration, left: Duration, token: Token, now: Time) -> Duration {
    jittered(poll, token, now).min(left).max(SHORTEST_SLEEP)
}

const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

/// Between half of `sleep` and all of it. Both the token and the time go in: waiters that were woken together should not look
/// together again.
fn jittered(sleep: Duration, token: Token, now: Time) -> Duration {
    // The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
    let mut mixed = (token as u64) ^ ((token >> 64) as u64).rotate_left(32) ^ (now.as_nanos() as u64);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let part = (mixed >> 48) as u32;
    sleep / 2 + (sleep / 2).saturating_mul(part) / u32::from(u16::MAX)
}

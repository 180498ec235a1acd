//! Numbers that nobody else draws, in whatever process.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of 128 bits that neither this process nor another has drawn before. It is not a secret.
///
/// It is made by std's keyed hash of a sequence number. Two keys of 64 bits come from the operating system, so processes that
/// are started together, which share the time and thread numbers, still draw different ones. Processes that have been forked share
/// the keys and go on from the same number, but not the number of the process, which is hashed too.
pub(crate) fn nonce() -> u128 {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    static SEQUENCE: AtomicU64 = AtomicU64::new(0);
    let number = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    of(&KEYS, std::process::id(), number)
}

fn of(keys: &[RandomState; 2], process: u32, number: u64) -> u128 {
    let [high, low] = [0, 1].map(|half| u128::from(keys[half].hash_one((half, process, number))));
    high << 64 | low
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_differ_in_each_half() {
        let drawn: Vec<u128> = (0..10_000).map(|_| nonce()).collect();
        for shift in [0, 64] {
            assert_eq!(drawn.iter().map(|nonce| (nonce >> shift) as u64).collect::<HashSet<_>>().len(), drawn.len());
        }
    }

    #[test]
    fn a_process_that_was_forked_draws_others() {
        let keys = [RandomState::new(), RandomState::new()];
        let drawn = |process| (0..1_000).map(|number| of(&keys, process, number)).collect::<Vec<u128>>();
        let drawn = [drawn(1), drawn(2)].concat();
        for shift in [0, 64] {
            assert_eq!(drawn.iter().map(|nonce| (nonce >> shift) as u64).collect::<HashSet<_>>().len(), 2_000);
        }
    }
}

//! Batches: of a call with several keys (`do_many`) each has a flight of its own, and what the call leads it lands before it
//! waits.

#![cfg(loom)]

use oneflight_loom_tests::{assert_nothing_left, check, join, new_group, spawn};

/// Two batches of the same keys in opposite order: each may lead one key and wait for the other's, and both must end.
#[test]
fn overlapping_batches_do_not_wait_in_a_circle() {
    fn load(missing: Vec<&u32>) -> Vec<u32> {
        missing.into_iter().map(|key| key * 10).collect()
    }
    check(|| {
        let group = new_group();
        let other = spawn(&group, |group| group.do_many(&[2, 1], load));
        assert_eq!(group.do_many(&[1, 2], load), [10, 20]);
        assert_eq!(join(other), [20, 10]);
        assert_nothing_left(&group);
    });
}

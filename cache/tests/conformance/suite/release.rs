//! Giving a lease up.

use crate::bench::{Bench, HOUR, MILLI, SHORT};
use oneflight_cache::lease::{Acquired, Publication};
use std::time::{Duration, Instant};

pub(crate) fn the_lease_is_free_at_once<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.lead();
    first.release();
    assert!(!first.renew(HOUR));
    second.lead();
}

pub(crate) fn k1_anothers_lease_is_left_alone<B: Bench>(bench: &B) {
    let [first, second, third] = [bench.caller(), bench.caller(), bench.caller()];
    first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    second.lead();
    first.release();
    let held = third.acquire(third.claim());
    assert!(matches!(held, Acquired::Held { holder, .. } if holder == second.token), "{held:?}");
    assert!(second.renew(HOUR));
}

pub(crate) fn a_lease_that_is_nobodys_may_be_given_up<B: Bench>(bench: &B) {
    let caller = bench.caller();
    caller.release();
    caller.lead();
    caller.release();
    caller.release();
    caller.put(b"a");
    caller.release();
    assert_eq!(caller.get(), Some(b"a".to_vec()));
}

pub(crate) fn what_was_released_may_still_be_published_late<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead();
    first.release();
    assert_eq!(second.lead(), epoch, "nothing was written");
    assert_eq!(first.publish(epoch, b"a"), Publication::Late);
}

pub(crate) fn an_abandoned_lease_is_free_before_long<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.lead();
    bench.abandon(&first.store, second.token);
    bench.abandon(&first.store, first.token);
    let begun = Instant::now();
    while second.is_kept_out() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is still held");
        std::thread::sleep(MILLI);
    }
}

//! Writes: each does away with the lease and the epoch, whoever has them.

use crate::bench::{Bench, HOUR};
use oneflight_cache::lease::Publication;

pub(crate) fn a_removal_takes_the_value_and_the_lease<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.put(b"a");
    let epoch = first.lead_over(b"a");
    second.remove();
    assert_eq!(first.get(), None);
    assert_ne!(second.lead(), epoch, "at once, and in a new epoch");
    second.remove();
    second.remove();
    assert_eq!(second.get(), None);
}

pub(crate) fn a_put_takes_the_lease_and_replaces_the_value<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead();
    second.put(b"b");
    assert_eq!(first.get(), Some(b"b".to_vec()));
    assert!(!first.renew(HOUR));
    let later = second.lead_over(b"b");
    assert_ne!(later, epoch);
    second.put(b"c");
    assert_eq!(second.publish(later, b"d"), Publication::Superseded);
    assert_eq!(first.get(), Some(b"c".to_vec()));
}

pub(crate) fn clear_takes_all_values_and_leases<B: Bench>(bench: &B) {
    let (mut one, two) = (bench.caller(), bench.caller());
    one.put(b"a");
    let [first, second] = ["first", "second"].map(|key| {
        one.key = key.to_owned();
        one.put(b"a");
        one.lead_over(b"a")
    });
    assert_ne!(first, second);
    one.clear();
    for key in ["first", "second"] {
        one.key = key.to_owned();
        assert_eq!(one.get(), None);
        assert!(!one.renew(HOUR));
        one.lead();
    }
    // Whoever had not used the store before sees it at once.
    assert_eq!(two.get(), None);
}

pub(crate) fn a_refresh_that_a_write_meets_does_not_undo_it<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.put(b"a");
    let epoch = first.lead_over(b"a");
    second.put(b"b");
    assert_eq!(first.publish(epoch, b"c"), Publication::Superseded);
    assert_eq!(second.get(), Some(b"b".to_vec()));
    let epoch = first.lead_over(b"b");
    second.remove();
    assert_eq!(first.publish(epoch, b"c"), Publication::Invalidated);
    assert_eq!(second.get(), None);
}

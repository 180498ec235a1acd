//! Values that are none, and a server without room.

use crate::bench::{Bench, Steps};
use oneflight_cache::BlockingStore;
use oneflight_cache::lease::{BlockingLease, Publication};

pub(crate) fn what_cannot_be_read_is_not_there<B: Bench>(bench: &B) {
    let caller = bench.caller();
    bench.set_unreadable();
    assert_eq!(caller.get(), None);
    let found = caller.store.get_many(&[&caller.key], bench.now()).unwrap();
    assert!(matches!(found[..], [Ok(None)]));
    caller.put(b"a");
    assert_eq!(caller.get(), Some(b"a".to_vec()), "it was overwritten");
    bench.set_unreadable();
    caller.remove();
    caller.lead();
}

pub(crate) fn a_foreign_type_is_an_error_and_is_left_alone<B: Bench>(bench: &B) {
    let caller = bench.caller();
    bench.set_foreign();
    assert!(bench.is_foreign());
    let now = bench.now();
    let refused: [Result<(), <B::Store as Steps>::Failure>; 5] = [
        caller.store.get(&caller.key, now).map(drop),
        caller.store.put(&caller.key, caller.entry(b"a"), now).map(drop),
        caller.store.remove(&caller.key).map(drop),
        caller.store.acquire(&caller.key, caller.claim(), now).map(drop),
        caller.try_publish(1, b"a").map(drop),
    ];
    for (index, result) in refused.into_iter().enumerate() {
        let error = result.expect_err("it is refused");
        assert!(B::is_wrong_type(&error), "{index}: {error}");
        assert!(!caller.store.is_ambiguous(&error), "{index}: {error}");
        assert!(bench.is_foreign(), "{index}");
    }
}

pub(crate) fn a_full_store_refuses_what_is_new_and_lets_go<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.put(b"a");
    bench.set_full(true);
    let now = bench.now();
    let error = first.store.put(&first.key, first.entry(b"b"), now).map(drop).expect_err("there is no room");
    assert!(!first.store.is_ambiguous(&error), "{error}");
    assert_eq!(second.get(), Some(b"a".to_vec()), "what is there can be read");
    first.remove();
    assert_eq!(second.get(), None);
    let error = second.store.acquire(&second.key, second.claim(), now).expect_err("there is no room");
    assert!(!second.store.is_ambiguous(&error), "{error}");
    bench.set_full(false);
    first.lead();
}

pub(crate) fn a_full_store_refuses_what_is_published_and_the_lease_can_be_given_up<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead();
    bench.set_full(true);
    let error = first.try_publish(epoch, b"a").expect_err("there is no room");
    assert!(!first.store.is_ambiguous(&error), "{error}");
    assert!(second.is_kept_out(), "who waits is told so");
    first.release();
    bench.set_full(false);
    assert_eq!(second.get(), None);
    assert_eq!(second.lead(), epoch);
    assert_eq!(second.publish(epoch, b"b"), Publication::Stored);
}

pub(crate) fn a_full_store_has_room_for_what_is_over<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.put(b"a");
    let epoch = first.lead_over(b"a");
    bench.set_full(true);
    assert_eq!(first.publish_over(epoch), Publication::Stored);
    assert_eq!(second.get(), None);
    bench.set_full(false);
    second.lead();
}

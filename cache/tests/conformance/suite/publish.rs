//! Publishing: what is stored, and what must not be.

use crate::bench::{Bench, Caller, HOUR, SHORT, epoch_of, version};
use oneflight_cache::lease::{Claim, Publication};

pub(crate) fn the_holder_stores_and_gives_the_lease_up<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead();
    assert_eq!(first.publish(epoch, b"a"), Publication::Stored);
    assert_eq!(second.get(), Some(b"a".to_vec()));
    assert!(!first.renew(HOUR));
    assert_ne!(second.lead_over(b"a"), epoch, "the epoch is removed too");
}

pub(crate) fn the_holder_stores_over_what_it_has_seen<B: Bench>(bench: &B) {
    let caller = bench.caller();
    caller.put(b"a");
    let epoch = caller.lead_over(b"a");
    assert_eq!(caller.publish(epoch, b"b"), Publication::Stored);
    assert_eq!(
        caller.find().map(|entry| (entry.value().clone(), entry.version())),
        Some((b"b".to_vec(), version(b"b")))
    );
}

pub(crate) fn without_a_lease_it_is_late_and_leaves_the_next_ones_lease<B: Bench>(bench: &B) {
    let [first, second, third] = [bench.caller(), bench.caller(), bench.caller()];
    let epoch = first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    assert_eq!(second.lead(), epoch);
    assert_eq!(first.publish(epoch, b"a"), Publication::Late);
    assert_eq!(third.get(), Some(b"a".to_vec()));
    assert!(second.renew(HOUR), "it still has the lease");
}

pub(crate) fn late_is_late_also_when_nobody_has_the_lease<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    assert_eq!(first.publish(epoch, b"a"), Publication::Late);
    assert_eq!(second.get(), Some(b"a".to_vec()));
    assert_eq!(second.lead_over(b"a"), epoch, "the epoch is left");
}

pub(crate) fn the_holder_stores_over_what_came_late<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    second.lead();
    assert_eq!(first.publish(epoch, b"a"), Publication::Late);
    assert_eq!(second.publish(epoch, b"b"), Publication::Stored, "it was loaded later");
    assert_eq!(first.get(), Some(b"b".to_vec()));
}

pub(crate) fn without_a_lease_a_value_supersedes<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    assert_eq!(second.lead_for(SHORT), epoch);
    bench.pass(SHORT * 2);
    assert_eq!(first.publish(epoch, b"a"), Publication::Late);
    assert_eq!(second.publish(epoch, b"b"), Publication::Superseded, "in the same epoch");
    assert_eq!(second.get(), Some(b"a".to_vec()));
}

pub(crate) fn k2_a_value_stored_since_supersedes_and_stays<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    let later = second.lead();
    assert_eq!(second.publish(later, b"b"), Publication::Stored);
    assert_eq!(first.publish(epoch, b"a"), Publication::Superseded, "there is no epoch");
    assert_eq!(first.get(), Some(b"b".to_vec()));
}

pub(crate) fn a_removal_invalidates<B: Bench>(bench: &B) {
    assert_void(bench, Publication::Invalidated, None, |other| other.remove());
}

pub(crate) fn a_put_supersedes<B: Bench>(bench: &B) {
    assert_void(bench, Publication::Superseded, Some(b"b"), |other| other.put(b"b"));
}

pub(crate) fn a_put_that_is_being_refreshed_invalidates<B: Bench>(bench: &B) {
    assert_void(bench, Publication::Invalidated, Some(b"b"), |other| {
        other.put(b"b");
        other.lead_over(b"b");
    });
}

pub(crate) fn a_removal_invalidates_also_when_another_leads_by_now<B: Bench>(bench: &B) {
    assert_void(bench, Publication::Invalidated, None, |other| {
        other.remove();
        other.lead();
    });
    let [first, second] = [bench.caller(), bench.caller()];
    first.remove();
    let epoch = first.lead();
    second.remove();
    let later = second.lead();
    assert_ne!(later, epoch);
    assert_eq!(first.publish(epoch, b"a"), Publication::Invalidated);
    assert!(second.renew(HOUR), "the other is not disturbed");
    assert_eq!(second.publish(later, b"b"), Publication::Stored);
    assert_eq!(second.get(), Some(b"b".to_vec()));
}

/// A-B-A: neither bytes nor an epoch that is made anew make it what it was.
pub(crate) fn what_was_removed_and_put_back_is_another<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.put(b"a");
    let epoch = first.lead_over(b"a");
    second.remove();
    second.put(b"a");
    assert_eq!(first.publish(epoch, b"b"), Publication::Superseded);
    second.lead_over(b"a");
    assert_eq!(first.publish(epoch, b"b"), Publication::Invalidated);
    second.remove();
    assert_eq!(first.publish(epoch, b"b"), Publication::Invalidated);
    assert_eq!(second.get(), None);
}

pub(crate) fn a_clear_invalidates<B: Bench>(bench: &B) {
    let caller = bench.caller();
    for leads_again in [false, true] {
        let epoch = caller.lead();
        caller.clear();
        if leads_again {
            caller.lead();
        }
        assert_eq!(caller.publish(epoch, b"a"), Publication::Invalidated);
        assert_eq!(caller.get(), None);
        caller.remove();
    }
}

pub(crate) fn a_flush_invalidates<B: Bench>(bench: &B) {
    assert_void(bench, Publication::Invalidated, None, |other| other.bench.flush());
    assert_void(bench, Publication::Invalidated, None, |other| {
        other.bench.flush();
        other.lead();
    });
}

pub(crate) fn an_epoch_that_was_lost_invalidates_and_the_lease_can_be_given_up<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead();
    bench.lose_epoch();
    assert_eq!(first.publish(epoch, b"a"), Publication::Invalidated);
    assert_eq!(second.get(), None);
    assert!(second.is_kept_out());
    first.release();
    let later = second.lead();
    assert_ne!(later, epoch);
    assert_eq!(second.publish(later, b"b"), Publication::Stored);
}

pub(crate) fn an_epoch_that_was_lost_leaves_the_value_that_is_refreshed<B: Bench>(bench: &B) {
    let caller = bench.caller();
    caller.put(b"a");
    let epoch = caller.lead_over(b"a");
    bench.lose_epoch();
    assert_eq!(caller.publish(epoch, b"b"), Publication::Superseded);
    assert_eq!(caller.get(), Some(b"a".to_vec()));
    assert!(caller.renew(HOUR), "the lease is left");
}

/// A request that is carried out once more, as its answer was lost.
pub(crate) fn twice_is_not_published_twice<B: Bench>(bench: &B) {
    let caller = bench.caller();
    let epoch = caller.lead();
    assert_eq!(caller.publish(epoch, b"a"), Publication::Stored);
    assert_eq!(caller.publish(epoch, b"a"), Publication::Superseded);
    caller.remove();
    assert_eq!(caller.publish(epoch, b"a"), Publication::Invalidated);
    assert_eq!(caller.get(), None);
}

pub(crate) fn by_the_same_token_after_a_write_only_the_new_epoch_counts<B: Bench>(bench: &B) {
    let caller = bench.caller();
    let epoch = caller.lead();
    caller.remove();
    let later = caller.lead();
    assert_ne!(later, epoch);
    assert_eq!(caller.publish(epoch, b"a"), Publication::Invalidated, "though the lease is this token's");
    assert_eq!(caller.publish(later, b"b"), Publication::Stored);
    assert_eq!(caller.get(), Some(b"b".to_vec()));
}

pub(crate) fn what_is_over_removes_what_is_there_and_gives_the_lease_up<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.put(b"a");
    let epoch = first.lead_over(b"a");
    assert_eq!(first.publish_over(epoch), Publication::Stored);
    assert_eq!(second.get(), None);
    assert_ne!(second.lead(), epoch, "the epoch is removed too");
    assert_eq!(first.publish_over(epoch), Publication::Invalidated);
    assert!(second.renew(HOUR));
}

pub(crate) fn what_is_over_removes_nothing_that_another_has_or_loads<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    assert_eq!(second.lead(), epoch);
    assert_eq!(first.publish_over(epoch), Publication::Late);
    assert!(second.renew(HOUR), "it still has the lease");
    assert_eq!(second.publish(epoch, b"b"), Publication::Stored);
    let epoch = epoch_of(first.acquire(Claim { lease: SHORT, seen: Some(version(b"b")), ..first.claim() }));
    bench.pass(SHORT * 2);
    assert_eq!(second.lead_over(b"b"), epoch);
    assert_eq!(first.publish_over(epoch), Publication::Superseded);
    assert!(second.renew(HOUR));
    second.put(b"c");
    assert_eq!(first.publish_over(epoch), Publication::Superseded);
    assert_eq!(second.get(), Some(b"c".to_vec()));
}

pub(crate) fn what_is_over_is_as_a_write_while_nobody_has_the_lease<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.put(b"a");
    let lead = |caller: &Caller<'_, B>| {
        let epoch = epoch_of(caller.acquire(Claim { lease: SHORT, seen: Some(version(b"a")), ..caller.claim() }));
        bench.pass(SHORT * 2);
        epoch
    };
    let epoch = lead(&first);
    assert_eq!(lead(&second), epoch);
    assert_eq!(second.publish_over(epoch), Publication::Stored);
    assert_eq!(first.get(), None);
    assert_eq!(first.publish(epoch, b"b"), Publication::Invalidated, "it was loaded before");
    assert_eq!(first.get(), None);
}

/// What was acquired before `write` is not published after it, whether the lease is still there or has run out.
#[track_caller]
fn assert_void<B: Bench>(bench: &B, expected: Publication, left: Option<&[u8]>, write: impl Fn(&Caller<'_, B>)) {
    for lease in [HOUR, SHORT] {
        let [first, second] = [bench.caller(), bench.caller()];
        first.remove();
        let epoch = first.lead_for(lease);
        if lease == SHORT {
            bench.pass(SHORT * 2);
            second.acquire(Claim { lease: SHORT, ..second.claim() });
        }
        write(&second);
        assert_eq!(first.publish(epoch, b"a"), expected);
        assert_eq!(second.get().as_deref(), left);
    }
}

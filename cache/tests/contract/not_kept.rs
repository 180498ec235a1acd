//! Values that are not to be kept, in a store that several processes share: what they replace goes, and nothing that is newer.

use super::leases::{hold, process, server, wait_for, waiting};
use crate::support::limits::until;
use crate::support::model::ModelStore;
use crate::support::run::{held, loading, refreshing, told, uncalled};
use crate::support::way::{AnyCache, Made, SECOND, TTL, Way};
use oneflight_cache::lease::{BlockingLease, Publication};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Entry, Policy, Source, Time};
use std::time::Duration;

type Store = ModelStore<u32>;
type Cache<W> = <W as Way>::Cache<u32, Store>;

/// Two processes that do not keep 9.
fn two_processes<W: Way>(
    set: impl Fn(Made<u32, Store>) -> Made<u32, Store>,
) -> (Store, ManualClock, Cache<W>, Cache<W>) {
    let (server, clock) = server();
    let ttl = |value: &u32| if *value == 9 { Duration::ZERO } else { TTL };
    let [a, b] = [(); 2].map(|()| process::<W>(&server, &clock, |builder| set(builder.ttl_of(ttl))));
    (server, clock, a, b)
}

pub(crate) fn what_is_not_kept_takes_along_what_it_replaces<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder);
    a.put("k", 1).unwrap();
    assert_eq!(told(a.refresh("k", || Ok(9))), (9, Source::Loaded));
    assert!(b.get("k").unwrap().is_none() && !server.is_held("k"));
}

/// Nor does what was loaded before come after it.
pub(crate) fn what_is_not_kept_takes_that_along_though_its_lease_has_run_out<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder.max_hold(Duration::ZERO));
    a.put("k", 1).unwrap();
    let [first, second] = [(&a, 9), (&b, 2)].map(|(cache, value)| {
        let cache = cache.clone();
        let load = held(move || Ok(value), move |loader| cache.refresh("k", loader));
        server.lose_lease("k");
        load
    });
    assert_eq!(told(first.end()), (9, Source::Loaded));
    assert!(b.get("k").unwrap().is_none());
    assert_eq!(told(second.end()), (2, Source::Loaded));
    assert!(a.get("k").unwrap().is_none() && !server.is_held("k"));
    assert_eq!(b.stats().invalidated, 1);
}

/// J5.
pub(crate) fn j5_what_another_process_has_put_stays_if_a_refresh_brings_what_is_not_kept<W: Way>() {
    let (_, clock, a, b) = two_processes::<W>(|builder| builder.early_refresh(Policy::Eager { window: 0.2 }));
    a.put("k", 1).unwrap();
    let asked = held(|| Ok(9), {
        let a = a.clone();
        move |loader| a.refresh("k", loader)
    });
    b.put("k", 2).unwrap();
    assert_eq!(told(asked.end()), (9, Source::Loaded));
    assert_eq!(told(b.get_or_load("k", uncalled())), (2, Source::Hit));
    clock.advance(TTL - SECOND * 5);
    let (refresh, answer) = refreshing(&a, "k", || Ok(9));
    assert_eq!(told(answer), (2, Source::Early));
    b.put("k", 3).unwrap();
    refresh.0.open();
    until("it has ended", || a.in_flight() == 0);
    assert_eq!(told(b.get_or_load("k", uncalled())), (3, Source::Hit));
}

/// K1.
pub(crate) fn k1_what_is_not_kept_leaves_the_next_holder_its_lease<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder.max_hold(Duration::ZERO));
    a.put("k", 1).unwrap();
    let [first, second] = [(&a, 9), (&b, 2)].map(|(cache, value)| {
        let cache = cache.clone();
        server.lose_lease("k");
        held(move || Ok(value), move |loader| cache.refresh("k", loader))
    });
    assert_eq!(told(first.end()), (9, Source::Loaded));
    assert_eq!((a.stats().late, a.stats().superseded), (0, 0), "it was not to be stored");
    assert!(server.is_held("k"));
    assert_eq!(told(second.end()), (2, Source::Loaded));
    assert_eq!(told(a.get_or_load("k", uncalled())), (2, Source::Hit));
    assert_eq!(b.stats().invalidated, 0);
}

/// K1: the one has no lease, as it has waited for the other for too long.
pub(crate) fn k1_what_is_loaded_past_a_holder_and_not_kept_leaves_it_its_lease<W: Way>() {
    let (_, clock, a, b) = two_processes::<W>(|builder| builder.lease_wait(SECOND).stale_if_error(SECOND * 60));
    a.put("k", 1).unwrap();
    clock.advance(TTL + SECOND);
    let load = loading(&b, "k", || Ok(2));
    let caller = waiting::<W>(&a, "k", Ok(9));
    wait_for(&caller, &clock, Duration::from_millis(50));
    assert_eq!(told(caller.end()), (9, Source::Loaded));
    assert_eq!(told(load.end()), (2, Source::Loaded));
    assert_eq!(told(a.get_or_load("k", uncalled())), (2, Source::Hit));
    assert_eq!(b.stats().invalidated, 0);
}

/// K2.
pub(crate) fn k2_what_is_older_is_not_stored_after_what_is_not_kept<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder.max_hold(Duration::ZERO));
    let first = loading(&a, "k", || Ok(1));
    server.lose_lease("k");
    assert_eq!(told(b.get_or_load("k", || Ok(9))), (9, Source::Loaded));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert!(b.get("k").unwrap().is_none());
    assert_eq!((a.stats().late, a.stats().invalidated), (0, 1));
}

/// K1: what it was to replace may not stay, as somebody has asked for it to be replaced.
pub(crate) fn k1_what_there_is_no_room_for_leaves_the_next_holder_its_lease<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder.max_hold(Duration::ZERO));
    let asked = held(|| Ok(1), move |loader| a.refresh("k", loader));
    server.lose_lease("k");
    let epoch = hold(&server, "k", 7, SECOND * 60);
    server.set_full(true);
    assert_eq!(told(asked.end()), (1, Source::Loaded));
    server.set_full(false);
    let entry = Entry::new(2, 1, Time::START, Time::START.after(TTL), Time::START.after(TTL), SECOND);
    assert_eq!(BlockingLease::publish(&server, "k", 7, epoch, entry, Time::START), Ok(Publication::Stored));
    assert_eq!(told(b.get_or_load("k", uncalled())), (2, Source::Hit));
}

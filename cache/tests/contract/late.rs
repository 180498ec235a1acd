//! Refreshes by threads whose own time is up before they load, in a store that several processes share. That time is real.

use super::leases::server;
use crate::support::limits::{until, within_limit};
use crate::support::model::{Failure, ModelStore};
use crate::support::run::{loading, told, uncalled};
use crate::support::way::{AnyCache, Fail, Refreshes, SECOND, TTL, builder};
use oneflight_cache::blocking::Cache;
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Error, Policy, Source, Tiered};
use std::time::Duration;

type Store = Tiered<String, u32, ModelStore<u32>>;
type Threads = Cache<String, u32, Fail, Store>;

/// A cache whose callers do their refreshes, with "k" near, which is to be refreshed.
fn with_one_to_refresh() -> (ModelStore<u32>, ManualClock, Threads) {
    let (server, clock) = server();
    let store = Tiered::new(100, TTL, server.another_process());
    let builder = builder(&clock).store(store).early_refresh(Policy::Eager { window: 0.5 }).max_uncached_loads(1);
    let timer = |duration| async move {
        smol::Timer::after(duration).await;
    };
    let cache = Threads::with(builder.timer(timer), Refreshes::Inline);
    cache.put("k", 1).unwrap();
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    clock.advance(TTL - SECOND * 10);
    server.take_steps();
    (server, clock, cache)
}

fn acquires(server: &ModelStore<u32>) -> usize {
    server.take_steps().into_iter().filter(|step| *step == "acquire").count()
}

#[test]
fn a_refresh_that_is_late_holds_up_the_next_one() {
    type Read = fn(&Threads) -> (u32, Source);
    let reads: [Read; 3] = [
        |cache| told(cache.call("k").timeout(Duration::ZERO).get_or_load(uncalled())),
        |cache| told(cache.call("k").timeout(Duration::ZERO).get_or_load_inline(uncalled())),
        |cache| {
            let call = cache.call_many(["k"]).timeout(Duration::ZERO);
            told(call.get_or_load(|_| unreachable!("its time is up")).map(|mut values| values.remove(0)))
        },
    ];
    within_limit(move || {
        for (read, failure) in reads.into_iter().flat_map(|read| [(read, None), (read, Some(Failure::LosesRequest))]) {
            let (server, clock, cache) = with_one_to_refresh();
            server.set_failure(failure);
            assert_eq!(read(&cache), (1, Source::Early));
            assert_eq!(read(&cache), (1, Source::Hit), "it would take as long again");
            assert_eq!(acquires(&server), 1);
            server.set_failure(None);
            until("the lease is given up", || !server.is_held("k"));
            clock.advance(SECOND * 2);
            assert_eq!(told(cache.get_or_load_inline("k", || Ok(2))), (2, Source::Early));
        }
    });
}

/// What it has the leases of is not loaded, as another of its keys takes all the time.
#[test]
fn so_does_one_in_a_batch_that_waits_for_its_turn_too_long() {
    within_limit(|| {
        let (server, _, cache) = with_one_to_refresh();
        server.set_foreign("f");
        server.set_foreign("g");
        let other = loading(&cache, "g", || Ok(0));
        server.take_steps();
        let batch = cache.call_many(["k", "f"]).timeout(Duration::from_millis(50));
        let late = batch.get_or_load(|_| unreachable!("its time is up"));
        assert!(matches!(late, Err(Error::Deadline)), "{late:?}");
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
        assert_eq!(acquires(&server), 2);
        assert_eq!(told(other.end()), (0, Source::Loaded));
    });
}

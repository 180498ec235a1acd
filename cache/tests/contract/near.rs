//! Memory in front of a store that several processes share: what is near there and may not be served any more, or cannot be kept.

use super::leases::server;
use crate::support::model::{Failure, ModelStore};
use crate::support::run::{told, uncalled};
use crate::support::way::{AnyCache, Fail, Refreshes, SECOND, TTL, Way, builder};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{BlockingStore, Entry, Source, Store, Tiered, Time};
use std::panic::resume_unwind;

type Tier = Tiered<String, u32, ModelStore<u32>>;
type Cache<W> = <W as Way>::Cache<u32, Tier>;

fn process<W: Way>(clock: &ManualClock, tier: Tier) -> Cache<W> {
    W::Cache::with(builder(clock).store(tier).stale_if_error(TTL * 5), Refreshes::Beside)
}

/// A process that has "k" near, as 1, which has expired, and is held up as a load of it has just failed. The other process has
/// loaded 2 since, of which nobody is told.
fn with_one_old<W: Way>() -> (ModelStore<u32>, ManualClock, Cache<W>) {
    let (server, clock) = server();
    let [a, b] = [(); 2].map(|()| process::<W>(&clock, Tiered::new(100, TTL * 2, server.another_process())));
    b.put("k", 1).unwrap();
    assert_eq!(told(a.get_or_load("k", uncalled())), (1, Source::Hit));
    clock.advance(TTL);
    assert_eq!(told(a.get_or_load("k", || Err(Fail(1)))), (1, Source::Stale));
    assert_eq!(told(b.get_or_load("k", || Ok(2))), (2, Source::Loaded));
    (server, clock, a)
}

pub(crate) fn what_is_near_and_out_of_date_is_no_answer<W: Way>() {
    type Read<C> = fn(&C) -> Vec<u32>;
    let reads: [Read<Cache<W>>; 4] = [
        |cache| vec![cache.get("k").unwrap().unwrap().value],
        |cache| cache.get_many(&["k", "k"]).unwrap().into_iter().map(|found| found.unwrap().value).collect(),
        |cache| vec![cache.get_or_load("k", uncalled()).unwrap().value],
        |cache| {
            let values = cache.get_or_load_many(&["k", "k"], |_| Err(Fail(2))).unwrap();
            values.iter().map(|fetched| fetched.value).collect()
        },
    ];
    for read in reads {
        let (server, _, cache) = with_one_old::<W>();
        server.take_steps();
        assert!(read(&cache).into_iter().all(|value| value == 2));
        assert!(server.take_steps().into_iter().all(|step| step == "get"));
        assert!(read(&cache).into_iter().all(|value| value == 2));
        assert!(server.take_steps().is_empty(), "it is near now");
    }
}

pub(crate) fn what_is_near_and_out_of_date_is_served_by_those_who_load_if_the_server_fails<W: Way>() {
    let (server, clock, cache) = with_one_old::<W>();
    server.set_failure(Some(Failure::LosesRequest));
    for held_up in [true, false] {
        if !held_up {
            clock.advance(SECOND * 10);
        }
        assert!(cache.get("k").is_err() && cache.get_many(&["k", "k"]).is_err(), "the server may have a newer one");
        assert_eq!(told(cache.get_or_load("k", || Err(Fail(2)))), (1, Source::Stale));
        let values = cache.get_or_load_many(&["k", "k"], |_| Err(Fail(3))).unwrap();
        assert!(values.iter().all(|fetched| (fetched.value, fetched.source) == (1, Source::Stale)));
    }
}

/// By itself the tier serves what is fresh, and leaves the rest to the cache in front of it.
#[test]
fn a_tier_by_itself_serves_what_is_near_while_it_is_fresh() {
    let (server, clock) = server();
    let (tier, other) = (Tier::new(100, TTL * 5, server.another_process()), server.another_process());
    let put = |value, now: Time| {
        let entry = Entry::new(value, value, now, now.after(TTL), now.after(TTL * 5), SECOND);
        BlockingStore::<str, u32>::put(&other, "k", entry, now).unwrap();
    };
    let value = |found: Option<Entry<u32>>| *found.unwrap().value();
    let reads: [&dyn Fn(Time) -> u32; 4] = [
        &|now| value(BlockingStore::<str, u32>::get(&tier, "k", now).unwrap()),
        &|now| value(BlockingStore::<str, u32>::get_many(&tier, &["k"], now).unwrap().remove(0).unwrap()),
        &|now| value(smol::block_on(Store::<str, u32>::get(&tier, "k", now)).unwrap()),
        &|now| value(smol::block_on(Store::<str, u32>::get_many(&tier, &["k"], now)).unwrap().remove(0).unwrap()),
    ];
    let mut now = oneflight_cache::Clock::now(&clock);
    for read in reads {
        server.lose_announcements(false);
        put(1, now);
        assert_eq!(read(now), 1);
        server.lose_announcements(true);
        put(2, now);
        assert_eq!(read(now), 1, "nobody has told");
        clock.advance(TTL);
        now = now.after(TTL);
        put(3, now);
        assert_eq!(read(now), 3);
    }
}

/// As a weigher panics. Whoever loads has the new value, and the next caller gets no older one.
pub(crate) fn what_cannot_be_kept_near_leaves_nothing_older_there<W: Way>() {
    let (server, clock) = server();
    let weigh = |_: &String, &value: &u32| {
        if value == 2 {
            // Without the noise of a hook.
            resume_unwind(Box::new(value));
        }
        1
    };
    let cache = process::<W>(&clock, Tiered::weighted(100, weigh, TTL, server.another_process()));
    let put = || {
        cache.put("k", 1).unwrap();
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    };
    put();
    assert_eq!(told(cache.refresh("k", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
    put();
    server.set_failure(Some(Failure::LosesRequest));
    assert_eq!(told(cache.refresh("k", || Ok(2))), (2, Source::Loaded));
    assert!(cache.get("k").is_err(), "nothing is near");
}

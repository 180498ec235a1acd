//! What keys have to do with other loads: in this process, in others, before and after writes.

use crate::bench::{AnyCollector, Bench, Calls, CollectorWay, WINDOW, gathering, values};
use crate::support::limits::until;
use crate::support::model::ModelStore;
use crate::support::run::{joining, loading, run, told, uncalled};
use crate::support::way::{AnyCache, Refreshes, SECOND, TTL, Way, builder, cache};
use oneflight_cache::Source;
use oneflight_cache::test_util::ManualClock;
use std::time::Duration;

pub(crate) fn a_hit_is_not_gathered<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    bench.cache.put("1", 100).unwrap();
    assert_eq!(told(bench.collector.load("1")), (100, Source::Hit));
    assert_eq!(values(bench.collector.load_many(&["1", "1"])), [100, 100]);
    assert!(bench.calls.get().is_empty());
}

/// Two callers, one of a key whose load takes long: the other one's value comes in the time of its own load.
pub(crate) fn a_key_that_is_being_loaded_is_not_gathered_and_keeps_nobody_else_waiting<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    let single = loading(&bench.cache, "1", || Ok(100));
    let joins = bench.loading("1");
    bench.until_waiting("1", 1);
    assert_eq!(bench.collector.gathered(), 0);
    let other = bench.gathering("2");
    bench.clock.advance(WINDOW);
    assert_eq!(told(other.end()), (2, Source::Loaded));
    assert!(!joins.has_ended());
    assert_eq!(told(single.end()), (100, Source::Loaded));
    assert_eq!(told(joins.end()), (100, Source::Joined));
    assert_eq!(bench.calls.get(), [["2"]]);
}

/// In the time of the longer load, not of both.
pub(crate) fn several_keys_wait_for_what_is_on_and_load_the_rest_meanwhile<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    let single = loading(&bench.cache, "1", || Ok(100));
    let several = bench.loading_many(&["1", "2"]);
    bench.until_gathered(1);
    bench.clock.advance(WINDOW);
    until("the rest is loaded", || bench.cache.get("2").unwrap().is_some());
    assert!(!several.has_ended());
    assert_eq!(told(single.end()).0, 100);
    assert_eq!(values(several.end()), [100, 2]);
    assert_eq!(bench.calls.get(), [["2"]]);
}

pub(crate) fn a_single_load_joins_a_key_that_is_gathered<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    let (first, several) = (bench.gathering("1"), bench.loading_many(&["2", "3"]));
    bench.until_gathered(3);
    let joins = ["1", "3"].map(|key| joining(&bench.cache, key, uncalled()));
    bench.clock.advance(WINDOW);
    assert_eq!(joins.map(|caller| told(caller.end())), [(1, Source::Joined), (3, Source::Joined)]);
    assert_eq!((told(first.end()).0, values(several.end())), (1, vec![2, 3]));
    assert_eq!(bench.calls.get().len(), 1);
}

pub(crate) fn batches_in_opposite_orders_do_not_wait_for_each_other_in_a_circle<W: CollectorWay>() {
    for max_batch in [1, 2, 1_000].repeat(7) {
        let calls = Calls::default();
        let (cache, _) = cache::<W, u32>(|builder| builder);
        let collectors = [(); 2].map(|()| W::collector(&cache, Duration::ZERO, max_batch, calls.numbers()));
        let orders = [["1", "2", "3"], ["3", "2", "1"], ["2", "3", "1"]];
        let callers: Vec<_> = orders
            .into_iter()
            .zip(collectors.iter().cycle().cloned())
            .map(|(keys, collector)| run(move || (keys, collector.load_many(&keys))))
            .collect();
        for caller in callers {
            let (keys, fetched) = caller.end();
            assert_eq!(values(fetched), keys.map(|key| key.parse().unwrap()));
        }
        assert_eq!(calls.get().concat().len(), 3, "each key is loaded once");
    }
}

pub(crate) fn a_value_that_is_not_stored_disturbs_no_other_key<W: CollectorWay>() {
    let bench =
        Bench::<W>::with(|builder| builder.ttl_of(|value| if *value == 1 { Duration::ZERO } else { TTL }), 1_000);
    let callers = ["1", "2"].map(|key| bench.gathering(key));
    let also = bench.loading("1");
    bench.until_waiting("1", 1);
    bench.clock.advance(WINDOW);
    assert_eq!(callers.map(|caller| told(caller.end()).0), [1, 2]);
    assert_eq!(told(also.end()), (1, Source::Joined));
    assert_eq!(told(bench.collector.load("2")), (2, Source::Hit));
    let again = bench.gathering("1");
    bench.clock.advance(WINDOW);
    assert_eq!(told(again.end()), (1, Source::Loaded));
    assert_eq!(bench.calls.get(), [vec!["1", "2"], vec!["1"]]);
}

pub(crate) fn a_stale_value_is_served_at_once_and_its_refresh_is_gathered<W: CollectorWay>() {
    let bench = Bench::<W>::with(|builder| builder.stale_while_revalidate(TTL), 1_000);
    bench.cache.put("1", 100).unwrap();
    bench.clock.advance(TTL);
    assert_eq!(told(bench.collector.load("1")), (100, Source::Stale));
    bench.until_gathered(1);
    let other = bench.gathering("2");
    assert_eq!(told(bench.collector.load("1")), (100, Source::Stale));
    bench.clock.advance(WINDOW);
    assert_eq!(told(other.end()).0, 2);
    until("it is refreshed", || told(bench.collector.load("1")) == (1, Source::Hit));
    assert_eq!(bench.calls.get(), [["1", "2"]]);
}

/// The batch is loaded after the write, so both get a new value; only what the later one has asked for is stored.
pub(crate) fn what_is_written_while_it_is_gathered_is_loaded_anew_for_those_who_come_later<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    let earlier = bench.gathering("1");
    bench.cache.invalidate("1").unwrap();
    let later = bench.loading("1");
    until("it is a load of its own", || bench.cache.stats().loads == 2);
    bench.clock.advance(WINDOW);
    assert_eq!(told(earlier.end()), (1, Source::Loaded));
    // Whether it was in time for that batch or not.
    until("it has ended or is gathered", || later.has_ended() || bench.collector.gathered() == 1);
    bench.clock.advance(WINDOW);
    assert_eq!(told(later.end()), (1, Source::Loaded));
    assert_eq!(told(bench.collector.load("1")), (1, Source::Hit));
    assert_eq!(bench.cache.stats().invalidated, 1);
}

pub(crate) fn what_another_process_loads_is_waited_for_by_its_own_callers_only<W: CollectorWay>() {
    let clock = ManualClock::new();
    let server = ModelStore::<u32>::new(clock.clone());
    let process = |store: ModelStore<u32>| -> <W as Way>::Cache<u32, ModelStore<u32>> {
        W::Cache::with(builder(&clock).store(store), Refreshes::Beside)
    };
    let [here, there] = [process(server.clone()), process(server.another_process())];
    let calls = Calls::default();
    let collector = W::collector(&here, WINDOW, 1_000, calls.numbers());
    let elsewhere = loading(&there, "1", || Ok(100));
    let waits = run({
        let collector = collector.clone();
        move || collector.load("1")
    });
    until("it finds the lease with another", || here.stats().held > 0);
    let other = gathering(&collector, "2");
    clock.advance(WINDOW);
    assert_eq!(told(other.end()).0, 2);
    assert!(!waits.has_ended());
    assert_eq!(told(elsewhere.end()).0, 100);
    until("it looks again", || {
        clock.advance(SECOND / 10);
        waits.has_ended()
    });
    assert_eq!(told(waits.end()).0, 100);
    assert_eq!(calls.get(), [["2"]]);
    assert!(!server.is_held("1") && !server.is_held("2"));
}

pub(crate) fn two_collectors_of_a_cache_join_each_others_loads<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    let others = Calls::default();
    let other = W::collector(&bench.cache, WINDOW, 1_000, others.numbers());
    let first = bench.gathering("1");
    let joins = run({
        let other = other.clone();
        move || other.load("1")
    });
    bench.until_waiting("1", 1);
    assert_eq!(other.gathered(), 0);
    let apart = gathering(&other, "2");
    bench.clock.advance(WINDOW);
    assert_eq!([first, joins, apart].map(|caller| told(caller.end()).0), [1, 1, 2]);
    assert_eq!((bench.calls.get(), others.get()), (vec![vec!["1".to_owned()]], vec![vec!["2".to_owned()]]));
}

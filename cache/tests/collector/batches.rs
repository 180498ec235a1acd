//! Which keys are loaded together, and when.

use crate::bench::{AnyCollector, Bench, Calls, CollectorWay, WINDOW, values};
use crate::support::limits::until;
use crate::support::run::{run, told};
use crate::support::way::{AnyCache, cache, share_of};
use oneflight_cache::Source;
use std::time::Duration;

pub(crate) fn callers_of_one_window_are_one_call_of_the_loader<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    let callers = ["1", "2", "3"].map(|key| bench.gathering(key));
    bench.clock.advance(WINDOW - Duration::from_nanos(1));
    assert_eq!(bench.collector.gathered(), 3);
    assert!(bench.calls.get().is_empty(), "the window is not over");
    bench.clock.advance(Duration::from_nanos(1));
    let loaded = callers.map(|caller| told(caller.end()));
    assert_eq!(loaded, [1, 2, 3].map(|value| (value, Source::Loaded)));
    assert_eq!(bench.calls.get(), [["1", "2", "3"]]);
    assert_eq!(bench.collector.gathered(), 0);
    assert_eq!(told(bench.collector.load("2")), (2, Source::Hit));
}

pub(crate) fn a_full_batch_is_loaded_before_its_window_ends<W: CollectorWay>() {
    let bench = Bench::<W>::with(|builder| builder, 2);
    let first = bench.gathering("1");
    assert_eq!(told(bench.collector.load("2")).0, 2);
    assert_eq!(told(first.end()).0, 1);
    assert_eq!(bench.calls.get(), [["1", "2"]]);
    // The next one has a window of its own.
    let third = bench.gathering("3");
    bench.clock.advance(WINDOW);
    assert_eq!(told(third.end()).0, 3);
}

pub(crate) fn several_keys_and_single_ones_are_loaded_together<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    let single = bench.gathering("1");
    let several = bench.loading_many(&["3", "2", "3"]);
    bench.until_gathered(3);
    bench.clock.advance(WINDOW);
    assert_eq!(values(several.end()), [3, 2, 3]);
    assert_eq!(told(single.end()).0, 1);
    assert_eq!(bench.calls.get(), [["1", "2", "3"]]);
}

pub(crate) fn more_keys_than_a_batch_has_are_several_batches<W: CollectorWay>() {
    let bench = Bench::<W>::with(|builder| builder, 2);
    let several = bench.loading_many(&["5", "4", "3", "2", "1"]);
    until("the full ones are loaded", || bench.calls.get().len() == 2);
    bench.until_gathered(1);
    bench.clock.advance(WINDOW);
    assert_eq!(values(several.end()), [5, 4, 3, 2, 1]);
    let mut calls: Vec<usize> = bench.calls.get().iter().map(Vec::len).collect();
    calls.sort_unstable();
    assert_eq!(calls, [1, 2, 2]);
}

pub(crate) fn a_key_that_is_asked_for_twice_is_one_key_of_its_batch<W: CollectorWay>() {
    let bench = Bench::<W>::with(|builder| builder, 2);
    let first = bench.gathering("1");
    let (second, several) = (bench.loading("1"), bench.loading_many(&["1", "1"]));
    bench.until_waiting("1", 2);
    assert_eq!(bench.collector.gathered(), 1);
    bench.clock.advance(WINDOW);
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(second.end()), (1, Source::Joined));
    assert_eq!(values(several.end()), [1, 1]);
    assert_eq!(bench.calls.get(), [["1"]]);
}

pub(crate) fn nothing_is_asked_for_nothing_is_loaded<W: CollectorWay>() {
    let bench = Bench::<W>::new();
    assert!(bench.collector.load_many(&[]).unwrap().is_empty());
    assert!(bench.calls.get().is_empty());
}

pub(crate) fn without_a_window_a_key_is_loaded_at_once<W: CollectorWay>() {
    let calls = Calls::default();
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let collector = W::collector(&cache, Duration::ZERO, 0, calls.numbers());
    assert_eq!(told(collector.load("1")).0, 1);
    assert_eq!(values(collector.load_many(&["2", "1", "3"])), [2, 1, 3], "a batch of zero keys is one of one");
    assert_eq!(calls.get().len(), 3);
}

pub(crate) fn without_coalescing_a_key_is_one_key_of_its_batch_all_the_same<W: CollectorWay>() {
    let bench = Bench::<W>::with(|builder| builder, 2);
    bench.cache.set_coalescing(false);
    let first = bench.gathering("1");
    let second = bench.loading("1");
    until("both load", || bench.cache.stats().loads == 2);
    assert_eq!(bench.collector.gathered(), 1);
    assert_eq!(told(bench.collector.load("2")).0, 2);
    assert_eq!(told(first.end()).0, 1);
    // Whether it was in time for the first batch or not.
    until("it is loaded or gathered", || second.has_ended() || bench.collector.gathered() == 1);
    bench.clock.advance(WINDOW);
    assert_eq!(told(second.end()).0, 1);
    assert!(bench.calls.get().iter().all(|keys| *keys == ["1", "2"] || *keys == ["1"]));
}

pub(crate) fn of_10_000_keys_each_is_loaded_once_and_has_its_value<W: CollectorWay>() {
    let calls = Calls::default();
    let (cache, _) = cache::<W, u32>(|builder| builder.capacity(40_000));
    let collector = W::collector(&cache, Duration::ZERO, 1_000, calls.numbers());
    let keys: Vec<String> = (0..10_000).map(|key| key.to_string()).collect();
    let keys: Vec<&str> = keys.iter().rev().map(String::as_str).collect();
    let expected: Vec<u32> = (0..10_000).rev().collect();
    assert_eq!(values(collector.load_many(&keys)), expected);
    assert_eq!(calls.get().iter().map(Vec::len).collect::<Vec<_>>(), [1_000; 10]);
    assert_eq!(values(collector.load_many(&keys)), expected);
    assert_eq!(calls.get().len(), 10, "all are hits now");
}

pub(crate) fn many_callers_of_few_keys_load_each_once_and_leave_nothing<W: CollectorWay>() {
    let calls = Calls::default();
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let collector = W::collector(&cache, Duration::ZERO, 7, calls.numbers());
    let rounds = 4_000 / share_of::<W>();
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let collector = collector.clone();
            run(move || {
                for round in 0..rounds {
                    let keys: Vec<u32> = (0..4).map(|step| (caller * 31 + round * 7 + step) % 200).collect();
                    assert_eq!(told(collector.load(&keys[0].to_string())).0, keys[0]);
                    let texts: Vec<String> = keys.iter().map(u32::to_string).collect();
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    assert_eq!(values(collector.load_many(&texts)), keys);
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.end());
    let mut loaded = calls.get().concat();
    loaded.sort();
    let once = loaded.len();
    loaded.dedup();
    assert_eq!(loaded.len(), once, "each key is loaded once");
    assert_eq!(collector.gathered(), 0);
}

//! What only threads have.

use crate::bench::{Brittle, Calls, WINDOW, brittle, gathering, numbers};
use crate::support::gate::Gate;
use crate::support::limits::{until, within_limit};
use crate::support::run::{run, told};
use crate::support::way::{Fail, builder};
use oneflight_cache::blocking::{Cache, Collector};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{BoxError, Error, Source};
use std::io;
use std::time::Duration;

/// The thread that runs a batch is in the loader; others come, and run the next one.
#[test]
fn a_batch_is_gathered_and_loaded_while_another_is_loaded() {
    within_limit(|| {
        let (clock, calls) = (ManualClock::new(), Calls::default());
        let (begun, end) = (Gate::new(), Gate::new());
        let load = {
            let (calls, begun, end) = (calls.clone(), begun.clone(), end.clone());
            move |keys: Vec<String>| {
                if calls.add(&keys) == 1 {
                    begun.open();
                    end.wait();
                }
                Ok::<_, u32>(numbers(&keys))
            }
        };
        let collector: Collector<String, u32, Fail> =
            builder(&clock).build_blocking().collector(load).window(WINDOW).build();
        let first = gathering(&collector, "1");
        clock.advance(WINDOW);
        begun.wait();
        let second = gathering(&collector, "2");
        clock.advance(WINDOW);
        assert_eq!(told(second.end()).0, 2);
        assert!(!first.has_ended());
        end.open();
        assert_eq!(told(first.end()).0, 1);
        assert_eq!(calls.get(), [["1"], ["2"]]);
    });
}

/// A caller of several batches is in the loader of the first; the second is loaded by another of its callers.
#[test]
fn a_batch_does_not_wait_for_a_caller_that_is_busy_with_another() {
    within_limit(|| {
        let clock = ManualClock::new();
        let (begun, end) = (Gate::new(), Gate::new());
        let load = {
            let (begun, end) = (begun.clone(), end.clone());
            move |keys: Vec<String>| {
                if keys[0] == "1" {
                    begun.open();
                    end.wait();
                }
                Ok::<_, u32>(numbers(&keys))
            }
        };
        let cache = builder(&clock).build_blocking();
        let collector: Collector<String, u32, Fail> = cache.collector(load).window(WINDOW).max_batch(2).build();
        let several = run({
            let collector = collector.clone();
            move || collector.load_many(["1", "2", "3"])
        });
        begun.wait();
        until("the last key is gathered", || collector.gathered() == 1);
        assert_eq!(told(collector.load("4")).0, 4);
        assert!(!several.has_ended());
        end.open();
        assert_eq!(several.end().unwrap().iter().map(|it| it.value).collect::<Vec<_>>(), [1, 2, 3]);
    });
}

/// It is stored by a copy, which cannot be made: that is a panic of the caller that loads. The other gets the value.
#[test]
fn a_value_whose_first_clone_panics_is_not_loaded_again_for_those_who_wait() {
    within_limit(|| {
        let (clock, calls) = (ManualClock::new(), Calls::default());
        let cache: Cache<String, Brittle, Fail> = builder(&clock).build_blocking();
        let collector = cache.collector(brittle(&calls)).window(WINDOW).build();
        let callers = [0, 1].map(|before| {
            let caller = run({
                let collector = collector.clone();
                move || collector.load("1")
            });
            until("it is gathered, or waits", || collector.gathered() + cache.waiters("1") == before + 1);
            caller
        });
        clock.advance(WINDOW);
        let [first, second] = callers;
        drop(first.panic());
        assert_eq!(told(second.end()).1, Source::Joined);
        assert_eq!(calls.get(), [["1"]]);
    });
}

#[test]
fn who_waits_for_a_batch_that_is_stuck_gives_up() {
    within_limit(|| {
        let (begun, end) = (Gate::new(), Gate::new());
        let load = {
            let (begun, end) = (begun.clone(), end.clone());
            move |keys: Vec<String>| {
                begun.open();
                end.wait();
                Ok::<_, u32>(numbers(&keys))
            }
        };
        let cache = builder(&ManualClock::new()).load_timeout(Duration::from_millis(20)).build_blocking();
        let collector: Collector<String, u32, Fail> = cache.collector(load).window(Duration::MAX).max_batch(2).build();
        // The second makes the batch full.
        let callers = [("1", 1), ("2", 0)].map(|(key, gathered)| {
            let caller = run({
                let collector = collector.clone();
                move || collector.load(key)
            });
            until("it is gathered", || gathered == 0 || collector.gathered() == gathered);
            caller
        });
        begun.wait();
        // Either may be the one that runs the batch.
        until("one gives up", || callers.iter().any(|caller| caller.has_ended()));
        end.open();
        let mut ended = callers.map(|caller| caller.end().map(|fetched| fetched.source));
        ended.sort_by_key(|ended| ended.is_err());
        assert!(matches!(ended, [Ok(Source::Loaded), Err(Error::LoadTimedOut)]), "{ended:?}");
    });
}

#[test]
fn each_key_may_have_a_result_of_its_own() {
    within_limit(|| {
        let load = |keys: Vec<u32>| {
            let of_one = |key: &u32| if *key == 13 { Err(io::Error::other("unlucky")) } else { Ok(*key) };
            keys.iter().map(of_one).collect::<Vec<_>>()
        };
        let cache: Cache<u32, u32, BoxError> = Cache::builder().build_blocking();
        let numbers = cache.collector(load).window(std::time::Duration::MAX).max_batch(2).build();
        std::thread::scope(|threads| {
            let unlucky = threads.spawn(|| numbers.load(&13));
            assert_eq!(*numbers.load(&12).unwrap(), 12);
            let error = unlucky.join().unwrap();
            assert!(matches!(error, Err(Error::Load(error)) if error.to_string() == "unlucky"));
        });
    });
}

#[test]
fn the_default_timer_needs_no_executor() {
    within_limit(|| {
        let cache: Cache<u32, u32> = Cache::builder().build_blocking();
        let same = cache.collector(Ok::<_, BoxError>).build();
        assert_eq!(*same.load(&7).unwrap(), 7);
    });
}

//! Callers that are dropped or not polled any more, and what else only tasks have.

use crate::bench::{Brittle, Calls, WINDOW, brittle};
use crate::support::limits::within_limit;
use crate::support::way::{Fail, builder};
use event_listener::Event;
use futures_lite::future::{block_on, zip};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{BoxError, Cache, Collector, CollectorBuilder, Error, Fetched, Source, StoreError};
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

type Numbers = Collector<String, u32, Fail>;
type Answer = Result<Fetched<u32>, Error<Fail>>;
type Caller<'c> = Pin<Box<dyn Future<Output = Answer> + Send + 'c>>;

fn numbers() -> (Numbers, ManualClock, Calls) {
    let (clock, calls) = (ManualClock::new(), Calls::default());
    let load = calls.numbers();
    let collector = builder(&clock).build().collector(move |keys| std::future::ready(load(keys)));
    (collector.window(WINDOW).build(), clock, calls)
}

/// A caller that has been polled once.
fn polled<'c>(collector: &'c Numbers, key: &'c str) -> Caller<'c> {
    let mut caller: Caller = Box::pin(collector.load(key));
    assert!(poll(&mut caller).is_pending());
    caller
}

fn poll(caller: &mut Caller) -> Poll<Answer> {
    caller.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[track_caller]
fn value(answer: Answer) -> u32 {
    answer.expect("there is a value").value
}

#[test]
fn a_caller_that_is_dropped_while_its_key_is_gathered_takes_it_out() {
    within_limit(|| {
        let (collector, clock, calls) = numbers();
        let (first, second) = (polled(&collector, "1"), polled(&collector, "2"));
        assert_eq!(collector.gathered(), 2);
        drop(first);
        assert_eq!(collector.gathered(), 1);
        clock.advance(WINDOW);
        assert_eq!(value(block_on(second)), 2);
        assert_eq!(calls.get(), [["2"]]);
    });
}

/// It is stored by a copy, which cannot be made: that is a panic of the caller that loads. The other gets the value.
#[test]
fn a_value_whose_first_clone_panics_is_not_loaded_again_for_those_who_wait() {
    within_limit(|| {
        let (clock, calls) = (ManualClock::new(), Calls::default());
        let load = brittle(&calls);
        let cache: Cache<String, Brittle, Fail> = builder(&clock).build();
        let collector = cache.collector(move |keys| std::future::ready(load(keys))).window(WINDOW).build();
        let [mut first, mut second] = [(); 2].map(|()| Box::pin(collector.load("1")));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
        clock.advance(WINDOW);
        assert!(catch_unwind(AssertUnwindSafe(|| block_on(first))).is_err());
        assert_eq!(block_on(second).unwrap().source, Source::Joined);
        assert_eq!(calls.get(), [["1"]]);
    });
}

#[test]
fn a_key_that_others_ask_for_too_stays_when_its_first_caller_is_dropped() {
    within_limit(|| {
        let (collector, clock, calls) = numbers();
        let (first, second) = (polled(&collector, "1"), polled(&collector, "1"));
        drop(first);
        assert_eq!(collector.gathered(), 1);
        clock.advance(WINDOW);
        assert_eq!(value(block_on(second)), 1);
        assert_eq!(calls.get(), [["1"]]);
    });
}

#[test]
fn when_all_have_left_the_next_caller_has_a_window_of_its_own() {
    within_limit(|| {
        let (collector, clock, calls) = numbers();
        drop(polled(&collector, "1"));
        assert_eq!(collector.gathered(), 0);
        clock.advance(WINDOW / 2);
        let mut next = polled(&collector, "2");
        clock.advance(WINDOW - Duration::from_nanos(1));
        assert!(poll(&mut next).is_pending());
        clock.advance(Duration::from_nanos(1));
        assert_eq!(value(block_on(next)), 2);
        assert_eq!(calls.get(), [["2"]]);
    });
}

/// The wake-up at the end of the window goes to the first caller, which does nothing about it.
#[test]
fn a_first_caller_that_is_not_polled_any_more_strands_nobody() {
    within_limit(|| {
        let (collector, clock, calls) = numbers();
        let parked = polled(&collector, "1");
        std::thread::scope(|threads| {
            let others = ["2", "3"].map(|key| {
                let collector = &collector;
                threads.spawn(move || value(block_on(collector.load(key))))
            });
            crate::support::limits::until("they are gathered", || collector.gathered() == 3);
            clock.advance(WINDOW);
            assert_eq!(others.map(|other| other.join().unwrap()), [2, 3]);
        });
        assert_eq!(calls.get(), [["1", "2", "3"]]);
        assert_eq!(value(block_on(parked)), 1);
    });
}

/// As above, for several keys.
#[test]
fn a_caller_of_several_keys_that_is_not_polled_any_more_strands_nobody_who_asks_for_others() {
    within_limit(|| {
        let (collector, clock, calls) = numbers();
        let mut parked = Box::pin(collector.load_many(["1", "2"]));
        assert!(parked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let third = polled(&collector, "3");
        clock.advance(WINDOW);
        assert_eq!(value(block_on(third)), 3);
        assert_eq!(calls.get(), [["1", "2", "3"]]);
        let several = block_on(parked).unwrap();
        assert_eq!((several[0].value, several[1].value), (1, 2));
    });
}

#[test]
fn a_load_goes_on_when_the_caller_that_began_it_is_dropped() {
    within_limit(|| {
        let (clock, calls, go_on) = (ManualClock::new(), Calls::default(), Arc::new(Event::new()));
        let load = {
            let (calls, go_on) = (calls.clone(), Arc::clone(&go_on));
            move |keys: Vec<String>| {
                calls.add(&keys);
                let gone_on = go_on.listen();
                async move {
                    gone_on.await;
                    Ok::<_, u32>(crate::bench::numbers(&keys))
                }
            }
        };
        let collector: Numbers = builder(&clock).build().collector(load).window(WINDOW).build();
        let (mut first, second) = (polled(&collector, "1"), polled(&collector, "2"));
        clock.advance(WINDOW);
        assert!(poll(&mut first).is_pending());
        assert_eq!(calls.get(), [["1", "2"]]);
        drop(first);
        go_on.notify(usize::MAX);
        assert_eq!(value(block_on(second)), 2);
        assert_eq!(calls.get().len(), 1, "nothing is loaded twice");
    });
}

#[test]
fn a_load_that_takes_too_long_is_dropped_and_its_keys_are_free() {
    within_limit(|| {
        let clock = ManualClock::new();
        let load = |_: Vec<String>| std::future::pending::<Result<Vec<u32>, u32>>();
        let cache = builder(&clock).load_timeout(Some(WINDOW * 10)).build();
        let collector: Numbers = cache.collector(load).window(WINDOW).build();
        let mut callers = ["1", "2"].map(|key| polled(&collector, key));
        clock.advance(WINDOW);
        assert!(callers.iter_mut().all(|caller| poll(caller).is_pending()));
        clock.advance(WINDOW * 9);
        for caller in callers {
            assert!(matches!(block_on(caller), Err(Error::LoadTimedOut)));
        }
        assert_eq!((collector.gathered(), cache.waiters("1")), (0, 0));
    });
}

#[test]
fn without_an_end_of_the_window_a_batch_waits_until_it_is_full() {
    within_limit(|| {
        let (clock, calls) = (ManualClock::new(), Calls::default());
        let load = calls.numbers();
        let collector = builder(&clock).build().collector(move |keys| std::future::ready(load(keys)));
        let collector: Numbers = collector.window(Duration::MAX).max_batch(2).build();
        let mut first = polled(&collector, "1");
        clock.advance(Duration::from_secs(1_000_000));
        assert!(poll(&mut first).is_pending());
        assert_eq!(clock.sleepers(), 0, "nothing is to wake it");
        let (first, second) = block_on(zip(first, collector.load("2")));
        assert_eq!((value(first), value(second)), (1, 2));
        assert_eq!(calls.get(), [["1", "2"]]);
    });
}

#[test]
fn each_key_may_have_a_result_of_its_own() {
    within_limit(|| {
        let load = |keys: Vec<u32>| async move {
            let of_one = |key: &u32| if *key == 13 { Err(Arc::new(io::Error::other("unlucky"))) } else { Ok(*key) };
            keys.iter().map(of_one).collect::<Vec<_>>()
        };
        // The errors of this cache cannot be cloned.
        let cache: Cache<u32, u32, BoxError> = Cache::builder().build();
        let numbers = cache.collector(load).max_batch(2).build();
        let (lucky, unlucky) = block_on(zip(numbers.load(&12), numbers.load(&13)));
        assert_eq!(lucky.unwrap().source, Source::Loaded);
        assert!(matches!(unlucky, Err(Error::Load(error)) if error.to_string() == "unlucky"));
    });
}

#[test]
fn the_default_timer_needs_no_executor() {
    within_limit(|| {
        let cache: Cache<u32, u32> = Cache::builder().build();
        let same = cache.collector(|keys: Vec<u32>| async { Ok::<_, StoreError>(keys) }).build();
        assert_eq!(*block_on(same.load(&7)).unwrap(), 7);
    });
}

#[test]
fn all_of_it_may_be_shared_between_threads() {
    fn shared<T: Send + Sync + Unpin + std::fmt::Debug>() {}
    fn sent<T: Send>(_: impl FnOnce(&'static Collector<String, u32>) -> T) {}
    shared::<(Collector<String, u32>, oneflight_cache::blocking::Collector<String, u32>)>();
    shared::<Collector<u64, Arc<u32>, io::Error>>();
    sent(|collector| collector.load("1"));
    sent(|collector| collector.load_many(["1", "2"]));
    fn built<C>(builder: CollectorBuilder<C, u32, u32, BoxError>) -> impl Send + Unpin + std::fmt::Debug
    where
        C: Send + Unpin,
    {
        builder
    }
    let cache: Cache<u32, u32> = Cache::builder().build();
    let load = |keys: Vec<u32>| async { Ok::<_, StoreError>(keys) };
    assert!(format!("{:?}", built(cache.collector(load))).contains("1ms"));
}

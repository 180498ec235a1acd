//! Loaders that panic.

use super::leases::{process, server};
use crate::support::run::{failure, held, joining, loading, run, told, uncalled};
use crate::support::way::{AnyCache, AnyStore, Fail, SECOND, TTL, Way, cache};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Fetched, Policy, Source};
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, PartialEq, Eq)]
struct Blown(u32);

pub(crate) fn a_panic_reaches_its_own_caller_and_one_that_waits_takes_over<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let first = loading(&cache, "k", || panic_any(Blown(7)));
    let second = joining(&cache, "k", || Ok(2));
    assert_eq!(*first.let_go().panic().downcast::<Blown>().unwrap(), Blown(7));
    assert_eq!(told(second.end()), (2, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
}

pub(crate) fn a_panic_leaves_the_key_free<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder.max_loads(1).max_waiters(0));
    for _ in 0..3 {
        let caller = run({
            let cache = cache.clone();
            move || cache.get_or_load("k", || panic_any(Blown(7)))
        });
        assert_eq!(*caller.panic().downcast::<Blown>().unwrap(), Blown(7));
    }
    let caller = run({
        let cache = cache.clone();
        move || cache.get_or_load_many(&["k"], |_| panic_any(Blown(8)))
    });
    assert_eq!(*caller.panic().downcast::<Blown>().unwrap(), Blown(8));
    let refresh = held(|| panic_any(Blown(9)), {
        let cache = cache.clone();
        move |loader| cache.refresh("k", loader)
    });
    assert_eq!(*refresh.let_go().panic().downcast::<Blown>().unwrap(), Blown(9));
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
}

/// Calls in the destructor of something that is dropped while its thread panics.
pub(crate) fn another_panic_is_no_error_of_a_load<W: Way>() {
    struct Calls<F: FnMut()>(F);
    impl<F: FnMut()> Drop for Calls<F> {
        fn drop(&mut self) {
            self.0();
        }
    }
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let caller = run({
        let cache = cache.clone();
        move || {
            let _calls = Calls(|| {
                assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
                assert_eq!(failure(cache.get_or_load("other", || Err(Fail(2)))), 2);
            });
            panic_any(Blown(7));
        }
    });
    assert_eq!(*caller.panic().downcast::<Blown>().unwrap(), Blown(7));
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.load_errors), (2, 1));
}

pub(crate) fn if_a_batch_panics_those_who_wait_for_its_keys_take_over<W: Way>() {
    let (cache, _) = cache::<W, u32>(|builder| builder);
    let batch = held(|| panic_any(Blown(7)), {
        let cache = cache.clone();
        move |loader: Box<dyn FnOnce() -> Vec<u32> + Send>| {
            let loader = std::sync::Mutex::new(Some(loader));
            cache.get_or_load_many(&["a", "b"], move |_| Ok(loader.lock().unwrap().take().expect("called once")()))
        }
    });
    let (a, b) = (joining(&cache, "a", || Ok(1)), joining(&cache, "b", || Ok(2)));
    assert_eq!(*batch.let_go().panic().downcast::<Blown>().unwrap(), Blown(7));
    assert_eq!(told(a.end()), (1, Source::Loaded));
    assert_eq!(told(b.end()), (2, Source::Loaded));
}

/// J3, J4. So does one that returns another number of values, which is a panic too.
pub(crate) fn j4_a_batch_of_refreshes_that_panics_backs_off<W: Way>() {
    const EAGER: Policy = Policy::Eager { window: 0.5 };
    for miscounts in [false, true] {
        let (local, clock) = cache::<W, u32>(|builder| builder.early_refresh(EAGER));
        a_batch_of_refreshes_that_panics_backs_off(&local, &clock, miscounts);
        let (server, clock) = server();
        let shared = process::<W>(&server, &clock, |builder| builder.early_refresh(EAGER));
        a_batch_of_refreshes_that_panics_backs_off(&shared, &clock, miscounts);
    }
}

fn a_batch_of_refreshes_that_panics_backs_off<S: AnyStore<u32>>(
    cache: &impl AnyCache<u32, S>,
    clock: &ManualClock,
    miscounts: bool,
) {
    for key in ["a", "b"] {
        cache.put(key, 1).unwrap();
    }
    clock.advance(TTL - SECOND * 10);
    let batch = run({
        let cache = cache.clone();
        move || cache.get_or_load_many(&["a", "b"], move |_| if miscounts { Ok(vec![0]) } else { panic_any(Blown(7)) })
    });
    drop(batch.panic());
    let told = |fetched: Vec<Fetched<u32>>| fetched.into_iter().map(|it| (it.value, it.source)).collect::<Vec<_>>();
    let again = cache.get_or_load_many(&["a", "b"], |_| unreachable!("they are held up")).unwrap();
    assert_eq!(told(again), [(1, Source::Hit); 2]);
    clock.advance(SECOND);
    let later = cache.get_or_load_many(&["a", "b"], |keys| Ok(vec![2; keys.len()])).unwrap();
    assert_eq!(told(later), [(2, Source::Early); 2]);
}

pub(crate) fn i5_after_a_panic_the_old_value_is_served_until_the_back_off_is_over<W: Way>() {
    let (local, clock) = cache::<W, u32>(|builder| builder.stale_if_error(TTL));
    after_a_panic_the_old_value_is_served_until_the_back_off_is_over(&local, &clock);
    let (server, clock) = server();
    let shared = process::<W>(&server, &clock, |builder| builder.stale_if_error(TTL));
    after_a_panic_the_old_value_is_served_until_the_back_off_is_over(&shared, &clock);
}

fn after_a_panic_the_old_value_is_served_until_the_back_off_is_over<S: AnyStore<u32>>(
    cache: &impl AnyCache<u32, S>,
    clock: &ManualClock,
) {
    cache.put("k", 1).unwrap();
    clock.advance(TTL);
    let caller = run({
        let cache = cache.clone();
        move || cache.get_or_load("k", || panic_any(Blown(7)))
    });
    assert_eq!(*caller.panic().downcast::<Blown>().unwrap(), Blown(7));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Stale));
    clock.advance(SECOND);
    assert_eq!(told(cache.get_or_load("k", || Ok(2))), (2, Source::Loaded));
    // What was written meanwhile is not held up.
    let written = held(|| panic_any(Blown(8)), {
        let cache = cache.clone();
        move |loader| cache.refresh("k", loader)
    });
    cache.put_with_ttl("k", 3, SECOND / 2).unwrap();
    drop(written.let_go().panic());
    clock.advance(SECOND / 2);
    assert_eq!(told(cache.get_or_load("k", || Ok(4))), (4, Source::Loaded));
}

/// A value whose first `Clone` panics.
#[derive(Debug)]
struct Brittle(Arc<AtomicBool>);

impl Brittle {
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        if self.0.swap(false, Ordering::SeqCst) {
            panic_any(Blown(7));
        }
        Self(Arc::clone(&self.0))
    }
}

/// The one who loaded gets the panic, as it would alone; those who wait get the value.
pub(crate) fn a_value_whose_first_clone_panics_is_not_lost<W: Way>() {
    let (cache, _) = cache::<W, Brittle>(|builder| builder);
    let first = loading(&cache, "k", || Ok(Brittle::new()));
    let waiting = [(); 2].map(|()| joining(&cache, "k", uncalled()));
    assert_eq!(*first.let_go().panic().downcast::<Blown>().unwrap(), Blown(7));
    for caller in waiting {
        assert_eq!(told(caller.end()).1, Source::Joined);
    }
    assert_eq!(cache.stats().loads, 1);
    assert!(cache.get("k").unwrap().is_none(), "it could not be stored");
    let batch = run({
        let cache = cache.clone();
        move || cache.get_or_load_many(&["k", "l"], |keys| Ok(keys.iter().map(|_| Brittle::new()).collect()))
    });
    assert_eq!(*batch.panic().downcast::<Blown>().unwrap(), Blown(7));
    assert_eq!(told(cache.get_or_load("k", || Ok(Brittle(Arc::default())))).1, Source::Loaded);
}

//! Loaders that panic.

use super::leases::{process, server};
use crate::support::limits::until;
use crate::support::model::{ModelStore, is_inside};
use crate::support::run::{Running, failure, held, joining, loading, run, told, uncalled};
use crate::support::way::{AnyCache, AnyStore, Fail, SECOND, TTL, Way, cache, cache_in};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Fetched, Memory, Policy, Source, Tiered};
use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
        a_batch_of_refreshes_that_panics_backs_off(&local, &clock, miscounts, || true);
        let (server, clock) = server();
        let shared = process::<W>(&server, &clock, |builder| builder.early_refresh(EAGER));
        // Threads give leases up in a thread of its own.
        let are_free = || !server.is_held("a") && !server.is_held("b");
        a_batch_of_refreshes_that_panics_backs_off(&shared, &clock, miscounts, are_free);
    }
}

fn a_batch_of_refreshes_that_panics_backs_off<S: AnyStore<u32>>(
    cache: &impl AnyCache<u32, S>,
    clock: &ManualClock,
    miscounts: bool,
    are_free: impl Fn() -> bool,
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
    until("the leases are given up", are_free);
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

/// A value one of whose clones panics, the server's not counted.
#[derive(Debug)]
struct Brittle(Arc<AtomicUsize>);

impl Brittle {
    fn new(nth: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(nth)))
    }

    fn sound() -> Self {
        Self::new(0)
    }
}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        if !is_inside() && self.0.fetch_sub(1, Ordering::SeqCst) == 1 {
            panic_any(Blown(7));
        }
        Self(Arc::clone(&self.0))
    }
}

/// The one who loaded gets the panic, as it would alone; those who wait get the value.
pub(crate) fn a_value_whose_first_clone_panics_is_not_lost<W: Way>() {
    let (cache, _) = cache::<W, Brittle>(|builder| builder);
    let first = loading(&cache, "k", || Ok(Brittle::new(1)));
    let waiting = [(); 2].map(|()| joining(&cache, "k", uncalled()));
    assert_eq!(*first.let_go().panic().downcast::<Blown>().unwrap(), Blown(7));
    for caller in waiting {
        assert_eq!(told(caller.end()).1, Source::Joined);
    }
    assert_eq!(cache.stats().loads, 1);
    assert!(cache.get("k").unwrap().is_none(), "it could not be stored");
    let batch = run({
        let cache = cache.clone();
        move || cache.get_or_load_many(&["k", "l"], |keys| Ok(keys.iter().map(|_| Brittle::new(1)).collect()))
    });
    assert_eq!(*batch.panic().downcast::<Blown>().unwrap(), Blown(7));
    assert_eq!(told(cache.get_or_load("k", || Ok(Brittle::sound()))).1, Source::Loaded);
}

/// How many of these callers have panicked. The others have their values.
fn panics<T>(callers: impl IntoIterator<Item = Running<T>>) -> usize {
    let panics = callers.into_iter().filter_map(|caller| caller.outcome().err());
    panics.map(|panic| assert_eq!(*panic.downcast::<Blown>().unwrap(), Blown(7))).count()
}

/// A caller whose own clone panics has no value. None loads again, for a single load and for a batch. How many panic of each.
fn all_but_one_have_the_value<W: Way, S: AnyStore<Brittle>>(nth: usize, store: impl Fn() -> S) -> [usize; 2] {
    let (cache, _) = cache_in::<W, Brittle, S>(store(), |builder| builder);
    let first = loading(&cache, "k", move || Ok(Brittle::new(nth)));
    let second = joining(&cache, "k", uncalled());
    let single = panics([first.let_go(), second].map(|it| run(move || told(it.end()))));
    assert_eq!(cache.stats().loads, 1);

    let (cache, _) = cache_in::<W, Brittle, S>(store(), |builder| builder);
    let values = move || vec![Brittle::new(nth), Brittle::sound()];
    let batch = held(values, {
        let cache = cache.clone();
        move |loader: Box<dyn FnOnce() -> Vec<Brittle> + Send>| {
            let loader = std::sync::Mutex::new(Some(loader));
            cache.get_or_load_many(&["k", "l"], move |_| Ok(loader.lock().unwrap().take().expect("called once")()))
        }
    });
    let [k, l] = ["k", "l"].map(|key| joining(&cache, key, uncalled()));
    let batch = batch.let_go();
    assert_eq!(told(l.end()).1, Source::Joined);
    let of_k = panics([k]) + panics([run(move || batch.end().unwrap())]);
    assert_eq!(cache.stats().loads, 1);
    [single, of_k]
}

pub(crate) fn whichever_clone_panics_the_value_is_not_lost<W: Way>() {
    let server = || ModelStore::<Brittle>::new(ManualClock::new());
    for nth in 1..=4 {
        let memory = all_but_one_have_the_value::<W, _>(nth, || Memory::<String, Brittle>::new(100));
        let model = all_but_one_have_the_value::<W, _>(nth, server);
        let tiered = all_but_one_have_the_value::<W, _>(nth, || Tiered::new(100, SECOND, server()));
        assert!([memory, model, tiered].concat().iter().all(|panics| *panics <= 1));
        // The first is for the store, and the second to be near.
        assert!(nth != 1 || [memory, model, tiered] == [[1; 2]; 3]);
        assert!(nth != 2 || tiered == [0; 2]);
    }
}

/// It could not be kept near, and is read from the server.
pub(crate) fn what_cannot_be_copied_to_be_near_is_read_all_the_same<W: Way>() {
    let server = ModelStore::<Brittle>::new(ManualClock::new());
    let store = || Tiered::new(100, SECOND, server.another_process());
    let [(a, _), (b, _)] = [(); 2].map(|()| cache_in::<W, Brittle, _>(store(), |builder| builder));
    a.put("k", Brittle::new(1)).unwrap();
    assert_eq!(told(b.get_or_load("k", uncalled())).1, Source::Hit);
    assert_eq!(b.store().near_len(), 0);
    assert_eq!(told(b.get_or_load("k", uncalled())).1, Source::Hit);
    assert_eq!(b.store().near_len(), 1);
}

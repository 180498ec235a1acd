//! What values weigh, and weighers that panic, call the cache, or would say something else later.

use crate::support::run::{Runs, failure, joining, loading, run, told};
use crate::support::way::{AnyCache, Fail, Way, cache};
use oneflight_cache::{Memory, Source};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

type Cached<W, V> = <W as Way>::Cache<V, Memory<String, V>>;

/// A cache whose values weigh 1 each, or panic with a [`Fail`] if that is wanted.
fn panicking<W: Way>(capacity: u64) -> (Cached<W, u32>, Arc<AtomicBool>) {
    let wanted = Arc::new(AtomicBool::new(false));
    let panics = Arc::clone(&wanted);
    let memory = Memory::weighted(capacity, move |_: &String, &value: &u32| {
        if panics.load(Ordering::SeqCst) {
            // Without the noise of a hook.
            resume_unwind(Box::new(Fail(value)));
        }
        1
    });
    (cache::<W, u32>(|builder| builder.memory(memory)).0, wanted)
}

pub(crate) fn a_weigher_that_panics_costs_its_own_caller_the_value_and_nobody_else<W: Way>() {
    let (cache, panics) = panicking::<W>(100);
    cache.put("k", 1).unwrap();
    cache.put("l", 2).unwrap();
    panics.store(true, Ordering::SeqCst);
    let put = run({
        let cache = cache.clone();
        move || cache.put("k", 7)
    });
    assert_eq!(*put.panic().downcast::<Fail>().unwrap(), Fail(7));
    cache.invalidate("l").unwrap();
    let first = loading(&cache, "l", || Ok(8));
    let runs = Runs::default();
    let second = joining(&cache, "l", runs.returning(Err(Fail(9))));
    assert_eq!(*first.let_go().panic().downcast::<Fail>().unwrap(), Fail(8));
    assert_eq!((failure(second.end()), runs.get()), (9, 1), "it goes on with its own loader");
    panics.store(false, Ordering::SeqCst);
    assert_eq!((cache.store().len(), cache.store().weight()), (1, 1));
    assert_eq!(told(cache.get_or_load("k", || Ok(0))), (1, Source::Hit), "what was there is there");
    assert_eq!(told(cache.get_or_load("l", || Ok(3))), (3, Source::Loaded));
}

/// Under random calls of all kinds, more keys than fit, and panics now and then.
pub(crate) fn weights_are_right_whatever_panics<W: Way>() {
    let (cache, panics) = panicking::<W>(20);
    let mut random = fastrand::Rng::with_seed(7);
    let calls = 20_000 / crate::support::way::share_of::<W>();
    let mut panicked = 0;
    for _ in 0..calls {
        panics.store(random.u32(..20) == 0, Ordering::SeqCst);
        let (key, kind) = (random.u32(..60), random.u8(..4));
        let name = key.to_string();
        let call = || match kind {
            0 => cache.put(&name, key).unwrap(),
            1 => cache.invalidate(&name).unwrap(),
            _ => assert_eq!(told(cache.get_or_load(&name, move || Ok(key))).0, key),
        };
        panicked += u32::from(catch_unwind(AssertUnwindSafe(call)).is_err());
        assert!(cache.store().len() <= 20, "{:?}", cache.store());
        assert_eq!(cache.store().weight(), cache.store().len() as u64);
    }
    assert!(panicked > 0);
    panics.store(false, Ordering::SeqCst);
    cache.invalidate_all().unwrap();
    assert_eq!((cache.store().len(), cache.store().weight()), (0, 0));
    for key in 0..10_u32 {
        cache.put(&key.to_string(), key).unwrap();
    }
    assert_eq!(cache.store().weight(), 10, "there is room as before");
}

/// The weigher looks up the very key that is being stored, and stores another.
pub(crate) fn a_weigher_may_call_the_cache_and_runs_once_a_put<W: Way>() {
    let within: Arc<OnceLock<Cached<W, u32>>> = Arc::default();
    let runs = Runs::default();
    let memory = Memory::weighted(10_000, {
        let (within, runs) = (Arc::clone(&within), runs.clone());
        move |key: &String, _: &u32| {
            if key != "weighed" {
                runs.add();
                let (cache, key) = (within.get().expect("it is there").clone(), key.clone());
                // In a thread of its own, since not every executor can be entered again.
                let calls = run(move || {
                    let known = cache.get(&key).unwrap().is_some();
                    cache.put("weighed", u32::from(known)).unwrap();
                    cache.invalidate(&key).unwrap();
                });
                calls.end();
            }
            1
        }
    });
    let (cache, _) = cache::<W, u32>(|builder| builder.memory(memory));
    let _ = within.set(cache.clone());
    cache.put("k", 1).unwrap();
    assert_eq!((runs.get(), told(cache.get("k").transpose().unwrap()).0), (1, 1));
    cache.put("k", 2).unwrap();
    cache.invalidate("k").unwrap();
    assert_eq!(runs.get(), 2, "nothing is weighed again");
    // It invalidates the key during its load, so that is not stored.
    assert_eq!(told(cache.get_or_load("l", || Ok(3))), (3, Source::Loaded));
    assert!(cache.get("l").unwrap().is_none());
    assert_eq!((runs.get(), cache.store().weight()), (3, 1));
}

/// A value that grows after it was stored, as an [`Arc`] of something may.
pub(crate) fn a_weight_does_not_change<W: Way>() {
    let memory = Memory::weighted(1_000, |_: &String, size: &Arc<AtomicU64>| size.load(Ordering::SeqCst));
    let (cache, _) = cache::<W, Arc<AtomicU64>>(|builder| builder.memory(memory));
    for key in 0..20 {
        let size = Arc::new(AtomicU64::new(10));
        cache.put(&key.to_string(), Arc::clone(&size)).unwrap();
        size.store(40, Ordering::SeqCst);
    }
    assert_eq!(cache.store().weight(), 200);
    for key in 0..20 {
        cache.invalidate(&key.to_string()).unwrap();
    }
    assert_eq!((cache.store().len(), cache.store().weight()), (0, 0));
}

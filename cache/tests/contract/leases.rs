//! A store that several processes share. Each process is a cache of its own here; the store is a model.

use crate::support::gate::Gate;
use crate::support::in_time::in_time;
use crate::support::limits::until;
use crate::support::model::ModelStore;
use crate::support::run::{Running, Runs, aged, failure, loading, refreshing, run, told, uncalled};
use crate::support::thread_way::Threads;
use crate::support::way::{AnyCache, Fail, Made, Refreshes, SECOND, TTL, Way, builder};
use oneflight_cache::fill::Token;
use oneflight_cache::lease::{Acquired, BlockingLease, Claim, Publication};
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Clock, Entry, Error, Fetched, Policy, Source, Time};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) type Store = ModelStore<u32>;
type Cache<W> = <W as Way>::Cache<u32, Store>;

/// A server, and the clock of all.
pub(crate) fn server() -> (Store, ManualClock) {
    let clock = ManualClock::new();
    (Store::new(clock.clone()), clock)
}

pub(crate) fn process<W: Way>(
    server: &Store,
    clock: &ManualClock,
    set: impl FnOnce(Made<u32, Store>) -> Made<u32, Store>,
) -> Cache<W> {
    W::Cache::with(set(builder(clock).store(server.another_process())), Refreshes::Beside)
}

/// One whose sleeps take their real time, though its clock stands still.
pub(crate) fn awake(builder: Made<u32, Store>) -> Made<u32, Store> {
    builder.timer(|duration| async move {
        smol::Timer::after(duration).await;
    })
}

fn two_processes<W: Way>(
    set: impl Fn(Made<u32, Store>) -> Made<u32, Store>,
) -> (Store, ManualClock, Cache<W>, Cache<W>) {
    let (server, clock) = server();
    let [a, b] = [(); 2].map(|()| process::<W>(&server, &clock, &set));
    (server, clock, a, b)
}

/// The lease of a process that does nothing with it.
pub(crate) fn hold(server: &Store, key: &str, token: Token, lease: Duration) -> u128 {
    let claim = Claim { token, lease, epoch_life: SECOND * 600, seen: None };
    match BlockingLease::acquire(server, key, claim, Time::START) {
        Ok(Acquired::Leader { epoch }) => epoch,
        other => panic!("{other:?}"),
    }
}

/// A call that waits for another process.
pub(crate) fn waiting<W: Way>(
    cache: &Cache<W>,
    key: &'static str,
    comes_to: Result<u32, Fail>,
) -> crate::support::run::Running<crate::support::way::Answer<u32>> {
    let before = cache.stats().held;
    let caller = run({
        let cache = cache.clone();
        move || cache.get_or_load(key, || comes_to)
    });
    until("it finds the lease with another", || cache.stats().held > before);
    caller
}

/// Moves the clock on until `caller` has ended: it sleeps again and again. So slowly that whoever has begun to load comes to
/// an end before its lease does.
pub(crate) fn wait_for<T>(caller: &crate::support::run::Running<T>, clock: &ManualClock, step: Duration) {
    until("the caller has ended", || {
        if !caller.has_ended() && clock.sleepers() > 0 {
            clock.advance(step);
            std::thread::sleep(Duration::from_millis(1));
        }
        caller.has_ended()
    });
}

pub(crate) fn of_two_processes_one_loads_and_the_other_gets_its_value<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder);
    let first = loading(&a, "k", || Ok(1));
    let second = waiting::<W>(&b, "k", Err(Fail(9)));
    assert!(!second.has_ended());
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(second.end()), (1, Source::Joined));
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Hit));
    assert!(!server.is_held("k"));
    let (a, b) = (a.stats(), b.stats());
    assert_eq!((a.loads, a.held, a.waited), (1, 0, 0));
    assert_eq!((b.loads, b.waited, b.taken_over), (0, 1, 0));
}

/// K4.
pub(crate) fn k4_the_lease_of_a_holder_that_died_is_taken_over_when_it_ends<W: Way>() {
    // However far the clock is moved on while whoever has taken over stands still.
    let patient = SECOND * 6_000;
    let (server, clock, a, b) = two_processes::<W>(|builder| builder.lease(patient).lease_wait(patient));
    hold(&server, "k", 7, SECOND);
    let waiting = [waiting::<W>(&a, "k", Ok(1)), waiting::<W>(&b, "k", Ok(1))];
    assert!(waiting.iter().all(|caller| !caller.has_ended()));
    for caller in &waiting {
        wait_for(caller, &clock, Duration::from_millis(20));
    }
    let sources = waiting.map(|caller| told(caller.end()).1);
    assert!(sources.contains(&Source::Loaded) && sources.contains(&Source::Joined), "{sources:?}");
    assert_eq!([a.stats(), b.stats()].iter().map(|stats| stats.taken_over).sum::<u64>(), 1);
}

/// K3.
pub(crate) fn k3_a_lease_is_renewed_for_as_long_as_the_load_takes<W: Way>() {
    let (server, clock) = server();
    let lease = Duration::from_millis(30);
    let cache = process::<W>(&server, &clock, |builder| awake(builder).lease(lease));
    let load = loading(&cache, "k", || Ok(1));
    assert_renewed(&server, &clock, lease, &["k"]);
    assert_eq!(told(load.end()), (1, Source::Loaded));
    assert_eq!((cache.stats().lost, cache.stats().late), (0, 0));
    assert!(!server.is_held("k"));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
}

/// K3.
pub(crate) fn k3_the_leases_of_a_batch_are_renewed_for_as_long_as_its_load_takes<W: Way>() {
    let (server, clock) = server();
    let lease = Duration::from_millis(60);
    let cache = process::<W>(&server, &clock, |builder| awake(builder).lease(lease));
    let (begun, end) = (Gate::new(), Gate::new());
    let batch = run({
        let (cache, begun, end) = (cache.clone(), begun.clone(), end.clone());
        move || {
            cache.get_or_load_many(&["a", "b"], move |_| {
                begun.open();
                end.wait();
                Ok(vec![1, 2])
            })
        }
    });
    begun.wait();
    assert_renewed(&server, &clock, lease, &["a", "b"]);
    end.open();
    assert_eq!(batch.end().unwrap().len(), 2);
    assert_eq!((cache.stats().lost, cache.stats().late), (0, 0));
    assert!(!server.is_held("a") && !server.is_held("b"));
    assert_eq!(told(cache.get_or_load("b", uncalled())), (2, Source::Hit));
}

/// The leases of the keys outlast several times what they were asked for.
fn assert_renewed(server: &Store, clock: &ManualClock, lease: Duration, keys: &[&str]) {
    for _ in 0..5 {
        // A renewal that began before the clock was moved on may be noted after; the next one counts.
        for _ in 0..2 * keys.len() {
            server.take_steps();
            until("it is renewed", || server.take_steps().contains(&"renew"));
        }
        clock.advance(lease / 2);
        assert!(keys.iter().all(|key| server.is_held(key)));
    }
}

/// Not older by the wait for another process.
pub(crate) fn a_value_is_as_old_as_its_load_and_each_process_counts_its_own<W: Way>() {
    let (_, clock, a, b) = two_processes::<W>(|builder| builder);
    let fails = loading(&a, "k", || Err(Fail(1)));
    let waits = run({
        let (b, clock) = (b.clone(), clock.clone());
        move || {
            b.get_or_load("k", move || {
                clock.advance(SECOND);
                Ok(2)
            })
        }
    });
    until("it finds the lease with another", || b.stats().held > 0);
    clock.advance(SECOND * 2);
    assert_eq!(failure(fails.end()), 1);
    assert_eq!(aged(waits.end()), (2, Source::Loaded, 1));
    assert_eq!([a.stats(), b.stats()].map(|stats| (stats.loads, stats.load_errors)), [(1, 1), (1, 0)]);
    let void = loading(&a, "l", || Ok(3));
    a.invalidate("l").unwrap();
    assert_eq!(told(void.end()), (3, Source::Loaded));
    assert_eq!(a.stats().invalidated, 1);
}

/// It would have been told, but the push is lost.
pub(crate) fn what_another_process_has_stored_meanwhile_and_is_out_of_date_is_loaded_anew<W: Way>() {
    let (server, clock, a, b) = two_processes::<W>(|builder| builder.ttl(SECOND).stale_if_error(TTL).lease_wait(TTL));
    let stores = loading(&a, "k", || Ok(1));
    let waits = waiting::<W>(&b, "k", Ok(2));
    server.set_deaf(true);
    assert_eq!(told(stores.end()), (1, Source::Loaded));
    clock.advance(SECOND * 2);
    wait_for(&waits, &clock, SECOND);
    assert_eq!(told(waits.end()), (2, Source::Loaded));
    server.set_deaf(false);
}

/// K2.
pub(crate) fn k2_a_leader_that_lost_its_lease_overwrites_nothing_newer<W: Way>() {
    let (server, clock, a, b) = two_processes::<W>(|builder| builder.max_hold(Duration::ZERO));
    let first = loading(&a, "k", || Ok(1));
    clock.advance(SECOND * 6);
    assert!(!server.is_held("k"));
    assert_eq!(told(b.get_or_load("k", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(first.end()), (1, Source::Loaded), "its own caller gets what it loaded");
    assert_eq!(a.stats().superseded, 1);
    assert_eq!(told(a.get_or_load("k", uncalled())), (2, Source::Hit));
}

pub(crate) fn a_leader_that_lost_its_lease_stores_late_if_there_is_nothing<W: Way>() {
    let (server, clock, a, b) = two_processes::<W>(|builder| builder.max_hold(Duration::ZERO));
    let first = loading(&a, "k", || Ok(1));
    clock.advance(SECOND * 6);
    assert!(!server.is_held("k"));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(a.stats().late, 1);
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Hit));
}

/// I1.
pub(crate) fn i1_an_invalidation_in_another_process_wins_over_a_load<W: Way>() {
    let (_, _, a, b) = two_processes::<W>(|builder| builder);
    let first = loading(&a, "k", || Ok(1));
    b.invalidate("k").unwrap();
    assert_eq!(told(b.get_or_load("k", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(a.get_or_load("k", uncalled())), (2, Source::Hit));
}

/// I2.
pub(crate) fn i2_a_put_in_another_process_wins_over_a_load<W: Way>() {
    let (_, _, a, b) = two_processes::<W>(|builder| builder);
    let first = loading(&a, "k", || Ok(1));
    b.put("k", 2).unwrap();
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(a.get_or_load("k", uncalled())), (2, Source::Hit));
    assert_eq!(a.stats().superseded + a.stats().invalidated, 1);
}

/// I1.
pub(crate) fn an_invalidation_of_all_keys_in_another_process_wins_over_a_load<W: Way>() {
    let (_, _, a, b) = two_processes::<W>(|builder| builder);
    let first = loading(&a, "k", || Ok(1));
    b.invalidate_all().unwrap();
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(a.stats().invalidated, 1);
    assert!(a.get("k").unwrap().is_none());
}

/// I1.
pub(crate) fn i1_after_an_invalidation_in_another_process_no_call_joins_the_load<W: Way>() {
    let (_, _, a, b) = two_processes::<W>(|builder| builder);
    let first = loading(&a, "k", || Ok(1));
    b.invalidate("k").unwrap();
    // In the process of the load, while that is on.
    assert_eq!(told(a.get_or_load("k", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(b.get_or_load("k", uncalled())), (2, Source::Hit));
}

/// I1: nobody was told of the write. That the lease is gone tells.
pub(crate) fn i1_after_a_write_that_was_not_pushed_no_call_joins_a_load_longer_than_until_its_next_renewal<W: Way>() {
    let (server, clock) = server();
    let lease = Duration::from_millis(30);
    let [a, b] = [(); 2].map(|()| process::<W>(&server, &clock, |builder| awake(builder).lease(lease)));
    let first = loading(&a, "k", || Ok(1));
    server.set_deaf(true);
    b.invalidate("k").unwrap();
    until("it finds the lease lost", || a.stats().lost == 1);
    assert_eq!(told(a.get_or_load("k", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(b.get_or_load("k", uncalled())), (2, Source::Hit));
}

pub(crate) fn without_pushes_those_who_wait_look_for_themselves<W: Way>() {
    let (server, clock, a, b) = two_processes::<W>(|builder| builder);
    server.set_deaf(true);
    let first = loading(&a, "k", || Ok(1));
    let second = waiting::<W>(&b, "k", Err(Fail(9)));
    assert_eq!(told(first.end()), (1, Source::Loaded));
    wait_for(&second, &clock, Duration::from_millis(5));
    assert_eq!(told(second.end()), (1, Source::Joined));
}

/// J2.
pub(crate) fn j2_of_the_refreshes_of_two_processes_one_loads_and_the_other_ducks<W: Way>() {
    let (_, clock, a, b) = two_processes::<W>(|builder| builder.early_refresh(Policy::Eager { window: 0.2 }));
    a.put("k", 1).unwrap();
    clock.advance(TTL - SECOND * 5);
    let (refresh, answer) = refreshing(&a, "k", || Ok(2));
    assert_eq!(told(answer), (1, Source::Early));
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Early));
    until("it ducks", || b.stats().ducked == 1);
    // It does not ask again at once.
    for _ in 0..100 {
        assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Hit));
    }
    refresh.0.open();
    until("the new value is there", || told(b.get_or_load("k", uncalled())) == (2, Source::Hit));
    assert_eq!((a.stats().loads, b.stats().loads, b.stats().refreshes), (1, 0, 1));
}

pub(crate) fn a_stale_value_is_refreshed_by_one_process<W: Way>() {
    let (_, clock, a, b) = two_processes::<W>(|builder| builder.stale_while_revalidate(SECOND * 60));
    a.put("k", 1).unwrap();
    clock.advance(TTL + SECOND);
    let (refresh, answer) = refreshing(&a, "k", || Ok(2));
    assert_eq!(told(answer), (1, Source::Stale));
    assert_eq!(told(b.get_or_load("k", uncalled())), (1, Source::Stale));
    until("it ducks", || b.stats().ducked == 1);
    refresh.0.open();
    until("the new value is there", || told(b.get_or_load("k", uncalled())) == (2, Source::Hit));
}

pub(crate) fn a_failed_load_gives_the_lease_up_at_once<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder);
    let first = loading(&a, "k", || Err(Fail(1)));
    let second = waiting::<W>(&b, "k", Ok(2));
    assert_eq!(failure(first.end()), 1);
    assert_eq!(told(second.end()), (2, Source::Loaded));
    assert_eq!(b.stats().taken_over, 1);
    assert!(!server.is_held("k"));
}

pub(crate) fn a_panic_gives_the_lease_up<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder);
    let first = loading(&a, "k", || panic!("by intention"));
    let second = waiting::<W>(&b, "k", Ok(2));
    first.let_go().panic();
    assert_eq!(told(second.end()), (2, Source::Loaded));
    assert!(!server.is_held("k"));
}

pub(crate) fn a_refresh_on_demand_takes_the_lease_whatever_is_there<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder);
    assert_eq!(told(a.refresh("k", || Ok(1))), (1, Source::Loaded));
    assert_eq!(told(b.refresh("k", || Ok(2))), (2, Source::Loaded));
    assert_eq!(told(a.get_or_load("k", uncalled())), (2, Source::Hit));
    assert_eq!(failure(a.refresh("k", || Err(Fail(3)))), 3);
    assert_eq!(told(b.get_or_load("k", uncalled())), (2, Source::Hit), "the old one is left in peace");
    assert!(!server.is_held("k"));
}

/// I3.
pub(crate) fn i3_a_ttl_of_zero_stores_nothing_and_keeps_no_lease<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder.ttl(Duration::ZERO));
    assert_eq!(told(a.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    assert!(!server.is_held("k"));
    assert_eq!(told(b.get_or_load("k", || Ok(2))), (2, Source::Loaded));
}

pub(crate) fn a_batch_stores_its_own_keys_before_it_waits_for_another_process<W: Way>() {
    let (server, _, a, b) = two_processes::<W>(|builder| builder);
    let other = loading(&b, "b", || Ok(20));
    let batch = run({
        let a = a.clone();
        move || {
            a.get_or_load_many(&["a", "b", "a"], |keys| {
                assert_eq!(keys, ["a"]);
                Ok(vec![1])
            })
        }
    });
    until("its own key is stored", || b.get("a").unwrap().is_some());
    assert!(!batch.has_ended() && !server.is_held("a"));
    assert_eq!(told(other.end()), (20, Source::Loaded));
    let values: Vec<_> = batch.end().unwrap().into_iter().map(|fetched| (fetched.value, fetched.source)).collect();
    assert_eq!(values, [(1, Source::Loaded), (20, Source::Joined), (1, Source::Loaded)]);
}

pub(crate) fn a_batch_takes_over_the_keys_whose_holder_failed<W: Way>() {
    let (_, _, a, b) = two_processes::<W>(|builder| builder);
    let other = loading(&b, "b", || Err(Fail(1)));
    let runs = Runs::default();
    let batch = run({
        let (a, runs) = (a.clone(), runs.clone());
        move || {
            a.get_or_load_many(&["a", "b"], move |keys| {
                runs.add();
                Ok(keys.iter().map(|key| key.len() as u32).collect())
            })
        }
    });
    until("its own key is stored", || b.get("a").unwrap().is_some());
    assert_eq!(failure(other.end()), 1);
    assert_eq!(batch.end().unwrap().len(), 2);
    assert_eq!((runs.get(), a.stats().taken_over), (2, 1));
}

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

type Batch = Running<Result<Vec<Fetched<u32>>, Error<Fail>>>;

/// A batch of keys that a process holds which does nothing, and the calls of its loader.
fn batch_of_held_keys<W: Way>(
    server: &Store,
    cache: &Cache<W>,
    lease: Duration,
) -> (Batch, Arc<Mutex<Vec<Vec<String>>>>) {
    KEYS.iter().for_each(|key| _ = hold(server, key, 7, lease));
    let calls = Arc::new(Mutex::new(Vec::new()));
    let batch = run({
        let (cache, calls) = (cache.clone(), Arc::clone(&calls));
        move || {
            cache.get_or_load_many(&KEYS, move |mut keys| {
                let values = vec![1; keys.len()];
                keys.sort();
                calls.lock().unwrap().push(keys);
                Ok(values)
            })
        }
    });
    until("it finds the leases with another", || cache.stats().held >= KEYS.len() as u64);
    (batch, calls)
}

/// K4.
pub(crate) fn the_keys_of_a_batch_whose_holder_died_are_loaded_by_one_call<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder);
    let (batch, calls) = batch_of_held_keys::<W>(&server, &cache, SECOND);
    wait_for(&batch, &clock, Duration::from_millis(20));
    assert_eq!(batch.end().unwrap().len(), KEYS.len());
    assert_eq!(*calls.lock().unwrap(), [KEYS]);
    assert!(cache.get("e").unwrap().is_some(), "they are stored");
}

pub(crate) fn a_batch_waits_for_another_process_no_longer_than_a_single_call<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.lease_wait(SECOND));
    let begun = clock.now();
    let (batch, calls) = batch_of_held_keys::<W>(&server, &cache, SECOND * 60);
    wait_for(&batch, &clock, Duration::from_millis(20));
    assert_eq!(batch.end().unwrap().len(), KEYS.len());
    assert_eq!(*calls.lock().unwrap(), [KEYS]);
    let waited = clock.now().since(begun);
    assert!(waited <= SECOND + Duration::from_millis(100), "{waited:?}");
}

pub(crate) fn batches_in_opposite_orders_in_two_processes_do_not_wait_in_a_circle<W: Way>() {
    let (_, _, a, b) = two_processes::<W>(|builder| builder);
    let first = loading(&a, "b", || Ok(2));
    let second = loading(&b, "a", || Ok(1));
    let batch = |cache: &Cache<W>, keys: [&'static str; 2]| {
        let (cache, before) = (cache.clone(), cache.stats().held);
        let batch = run({
            let cache = cache.clone();
            move || cache.get_or_load_many(&keys, |_| Ok(vec![3]))
        });
        until("it waits for the other process", || cache.stats().held > before);
        batch
    };
    // Each joins what its own process loads, and waits for what the other does.
    let batches = [batch(&a, ["a", "b"]), batch(&b, ["b", "a"])];
    assert_eq!((told(first.end()).0, told(second.end()).0), (2, 1));
    let values = batches.map(|batch| batch.end().unwrap().into_iter().map(|it| it.value).collect::<Vec<_>>());
    assert_eq!(values, [[1, 2], [2, 1]]);
}

/// I6.
pub(crate) fn i6_what_cannot_be_read_is_overwritten<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder);
    server.set_unreadable("k", 0);
    assert!(cache.get("k").unwrap().is_none());
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
}

#[test]
fn a_task_does_not_call_its_loader_while_another_process_loads() {
    crate::support::limits::within_limit(|| {
        let (server, clock) = server();
        let process = || awake(builder::<u32>(&clock).store(server.another_process())).build();
        let (a, b) = (process(), process());
        futures_lite::future::block_on(async {
            let mut first = Box::pin(a.get_or_load("k", std::future::pending));
            assert!(futures_lite::future::poll_once(&mut first).await.is_none());
            let never = || -> std::future::Ready<Result<u32, Fail>> { unreachable!("the other process loads") };
            let mut second = Box::pin(b.get_or_load("k", never));
            assert!(futures_lite::future::poll_once(&mut second).await.is_none());
            assert_eq!(b.stats().held, 1);
            a.put("k", 1).await.unwrap();
            assert_eq!(told(second.await).0, 1);
        });
    });
}

/// The leader waits for another process, and gives up; who follows it in its own process goes on.
#[test]
fn a_thread_waits_for_another_process_no_longer_than_it_may() {
    crate::support::limits::within_limit(|| {
        let (cache, _server) = thread_beside_a_holder();
        let begun = std::time::Instant::now();
        let limited = cache.call("k").timeout(Duration::from_millis(50)).get_or_load(uncalled());
        assert!(matches!(limited, Err(Error::Deadline)));
        assert!(begun.elapsed() >= Duration::from_millis(50));
        goes_on_after(|cache, limit| cache.call("k").timeout(limit).get_or_load(uncalled()).map(drop));
    });
}

/// A cache for threads whose sleeps take their time, and the server, where another process holds "k" and does nothing.
fn thread_beside_a_holder() -> (Cache<Threads>, Store) {
    let (server, clock) = server();
    hold(&server, "k", 7, SECOND * 60);
    (awake(builder::<u32>(&clock).store(server.another_process())).build_blocking(), server)
}

/// Whoever follows a call that gives up waiting for another process waits on.
fn goes_on_after(limited: fn(&Cache<Threads>, Duration) -> Result<(), Error<Fail>>) {
    in_time([500, 3_000, 15_000], |limit| {
        let (cache, server) = thread_beside_a_holder();
        let leader = run({
            let cache = cache.clone();
            move || limited(&cache, limit)
        });
        until("it waits, or has", || cache.stats().held > 0 || leader.has_ended());
        let follower = run({
            let cache = cache.clone();
            move || told(cache.get_or_load("k", || Ok(2)))
        });
        let mut follows = false;
        until("it follows, or is too late", || {
            follows |= cache.waiters("k") == 1;
            follows || leader.has_ended()
        });
        assert!(matches!(leader.end(), Err(Error::Deadline)));
        BlockingLease::<str, u32>::release(&server, "k", 7).unwrap();
        assert_eq!(follower.end(), (2, Source::Loaded));
        follows
    });
}

/// It stores what it has the leases of.
#[test]
fn a_batch_of_a_thread_waits_for_another_process_no_longer_than_it_may() {
    crate::support::limits::within_limit(|| {
        let (cache, _server) = thread_beside_a_holder();
        let load = |keys: Vec<&str>| {
            assert_eq!(keys, ["b"]);
            Ok(vec![1])
        };
        // If its time is up before it begins to load, it does not.
        in_time([50, 1_000, 10_000], |limit| {
            let limited = cache.call_many(["b", "k"]).timeout(limit).get_or_load(load);
            assert!(matches!(limited, Err(Error::Deadline)));
            cache.get("b").unwrap().is_some_and(|value| *value == 1)
        });
        goes_on_after(|cache, limit| {
            let call = cache.call_many(["k"]).timeout(limit);
            call.get_or_load(|_| unreachable!("another process loads")).map(drop)
        });
    });
}

#[test]
fn an_entry_may_be_older_than_the_process_that_reads_it() {
    let (server, clock) = server();
    clock.advance(SECOND * 1_000);
    let epoch = hold(&server, "k", 7, SECOND);
    let now = Time::from_start(SECOND * 500);
    let entry = Entry::new(1, 1, now.before(SECOND * 50), now.after(TTL), now.after(TTL), SECOND);
    assert_eq!(BlockingLease::publish(&server, "k", 7, epoch, entry, now), Ok(Publication::Stored));
    // With the system's clock, which has just begun.
    let cache = oneflight_cache::Cache::<String, u32, Fail>::builder().store(server).build_blocking();
    let found = cache.get("k").unwrap().expect("it is fresh");
    assert_eq!(found.age.as_secs(), 50);
}

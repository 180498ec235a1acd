//! What happens if the store that processes share fails, or another process takes too long.

use super::leases::{awake, hold, process, server, wait_for, waiting};
use crate::support::gate::Gate;
use crate::support::limits::until;
use crate::support::model::Failure;
use crate::support::run::{failure, joining, loading, refreshing, run, told, uncalled};
use crate::support::way::{AnyCache, Fail, SECOND, TTL, Way};
use oneflight_cache::{Clock, Error, Fallback, Policy, Source};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const STEP: Duration = Duration::from_millis(50);

pub(crate) fn a_holder_that_takes_too_long_is_not_waited_for<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.lease_wait(SECOND));
    hold(&server, "k", 7, SECOND * 60);
    let caller = waiting::<W>(&cache, "k", Ok(1));
    wait_for(&caller, &clock, STEP);
    assert_eq!(told(caller.end()), (1, Source::Loaded));
    assert_eq!(cache.stats().fallbacks, 1);
    assert!(server.is_held("k") && cache.get("k").unwrap().is_none(), "it was loaded past the store");
}

pub(crate) fn a_caller_may_ask_for_an_error_in_place_of_a_long_wait<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.lease_wait(SECOND).on_wait_timeout(Fallback::Fail));
    hold(&server, "k", 7, SECOND * 60);
    let caller = waiting::<W>(&cache, "k", Ok(1));
    wait_for(&caller, &clock, STEP);
    assert!(matches!(caller.end(), Err(Error::Held)));
    assert_eq!(cache.stats().loads, 0);
}

pub(crate) fn a_caller_may_ask_for_the_old_value_in_place_of_a_long_wait<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| {
        builder.lease_wait(SECOND).stale_if_error(SECOND * 60).on_wait_timeout(Fallback::ServeStale)
    });
    let other = process::<W>(&server, &clock, |builder| builder.stale_if_error(SECOND * 60));
    cache.put("k", 1).unwrap();
    clock.advance(TTL + SECOND);
    let load = loading(&other, "k", || Ok(2));
    // What it may not serve any more is none.
    let strict = process::<W>(&server, &clock, |builder| {
        builder.lease_wait(SECOND).stale_if_error(SECOND / 2).on_wait_timeout(Fallback::ServeStale)
    });
    for (cache, end) in [(&cache, (1, Source::Stale)), (&strict, (9, Source::Loaded))] {
        let caller = waiting::<W>(cache, "k", Ok(9));
        wait_for(&caller, &clock, STEP);
        assert_eq!(told(caller.end()), end);
    }
    assert_eq!(told(load.end()), (2, Source::Loaded));
    // Where there is none, it loads.
    hold(&server, "none", 7, SECOND * 60);
    let caller = waiting::<W>(&cache, "none", Ok(3));
    wait_for(&caller, &clock, STEP);
    assert_eq!(told(caller.end()), (3, Source::Loaded));
}

pub(crate) fn a_refresh_on_demand_does_not_come_to_the_old_value_in_place_of_a_long_wait<W: Way>() {
    for fallback in [Fallback::ServeStale, Fallback::LoadUncached, Fallback::Fail] {
        let (server, clock) = server();
        let cache = process::<W>(&server, &clock, |builder| {
            builder.lease_wait(SECOND).stale_if_error(SECOND * 60).on_wait_timeout(fallback)
        });
        let other = process::<W>(&server, &clock, |builder| builder);
        cache.put("k", 1).unwrap();
        let (begun, end) = (Gate::new(), Gate::new());
        let load = run({
            let (begun, end) = (begun.clone(), end.clone());
            move || {
                other.refresh("k", move || {
                    begun.open();
                    end.wait();
                    Ok(9)
                })
            }
        });
        begun.wait();
        let asked = run({
            let cache = cache.clone();
            move || cache.refresh("k", || Ok(2))
        });
        until("it finds the lease with another", || cache.stats().held > 0);
        wait_for(&asked, &clock, STEP);
        match asked.end() {
            Err(Error::Held) => assert_eq!(fallback, Fallback::Fail),
            asked => {
                assert_ne!(fallback, Fallback::Fail);
                assert_eq!(told(asked), (2, Source::Loaded));
            }
        }
        end.open();
        assert_eq!(told(load.end()), (9, Source::Loaded));
    }
}

/// K5.
pub(crate) fn k5_a_server_that_is_away_costs_nobody_its_value<W: Way>() {
    for failure in [Failure::LosesRequest, Failure::LosesAnswer, Failure::Refuses] {
        let (server, clock) = server();
        let cache = process::<W>(&server, &clock, |builder| builder.breaker(0, SECOND));
        server.set_failure(Some(failure));
        let first = loading(&cache, "k", || Ok(1));
        let second = crate::support::run::joining(&cache, "k", uncalled());
        assert_eq!(told(first.end()), (1, Source::Loaded));
        assert_eq!(told(second.end()), (1, Source::Joined));
        let values = cache.get_or_load_many(&["a", "b"], |_| Ok(vec![2, 3])).unwrap();
        assert_eq!(values.iter().map(|it| it.value).collect::<Vec<_>>(), [2, 3]);
        assert!(matches!(cache.get("k"), Err(Error::Store(_))));
        assert!(cache.put("k", 2).is_err() && cache.invalidate("k").is_err() && cache.invalidate_all().is_err());
        server.set_failure(None);
        assert_eq!(told(cache.get_or_load("k", || Ok(4))), (4, Source::Loaded), "it was loaded past the store");
        assert_eq!(told(cache.get_or_load("k", uncalled())), (4, Source::Hit));
    }
}

pub(crate) fn a_caller_may_ask_for_an_error_in_place_of_a_load_past_the_store<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.on_store_error(Fallback::Fail));
    server.set_failure(Some(Failure::LosesRequest));
    // With the breaker open too.
    for _ in 0..10 {
        match cache.get_or_load("k", uncalled()) {
            Err(Error::Store(error)) => assert_eq!(error.to_string(), "the model of a store fails: NoAnswer"),
            other => panic!("{other:?}"),
        }
    }
    server.set_failure(None);
    clock.advance(SECOND * 2);
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
}

pub(crate) fn a_server_that_does_not_answer_is_left_alone_for_a_while<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.breaker(3, SECOND * 10).rng(|| 0.5));
    server.set_failure(Some(Failure::LosesRequest));
    let load = || told(cache.get_or_load("k", || Ok(1)));
    assert_eq!(load(), (1, Source::Loaded));
    assert_eq!(load(), (1, Source::Loaded));
    assert_eq!(cache.stats().breaker_opened, 1);
    server.take_steps();
    for _ in 0..20 {
        assert_eq!(load(), (1, Source::Loaded));
    }
    let asked = server.take_steps();
    assert!(asked.is_empty(), "{asked:?}");
    clock.advance(SECOND * 10);
    assert_eq!(load(), (1, Source::Loaded));
    assert_eq!(server.take_steps(), ["get"], "one tries");
    server.set_failure(None);
    assert_eq!(load(), (1, Source::Loaded));
    assert_eq!(server.take_steps(), [""; 0]);
    clock.advance(SECOND * 10);
    assert_eq!(load(), (1, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
    // A write is always tried.
    server.set_failure(Some(Failure::LosesRequest));
    load();
    load();
    server.set_failure(None);
    cache.put("k", 2).unwrap();
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit), "it was answered");
}

pub(crate) fn a_server_that_refuses_is_asked_again<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder);
    server.set_failure(Some(Failure::Refuses));
    for _ in 0..10 {
        assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    }
    assert_eq!(cache.stats().breaker_opened, 0);
    server.set_failure(None);
    cache.get_or_load("k", || Ok(2)).unwrap();
    assert_eq!(told(cache.get_or_load("k", uncalled())), (2, Source::Hit));
}

pub(crate) fn a_lease_whose_answer_was_lost_is_given_up<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.breaker(0, SECOND));
    server.set_failure(Some(Failure::LosesAnswer));
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    server.set_failure(None);
    let steps = server.take_steps();
    assert_eq!(steps, ["get", "acquire", "release"]);
    assert!(!server.is_held("k"));
}

/// A fill could make nothing of it.
pub(crate) fn a_server_that_says_of_nothing_that_it_is_gone_has_failed<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder);
    let closed = process::<W>(&server, &clock, |builder| builder.on_store_error(Fallback::Fail));
    server.set_says_gone(true);
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    assert_eq!(server.take_steps(), ["get", "acquire", "release"], "it may have the lease");
    assert_eq!((cache.stats().store_errors, cache.stats().fallbacks), (1, 1));
    match closed.get_or_load("k", uncalled()) {
        Err(Error::Store(error)) => assert!(error.to_string().contains("is gone"), "{error}"),
        other => panic!("{other:?}"),
    }
    let values = cache.get_or_load_many(&["a", "b"], |_| Ok(vec![2, 3])).unwrap();
    assert_eq!(values.iter().map(|it| it.value).collect::<Vec<_>>(), [2, 3]);
    server.set_says_gone(false);
    assert_eq!(told(cache.get_or_load("k", || Ok(4))), (4, Source::Loaded));
    assert_eq!(told(cache.get_or_load("k", uncalled())), (4, Source::Hit));
}

/// K3.
pub(crate) fn k3_a_load_whose_renewals_fail_brings_its_value<W: Way>() {
    let (server, clock) = server();
    let lease = Duration::from_millis(30);
    let cache = process::<W>(&server, &clock, |builder| awake(builder).lease(lease));
    let load = loading(&cache, "k", || Ok(1));
    server.set_failure(Some(Failure::LosesRequest));
    server.take_steps();
    let mut renewals = 0;
    until("renewing is tried more than once", || {
        renewals += server.take_steps().iter().filter(|step| **step == "renew").count();
        renewals >= 3
    });
    server.set_failure(None);
    clock.advance(lease);
    until("it finds the lease lost", || cache.stats().lost == 1);
    assert_eq!(told(load.end()), (1, Source::Loaded));
    assert_eq!(cache.stats().late, 1);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit));
}

pub(crate) fn a_value_that_the_server_refuses_reaches_its_callers_and_frees_the_lease<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder);
    let load = loading(&cache, "k", || Ok(1));
    server.set_full(true);
    assert_eq!(told(load.end()), (1, Source::Loaded));
    assert!(!server.is_held("k"));
    assert_eq!(cache.stats().store_errors, 1);
}

pub(crate) fn no_more_loads_past_the_store_at_once_than_allowed<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.max_uncached_loads(1));
    server.set_failure(Some(Failure::LosesRequest));
    let first = loading(&cache, "a", || Ok(1));
    let second = run({
        let cache = cache.clone();
        move || cache.get_or_load("b", || Ok(2))
    });
    until("it waits for its turn", || cache.stats().fallbacks == 2);
    assert!(!second.has_ended() && cache.stats().loads == 1);
    assert_eq!(told(first.end()), (1, Source::Loaded));
    assert_eq!(told(second.end()), (2, Source::Loaded));
    // Nobody waits for longer than for another process.
    let first = loading(&cache, "a", || Ok(3));
    let late = run({
        let cache = cache.clone();
        move || cache.get_or_load("b", || Ok(4))
    });
    until("it waits for its turn", || cache.stats().fallbacks == 4);
    wait_for(&late, &clock, SECOND * 10);
    assert!(matches!(late.end(), Err(Error::Overloaded)));
    assert_eq!((cache.stats().overloaded, cache.stats().loads), (1, 3));
    assert_eq!(told(first.end()), (3, Source::Loaded));
}

pub(crate) fn a_refresh_without_a_server_leaves_the_old_value_and_backs_off<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| {
        let hour = SECOND * 3_600;
        builder.early_refresh(Policy::Eager { window: 0.2 }).stale_while_revalidate(hour).breaker(0, SECOND)
    });
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND * 5);
    // The value is read, and then there is no server any more.
    server.set_full(true);
    assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Early));
    until("the refresh has failed", || cache.stats().store_errors == 1);
    for _ in 0..20 {
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit), "it is on, or backs off");
    }
    assert_eq!(cache.stats().refreshes, 1);
    server.set_full(false);
    until("a later one brings the new value", || {
        // No further once it is on: its lease would end.
        if cache.stats().refreshes == 1 {
            clock.advance(Duration::from_millis(100));
        }
        told(cache.get_or_load("k", || Ok(2))).0 == 2
    });
    assert!(cache.stats().refreshes > 1 && cache.stats().loads == 1);
}

pub(crate) fn a_refresh_whose_value_is_refused_backs_off<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.early_refresh(Policy::Eager { window: 0.2 }));
    cache.put("k", 1).unwrap();
    clock.advance(TTL - SECOND * 5);
    let (refresh, answer) = refreshing(&cache, "k", || Ok(2));
    assert_eq!(told(answer), (1, Source::Early));
    server.set_full(true);
    refresh.0.open();
    until("it was refused", || cache.stats().store_errors == 1);
    for _ in 0..20 {
        assert_eq!(told(cache.get_or_load("k", uncalled())), (1, Source::Hit), "it is on, or backs off");
    }
    assert_eq!(cache.stats().refreshes, 1);
}

/// I7.
pub(crate) fn i7_what_the_server_refuses_leaves_nothing_older<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder);
    cache.put("k", 1).unwrap();
    server.set_full(true);
    assert!(matches!(cache.put("k", 2), Err(Error::Store(_))));
    assert!(cache.get("k").unwrap().is_none());
    server.set_full(false);
    cache.put("k", 3).unwrap();
    let asked = {
        let cache = cache.clone();
        crate::support::run::held(|| Ok(4), move |loader| cache.refresh("k", loader))
    };
    server.set_full(true);
    assert_eq!(told(asked.end()), (4, Source::Loaded));
    assert!(cache.get("k").unwrap().is_none());
    assert!(!server.is_held("k"));
}

/// I7: the lease is refused already.
pub(crate) fn i7_a_refresh_on_demand_that_the_server_has_no_room_for_leaves_nothing_older<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder);
    cache.put("k", 1).unwrap();
    server.set_full(true);
    assert_eq!(told(cache.refresh("k", || Ok(2))), (2, Source::Loaded));
    assert!(cache.get("k").unwrap().is_none(), "nobody goes on with what was to be replaced");
    cache.put("k", 3).unwrap_err();
    server.set_full(false);
    cache.put("k", 3).unwrap();
    server.set_full(true);
    assert_eq!(failure(cache.refresh("k", || Err(Fail(4)))), 4);
    assert_eq!(cache.get("k").unwrap().unwrap().value, 3, "there is none that is newer");
}

pub(crate) fn a_server_that_is_left_alone_is_not_asked_to_give_up_a_lease<W: Way>() {
    let (server, clock) = server();
    // The second request without an answer is that for the lease.
    let cache = process::<W>(&server, &clock, |builder| builder.breaker(2, SECOND));
    server.set_failure(Some(Failure::LosesRequest));
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    assert_eq!(cache.stats().breaker_opened, 1);
    assert_eq!(server.take_steps(), ["get", "acquire"]);
}

/// A loader that loads another key needs a turn of its own while it has one.
pub(crate) fn nested_loads_past_the_store_do_not_wait_for_each_other_for_ever<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| {
        awake(builder).max_uncached_loads(1).lease_wait(Duration::from_millis(50))
    });
    server.set_failure(Some(Failure::LosesRequest));
    let inner = cache.clone();
    let outer = cache.get_or_load("a", move || match inner.get_or_load("b", uncalled()) {
        Err(Error::Overloaded) => Ok(1),
        other => panic!("{other:?}"),
    });
    assert_eq!(told(outer), (1, Source::Loaded));
    assert_eq!(told(cache.get_or_load("b", || Ok(2))), (2, Source::Loaded), "the turn is over");
}

pub(crate) fn a_key_that_fails_costs_the_others_of_its_batch_nothing<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder);
    cache.put("a", 1).unwrap();
    cache.put("b", 2).unwrap();
    server.set_foreign("k");
    server.take_steps();
    let load = |keys: Vec<String>| {
        assert_eq!(keys, ["k"]);
        Ok(vec![3])
    };
    let fetched = cache.get_or_load_many(&["a", "k", "b"], load).unwrap();
    let fetched: Vec<_> = fetched.iter().map(|it| (it.value, it.source)).collect();
    assert_eq!(fetched, [(1, Source::Hit), (3, Source::Loaded), (2, Source::Hit)]);
    assert_eq!(server.take_steps(), ["get", "get", "get", "acquire"], "a lease of the one that failed alone");
    assert_eq!(cache.stats().store_errors, 2, "of both");
}

/// A key that has no lease must wait for its turn to load past the store, and that may not come.
pub(crate) fn a_key_that_may_not_load_costs_those_who_wait_for_the_others_nothing<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder.max_uncached_loads(1).lease_wait(SECOND * 3));
    for key in ["x", "k"] {
        server.set_foreign(key);
    }
    let turn = loading(&cache, "x", || Ok(0));
    let began = Arc::new(OnceLock::new());
    let batch = run({
        let (cache, clock, began) = (cache.clone(), clock.clone(), Arc::clone(&began));
        move || {
            cache.get_or_load_many(&["a", "k"], move |keys| {
                assert_eq!(keys, ["a"]);
                began.set(clock.now()).expect("it loads once");
                Ok(vec![1])
            })
        }
    });
    until("it waits for its turn", || cache.stats().fallbacks == 2);
    let other = joining(&cache, "a", uncalled());
    wait_for(&other, &clock, STEP);
    assert_eq!(told(other.end()), (1, Source::Joined));
    assert!(matches!(batch.end(), Err(Error::Overloaded)));
    let read = cache.get("a").unwrap().unwrap();
    assert_eq!(*read, 1);
    let since = clock.now().since(*began.get().expect("it has loaded"));
    // The clock may move on a little between the two.
    assert!(read.age < since + SECOND * 3, "{:?}: its load began when the wait was over", read.age);
    assert_eq!(told(turn.end()), (0, Source::Loaded));
}

pub(crate) fn what_is_no_value_is_left_alone<W: Way>() {
    let (server, clock) = server();
    let cache = process::<W>(&server, &clock, |builder| builder);
    server.set_foreign("k");
    assert!(matches!(cache.get("k"), Err(Error::Store(_))));
    assert_eq!(told(cache.get_or_load("k", || Ok(1))), (1, Source::Loaded));
    assert_eq!(failure(cache.get_or_load("k", || Err(Fail(2)))), 2);
    assert!(cache.put("k", 3).is_err() && cache.invalidate("k").is_err());
    assert!(server.is_foreign("k"));
}

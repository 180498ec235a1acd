//! What is known of keys, and what is forgotten.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Time {
    Time::from_start(Duration::from_secs(seconds))
}

fn backoff(first: Duration, longest: Duration, random: f64) -> Backoff {
    Backoff { first, longest, random }
}

#[test]
fn a_load_is_void_from_the_next_write_on_and_later_ones_are_not() {
    let loads = Arc::new(Loads::new());
    let (hash, other) = (loads.hash("a"), loads.hash("b"));
    let before = loads.begin(hash);
    let elsewhere = loads.begin(other);
    let is_void = |load: &Load| load.may_store(at(0)) == Err(Unwanted::Void);
    assert!(!is_void(&before));
    loads.void(hash);
    let after = loads.begin(hash);
    assert_eq!([&before, &after, &elsewhere].map(is_void), [true, false, false]);
    loads.void_all();
    assert_eq!([&before, &after, &elsewhere].map(is_void), [true, true, true]);
    drop((before, after, elsewhere));
    assert_eq!(loads.len(), 0);
}

#[test]
fn of_loads_that_are_on_at_once_the_latest_stays() {
    let loads = Arc::new(Loads::new());
    let hash = loads.hash("a");
    let (old, new) = (loads.begin(hash), loads.begin(hash));
    assert_eq!(new.may_store(at(2)), Ok(()));
    drop(new);
    assert_eq!(old.may_store(at(1)), Err(Unwanted::Superseded));
    drop(old);
    assert_eq!(loads.begin(hash).may_store(at(1)), Ok(()), "nobody knows of the others any more");
}

#[test]
fn what_is_stored_at_once_ends_its_load_and_what_is_void_is_not_stored() {
    let loads = Arc::new(Loads::new());
    let hash = loads.hash("a");
    let (mut first, mut second, mut void) = (loads.begin(hash), loads.begin(hash), loads.begin(hash));
    assert_eq!(second.store_at_once(at(2), || Ok::<_, ()>(2)), Ok(Ok(2)));
    let unwanted = first.store_at_once(at(1), || -> Result<(), ()> { panic!("a later one is there") });
    assert_eq!(unwanted, Err(Unwanted::Superseded));
    // A store that has failed may be asked again, and the wait after a failure is not over by that.
    loads.fail(hash, at(0), backoff(SECOND, SECOND, 0.0));
    assert_eq!(void.store_at_once(at(3), || Err::<(), _>(3)), Ok(Err(3)));
    assert!(!loads.may_try(hash, at(0)));
    assert_eq!(loads.write_at_once(hash, false, || Ok::<_, ()>(4)), Ok(4));
    let unwanted = void.store_at_once(at(4), || -> Result<(), ()> { panic!("it is void") });
    assert_eq!(unwanted, Err(Unwanted::Void));
    assert_eq!(loads.begin(hash).store_at_once(at(5), || Ok::<_, ()>(5)), Ok(Ok(5)));
    assert!(loads.may_try(hash, at(0)));
    drop((first, second, void));
    assert_eq!(loads.len(), 0, "each load has ended once");
}

#[test]
fn a_value_that_is_not_kept_ends_its_load_if_that_is_alone() {
    let loads = Arc::new(Loads::new());
    let hash = loads.hash("a");
    loads.fail(hash, at(0), backoff(SECOND, SECOND, 0.0));
    let mut alone = loads.begin(hash);
    assert!(alone.end_if_alone());
    assert_eq!(loads.len(), 0, "nothing waits either");
    drop(alone);
    let (mut first, mut last) = (loads.begin(hash), loads.begin(hash));
    assert!(!first.end_if_alone(), "another is on");
    drop(first);
    assert!(last.end_if_alone());
    drop(last);
    let (mut first, last) = (loads.begin(hash), loads.begin(hash));
    assert_eq!(last.may_store(at(1)), Ok(()));
    drop(last);
    assert!(!first.end_if_alone(), "another has stored a value");
    drop(first);
    assert_eq!(loads.len(), 0);
}

#[test]
fn a_value_that_is_put_at_once_ends_the_wait_after_a_failure_and_one_that_is_not_does_not() {
    let loads = Arc::new(Loads::new());
    let hash = loads.hash("a");
    loads.fail(hash, at(0), backoff(SECOND, SECOND, 0.0));
    assert_eq!(loads.write_at_once(hash, true, || Err::<(), _>(())), Err(()));
    assert_eq!(loads.write_at_once(hash, false, || Ok::<_, ()>(())), Ok(()));
    assert!(!loads.may_try(hash, at(0)));
    assert_eq!(loads.write_at_once(hash, true, || Ok::<_, ()>(())), Ok(()));
    assert!(loads.may_try(hash, at(0)));
    assert_eq!(loads.len(), 0);
}

#[test]
fn one_refresh_at_a_time_and_a_write_makes_room_for_the_next() {
    let loads = Arc::new(Loads::new());
    let hash = loads.hash("a");
    let first = loads.begin_refresh(hash, at(0), None).expect("none is on");
    assert!(loads.begin_refresh(hash, at(0), None).is_none());
    loads.void(hash);
    let second = loads.begin_refresh(hash, at(0), None).expect("the first is void");
    drop(first);
    assert!(loads.begin_refresh(hash, at(0), None).is_none(), "the second is on");
    assert!(loads.begin_refresh(hash, at(9), Some(SECOND * 9)).is_none());
    let third = loads.begin_refresh(hash, at(10), Some(SECOND * 9)).expect("the second is stuck");
    drop(second);
    assert!(loads.begin_refresh(hash, at(10), None).is_none(), "the third is on");
    drop(third);
    assert_eq!(loads.len(), 0);
}

#[test]
fn failures_hold_refreshes_up_twice_as_long_each_time_until_one_succeeds() {
    let loads = Arc::new(Loads::new());
    let hash = loads.hash("a");
    for wait in [1, 2, 4, 8, 8] {
        loads.fail(hash, at(0), backoff(SECOND, SECOND * 8, 0.0));
        assert!(!loads.may_try(hash, at(wait - 1)) && loads.begin_refresh(hash, at(wait - 1), None).is_none());
        assert!(loads.may_try(hash, at(wait)) && loads.begin_refresh(hash, at(wait), None).is_some());
    }
    loads.succeed(hash);
    assert!(loads.may_try(hash, at(0)));
    assert_eq!(loads.len(), 0);
    // A quarter less, at most.
    loads.fail(hash, at(0), backoff(SECOND * 4, SECOND * 8, 1.0));
    assert!(!loads.may_try(hash, at(2)) && loads.may_try(hash, at(3)));
    for _ in 0..200 {
        loads.fail(hash, at(0), backoff(Duration::MAX, Duration::MAX, 0.5));
    }
}

/// Also while it is being loaded, so that the key is not forgotten.
#[test]
fn the_next_failure_after_a_value_is_a_first_one() {
    let loads = Arc::new(Loads::new());
    let hash = loads.hash("a");
    let _on = loads.begin(hash);
    for _ in 0..2 {
        for wait in [1, 2, 4] {
            loads.fail(hash, at(0), backoff(SECOND, SECOND * 8, 0.0));
            assert!(!loads.may_try(hash, at(wait - 1)) && loads.may_try(hash, at(wait)));
        }
        loads.succeed(hash);
        assert!(loads.may_try(hash, at(0)));
    }
}

/// Also of those who come one after the other, when the wait is over in between.
#[test]
fn of_all_who_wait_for_a_load_in_vain_the_first_holds_refreshes_up() {
    let loads = Arc::new(Loads::new());
    let hash = loads.hash("a");
    let twice = backoff(SECOND, SECOND * 8, 0.0);
    let stuck = loads.begin(hash);
    loads.hangs(hash, at(30), twice);
    assert!(!loads.may_try(hash, at(30)) && loads.may_try(hash, at(31)));
    loads.hangs(hash, at(35), twice);
    assert!(loads.may_try(hash, at(35)), "it was counted already");
    // The next one that hangs is another failure, unless one was counted just now.
    let next = loads.begin(hash);
    loads.hangs(hash, at(65), twice);
    assert!(!loads.may_try(hash, at(66)) && loads.may_try(hash, at(67)));
    let last = loads.begin(hash);
    loads.hangs(hash, at(66), twice);
    assert!(loads.may_try(hash, at(67)));
    drop((stuck, next, last));
}

#[test]
fn keys_that_failed_long_ago_do_not_pile_up() {
    let ways: [fn(&Loads, KeyHash, u64); 3] = [
        |loads, hash, now| loads.fail(hash, at(now), backoff(SECOND, SECOND, 0.0)),
        |loads, hash, now| loads.hangs(hash, at(now), backoff(SECOND, SECOND, 0.0)),
        |loads, hash, now| loads.pause(hash, at(now), at(now + 1)),
    ];
    for way in ways {
        let loads = Loads::new();
        (0..100_000_u64).for_each(|key| way(&loads, loads.hash(&key), key));
        assert!(loads.len() <= SHARDS * 64 * 2, "{}", loads.len());
    }
}

#[test]
fn memory_for_many_keys_is_given_back_when_they_are_forgotten() {
    const KEYS: u64 = 100_000;
    let loads = Arc::new(Loads::new());
    let begun: Vec<Load> = (0..KEYS).map(|key| loads.begin(loads.hash(&key))).collect();
    assert!(loads.capacity() > 1_000);
    drop(begun);
    assert!(loads.capacity() <= 28, "{}", loads.capacity());
    // All at once, so that none is swept out; then one after the other.
    (0..KEYS).for_each(|key| loads.fail(loads.hash(&key), at(0), backoff(SECOND, SECOND, 0.0)));
    assert!(loads.capacity() > 1_000);
    (KEYS..4 * KEYS).for_each(|key| loads.fail(loads.hash(&key), at(key), backoff(SECOND, SECOND, 0.0)));
    assert!(loads.capacity() <= 256, "{}", loads.capacity());
}

#[test]
fn one_caller_loads_and_so_many_wait() {
    let loads = Loads::new();
    let hash = loads.hash("a");
    let inside: Vec<_> = (0..3).filter_map(|_| loads.call(hash, 1)).collect();
    assert_eq!(inside.len(), 2);
    drop(inside);
    assert!(loads.call(hash, 0).is_some());
    assert_eq!(loads.len(), 0);
}

//! What the exploration leaves out: time, and each single way.

use super::{Action, Config, Event, Fallback, Fill, OnStale, Outcome, Published, Refused, Renewal};
use core::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const TOKEN: u128 = 1 << 100 | 77;
const LOST: Event = Event::StoreError { ambiguous: true };
const REFUSED: Event = Event::StoreError { ambiguous: false };
const MISS: Event = Event::Miss { unreadable: None };
const STALE: Event = Event::Stale { version: 9 };
const ACQUIRED: Event = Event::Acquired { epoch: 5 };
const HELD: Event = held_by(1);
const OK: Event = Event::LoadOk { store: true };

const ACQUIRE: Action = Action::Acquire { seen: None };
const LOAD: Action = Action::Load { uncached: false };
const LOAD_UNCACHED: Action = Action::Load { uncached: true };
const PUBLISH: Action = Action::Publish { epoch: 5 };

const fn held_by(holder: u128) -> Event {
    Event::Held { left: ms(5_000), holder, listening: false }
}

const fn loaded(published: Published) -> Action {
    Action::Done(Outcome::Loaded(published))
}

/// The action after all of these, at the time zero.
#[track_caller]
fn all(fill: &mut Fill, events: &[Event]) -> Action {
    events.iter().for_each(|event| assert_eq!(fill.step(*event, ms(0)).err(), None));
    fill.action()
}

#[track_caller]
fn read(config: Config, events: &[Event]) -> Action {
    all(&mut Fill::read(config, TOKEN, ms(0)), events)
}

#[track_caller]
fn refresh(config: Config, events: &[Event]) -> Action {
    all(&mut Fill::refresh(config, TOKEN, 9, ms(0)), events)
}

#[test]
fn each_way_of_a_read_ends_as_it_should() {
    use Event::*;
    let config = Config::default();
    assert_eq!(read(config, &[]), Action::Read);
    assert_eq!(read(config, &[Hit]), Action::Done(Outcome::Hit));
    assert_eq!(read(config, &[STALE]), Action::Done(Outcome::Stale { refresh: true }));
    assert_eq!(read(config, &[MISS]), ACQUIRE);
    assert_eq!(read(config, &[MISS, Filled]), Action::Done(Outcome::Filled));
    assert_eq!(read(config, &[MISS, ACQUIRED]), LOAD);
    assert_eq!(read(config, &[MISS, ACQUIRED, OK]), PUBLISH);
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, Stored]), loaded(Published::Stored));
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, Late]), loaded(Published::Late));
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, Superseded]), Action::Release);
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, Superseded, Released]), loaded(Published::Superseded));
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, Invalidated]), Action::Release, "the epoch alone may be lost");
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, Invalidated, Released]), loaded(Published::Invalidated));
    assert_eq!(read(config, &[MISS, ACQUIRED, LoadFailed]), Action::Release);
    assert_eq!(read(config, &[MISS, ACQUIRED, LoadFailed, Released]), Action::Done(Outcome::LoadFailed));
    assert_eq!(read(config, &[MISS, HELD, Woken]), ACQUIRE);
    assert_eq!(read(config, &[MISS, HELD, Tick, Filled]), Action::Done(Outcome::Filled));
    assert_eq!(read(config, &[MISS, HELD, Tick, ACQUIRED]), LOAD);
}

#[test]
fn what_is_not_to_be_stored_gives_the_lease_up() {
    let no = Event::LoadOk { store: false };
    let config = Config::default();
    assert_eq!(read(config, &[MISS, ACQUIRED, no]), Action::Release);
    assert_eq!(read(config, &[MISS, ACQUIRED, no, Event::Released]), loaded(Published::NotWanted));
    assert_eq!(read(config, &[MISS, ACQUIRED, no, LOST]), loaded(Published::NotWanted));
}

#[test]
fn a_store_that_fails_costs_the_cache_and_not_the_value() {
    use Event::*;
    let config = Config::default();
    assert_eq!(read(config, &[REFUSED]), LOAD_UNCACHED);
    assert_eq!(read(config, &[LOST, OK]), loaded(Published::Uncached));
    assert_eq!(read(config, &[MISS, REFUSED, OK]), loaded(Published::Uncached));
    assert_eq!(read(config, &[MISS, REFUSED, LoadFailed]), Action::Done(Outcome::LoadFailed));
    assert_eq!(read(config, &[MISS, LOST]), Action::Release, "the lease may have been taken");
    assert_eq!(read(config, &[MISS, LOST, Released]), LOAD_UNCACHED);
    assert_eq!(read(config, &[MISS, LOST, LOST]), LOAD_UNCACHED);
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, LOST]), Action::Release);
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, LOST, Released]), loaded(Published::Unknown));
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, REFUSED]), Action::Release, "memory may have run out");
    assert_eq!(read(config, &[MISS, ACQUIRED, OK, REFUSED, REFUSED]), loaded(Published::Failed));
    let strict = Config { on_store_error: Fallback::Fail, ..config };
    assert_eq!(read(strict, &[REFUSED]), Action::Done(Outcome::StoreFailed));
    assert_eq!(read(strict, &[MISS, LOST, Released]), Action::Done(Outcome::StoreFailed));
    assert_eq!(read(strict, &[MISS, ACQUIRED, OK, REFUSED, Released]), loaded(Published::Failed), "the value is there");
}

#[test]
fn a_refresh_gives_way_to_any_other_and_never_loads_without_the_store() {
    use Event::*;
    let config = Config { reload_invalidated: true, ..Config::default() };
    assert_eq!(refresh(config, &[]), Action::Acquire { seen: Some(9) });
    for gives_way in [HELD, Filled, MISS, Miss { unreadable: Some(3) }] {
        assert_eq!(refresh(config, &[gives_way]), Action::Done(Outcome::Ducked));
    }
    assert_eq!(refresh(config, &[REFUSED]), Action::Done(Outcome::StoreFailed));
    assert_eq!(refresh(config, &[LOST]), Action::Release);
    assert_eq!(refresh(config, &[LOST, Released]), Action::Done(Outcome::StoreFailed));
    assert_eq!(refresh(config, &[ACQUIRED, LoadFailed]), Action::Release);
    assert_eq!(refresh(config, &[ACQUIRED, LoadFailed, Released]), Action::Done(Outcome::LoadFailed));
    assert_eq!(refresh(config, &[ACQUIRED, OK, Stored]), loaded(Published::Stored));
    let invalidated = refresh(config, &[ACQUIRED, OK, Invalidated, Released]);
    assert_eq!(invalidated, loaded(Published::Invalidated), "nobody waits for it");
}

#[test]
fn a_value_that_was_invalidated_is_loaded_once_more_if_that_is_asked_for() {
    use Event::*;
    let config = Config { reload_invalidated: true, on_stale: OnStale::Replace, ..Config::default() };
    assert_eq!(read(config, &[STALE, ACQUIRED, OK, Invalidated]), ACQUIRE, "what was seen is invalid");
    let again = [MISS, ACQUIRED, OK, Invalidated, ACQUIRED, OK, Invalidated, Released];
    assert_eq!(read(config, &again), loaded(Published::Invalidated));
}

#[test]
fn a_stale_value_is_replaced_or_served_as_one_likes() {
    use Event::*;
    let stale = Action::Done(Outcome::Stale { refresh: false });
    let plain = Config { on_stale: OnStale::Replace, wait: ms(0), ..Config::default() };
    let serve = Config {
        on_deadline: Fallback::ServeStale,
        on_store_error: Fallback::ServeStale,
        stale_if_load_fails: true,
        ..plain
    };
    let seen = Action::Acquire { seen: Some(9) };
    assert_eq!(read(plain, &[STALE]), seen);
    assert_eq!(read(plain, &[STALE, Filled]), Action::Done(Outcome::Filled));
    assert_eq!(read(plain, &[STALE, HELD]), LOAD_UNCACHED);
    assert_eq!(read(plain, &[STALE, ACQUIRED, LoadFailed, Released]), Action::Done(Outcome::LoadFailed));
    assert_eq!(read(serve, &[STALE, HELD]), stale);
    assert_eq!(read(serve, &[STALE, REFUSED]), stale);
    assert_eq!(read(serve, &[STALE, LOST, Released]), stale);
    assert_eq!(read(serve, &[STALE, ACQUIRED, LoadFailed, Released]), stale);
    let patient = Config { wait: ms(100), ..serve };
    assert_eq!(read(patient, &[STALE, HELD, Tick]), seen, "still the one to be replaced");
    // Gone since: perhaps invalidated.
    assert_eq!(read(serve, &[STALE, MISS]), ACQUIRE);
    assert_eq!(read(serve, &[STALE, MISS, HELD]), LOAD_UNCACHED);
    assert_eq!(read(serve, &[STALE, MISS, ACQUIRED, LoadFailed, Released]), Action::Done(Outcome::LoadFailed));
    // There never was one.
    assert_eq!(read(serve, &[MISS, HELD]), LOAD_UNCACHED);
    assert_eq!(read(serve, &[REFUSED]), LOAD_UNCACHED);
}

#[test]
fn a_value_that_cannot_be_read_is_replaced_and_never_served() {
    let config = Config { wait: ms(0), on_deadline: Fallback::ServeStale, ..Config::default() };
    let unreadable = Event::Miss { unreadable: Some(4) };
    assert_eq!(read(config, &[unreadable]), Action::Acquire { seen: Some(4) });
    assert_eq!(read(config, &[unreadable, ACQUIRED]), LOAD);
    assert_eq!(read(config, &[unreadable, HELD]), LOAD_UNCACHED);
    assert_eq!(read(config, &[MISS, unreadable]), Action::Acquire { seen: Some(4) }, "stored meanwhile");
}

/// Steps a fill that acquires to a wait, and returns how long that is.
#[track_caller]
fn sleep(fill: &mut Fill, left: Duration, listening: bool, now: Duration) -> Duration {
    let action = fill.step(Event::Held { left, holder: 1, listening }, now);
    let Ok(Action::Wait { until }) = action else { panic!("{action:?}") };
    assert_eq!(fill.step(Event::Tick, until), Ok(ACQUIRE));
    until - now
}

#[test]
fn looks_grow_rarer_and_are_rare_while_pushes_are_listened_for() {
    let mut fill = Fill::read(Config::default(), TOKEN, ms(0));
    assert_eq!(fill.step(MISS, ms(0)), Ok(ACQUIRE));
    let (long, micros) = (Duration::MAX, Duration::from_micros);
    for whole in [2_000, 3_200, 5_120, 8_192, 13_107, 20_971, 25_000, 25_000] {
        let sleep = sleep(&mut fill, long, false, micros(whole));
        assert!((whole / 2..=whole).contains(&(sleep.as_micros() as u64)), "{sleep:?} of {whole} us");
    }
    assert!((ms(50)..=ms(100)).contains(&sleep(&mut fill, long, true, ms(100))));
    assert_eq!(sleep(&mut fill, ms(3), true, ms(100)), ms(3), "the end of a lease wakes nobody");
    assert_eq!(sleep(&mut fill, ms(0), true, ms(100)), ms(1), "no loop without a pause");
    assert_eq!(sleep(&mut fill, long, true, ms(4_990)), ms(10), "the time for waiting ends");
}

#[test]
fn no_two_fills_and_no_two_looks_sleep_alike() {
    let config = Config { first_poll: ms(20), longest_poll: ms(20), ..Config::default() };
    let sleeps = |token| {
        let mut fill = Fill::read(config, token, ms(0));
        assert_eq!(fill.step(MISS, ms(0)), Ok(ACQUIRE));
        [1, 2, 3].map(|now| sleep(&mut fill, ms(5_000), false, ms(now)))
    };
    let mut sleeps: Vec<_> = [1, 2, 3, 1 << 64, 1 << 127].into_iter().flat_map(sleeps).collect();
    sleeps.sort_unstable();
    sleeps.dedup();
    assert_eq!(sleeps.len(), 15);
    assert!(sleeps[14] - sleeps[0] > ms(5), "{sleeps:?}");
}

#[test]
fn a_poll_of_any_length_is_survived() {
    let config =
        Config { first_poll: Duration::MAX, longest_poll: Duration::MAX, wait: Duration::MAX, ..Config::default() };
    let mut fill = Fill::read(config, TOKEN, ms(7));
    assert_eq!(fill.step(MISS, ms(7)), Ok(ACQUIRE));
    assert!(sleep(&mut fill, Duration::MAX, false, ms(7)) > ms(1 << 40));
}

#[test]
fn who_has_waited_long_enough_looks_once_more_and_goes_on_alone() {
    let at_deadline = |config, event| {
        let mut fill = Fill::read(config, TOKEN, ms(1_000));
        assert_eq!(fill.step(MISS, ms(1_000)), Ok(ACQUIRE));
        assert!(matches!(fill.step(HELD, ms(5_999)), Ok(Action::Wait { until }) if until == ms(6_000)));
        assert_eq!(fill.step(Event::Tick, ms(6_000)), Ok(ACQUIRE));
        fill.step(event, ms(6_000))
    };
    let config = Config::default();
    assert_eq!(at_deadline(config, HELD), Ok(LOAD_UNCACHED));
    assert_eq!(at_deadline(config, Event::Filled), Ok(Action::Done(Outcome::Filled)));
    assert_eq!(at_deadline(config, ACQUIRED), Ok(LOAD));
    let strict = Config { on_deadline: Fallback::Fail, ..config };
    assert_eq!(at_deadline(strict, HELD), Ok(Action::Done(Outcome::TimedOut)));
}

#[test]
fn a_lease_may_pass_to_another_three_times_while_one_waits() {
    let mut fill = Fill::read(Config::default(), TOKEN, ms(0));
    assert_eq!(fill.step(MISS, ms(0)), Ok(ACQUIRE));
    for holder in [1, 1, 2, 2, 3, 4, 4] {
        assert!(matches!(all(&mut fill, &[held_by(holder)]), Action::Wait { .. }), "{holder}");
        assert_eq!(fill.step(Event::Woken, ms(0)), Ok(ACQUIRE));
    }
    assert_eq!(fill.step(held_by(5), ms(0)), Ok(LOAD_UNCACHED));
}

#[test]
fn a_lease_is_renewed_three_times_in_its_life_until_it_is_lost_or_held_too_long() {
    let config = Config { lease: ms(3_000), max_hold: ms(3_050), ..Config::default() };
    let mut fill = Fill::read(config, TOKEN, ms(0));
    assert_eq!(fill.step(MISS, ms(10)), Ok(ACQUIRE));
    assert_eq!(fill.renewal(), None);
    assert_eq!(fill.step(ACQUIRED, ms(500)), Ok(LOAD));
    assert_eq!(fill.renewal(), Some(ms(1_010)), "counted from the question");
    fill.renewed(Renewal::Renewed, ms(1_020));
    assert_eq!(fill.renewal(), Some(ms(2_020)));

    let mut lost = fill.clone();
    lost.renewed(Renewal::Lost, ms(2_020));
    assert_eq!(lost.renewal(), None);
    lost.renewed(Renewal::Renewed, ms(2_030));
    assert_eq!(lost.renewal(), None, "lost for good");
    assert_eq!(lost.step(OK, ms(2_100)), Ok(PUBLISH), "it may be stored late");

    fill.renewed(Renewal::Failed, ms(2_060));
    assert_eq!(fill.renewal(), Some(ms(3_060)), "tried again");
    fill.renewed(Renewal::Renewed, ms(3_060));
    assert_eq!(fill.renewal(), None, "held for too long");
    assert_eq!(fill.step(OK, ms(3_100)), Ok(PUBLISH));
    fill.renewed(Renewal::Renewed, ms(3_100));
    assert_eq!(fill.renewal(), None);

    let mut never = Fill::read(Config { max_hold: ms(0), ..config }, TOKEN, ms(0));
    assert_eq!(all(&mut never, &[MISS, ACQUIRED]), LOAD);
    assert_eq!(never.renewal(), None);
}

#[test]
fn what_took_longer_than_half_the_life_of_an_epoch_is_not_published() {
    let config = Config { epoch_life: ms(2_000), ..Config::default() };
    let mut fill = Fill::read(config, TOKEN, ms(0));
    assert_eq!(fill.step(MISS, ms(100)), Ok(ACQUIRE));
    assert_eq!(fill.step(ACQUIRED, ms(600)), Ok(LOAD));
    assert_eq!(fill.clone().step(OK, ms(1_099)), Ok(PUBLISH));
    assert_eq!(fill.step(OK, ms(1_100)), Ok(Action::Release), "counted from the question");
    assert_eq!(fill.step(Event::Released, ms(1_100)), Ok(loaded(Published::Outdated)));
}

#[test]
fn a_lease_may_be_held_from_the_question_until_it_is_given_up() {
    let mut fill = Fill::read(Config::default(), TOKEN, ms(0));
    let mut holds = Vec::from([fill.may_hold()]);
    for event in [MISS, HELD, Event::Tick, ACQUIRED, OK, LOST, Event::Released] {
        let _ = all(&mut fill, &[event]);
        holds.push(fill.may_hold());
    }
    assert_eq!(holds, [false, true, false, true, true, true, true, false]);
    let mut uncached = Fill::read(Config::default(), TOKEN, ms(0));
    assert_eq!(all(&mut uncached, &[REFUSED]), LOAD_UNCACHED);
    assert!(!uncached.may_hold());
}

#[test]
fn an_event_that_cannot_have_come_is_refused_and_changes_nothing() {
    use Event::*;
    let events = [
        Hit,
        STALE,
        MISS,
        ACQUIRED,
        Filled,
        HELD,
        LOST,
        REFUSED,
        OK,
        LoadFailed,
        Stored,
        Late,
        Superseded,
        Invalidated,
        Released,
        Woken,
        Tick,
    ];
    let ways: [(&[Event], &[Event]); 8] = [
        (&[], &[Hit, STALE, MISS, LOST, REFUSED]),
        (&[MISS], &[ACQUIRED, Filled, HELD, LOST, REFUSED]),
        (&[MISS, HELD], &[Woken, Tick]),
        (&[MISS, ACQUIRED], &[OK, LoadFailed]),
        (&[REFUSED], &[OK, LoadFailed]),
        (&[MISS, ACQUIRED, OK], &[Stored, Late, Superseded, Invalidated, LOST, REFUSED]),
        (&[MISS, ACQUIRED, LoadFailed], &[Released, LOST, REFUSED]),
        (&[Hit], &[]),
    ];
    for (way, possible) in ways {
        let mut fill = Fill::read(Config::default(), TOKEN, ms(0));
        let action = all(&mut fill, way);
        for event in events {
            let mut next = fill.clone();
            let result = next.step(event, ms(1));
            assert_eq!(result.is_ok(), possible.contains(&event), "{event:?} after {action:?}");
            if let Err(refused) = result {
                assert_eq!((refused, &next), (Refused { action, event }, &fill));
            }
        }
    }
    let refused = Fill::read(Config::default(), TOKEN, ms(0)).step(Stored, ms(0)).expect_err("nothing was published");
    assert_eq!(refused.to_string(), "the event Stored cannot come of the action Read");
}

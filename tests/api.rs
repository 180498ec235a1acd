//! The interface as the design writes it down, and what comes of bad input.

#![cfg(feature = "std")]

#[path = "support/gate.rs"]
mod gate;
#[path = "support/limits.rs"]
mod limits;

use core::any::Any;
use core::error::Error;
use core::time::Duration;
use gate::Gate;
use limits::{until, within_limit};
use oneflight::{AsyncGroup, CallError, OnAbandon, Outcome, Role, SyncGroup};
use std::collections::HashMap;
use std::hash::RandomState;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

#[derive(Debug, PartialEq)]
struct User(u32);

/// Its error cannot be cloned.
#[derive(Debug, PartialEq)]
struct DbError(&'static str);

struct Db;

impl Db {
    fn fetch(&self, id: u32) -> Arc<User> {
        Arc::new(User(id))
    }

    fn try_fetch(&self, id: u32) -> Result<Arc<User>, DbError> {
        if id == 0 { Err(DbError("no such user")) } else { Ok(self.fetch(id)) }
    }
}

#[test]
fn the_lines_of_the_design_compile_as_they_are_written() -> Result<(), Box<dyn Error>> {
    let db = Db;
    let group: SyncGroup<String, Arc<User>> = SyncGroup::new();
    let user = group.do_call("user:1001", || db.fetch(1001));
    assert_eq!(*user, User(1001));
    let user = group.do_call_wait_timeout("user:1001", Duration::from_millis(50), || db.fetch(1001))?;
    assert_eq!(*user, User(1001));

    let group: SyncGroup<String, Result<Arc<User>, Arc<DbError>>> = SyncGroup::new();
    let user = group.try_do_call("user:1001", || db.try_fetch(1001)).expect("there is such a user");
    assert_eq!(*user, User(1001));
    assert_eq!(group.try_do_call("user:0", || db.try_fetch(0)), Err(Arc::new(DbError("no such user"))));

    let out = group
        .call("user:1001")
        .wait_timeout(Duration::from_secs(1))
        .share_if(|v| v.is_ok())
        .max_attempts(2)
        .on_abandon(OnAbandon::TakeOver)
        .run(|| Ok(db.fetch(1001)))?;
    assert_eq!((out.value, out.role, out.shared), (Ok(Arc::new(User(1001))), Role::Led, false));
    let out = group.call("user:1001").share_ok().on_abandon(OnAbandon::Fail).run(|| Ok(db.fetch(7)))?;
    assert_eq!(out.value, Ok(Arc::new(User(7))));

    if let Some(lead) = group.try_lead("k") {
        lead.land(Ok(db.fetch(1)));
    }
    assert!(!group.forget("k"));
    assert!(group.forget_unshared("k"));
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.waiters("k"), 0);
    assert!(group.snapshot().is_empty());
    assert_eq!(group.stats().flights, 5);
    Ok(())
}

#[test]
fn a_group_is_built_with_a_hasher_of_ones_own_and_every_setting_there_is() {
    let group: SyncGroup<u32, u32, RandomState> = SyncGroup::with_hasher(RandomState::new());
    assert_eq!(group.do_call(&1, || 2), 2);
    let group: SyncGroup<String, u32, RandomState> = SyncGroup::builder()
        .shards(3)
        .max_flight_age(Duration::from_secs(30))
        .wait_timeout(Duration::from_secs(1))
        .max_attempts(2)
        .on_abandon(OnAbandon::Fail)
        .share_if(|value| *value > 0)
        .hasher(RandomState::new())
        .build();
    assert_eq!(group.do_call("k", || 2), 2);
    assert_eq!(group.call("k").run(|| 0).map(|outcome| outcome.value), Ok(0));
}

/// As `HashMap` does. Where the hasher is not written, it is the default one.
#[test]
fn a_group_is_made_by_default_with_whatever_hasher_its_type_has() {
    #[derive(Default)]
    struct Groups {
        threads: SyncGroup<String, u32, RandomState>,
        tasks: AsyncGroup<String, u32, RandomState>,
        usual: SyncGroup<String, u32>,
        shared: Arc<AsyncGroup<String, u32>>,
    }
    let Groups { threads, tasks, usual, shared } = Groups::default();
    assert_eq!((threads.do_call("k", || 1), tasks.do_call_blocking("k", || 2)), (1, 2));
    assert_eq!((usual.do_call("k", || 3), shared.do_call_blocking("k", || 4)), (3, 4));
    let (threads, tasks) = (SyncGroup::<u32, u32>::default(), AsyncGroup::<u32, u32>::default());
    assert_eq!((threads.do_call(&1, || 5), tasks.do_call_blocking(&1, || 6)), (5, 6));
}

#[test]
fn keys_are_looked_up_borrowed_and_made_by_to_owned_or_by_a_closure() {
    // `String` by `&str`, `Vec` by slice, `Arc<str>` and a tuple by closures.
    let group: SyncGroup<String, u32> = SyncGroup::new();
    assert_eq!(group.do_call("k", || 1), 1);
    assert_eq!(group.do_call(&"k".to_owned(), || 2), 2);
    let group: SyncGroup<Vec<u8>, u32> = SyncGroup::new();
    assert_eq!(group.do_call(b"\0\xff".as_slice(), || 3), 3);
    let group: SyncGroup<Arc<str>, u32> = SyncGroup::new();
    assert_eq!(group.call_with("k", || Arc::from("k")).run(|| 4).map(|outcome| outcome.value), Ok(4));

    #[derive(Hash)]
    struct Pair<'a>(&'a str, u32);
    impl oneflight::Equivalent<(String, u32)> for Pair<'_> {
        fn equivalent(&self, key: &(String, u32)) -> bool {
            self.0 == key.0 && self.1 == key.1
        }
    }
    let group: SyncGroup<(String, u32), u32> = SyncGroup::new();
    let pair = Pair("tenant", 7);
    let lead = group.try_lead_with(&pair, || (pair.0.to_owned(), pair.1)).expect("no flight is on");
    assert!(group.try_lead(&("tenant".to_owned(), 7)).is_none());
    assert_eq!(group.waiters(&Pair("tenant", 7)), 0);
    assert!(group.flight_info(&Pair("tenant", 8)).is_none());
    assert_eq!(lead.land(5).value, 5);
}

#[test]
fn strange_keys_are_distinct() {
    let group: SyncGroup<Vec<u8>, usize> = SyncGroup::new();
    let long = vec![0; 64 * 1024];
    let keys: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"\xff", b" ", &long, &long[1..]];
    let leads: Vec<_> = keys.iter().map(|key| group.try_lead(*key).expect("a key of its own")).collect();
    assert_eq!(group.in_flight(), keys.len());
    for (number, lead) in leads.into_iter().enumerate() {
        assert_eq!(lead.land(number).value, number);
    }
}

#[test]
fn a_group_of_nothing_works() {
    let group: SyncGroup<(), ()> = SyncGroup::new();
    group.do_call(&(), || ());
    let lead = group.try_lead(&()).expect("no flight is on");
    assert_eq!(group.call(&()).wait_timeout(Duration::ZERO).run(|| ()), Err(CallError::TimedOut));
    assert_eq!(lead.land(()).role, Role::Led);
}

/// Borrowed work and values: a group may live on the stack, and so may what it shares.
#[test]
fn keys_values_and_works_may_borrow() {
    within_limit(|| {
        let text = "a b c".to_owned();
        let calls = core::cell::Cell::new(0);
        let group: SyncGroup<&str, Vec<&str>> = SyncGroup::new();
        let words = group.do_call(&"a b c", || {
            calls.set(calls.get() + 1);
            text.split(' ').collect()
        });
        assert_eq!(words, ["a", "b", "c"]);
        assert_eq!(calls.get(), 1);
        thread::scope(|scope| {
            let lead = group.try_lead(&text.as_str()).expect("no flight is on");
            let follower = scope.spawn(|| group.do_call(&text.as_str(), Vec::new));
            until("the follower waits", || group.waiters(&"a b c") == 1);
            lead.land(vec![&text[..1]]);
            assert_eq!(follower.join().expect("no panic"), ["a"]);
        });
    });
}

/// What it panics with.
#[track_caller]
fn panic_of<R>(f: impl FnOnce() -> R + core::panic::UnwindSafe) -> String {
    match catch_unwind(f) {
        Ok(_) => panic!("it did not panic"),
        Err(payload) => text(payload),
    }
}

fn text(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => (*payload.downcast::<&str>().unwrap_or_else(|payload| resume_unwind(payload))).to_owned(),
    }
}

#[test]
fn settings_that_make_no_sense_are_refused_where_they_are_made() {
    let shards = panic_of(|| drop(SyncGroup::<u32, u32>::builder().shards(0)));
    assert_eq!(shards, "oneflight: a group needs at least one shard");
    let attempts = "oneflight: max_attempts(0) would allow no leader at all; use 1 to allow only the first";
    assert_eq!(panic_of(|| drop(SyncGroup::<u32, u32>::builder().max_attempts(0))), attempts);
    let group: SyncGroup<u32, u32> = SyncGroup::new();
    assert_eq!(panic_of(|| drop(group.call(&1).max_attempts(0))), attempts);
    assert_eq!(group.do_call(&1, || 2), 2, "the group is none the worse for it");
}

#[test]
fn settings_at_their_ends_work() {
    within_limit(|| {
        let one_shard: SyncGroup<u32, u32> = SyncGroup::builder().shards(1).build();
        let most_shards: SyncGroup<u32, u32> = SyncGroup::builder().shards(usize::MAX).build();
        for group in [one_shard, most_shards] {
            assert!((0..1_000).all(|key| group.do_call(&key, || key + 1) == key + 1));
            assert_eq!(group.in_flight(), 0);
        }
        for age in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let group: SyncGroup<u32, u32> = SyncGroup::builder().max_flight_age(age).build();
            assert_eq!(group.do_call(&1, || 2), 2);
            let info = group.do_call(&1, || u32::from(group.flight_info(&1).is_some()));
            assert_eq!(info == 1, age == Duration::MAX, "from its age limit on there is nothing to join");
        }
        let group: SyncGroup<u32, u32> = SyncGroup::builder().max_attempts(u32::MAX).build();
        for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            assert_eq!(group.do_call_wait_timeout(&1, timeout, || 2), Ok(2));
            assert_eq!(
                group.call(&1).wait_timeout(timeout).max_attempts(u32::MAX).run(|| 2).map(|out| out.value),
                Ok(2)
            );
        }
        let lead = group.try_lead(&1).expect("no flight is on");
        for timeout in [Duration::ZERO, Duration::from_nanos(1)] {
            assert_eq!(group.do_call_wait_timeout(&1, timeout, || 2), Err(CallError::TimedOut));
        }
        thread::scope(|scope| {
            let for_ever = scope.spawn(|| group.do_call_wait_timeout(&1, Duration::MAX, || 2));
            until("it waits", || group.waiters(&1) == 1);
            lead.land(7);
            assert_eq!(for_ever.join().expect("no panic"), Ok(7));
        });
    });
}

#[test]
fn nothing_happens_before_a_call_is_run() {
    let group: SyncGroup<String, u32> = SyncGroup::new();
    let call = group.call_with("k", || panic!("no key is needed yet")).max_attempts(1);
    assert_eq!(group.in_flight(), 0);
    assert_eq!(group.stats().flights, 0);
    drop(call);
}

#[test]
fn errors_say_what_happened_and_are_errors() {
    let all = [CallError::TimedOut, CallError::Reentrant, CallError::WouldDeadlock, CallError::Abandoned];
    let mut told = HashMap::new();
    for error in all {
        let message = error.to_string();
        assert!(message.chars().next().is_some_and(char::is_lowercase) && !message.ends_with('.'), "{message}");
        let as_error: Box<dyn Error + Send + Sync> = Box::new(error);
        assert!(as_error.source().is_none());
        assert_eq!(as_error.downcast_ref::<CallError>(), Some(&error));
        assert!(told.insert(message, error).is_none(), "two errors that say the same");
    }
}

/// A panic where there is no `Result` points at the caller's line, not into the crate.
#[test]
fn a_refusal_without_a_result_is_a_panic_at_the_callers_line() {
    within_limit(|| {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        let here = Gate::new();
        let refusing = thread::current().id();
        // Panics of other tests go where they always go.
        let previous = std::panic::take_hook();
        std::panic::set_hook({
            let here = here.clone();
            Box::new(move |info| match info.location() {
                Some(at) if thread::current().id() == refusing && at.file().ends_with("api.rs") => here.open(),
                _ => previous(info),
            })
        });
        let told = panic_of(core::panic::AssertUnwindSafe(|| group.do_call(&1, || group.do_call(&1, || 2))));
        here.wait();
        assert_eq!(told, format!("oneflight: cannot wait for the flight: {}", CallError::Reentrant));
        assert_eq!(group.do_call(&1, || 3), 3);
    });
}

#[test]
fn outcomes_and_errors_can_be_compared_copied_and_hashed() {
    fn vocabulary<T: Copy + Eq + core::hash::Hash + core::fmt::Debug>(_: T) {}
    let group: SyncGroup<u32, u32> = SyncGroup::new();
    let outcome: Outcome<u32> = group.call(&1).run(|| 2).expect("nobody is there");
    vocabulary(outcome);
    vocabulary(outcome.role);
    vocabulary(CallError::TimedOut);
    vocabulary(OnAbandon::default());
    assert_eq!(OnAbandon::default(), OnAbandon::TakeOver);
}

#[test]
fn what_is_printed_for_debugging_tells_what_is_on() {
    let group: SyncGroup<String, u32> = SyncGroup::new();
    let lead = group.try_lead("a").expect("no flight is on");
    assert_eq!(format!("{group:?}"), "SyncGroup { in_flight: 1, .. }");
    assert_eq!(format!("{lead:?}"), "Lead { attempt: 1, .. }");
    let call = group.call("a").wait_timeout(Duration::from_secs(1)).max_attempts(2);
    assert_eq!(format!("{call:?}"), "Call { wait_timeout: Some(1s), max_attempts: 2, on_abandon: TakeOver, .. }");
    assert!(format!("{:?}", SyncGroup::<u32, u32>::builder().shards(4)).contains("shards: 4"));
    let group: AsyncGroup<String, u32> = oneflight::AsyncGroup::new();
    assert_eq!(format!("{group:?}"), "AsyncGroup { in_flight: 0, .. }");
    let builder = AsyncGroup::<u32, u32>::builder().shards(4).spawner(drop);
    assert!(["shards: 4", "spawner: true"].iter().all(|part| format!("{builder:?}").contains(part)));
}

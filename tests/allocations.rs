//! G3: what a call allocates, and what flights take while they are on. Counted for the calling thread.

#![cfg(feature = "std")]

#[path = "support/limits.rs"]
mod limits;

use allocation_counter::{AllocationInfo, measure};
use core::panic::AssertUnwindSafe;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use limits::{until, within_limit};
use oneflight::{AsyncGroup, CallError, SyncGroup};
use std::panic::{catch_unwind, resume_unwind};
use std::thread;

/// In the thread that asks for it, allocations of other tests are not counted.
fn count(f: impl FnOnce()) -> u64 {
    measure(f).count_total
}

#[test]
fn a_lone_call_with_a_copy_key_allocates_nothing_once_its_shard_is_warm() {
    let group: SyncGroup<u64, u64> = SyncGroup::new();
    group.do_call(&1, || 2);
    assert_eq!(count(|| assert_eq!(group.do_call(&1, || 2), 2)), 0);
    assert_eq!(count(|| assert_eq!(group.do_call_wait_timeout(&1, Duration::from_secs(1), || 2), Ok(2))), 0);
    assert_eq!(count(|| assert!(group.call(&1).share_if(|_| true).max_attempts(2).run(|| 2).is_ok())), 0);
    assert_eq!(count(|| assert!(group.call_with(&1, || 1).run(|| 2).is_ok())), 0);
    assert_eq!(count(|| drop(group.try_lead(&1))), 0);
    assert_eq!(count(|| assert!(group.try_lead(&1).is_some_and(|lead| lead.land(2).value == 2))), 0);
    assert_eq!(count(|| assert!(!group.forget(&1) && group.forget_unshared(&1) && group.waiters(&1) == 0)), 0);
    let fallible: SyncGroup<u64, Result<u64, std::sync::Arc<u64>>> = SyncGroup::new();
    let call = || assert_eq!(fallible.try_do_call(&1, || Ok(2)), Ok(2));
    call();
    assert_eq!(count(call), 0);
}

#[test]
fn a_lone_call_with_a_string_key_allocates_its_owned_key_and_nothing_else() {
    let group: SyncGroup<String, u64> = SyncGroup::new();
    group.do_call("sixteen bytes...", || 2);
    let called = measure(|| assert_eq!(group.do_call("sixteen bytes...", || 2), 2));
    assert_eq!((called.count_total, called.bytes_total, called.count_current), (1, 16, 0));
}

/// G3, for tasks: the box of the work is all that a flight costs whose work is ready.
#[test]
fn a_lone_task_with_a_copy_key_allocates_the_box_of_its_work_and_inline_nothing() {
    fn poll<T: PartialEq + core::fmt::Debug>(call: impl Future<Output = T>, value: T) {
        let polled = pin!(call).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(value));
    }
    let group: AsyncGroup<u64, u64> = AsyncGroup::new();
    let owned = || poll(group.do_call(&1, || async { 2 }), 2);
    let options = || poll(async { group.call(&1).run(|| async { 2 }).await.map(|outcome| outcome.value) }, Ok(2));
    let inline = || poll(group.do_call_inline(&1, || async { 2 }), 2);
    owned();
    assert_eq!((count(owned), count(options), count(inline)), (1, 1, 0));
    let strings: AsyncGroup<String, u64> = AsyncGroup::new();
    let inline = || poll(strings.do_call_inline("sixteen bytes...", || async { 2 }), 2);
    inline();
    assert_eq!(count(inline), 1);
}

/// Ends when it has been woken by what it was polled with at first, if it has kept that.
fn wakes_once(keeps: bool) -> impl Future<Output = u64> + Send {
    let (mut polls, mut kept) = (0, None);
    core::future::poll_fn(move |cx| {
        polls += 1;
        match polls {
            1 if keeps => kept = Some(cx.waker().clone()),
            1 => cx.waker().wake_by_ref(),
            _ => return Poll::Ready(2),
        }
        kept.iter().for_each(Waker::wake_by_ref);
        Poll::Pending
    })
}

/// G3, for tasks: work that has to wait costs its flight as well. What it is polled with at first the thread keeps, even if the
/// work does so too.
#[test]
fn a_lone_task_whose_work_waits_allocates_the_box_of_its_work_and_its_flight() {
    let group: AsyncGroup<u64, u64> = AsyncGroup::new();
    // With deadlock detection the flight has a part that outlives it in the record of who waits for whom.
    let flight = if cfg!(feature = "deadlock-detection") { 2 } else { 1 };
    for keeps in [false, true] {
        let call = || {
            let mut call = pin!(group.do_call(&1, || wakes_once(keeps)));
            let mut poll = || call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!((poll(), poll()), (Poll::Pending, Poll::Ready(2)));
        };
        call();
        let called = measure(call);
        assert_eq!((called.count_total, called.count_current), (1 + flight, 0), "keeps: {keeps}");
    }
    // Nor is one lost with work that never ends.
    let leave = || drop(poll_once(group.do_call(&1, endless)));
    assert_eq!(count(leave), 1 + 1 + flight, "and the box of the call");
    assert_eq!(group.in_flight(), 0);
}

/// G4: a call around work of 1,026 bytes.
#[test]
fn a_call_holds_its_work_once_at_most() {
    let group: AsyncGroup<u64, u64> = AsyncGroup::new();
    let work = || {
        let bytes = [1_u8; 1_025];
        async move {
            core::future::pending::<()>().await;
            bytes.iter().map(|byte| u64::from(*byte)).sum()
        }
    };
    assert_eq!(size_of_val(&work()), 1_026);
    assert!(size_of_val(&group.do_call(&1, work)) <= 256);
    assert!(size_of_val(&group.call(&1).run(work)) <= 256);
    assert!(size_of_val(&group.do_call_inline(&1, work)) <= 1_150);
    assert!(size_of_val(&group.call(&1).run_inline(work)) <= 1_150);
}

#[test]
fn a_lone_panic_allocates_no_more_than_its_payload() {
    let group: SyncGroup<u64, u64> = SyncGroup::new();
    let panic = || {
        let caught = catch_unwind(AssertUnwindSafe(|| group.do_call(&1, || resume_unwind(Box::new(())))));
        assert!(caught.is_err());
    };
    panic();
    let bare = count(|| {
        let caught: thread::Result<()> = catch_unwind(|| resume_unwind(Box::new(())));
        assert!(caught.is_err());
    });
    assert_eq!(count(panic), bare);
}

#[test]
fn the_first_follower_makes_the_slot_and_the_next_allocate_nothing() {
    let group: SyncGroup<String, u64> = SyncGroup::new();
    let lead = group.try_lead("k");
    let join_and_leave = || {
        let left = group.call("k").wait_timeout(Duration::ZERO).run(|| 2);
        assert_eq!(left, Err(CallError::TimedOut));
    };
    // With deadlock detection the slot has a part that outlives it in the record of who waits for whom.
    let slot = if cfg!(feature = "deadlock-detection") { 2 } else { 1 };
    assert_eq!(count(join_and_leave), slot + 1, "the slot, and where threads sleep");
    for _ in 0..10 {
        assert_eq!(count(join_and_leave), 0, "not even a key: it is looked up borrowed");
    }
    drop(lead);
}

#[test]
fn a_follower_that_waits_and_gets_the_value_allocates_nothing_once_the_slot_exists() {
    within_limit(|| {
        let group: SyncGroup<String, u64> = SyncGroup::new();
        // A thread's own parts of locks and condition variables are made once, at some time; so is the process's table of
        // sleeping threads, which grows when a lock is contended.
        let least = (0..50).map(|_| a_follower_waits_and_gets_the_value(&group)).min();
        assert_eq!(least, Some(0));
    });
}

fn a_follower_waits_and_gets_the_value(group: &SyncGroup<String, u64>) -> u64 {
    let lead = group.try_lead("k").expect("no flight is on");
    let first = group.call("k").wait_timeout(Duration::ZERO).run(|| 2);
    assert_eq!(first, Err(CallError::TimedOut));
    thread::scope(|scope| {
        let follower = scope.spawn(|| count(|| assert_eq!(group.do_call("k", || 2), 7)));
        until("the follower waits", || group.waiters("k") == 1);
        lead.land(7);
        follower.join().expect("no panic")
    })
}

const KEYS: u64 = 100_000;

/// With the default shards: the room that is left in each of them counts too.
#[test]
fn a_u64_key_in_flight_takes_at_most_72_bytes_and_a_burst_gives_its_memory_back() {
    let group: SyncGroup<u64, u64> = SyncGroup::new();
    let mut guards = Vec::with_capacity(KEYS as usize);
    let burst = measure(|| guards.extend((0..KEYS).map(|key| group.try_lead(&key))));
    assert!(guards.iter().all(Option::is_some));
    assert_eq!(group.in_flight(), KEYS as usize);
    let each = burst.bytes_current / KEYS as i64;
    assert!(each <= 72, "{each} bytes a key");

    let end = measure(|| {
        for (key, guard) in (0..).zip(&mut guards) {
            let guard = guard.take().expect("each ends once");
            if key % 2 == 0 {
                drop(guard);
            } else {
                guard.land(key);
            }
        }
    });
    assert_eq!(group.in_flight(), 0);
    gives_back(burst, end, 256);
}

/// Work of 8 bytes that never ends.
fn endless() -> impl Future<Output = u64> + Send {
    let value = 1_u64;
    core::future::poll_fn(move |_| if value == 0 { Poll::Ready(value) } else { Poll::Pending })
}

fn poll_once<F: Future>(call: F) -> Pin<Box<F>> {
    let mut call = Box::pin(call);
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    call
}

/// With the work, and without the call itself.
#[test]
fn a_u64_key_whose_work_waits_takes_at_most_200_bytes_and_what_has_ended_takes_none() {
    let keys: Vec<u64> = (0..10_000).collect();
    let group: AsyncGroup<u64, u64> = AsyncGroup::new();
    let call = |key| group.do_call(key, endless);
    let its_box = size_of_val(&call(&keys[0])) as i64;
    let mut calls = Vec::with_capacity(keys.len());
    let burst = measure(|| calls.extend(keys.iter().map(|key| poll_once(call(key)))));
    let each = burst.bytes_current / keys.len() as i64 - its_box;
    assert!(each <= 200, "{each} bytes a key");
    let end = measure(|| calls.clear());
    gives_back(burst, end, 256);
}

#[test]
fn terms_for_the_work_cost_an_allocation_only_if_it_has_to_wait() {
    let group: AsyncGroup<u64, u64> = AsyncGroup::new();
    let plain = || count(|| drop(poll_once(group.call(&1).run(endless))));
    plain();
    let plain = plain();
    let terms = count(|| drop(poll_once(group.call(&1).share_if(|_| true).run(endless))));
    assert_eq!(terms, plain + 1);
    let ready = || {
        let call = pin!(group.call(&1).share_if(|_| true).max_attempts(1).run(|| async { 2 }));
        assert!(call.poll(&mut Context::from_waker(Waker::noop())).is_ready());
    };
    // The thread keeps what ready work was polled with.
    ready();
    assert_eq!(count(ready), 1, "the box of the work");
}

/// Whoever is left behind, a crowd's room goes when it leaves.
#[test]
fn a_crowd_of_tasks_that_leaves_gives_its_memory_back_while_the_flight_goes_on() {
    let group: AsyncGroup<u64, u64> = AsyncGroup::new();
    let leader = poll_once(group.do_call(&1, endless));
    let mut crowd = Vec::with_capacity(1_000);
    let joined = measure(|| crowd.extend((0..1_000).map(|_| poll_once(group.do_call(&1, endless)))));
    let left = measure(|| crowd.clear());
    gives_back(joined, left, 0);
    drop(leader);
    assert_eq!(group.in_flight(), 0);
}

/// The room goes with its last task if the flight is led by somebody else.
#[test]
fn a_task_that_leaves_a_flight_that_is_no_tasks_leaves_nothing_of_its_own_there() {
    let group: AsyncGroup<u64, u64> = AsyncGroup::new();
    let lead = group.try_lead(&1);
    // Makes what stays until the flight ends.
    assert_eq!(group.do_call_blocking_wait_timeout(&1, Duration::ZERO, || 2), Err(CallError::TimedOut));
    assert_eq!(measure(|| drop(poll_once(group.do_call(&1, endless)))).bytes_current, 0);
    drop(lead);
    assert_eq!(group.in_flight(), 0);
}

/// However a flight ends that somebody had joined, what it took is given back.
#[test]
fn a_flight_that_was_joined_leaves_nothing_behind() {
    let group: AsyncGroup<u64, u64> = AsyncGroup::new();
    let (open, opened) = smol::channel::bounded(1);
    // Waits until it is let go.
    let work = || {
        let opened = opened.clone();
        async move { opened.recv().await.expect("it is open") }
    };
    let call = || poll_once(group.do_call(&1, work));
    let lands = |mut call: Pin<&mut dyn Future<Output = u64>>| {
        open.try_send(2).expect("nobody else has");
        assert_eq!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(2));
    };
    let ends: [(&str, &dyn Fn()); 7] = [
        ("its maker lands alone", &|| {
            let mut leader = call();
            drop(call());
            lands(leader.as_mut());
        }),
        ("a follower lands alone", &|| {
            let leader = call();
            let mut follower = call();
            drop(leader);
            lands(follower.as_mut());
        }),
        ("two share it", &|| {
            let mut leader = call();
            let mut follower = call();
            lands(leader.as_mut());
            assert_eq!(follower.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(2));
        }),
        ("all leave", &|| {
            let leader = call();
            let follower = call();
            drop(leader);
            drop(follower);
        }),
        ("inline work lands alone", &|| {
            let mut leader = poll_once(group.do_call_inline(&1, work));
            drop(call());
            lands(leader.as_mut());
        }),
        ("a guard lands alone", &|| {
            let lead = group.try_lead(&1).expect("no flight is on");
            drop(call());
            assert_eq!(lead.land(2).value, 2);
        }),
        ("a guard abandons it, and a follower takes over", &|| {
            let lead = group.try_lead(&1).expect("no flight is on");
            let mut follower = call();
            drop(lead);
            lands(follower.as_mut());
        }),
    ];
    for (name, end) in ends {
        end();
        assert_eq!(measure(end).bytes_current, 0, "{name}");
        assert_eq!(group.in_flight(), 0, "{name}");
    }
}

/// A6: the table shrinks by itself, also when nothing ends well.
#[test]
fn a6_the_table_gives_its_memory_back_after_1_000_flights_that_were_forgotten_or_panicked() {
    within_limit(|| {
        let group: SyncGroup<u64, u64> = SyncGroup::builder().shards(1).build();
        let mut guards = Vec::with_capacity(1_000);
        let burst = measure(|| {
            guards.extend((0..1_000).map(|key| group.try_lead(&key)));
            (0..1_000).for_each(|key| assert!(group.forget(&key)));
        });
        let end = measure(|| {
            // The others are dropped by unwinding.
            guards.truncate(500);
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                let _guards = guards;
                resume_unwind(Box::new(()))
            }));
            assert!(unwound.is_err());
        });
        assert_eq!(group.in_flight(), 0);
        // The guards' own vector was made outside and dropped inside.
        let end = AllocationInfo { bytes_current: end.bytes_current + 1_000 * GUARD, ..end };
        gives_back(burst, end, 1);
        // And it goes on working.
        assert!((0..1_000).all(|key| group.do_call(&key, || key) == key));
    });
}

const GUARD: i64 = size_of::<Option<oneflight::Lead<'static, u64, u64, oneflight::DefaultHashBuilder>>>() as i64;

/// All but what is kept for a few flights in each of so many shards: how many each has had last is a matter of hashes.
fn gives_back(burst: AllocationInfo, end: AllocationInfo, shards: i64) {
    const ROOM: i64 = 640;
    let kept = burst.bytes_current + end.bytes_current;
    assert!(kept >= 0, "more was freed than was allocated");
    let most = (shards * ROOM).max(burst.bytes_current / 20);
    assert!(kept <= most && most < burst.bytes_current / 10, "{kept} of {} bytes are kept", burst.bytes_current);
}

/// What a group takes when nothing is on.
#[test]
fn an_idle_group_takes_128_bytes_a_shard() {
    let mut group: Option<SyncGroup<u64, u64>> = None;
    let made = measure(|| group = Some(SyncGroup::builder().shards(64).build()));
    assert_eq!((made.count_current, made.bytes_current), (1, 64 * 128));
    let dropped = measure(|| drop(group));
    assert_eq!(dropped.bytes_current, -64 * 128);
}

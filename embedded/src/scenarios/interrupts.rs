//! One group, called in thread mode and in interrupts.

use super::run_to;
use crate::executor::Executor;
use crate::interrupt;
use crate::sensor::Sensor;
use alloc::sync::Arc;
use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Poll;
use oneflight::AsyncGroup;

/// An interrupt leads, and lands.
pub(super) fn guard_in_interrupt() {
    let group: Arc<AsyncGroup<u32, u32>> = Arc::default();
    let (sensor, gate) = (Sensor::new(), Sensor::new());
    let (calls, go) = (Arc::clone(&group), gate.clone());
    let guard = interrupt::spawn(async move {
        let lead = calls.try_lead(&1).expect("no flight is on");
        lead.land(go.read().await).shared
    });
    let mut executor = Executor::new();
    let followers: [_; 3] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || sensor.read())));

    executor.run_woken();
    assert_eq!(group.waiters(&1), 3);
    gate.finish_after(2, 77);
    run_to(&mut executor, &followers, &77);
    assert_eq!(guard.take(), Some(true));
    assert_eq!(sensor.reads(), 0);
    assert_eq!(group.in_flight(), 0);
    assert!(followers.iter().all(|call| executor.wakes_from_interrupts(call) == 1));
}

/// An interrupt leads and gives up: a task in thread mode takes over.
pub(super) fn dropped_guard_in_interrupt() {
    let group: Arc<AsyncGroup<u32, u32>> = Arc::default();
    let (sensor, gate) = (Sensor::new(), Sensor::new());
    let (calls, go) = (Arc::clone(&group), gate.clone());
    let guard = interrupt::spawn(async move {
        let lead = calls.try_lead(&1).expect("no flight is on");
        go.read().await;
        drop(lead);
    });
    let mut executor = Executor::new();
    let followers: [_; 3] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || sensor.read())));

    executor.run_woken();
    gate.finish_now(0);
    assert_eq!(guard.take(), Some(()));
    executor.run_woken();
    assert_eq!(sensor.reads(), 1);
    sensor.finish_after(2, 78);
    run_to(&mut executor, &followers, &78);
    assert_eq!(sensor.reads(), 1);
    assert_eq!(group.in_flight(), 0);
}

/// While thread mode is inside the closure that makes the work, an interrupt calls the same key.
pub(super) fn joined_before_there_is_work() {
    let group: Arc<AsyncGroup<u32, u32>> = Arc::default();
    let sensor = Sensor::new();
    let (calls, second) = (Arc::clone(&group), sensor.clone());
    let follower = Cell::new(None);
    let mut executor = Executor::new();
    let leader = executor.spawn(group.do_call(&1, || {
        follower.set(Some(interrupt::spawn(async move { calls.do_call(&1, || second.read()).await })));
        assert_eq!((sensor.reads(), group.waiters(&1)), (0, 1));
        sensor.read()
    }));

    executor.run_woken();
    sensor.finish_after(2, 65);
    run_to(&mut executor, [&leader], &65);
    assert_eq!(follower.take().expect("the closure was called").take(), Some(65));
    assert_eq!(sensor.reads(), 1);
    assert_eq!((group.in_flight(), interrupt::tasks()), (0, 0));
}

/// While thread mode is inside the poll of the work, an interrupt calls the same key. It waits like anybody else.
pub(super) fn joined_in_the_middle_of_a_poll() {
    let group: Arc<AsyncGroup<u32, u32>> = Arc::default();
    let sensor = Sensor::new();
    let (calls, second) = (Arc::clone(&group), sensor.clone());
    let joined = Arc::new(AtomicU32::new(0));
    let follower = Arc::clone(&joined);
    let mut executor = Executor::new();
    let leader = executor.spawn(group.do_call(&1, || {
        sensor.read_interrupted(move || {
            drop(interrupt::spawn(async move {
                follower.store(calls.do_call(&1, || second.read()).await, Ordering::Release);
            }));
        })
    }));

    executor.run_woken();
    assert_eq!(group.waiters(&1), 1);
    sensor.finish_after(2, 64);
    run_to(&mut executor, [&leader], &64);
    assert_eq!(joined.load(Ordering::Acquire), 64);
    assert_eq!(sensor.reads(), 1);
    assert_eq!((group.in_flight(), interrupt::tasks()), (0, 0));
}

/// The leader in thread mode is dropped: a task in an interrupt goes on with its work, there.
pub(super) fn driven_in_interrupt() {
    let group: Arc<AsyncGroup<u32, u32>> = Arc::default();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let leader = executor.spawn(group.do_call(&1, || sensor.read_sum()));
    executor.run_woken();
    let (calls, second) = (Arc::clone(&group), sensor.clone());
    let follower = interrupt::spawn(async move { calls.do_call(&1, || second.read_sum()).await });
    assert_eq!(group.waiters(&1), 1);

    executor.cancel(&leader);
    assert!(sensor.polls_in_interrupts() > 0);
    sensor.finish_now(20);
    sensor.finish_now(3);
    assert_eq!(follower.take(), Some(23));
    assert_eq!(sensor.reads(), 1);
    assert_eq!((group.in_flight(), interrupt::tasks()), (0, 0));
}

/// A leader in an interrupt gives up half-way: a task in thread mode goes on with its work, from where it was.
pub(super) fn handed_over_to_thread_mode() {
    let group: Arc<AsyncGroup<u32, u32>> = Arc::default();
    let (sensor, gate) = (Sensor::new(), Sensor::new());
    let (calls, first, go) = (Arc::clone(&group), sensor.clone(), gate.clone());
    let leader = interrupt::spawn(async move {
        let mut call = pin!(calls.do_call(&1, || first.read_sum()));
        poll_once(call.as_mut()).await;
        go.read().await;
    });
    let mut executor = Executor::new();
    let follower = executor.spawn(group.do_call(&1, || sensor.read_sum()));

    executor.run_woken();
    assert_eq!((sensor.polls(), sensor.polls_in_interrupts()), (1, 1));
    gate.finish_now(0);
    assert_eq!(leader.take(), Some(()));
    sensor.finish_now(5);
    executor.run_woken();
    sensor.finish_after(2, 6);
    run_to(&mut executor, [&follower], &11);
    assert_eq!((sensor.reads(), sensor.asked()), (1, 2));
    assert_eq!(sensor.polls_in_interrupts(), 1);
    assert_eq!((group.in_flight(), interrupt::tasks()), (0, 0));
}

/// Tasks in thread mode and in an interrupt call two keys over and over, the interrupt coming wherever it comes; every
/// third call is dropped after its first poll.
pub(super) fn storm() {
    const TASKS: u32 = 4;
    const CALLS: u32 = 1_000;
    let group: Arc<AsyncGroup<u32, u32>> = Arc::default();
    let started = Arc::new(AtomicU32::new(0));
    let mut executor = Executor::new();
    let here: [_; TASKS as usize] = core::array::from_fn(|task| {
        executor.spawn(caller(Arc::clone(&group), Arc::clone(&started), task as u32, CALLS))
    });
    let there: [_; TASKS as usize] = core::array::from_fn(|task| {
        interrupt::spawn(caller(Arc::clone(&group), Arc::clone(&started), task as u32, CALLS))
    });

    executor.run();
    // Those in the interrupt end on their own. Then a tick more: the clock still has wakers of work that was dropped.
    let waiting = executor.spawn(async {
        while interrupt::tasks() > 0 {
            interrupt::tick().await;
        }
        interrupt::tick().await;
    });
    run_to(&mut executor, [&waiting], &());
    let done = here.iter().filter_map(|task| task.take()).chain(there.iter().filter_map(|task| task.take()));
    assert_eq!(done.sum::<u32>(), 2 * TASKS * CALLS);
    assert_eq!(group.in_flight(), 0);
    let stats = group.stats();
    assert_eq!(stats.flights + stats.take_overs, u64::from(started.load(Ordering::Relaxed)));
    assert!(stats.joins > 0 && stats.flights > 0);
}

/// Calls, and returns how often.
async fn caller(group: Arc<AsyncGroup<u32, u32>>, started: Arc<AtomicU32>, task: u32, calls: u32) -> u32 {
    for call in 0..calls {
        let key = (task + call) % 2;
        let work = || {
            let number = started.fetch_add(1, Ordering::Relaxed);
            async move {
                for _ in 0..number % 3 {
                    interrupt::tick().await;
                }
                key + 1_000
            }
        };
        let mut pending = pin!(group.do_call(&key, work));
        if call % 3 == task % 3 {
            poll_once(pending.as_mut()).await;
        } else {
            assert_eq!(pending.await, key + 1_000);
        }
    }
    calls
}

/// Polls once, and leaves it at that.
async fn poll_once<T>(mut future: Pin<&mut impl Future<Output = T>>) {
    poll_fn(|cx| {
        drop(future.as_mut().poll(cx));
        Poll::Ready(())
    })
    .await;
}

//! Leads that are not the flight's own: work inside the caller's future, and guards.

use super::run_to;
use crate::executor::Executor;
use crate::sensor::Sensor;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use oneflight::{AsyncGroup, Role};

/// Work that borrows from its caller and is not `Send`.
pub(super) fn inline_borrows() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let log = RefCell::new(Vec::new());
    let scale = Rc::new(10);
    let mut executor = Executor::new();
    let calls: [_; 3] = core::array::from_fn(|number| {
        let (log, scale, sensor) = (&log, &scale, &sensor);
        executor.spawn(group.do_call_inline(&1, move || async move {
            log.borrow_mut().push(number);
            let value = sensor.read().await * **scale;
            log.borrow_mut().push(number);
            value
        }))
    });

    executor.run_woken();
    assert_eq!(*log.borrow(), [0]);
    sensor.finish_after(2, 4);
    run_to(&mut executor, &calls, &40);
    assert_eq!(*log.borrow(), [0, 0]);
    assert_eq!(group.in_flight(), 0);
}

/// The work goes with its caller: a follower takes over with its own.
pub(super) fn inline_leader_dropped() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let leader = executor.spawn(group.do_call_inline(&1, || sensor.read()));
    let followers: [_; 2] =
        core::array::from_fn(|_| executor.spawn(group.call(&1).run_inline(|| async { sensor.read().await + 1 })));

    executor.run_woken();
    executor.cancel(&leader);
    executor.run_woken();
    assert_eq!((sensor.reads(), sensor.running()), (2, 1));
    sensor.finish_after(1, 16);
    executor.run();
    let outcomes = followers.map(|call| call.take().expect("the call has ended").expect("somebody took over"));
    assert!(outcomes.iter().all(|outcome| outcome.value == 17));
    assert_eq!(outcomes.iter().filter(|outcome| outcome.role == Role::TookOver).count(), 1);
    assert_eq!(sensor.reads(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// The lead as a guard, which lands with a value.
pub(super) fn lead_guard() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let lead = group.try_lead(&1).expect("no flight is on");
    assert!(group.try_lead(&1).is_none());
    let mut executor = Executor::new();
    let followers: [_; 2] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || sensor.read())));

    executor.run_woken();
    assert!(lead.land(3).shared);
    assert_eq!(group.in_flight(), 0);
    run_to(&mut executor, &followers, &3);
    assert_eq!(sensor.reads(), 0);
}

/// A guard that is dropped abandons: one follower runs its own work, and the others get its value.
pub(super) fn dropped_guard() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let lead = group.try_lead(&1).expect("no flight is on");
    let mut executor = Executor::new();
    let followers: [_; 3] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || sensor.read())));

    executor.run_woken();
    drop(lead);
    executor.run_woken();
    assert_eq!(sensor.reads(), 1);
    sensor.finish_after(1, 11);
    run_to(&mut executor, &followers, &11);
    assert_eq!(sensor.reads(), 1);
    assert_eq!(group.in_flight(), 0);
}

//! Tasks on one key, whose work the flight owns: who drives it, and who goes on with it.

use super::run_to;
use crate::executor::Executor;
use crate::sensor::Sensor;
use alloc::string::String;
use oneflight::{AsyncGroup, Role};

/// Five tasks, one piece of work, woken by an interrupt.
pub(super) fn one_execution() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let calls: [_; 5] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || sensor.read())));

    executor.run_woken();
    assert_eq!(group.in_flight(), 1);
    assert_eq!(group.waiters(&1), 4);

    sensor.finish_after(3, 21);
    executor.run();
    for call in &calls {
        assert_eq!(call.take(), Some(21));
        // The first, one if it was woken to drive, one to fetch the value.
        assert!(executor.polls(call) <= 3);
    }
    assert_eq!(sensor.reads(), 1);
    assert_eq!(group.in_flight(), 0);
    // The leader and one standby were woken in the interrupt, and nobody else.
    let woken = calls.iter().filter(|call| executor.wakes_from_interrupts(call) > 0).count();
    assert_eq!(woken, 2);
    assert!(executor.wakes_from_interrupts(&calls[0]) > 0);
}

/// Two flights at once, which end in the other order; keys that own memory.
pub(super) fn two_keys() {
    let group: AsyncGroup<String, u32> = AsyncGroup::new();
    let (hall, attic) = (Sensor::new(), Sensor::new());
    let mut executor = Executor::new();
    let hall_calls: [_; 3] = core::array::from_fn(|_| executor.spawn(group.do_call("hall", || hall.read())));
    let attic_calls: [_; 3] = core::array::from_fn(|_| executor.spawn(group.do_call("attic", || attic.read())));

    executor.run_woken();
    assert_eq!(group.in_flight(), 2);
    attic.finish_now(31);
    executor.run_woken();
    assert!(attic_calls.iter().all(|call| call.take() == Some(31)));
    assert_eq!(group.in_flight(), 1);

    hall.finish_after(1, 19);
    run_to(&mut executor, &hall_calls, &19);
    assert_eq!((hall.reads(), attic.reads()), (1, 1));
    assert_eq!(group.in_flight(), 0);
}

/// The interrupt comes while the work is being polled: the wake-up is kept, and the work is polled once more.
pub(super) fn wake_during_poll() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let interrupt = sensor.clone();
    let leader = executor.spawn(group.do_call(&1, || sensor.read_interrupted(move || interrupt.finish(5))));
    let follower = executor.spawn(group.do_call(&1, || sensor.read()));

    run_to(&mut executor, [&leader, &follower], &5);
    assert_eq!(sensor.polls(), 2);
    assert_eq!(sensor.reads(), 1);
    assert_eq!(group.in_flight(), 0);
}

/// The leader is dropped half-way: a follower goes on with the same work, from where it was.
pub(super) fn dropped_leader() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let leader = executor.spawn(group.do_call(&1, || sensor.read_sum()));
    let followers: [_; 2] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || sensor.read_sum())));

    executor.run_woken();
    sensor.finish_now(30);
    executor.run_woken();
    assert_eq!(sensor.asked(), 2);
    executor.cancel(&leader);
    assert_eq!(sensor.running(), 1);

    sensor.finish_after(2, 12);
    run_to(&mut executor, &followers, &42);
    assert_eq!(sensor.reads(), 1);
    assert_eq!(sensor.asked(), 2);
    assert_eq!(group.in_flight(), 0);
}

/// The leader is dropped after the interrupt has woken it, and before it was polled: the message does not go with it.
pub(super) fn dropped_leader_after_the_wake() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let leader = executor.spawn(group.do_call(&1, || sensor.read()));
    let followers: [_; 2] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || sensor.read())));

    executor.run_woken();
    sensor.finish_now(8);
    assert!(executor.is_woken(&leader));
    executor.cancel(&leader);

    run_to(&mut executor, &followers, &8);
    assert_eq!(sensor.reads(), 1);
    assert_eq!(group.in_flight(), 0);
}

/// The leader is polled once and then never again, as in a `select!` that has moved on: the standby goes on.
pub(super) fn parked_leader() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let leader = executor.spawn(group.call(&1).run(|| sensor.read_sum()));
    let follower = executor.spawn(group.do_call(&1, || sensor.read_sum()));

    executor.run_woken();
    executor.park(&leader);
    sensor.finish_now(40);
    executor.run_woken();
    sensor.finish_after(2, 2);
    run_to(&mut executor, [&follower], &42);
    assert_eq!(executor.polls(&leader), 1);
    assert_eq!(sensor.reads(), 1);
    assert_eq!(group.in_flight(), 0);

    // It has not missed anything.
    executor.unpark(&leader);
    executor.run();
    let outcome = leader.take().expect("the call has ended").expect("nobody abandoned the flight");
    assert_eq!((outcome.value, outcome.role, outcome.shared), (42, Role::Led, true));
}

/// Both that were woken to drive are parked. The next caller finds work that can go on, and goes on with it.
pub(super) fn parked_leader_and_standby() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let leader = executor.spawn(group.do_call(&1, || sensor.read()));
    let standby = executor.spawn(group.do_call(&1, || sensor.read()));

    executor.run_woken();
    executor.park(&leader);
    executor.park(&standby);
    sensor.finish_now(9);
    let newcomer = executor.spawn(group.do_call(&1, || sensor.read()));
    run_to(&mut executor, [&newcomer], &9);

    executor.unpark(&leader);
    executor.unpark(&standby);
    run_to(&mut executor, [&leader, &standby], &9);
    assert_eq!(sensor.reads(), 1);
    assert_eq!(group.in_flight(), 0);
}

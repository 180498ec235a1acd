//! Flights that end without a value for everybody: left by all, forgotten, abandoned.

use super::run_to;
use crate::executor::Executor;
use crate::interrupt;
use crate::sensor::Sensor;
use alloc::sync::Arc;
use oneflight::{AsyncGroup, CallError, OnAbandon, Role};

/// The last caller leaves: its work is dropped there and then, and the next call starts afresh.
pub(super) fn last_caller_leaves() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let calls: [_; 2] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || sensor.read())));

    executor.run_woken();
    assert_eq!(sensor.running(), 1);
    for call in &calls {
        executor.cancel(call);
    }
    assert_eq!(sensor.running(), 0);
    assert_eq!(group.in_flight(), 0);
    // The interrupt comes too late. It wakes a flight of which only this waker is left.
    sensor.finish_now(1);

    let next = executor.spawn(group.do_call(&1, || sensor.read()));
    executor.run_woken();
    assert_eq!(sensor.reads(), 2);
    sensor.finish_after(1, 2);
    run_to(&mut executor, [&next], &2);
    assert_eq!(group.in_flight(), 0);
}

/// With `detach`, the work goes on in a task of the spawner's, which runs in an interrupt here; a newcomer still joins.
pub(super) fn detached_work_goes_on() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::builder().spawner(|work| drop(interrupt::spawn(work))).build();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let last = executor.spawn(group.call(&1).detach().run(|| sensor.read()));

    executor.run_woken();
    executor.cancel(&last);
    assert_eq!((sensor.running(), group.in_flight(), interrupt::tasks()), (1, 1, 1));
    let newcomer = executor.spawn(group.do_call(&1, || sensor.read()));
    executor.run_woken();

    sensor.finish_now(6);
    assert_eq!((group.in_flight(), interrupt::tasks()), (0, 0));
    run_to(&mut executor, [&newcomer], &6);
    assert_eq!(sensor.reads(), 1);
    assert_eq!(sensor.polls_in_interrupts(), sensor.polls() - 1);
}

/// A forgotten flight serves those inside, and nobody else: who comes later does not get what was read before.
pub(super) fn forget_in_flight() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let (before, after) = (Sensor::new(), Sensor::new());
    let mut executor = Executor::new();
    let old: [_; 2] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || before.read())));

    executor.run_woken();
    assert!(group.forget(&1));
    assert!(!group.forget(&1));
    let new: [_; 2] = core::array::from_fn(|_| executor.spawn(group.do_call(&1, || after.read())));
    executor.run_woken();
    assert_eq!(group.in_flight(), 2);

    // The old flight ends, and takes its own entry with it, not the new one's.
    before.finish_now(1);
    executor.run_woken();
    assert_eq!(group.in_flight(), 1);
    assert_eq!(group.waiters(&1), 1);
    assert!(old.iter().all(|call| call.take() == Some(1)));

    after.finish_after(1, 2);
    run_to(&mut executor, &new, &2);
    assert_eq!((before.reads(), after.reads()), (1, 1));
    assert_eq!(group.in_flight(), 0);
}

/// A follower that asked not to take over is told when the lead is abandoned.
pub(super) fn abandoned_follower_fails() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let lead = group.try_lead(&1).expect("no flight is on");
    let mut executor = Executor::new();
    let call = executor.spawn(group.call(&1).on_abandon(OnAbandon::Fail).run(|| sensor.read()));

    executor.run_woken();
    assert_eq!(group.waiters(&1), 1);
    drop(lead);
    run_to(&mut executor, [&call], &Err(CallError::Abandoned));
    assert_eq!(sensor.reads(), 0);
    assert_eq!(group.in_flight(), 0);
}

/// A value that is not to be shared stays with the caller whose work it was, and a follower takes over with its own.
pub(super) fn error_is_not_shared() {
    type Sampled = Result<u32, Arc<str>>;
    async fn broken(read: impl Future<Output = u32>) -> Sampled {
        Err(if read.await > 99 { "too hot" } else { "broken" }.into())
    }
    let group: AsyncGroup<u32, Sampled> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let leader = executor.spawn(group.call(&1).share_ok().run(|| broken(sensor.read())));
    let follower = executor.spawn(group.call(&1).run(|| {
        let read = sensor.read();
        async { Ok(read.await) }
    }));

    executor.run_woken();
    sensor.finish_now(100);
    executor.run_woken();
    let own = leader.take().expect("the call has ended").expect("its own value is no failure of the call");
    assert_eq!((own.value, own.role, own.shared), (Err("too hot".into()), Role::Led, false));

    sensor.finish_after(1, 50);
    executor.run();
    let second = follower.take().expect("the call has ended").expect("it took over");
    assert_eq!((second.value, second.role), (Ok(50), Role::TookOver));
    assert_eq!(sensor.reads(), 2);
    assert_eq!(group.in_flight(), 0);
}

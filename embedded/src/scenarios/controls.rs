//! What must make the program fail, or its success would prove nothing.

use crate::executor::Executor;
use crate::sensor::Sensor;
use oneflight::AsyncGroup;

/// Expects more executions than there are.
#[cfg(feature = "fail")]
pub(super) fn fail() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    let calls = [(); 2].map(|()| executor.spawn(group.do_call(&1, || sensor.read())));
    executor.run_woken();
    sensor.finish_after(2, 7);
    super::run_to(&mut executor, &calls, &7);
    assert_eq!(sensor.reads(), 2, "a lie");
}

/// Waits for a sample that never comes.
#[cfg(feature = "hang")]
pub(super) fn hang() {
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let sensor = Sensor::new();
    let mut executor = Executor::new();
    executor.spawn(group.do_call(&1, || sensor.read()));
    executor.run();
}

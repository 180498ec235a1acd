//! What is tried out. Each scenario is a function that panics if something is not as it must be.

#[cfg(any(feature = "fail", feature = "hang"))]
mod controls;
mod driving;
mod inline;
mod interrupts;
mod leaving;
mod memory;

use crate::executor::{Executor, Handle};
use core::fmt;

/// Every scenario, in the order in which they run.
#[cfg(not(any(feature = "fail", feature = "hang")))]
pub(crate) const SCENARIOS: &[(&str, fn())] = &[
    ("one_execution", driving::one_execution),
    ("two_keys", driving::two_keys),
    ("wake_during_poll", driving::wake_during_poll),
    ("dropped_leader", driving::dropped_leader),
    ("dropped_leader_after_the_wake", driving::dropped_leader_after_the_wake),
    ("parked_leader", driving::parked_leader),
    ("parked_leader_and_standby", driving::parked_leader_and_standby),
    ("last_caller_leaves", leaving::last_caller_leaves),
    ("detached_work_goes_on", leaving::detached_work_goes_on),
    ("forget_in_flight", leaving::forget_in_flight),
    ("abandoned_follower_fails", leaving::abandoned_follower_fails),
    ("error_is_not_shared", leaving::error_is_not_shared),
    ("inline_borrows", inline::inline_borrows),
    ("inline_leader_dropped", inline::inline_leader_dropped),
    ("lead_guard", inline::lead_guard),
    ("dropped_guard", inline::dropped_guard),
    ("guard_in_interrupt", interrupts::guard_in_interrupt),
    ("dropped_guard_in_interrupt", interrupts::dropped_guard_in_interrupt),
    ("joined_before_there_is_work", interrupts::joined_before_there_is_work),
    ("joined_in_the_middle_of_a_poll", interrupts::joined_in_the_middle_of_a_poll),
    ("driven_in_interrupt", interrupts::driven_in_interrupt),
    ("handed_over_to_thread_mode", interrupts::handed_over_to_thread_mode),
    ("memory", memory::memory),
    ("storm", interrupts::storm),
];

/// One scenario that cannot pass, and no others, so that it is soon built.
#[cfg(any(feature = "fail", feature = "hang"))]
pub(crate) const SCENARIOS: &[(&str, fn())] = &[
    #[cfg(feature = "fail")]
    ("control_fail", controls::fail),
    #[cfg(feature = "hang")]
    ("control_hang", controls::hang),
];

/// Ends every task, and checks that each of `tasks` ended with `value`.
fn run_to<'h, T>(executor: &mut Executor<'_>, tasks: impl IntoIterator<Item = &'h Handle<T>>, value: &T)
where
    T: PartialEq + fmt::Debug + 'h,
{
    executor.run();
    for task in tasks {
        assert_eq!(task.take().as_ref(), Some(value));
    }
}

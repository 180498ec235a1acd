//! What the tests have in common.

// Those of the library's own suite.
#[path = "../../../tests/support/gate.rs"]
pub(crate) mod gate;
#[path = "../../../tests/support/in_time.rs"]
pub(crate) mod in_time;
#[path = "../../../tests/support/limits.rs"]
pub(crate) mod limits;
pub(crate) mod model;
pub(crate) mod run;
pub(crate) mod stores;
pub(crate) mod task_ways;
pub(crate) mod thread_way;
pub(crate) mod way;

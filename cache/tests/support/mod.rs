//! What the tests have in common.

pub(crate) mod gate;
pub(crate) mod limits;
pub(crate) mod run;
pub(crate) mod stores;
pub(crate) mod task_ways;
pub(crate) mod thread_way;
pub(crate) mod way;

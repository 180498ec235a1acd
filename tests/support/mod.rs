//! What the tests have in common.

pub(crate) mod acting;
pub(crate) mod callers;
pub(crate) mod executors;
pub(crate) mod gate;
pub(crate) mod in_time;
pub(crate) mod limits;
pub(crate) mod sync_ways;
pub(crate) mod task_ways;
pub(crate) mod things;
pub(crate) mod way;
pub(crate) mod work;

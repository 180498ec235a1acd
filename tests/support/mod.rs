//! What the tests have in common.

pub(crate) mod callers;
pub(crate) mod gate;
pub(crate) mod limits;
pub(crate) mod sync_ways;
pub(crate) mod things;
pub(crate) mod way;

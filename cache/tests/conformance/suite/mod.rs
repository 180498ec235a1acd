//! The cases, by what is asked of the store.

pub(crate) mod acquire;
pub(crate) mod faults;
pub(crate) mod publish;
pub(crate) mod pushes;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod values;
pub(crate) mod writes;

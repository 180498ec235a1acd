//! Values on a Redis or Valkey server, and leases across all the processes that share it.

mod error;
mod link;
mod push;

pub use error::Error;

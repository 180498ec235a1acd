//! Values on a Redis or Valkey server, and leases across all the processes that share it.

mod announce;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod any_link;
pub mod blocking;
mod builder;
mod codec;
mod error;
mod generation;
mod header;
mod key;
mod link;
mod name;
mod push;
mod reply;
mod script;
mod server;
mod standalone;
mod steps;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod store;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod task_lease;
mod thread_lease;
mod values;

pub use builder::Builder;
pub use codec::{Bytes, Codec};
pub use error::Error;
pub use key::CacheKey;

#[cfg(feature = "serde")]
pub use codec::Serde;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
pub use {
    store::RedisStore,
    task_lease::{HeldLease, RedisLease},
};

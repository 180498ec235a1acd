//! A read-through cache that never stampedes.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod blocking;
mod builder;
mod cache;
mod call;
mod config;
mod entry;
mod error;
pub mod fill;
mod gate;
mod helpers;
mod inner;
mod loads;
mod many;
mod memory;
#[cfg(feature = "metrics")]
mod observe;
mod primitive;
mod stats;
mod store;
#[cfg(feature = "test-util")]
pub mod test_util;
mod time;

pub use builder::Builder;
pub use cache::Cache;
pub use call::Call;
pub use entry::{Entry, Fetched, Source};
pub use error::{BoxError, Error, StoreError};
pub use memory::{Memory, Pushed};
pub use oneflight::refresh::Policy;
pub use stats::{LoadTimes, Stats};
pub use store::{Blocking, BlockingStore, Store};
pub use time::{BoxFuture, Clock, Time, Timer};

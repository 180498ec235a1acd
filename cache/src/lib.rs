//! A read-through cache that never stampedes: the first caller that misses a key loads it, everyone else waits for that load
//! and shares its value; and before a value expires, one read refreshes it while the others go on with the old one.
//!
//! [`Cache`] is for tasks, on any executor; [`blocking::Cache`] is the same for threads. One [`Builder`] makes both, and has
//! the table of all settings and their defaults. Values are kept in [`Memory`], or in a [`Store`] or [`BlockingStore`] of your
//! own.
//!
//! ```
//! use oneflight_cache::{Cache, Source};
//! use std::time::Duration;
//!
//! # smol::block_on(async {
//! let users: Cache<u64, String> = Cache::builder()
//!     .ttl(Duration::from_secs(30))
//!     .stale_if_error(Duration::from_secs(300))
//!     .spawner(|refresh| smol::spawn(refresh).detach())
//!     .build();
//! let user = users.get_or_load(&7, || async { Ok("Ada".to_owned()) }).await?;
//! assert_eq!((user.as_str(), user.source), ("Ada", Source::Loaded));
//! # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
//! # }).unwrap();
//! ```
//!
//! # What a read does
//!
//! | in the store is | the call |
//! |---|---|
//! | a fresh value, far from its end | returns it: [`Source::Hit`] |
//! | a fresh value, and the policy draws this read | has it refreshed, and returns it: [`Source::Early`] |
//! | a value within `stale_while_revalidate` of its end | has it refreshed unless a refresh is on, and returns it, or the new one if it did that itself: [`Source::Stale`] |
//! | a value within `stale_if_error` of its end | loads or joins; if that fails, returns the old one: [`Source::Stale`] |
//! | nothing | loads, [`Source::Loaded`], or joins the load that is on, [`Source::Joined`] |
//!
//! Refreshes go on beside the call: on the [`spawner`](Builder::spawner) for tasks, on
//! [`helper_threads`](Builder::helper_threads) for threads. Without these, the call that drew one does it before it returns,
//! while all others get the old value at once.
//!
//! # Several keys
//!
//! [`get_or_load_many`](Cache::get_or_load_many) loads those together that one caller asks for, a [`Collector`] those that many
//! callers ask for one by one. Either way each key has a flight of its own, which others join.
//!
//! # Writes win
//!
//! What a `put` or an `invalidate` meets, a load, a refresh or a batch that is on, is not stored after it, and is joined by
//! nobody who calls after the write has returned. This holds within the process.
//!
//! # Features
//!
//! | feature | what it does |
//! |---|---|
//! | `redis` | `redis::blocking::RedisStore` and leases, for threads |
//! | `redis-smol`, `redis-tokio` | `redis::RedisStore` for tasks: on any executor, or on tokio's |
//! | `redis-cluster` | a cluster, for tasks; with one of these two |
//! | `serde` | values that serde can serialise, in postcard's format: `redis::Serde` |
//! | `metrics` | counters and a histogram of load times through the `metrics` crate: see `Builder::name` |
//! | `tracing` | events of loads and failures, without keys or values, with `Builder::name` as `cache` |
//! | `test-util` | for your tests: a clock moved by hand, a store that fails on demand, waiting for callers that wait |
//! | `loom` | under `--cfg loom`, the cache on loom's locks; otherwise nothing |
//!
//! # Before you use it
//!
//! The key must hold everything that the loader reads (tenant, user, locale), or one caller's data reaches another. Values are
//! cloned for each caller: put large ones in an `Arc`. What a loader may use up, such as a connection, is bounded by
//! [`max_loads`](Builder::max_loads).

#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod blocking;
mod breaker;
mod builder;
mod cache;
mod call;
mod call_many;
mod collector;
mod config;
mod entry;
mod error;
#[cfg(test)]
mod exploration;
pub mod fill;
mod gate;
mod helpers;
mod inner;
mod keeper;
pub mod lease;
mod loads;
mod many;
mod memory;
mod nonce;
#[cfg(feature = "metrics")]
mod observe;
mod plan;
mod primitive;
#[cfg(feature = "redis")]
pub mod redis;
mod room;
mod sharing;
mod stats;
mod store;
#[cfg(any(test, feature = "test-util"))]
pub mod test_util;
mod tier;
mod time;
mod time_limit;
mod unwind;

pub use builder::Builder;
pub use cache::Cache;
pub use call::Call;
pub use call_many::CallMany;
pub use collector::{BatchOutput, Collector, CollectorBuilder};
pub use entry::{Entry, Fetched, Source};
pub use error::{BoxError, Error, StoreError};
pub use fill::Fallback;
pub use memory::{Memory, Pushed};
pub use oneflight::refresh::Policy;
pub use stats::{LoadTimes, Stats};
pub use store::{Blocking, BlockingStore, FoundMany, Store};
pub use tier::Tiered;
pub use time::{BoxFuture, Clock, Time, Timer};

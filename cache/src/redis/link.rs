//! The way to the server.

#[cfg(all(feature = "redis-cluster", not(any(feature = "redis-smol", feature = "redis-tokio"))))]
compile_error!(
    "the feature `redis-cluster` of oneflight-cache needs `redis-smol` (any executor) or `redis-tokio` as well"
);

#[cfg(all(feature = "redis-cluster", any(feature = "redis-smol", feature = "redis-tokio")))]
mod asked;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod attempts;
mod blocking;
#[cfg(all(feature = "redis-cluster", any(feature = "redis-smol", feature = "redis-tokio")))]
mod cluster;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod health;
mod limits;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod listener;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod runtime;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod single;
mod subscriber;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod task;

pub(crate) use blocking::BlockingLink;
#[cfg(all(feature = "redis-cluster", any(feature = "redis-smol", feature = "redis-tokio")))]
pub(crate) use cluster::ClusterLink;
pub(crate) use limits::Limits;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
pub(crate) use single::TaskLink;

use super::error::Error;
use super::push::Pushes;
use redis::{Pipeline, Value};
use std::future::Future;
use std::sync::Arc;

/// A way to the server: one connection that many share, or several that are used by turns. Both kinds of store are made on it.
pub(crate) trait Link: Send + Sync + 'static {
    /// Sends the commands together, and returns a reply to each. What the server says of a single one is in its place, as a
    /// [`Value::ServerError`]. No command is sent twice. It may be dropped at any time; nobody else gets its replies.
    ///
    /// For threads it is ready at once.
    fn send(&self, commands: Pipeline) -> impl Future<Output = Result<Vec<Value>, Error>> + Send;

    /// Sends the commands before long, and waits for nothing: what comes of them does not matter.
    fn hint(&self, commands: Pipeline);

    /// What is pushed over it.
    fn pushes(&self) -> &Arc<Pushes>;

    /// Whether keys are spread over several servers: then all keys of one call of [`send`](Self::send) are in one slot, and
    /// what is to be pushed is published with `SPUBLISH`.
    fn is_cluster(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;

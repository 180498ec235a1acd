//! The ways of tasks to one server or to a cluster, as one type.

use super::error::Error;
use super::link::{Link, TaskLink};
use super::push::Pushes;
use crate::time::BoxFuture;
use redis::{Pipeline, Value};
use std::sync::Arc;

#[cfg(feature = "redis-cluster")]
use super::link::ClusterLink;

#[derive(Debug)]
pub(crate) enum AnyLink {
    Single(TaskLink),
    #[cfg(feature = "redis-cluster")]
    Cluster(ClusterLink),
}

impl Link for AnyLink {
    async fn send(&self, commands: Pipeline) -> Result<Vec<Value>, Error> {
        match self {
            // In boxes: the client's futures take up tens of kilobytes, and callers have them on their stacks.
            Self::Single(link) => Box::pin(link.send(commands)).await,
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(link) => Box::pin(link.send(commands)).await,
        }
    }

    fn spawn(&self, work: BoxFuture) {
        match self {
            Self::Single(link) => link.spawn(work),
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(link) => link.spawn(work),
        }
    }

    fn hint(&self, commands: Pipeline) {
        match self {
            Self::Single(link) => link.hint(commands),
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(link) => link.hint(commands),
        }
    }

    fn pushes(&self) -> &Arc<Pushes> {
        match self {
            Self::Single(link) => link.pushes(),
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(link) => link.pushes(),
        }
    }

    fn is_cluster(&self) -> bool {
        match self {
            Self::Single(_) => false,
            #[cfg(feature = "redis-cluster")]
            Self::Cluster(_) => true,
        }
    }
}

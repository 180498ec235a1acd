//! The ways of tasks to one server or to a cluster, as one type.

use super::error::Error;
use super::link::{Link, TaskLink};
use super::name::Name;
use super::push::Pushes;
use super::steps::Steps;
use crate::fill::Token;
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

impl Steps<AnyLink> {
    /// Gives a lease up beside whatever else goes on, and waits for nothing.
    pub(crate) fn abandon(self: &Arc<Self>, mut name: Name, token: Token) {
        let steps = Arc::clone(self);
        let release = Box::pin(async move { _ = steps.release(&mut name, token).await });
        match self.link() {
            AnyLink::Single(link) => link.spawn(release),
            #[cfg(feature = "redis-cluster")]
            AnyLink::Cluster(link) => link.spawn(release),
        }
    }
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

//! The way to a cluster, for tasks.

use super::Limits;
use super::runtime::Runtime;
use super::task::{Sender, Tasks, Way};
use crate::redis::error::Error;
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{ConnectionInfo, IntoConnectionInfo, Pipeline, ProtocolVersion, RedisResult, Value};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// Connections to the servers of a cluster that all tasks share.
pub(crate) type ClusterLink = Tasks<Cluster>;

/// Some servers of a cluster: they know the others.
pub(crate) struct Cluster {
    nodes: Vec<ConnectionInfo>,
}

impl Tasks<Cluster> {
    /// Speaks RESP3, and needs a server that knows sharded channels: Redis 7, or Valkey.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if an address makes no sense or there is none; and outside of tokio, if there is only the feature
    /// `redis-tokio`.
    pub(crate) fn open<I: IntoConnectionInfo>(
        nodes: impl IntoIterator<Item = I>,
        limits: Limits,
        own: u64,
    ) -> Result<Self, Error> {
        let nodes = nodes.into_iter().map(IntoConnectionInfo::into_connection_info).collect::<RedisResult<Vec<_>>>()?;
        let way = Cluster { nodes };
        way.builder(limits).build()?;
        Ok(Self::with(way, limits, Runtime::current()?, own))
    }
}

impl Cluster {
    fn builder(&self, limits: Limits) -> ClusterClientBuilder {
        ClusterClientBuilder::new(self.nodes.clone())
            .use_protocol(ProtocolVersion::RESP3)
            .connection_timeout(limits.connect)
            .response_timeout(limits.response)
            // Of all requests, also while the connections are being made anew.
            .overall_response_timeout(Some(limits.response))
            // The client would send a command again when its reply is lost.
            .retries(0)
    }
}

/// How often commands that a server has not carried out, as their keys are elsewhere, are sent to where they are.
const REDIRECTS: usize = 3;

impl Way for Cluster {
    type Connection = ClusterConnection;
    const REPAIRS_ITSELF: bool = true;
    const IS_CLUSTER: bool = true;

    fn connect(
        &self,
        limits: Limits,
        sender: Sender,
    ) -> impl Future<Output = RedisResult<ClusterConnection>> + Send + 'static {
        let client = self.builder(limits).push_sender(sender).build();
        async move { client?.get_async_connection().await }
    }

    async fn send(connection: &mut ClusterConnection, commands: Pipeline) -> RedisResult<Vec<Value>> {
        let mut redirects = 0;
        loop {
            let replies =
                redis::aio::ConnectionLike::req_packed_commands(connection, &commands, 0, commands.len()).await;
            match replies {
                Err(error) if is_elsewhere(&error, &commands) && redirects < REDIRECTS => redirects += 1,
                replies => return replies,
            }
        }
    }

    /// One by one, as they are in different slots.
    async fn subscribe(connection: &mut ClusterConnection, channels: &[Arc<str>]) -> RedisResult<()> {
        for channel in channels {
            connection.ssubscribe(&**channel).await?;
        }
        Ok(())
    }
}

/// Whether the commands were not carried out because the slot is another server's by now, which the client has found out since.
///
/// Of several commands some may have been carried out before the slot moved; so only what reads is sent again then.
fn is_elsewhere(error: &redis::RedisError, commands: &Pipeline) -> bool {
    let is_moved = error.kind() == redis::ErrorKind::Server(redis::ServerErrorKind::Moved);
    let reads = |command: &redis::Cmd| matches!(command.args_iter().next(), Some(redis::Arg::Simple(b"GET" | b"PTTL")));
    is_moved && (commands.len() == 1 || commands.cmd_iter().all(reads))
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.nodes.iter().map(ConnectionInfo::addr)).finish()
    }
}

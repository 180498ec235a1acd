//! The way to a cluster, for tasks.

use super::Limits;
use super::asked::Asked;
use super::runtime::Runtime;
use super::task::{Failure, Sender, Tasks, Way};
use crate::many::together::all;
use crate::redis::error::Error;
use futures_timer::Delay;
use redis::aio::ConnectionLike;
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{Arg, Cmd, ConnectionInfo, ErrorKind, IntoConnectionInfo, Pipeline, ProtocolVersion, RedisError};
use redis::{RedisResult, ServerErrorKind, Value};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections to the servers of a cluster that all tasks share, and one more to each for what is pushed.
pub(crate) type ClusterLink = Tasks<Cluster>;

/// Some servers of a cluster: they know the others.
pub(crate) struct Cluster {
    nodes: Vec<ConnectionInfo>,
    runtime: Runtime,
}

impl Tasks<Cluster> {
    /// Speaks RESP3, and needs a server that knows sharded channels: Redis 7, or Valkey.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] if an address makes no sense or there is none; and outside of tokio, if there is only the feature
    /// `redis-tokio`.
    pub(crate) fn open<I: IntoConnectionInfo>(
        nodes: impl IntoIterator<Item = I>,
        limits: Limits,
        own: u64,
    ) -> Result<Self, Error> {
        let nodes = nodes.into_iter().map(IntoConnectionInfo::into_connection_info).collect::<RedisResult<Vec<_>>>()?;
        let runtime = Runtime::current()?;
        let way = Cluster { nodes, runtime: runtime.clone() };
        way.builder(limits).build()?;
        Ok(Self::with(way, limits, runtime, own))
    }
}

impl Cluster {
    fn builder(&self, limits: Limits) -> ClusterClientBuilder {
        let tcp = self.nodes.first().map(|node| node.tcp_settings().clone()).unwrap_or_default();
        ClusterClientBuilder::new(self.nodes.clone())
            .tcp_settings(limits.tcp(tcp))
            .use_protocol(ProtocolVersion::RESP3)
            .connection_timeout(limits.connect_to_each())
            .response_timeout(limits.response)
            // Of all requests, also while the connections are being made anew.
            .overall_response_timeout(Some(limits.response))
            // The client would send a command again when its reply is lost.
            .retries(0)
    }
}

/// How often commands that a server has not carried out, as their keys are elsewhere, are sent to where they are.
const REDIRECTS: usize = 3;

/// The client's connections, and those to servers that it does not know.
#[derive(Clone)]
pub(crate) struct Nodes {
    client: ClusterConnection,
    asked: Arc<Asked>,
}

impl Way for Cluster {
    type Connection = Nodes;
    type Listening = ClusterConnection;
    const IS_CLUSTER: bool = true;

    /// Without a sender the client subscribes to nothing by itself, and repairs the connections all the same.
    fn connect(&self, limits: Limits, _sender: Sender) -> impl Future<Output = RedisResult<Nodes>> + Send + 'static {
        let client = self.builder(limits).build();
        let asked = Arc::new(Asked::new(self.nodes.first(), limits, self.runtime.clone()));
        async move { Ok(Nodes { client: client?.get_async_connection().await?, asked }) }
    }

    fn listen(
        &self,
        limits: Limits,
        sender: Sender,
    ) -> impl Future<Output = RedisResult<ClusterConnection>> + Send + 'static {
        let client = self.builder(limits).push_sender(sender).build();
        async move { client?.get_async_connection().await }
    }

    /// What a server did not carry out because the keys are elsewhere is sent again. The client does that too, but then it
    /// also sends again what may have been carried out.
    ///
    /// While a slot moves, a server says so of single keys. A script is refused then if some of its keys are on either side, and by
    /// the other side if any of them is not there yet; so it is asked for again for as long as a reply may take.
    async fn send(nodes: &mut Nodes, commands: Pipeline) -> Result<Vec<Value>, Failure> {
        let (begun, is_repeatable) = (Instant::now(), is_repeatable(&commands));
        let mut redirects = 0;
        let mut asked: Option<String> = None;
        loop {
            let error = match asked.take() {
                None => match nodes.client.req_packed_commands(&commands, 0, commands.len()).await {
                    Ok(replies) => return Ok(replies),
                    Err(error) => error,
                },
                Some(address) => {
                    // Apart, as it is large and rare.
                    let replies = Box::pin(nodes.asked.send(&address, &commands)).await?;
                    // As the client has it.
                    match replies.iter().find_map(elsewhere) {
                        Some(error) => error,
                        None => return Ok(replies),
                    }
                }
            };
            match error.kind() {
                ErrorKind::Server(ServerErrorKind::Moved) if is_repeatable && redirects < REDIRECTS => redirects += 1,
                ErrorKind::Server(ServerErrorKind::Ask) if is_repeatable && redirects < REDIRECTS => {
                    redirects += 1;
                    asked = error.redirect_node().map(|(address, _)| address.to_owned());
                }
                ErrorKind::Server(ServerErrorKind::TryAgain) if is_repeatable => {
                    let pause = Duration::from_millis(fastrand::u64(10..=30));
                    if begun.elapsed().saturating_add(pause) >= nodes.asked.limits().response {
                        return Err(error.into());
                    }
                    Delay::new(pause).await;
                    redirects = 0;
                }
                _ => return Err(error.into()),
            }
        }
    }

    /// Each by itself, as they are in different slots, and all at the same time: one server that hangs holds up no other.
    async fn subscribe(connection: &ClusterConnection, channels: &[Arc<str>]) -> RedisResult<()> {
        let answers = all(channels.iter().map(|channel| {
            let mut connection = connection.clone();
            async move { connection.ssubscribe(&**channel).await }
        }));
        answers.await.into_iter().collect()
    }

    /// A key of that name would be where the channel is, and is asked for over the same connection. Whether there is one does not
    /// matter, nor whether this user may know.
    async fn is_there(connection: &ClusterConnection, channel: &str) -> bool {
        let mut connection = connection.clone();
        let command = redis::cmd("PTTL").arg(channel).to_owned();
        match connection.req_packed_command(&command).await {
            Ok(_) => true,
            // Keys are about to move, but the channel has not.
            Err(error) => matches!(error.kind(), ErrorKind::Server(ServerErrorKind::Ask | ServerErrorKind::TryAgain)),
        }
    }

    /// It repairs itself.
    async fn ping(_connection: &mut ClusterConnection) -> RedisResult<()> {
        Ok(())
    }
}

/// Of several commands some may have been carried out before the slot moved; so only what reads may be sent again then.
fn is_repeatable(commands: &Pipeline) -> bool {
    let reads = |command: &Cmd| matches!(command.args_iter().next(), Some(Arg::Simple(b"GET" | b"PTTL")));
    commands.len() == 1 || commands.cmd_iter().all(reads)
}

/// What a server says that has not carried it out because the key is elsewhere, or a part of it.
fn elsewhere(reply: &Value) -> Option<RedisError> {
    let Value::ServerError(error) = reply else { return None };
    let kind = error.kind()?;
    let is_elsewhere = matches!(kind, ServerErrorKind::Moved | ServerErrorKind::Ask | ServerErrorKind::TryAgain);
    is_elsewhere.then(|| error.clone().into())
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.nodes.iter().map(ConnectionInfo::addr)).finish()
    }
}

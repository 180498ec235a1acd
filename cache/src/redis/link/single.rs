//! The way to one server, for tasks.

use super::Limits;
use super::runtime::Runtime;
use super::task::{Failure, Sender, Tasks, Way};
use crate::redis::error::Error;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, ProtocolVersion, RedisResult, Value};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A connection to one server that all tasks share, and one for what is pushed.
pub(crate) type TaskLink = Tasks<Single>;

/// One server.
pub(crate) struct Single {
    client: Client,
}

impl Tasks<Single> {
    /// Speaks RESP3, whatever the client was made for: there what is pushed is told from replies, and that a connection broke is
    /// told at once.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] outside of tokio, if there is only the feature `redis-tokio`.
    pub(crate) fn new(client: &Client, limits: Limits, own: u64) -> Result<Self, Error> {
        Self::in_runtime(client, limits, Runtime::current()?, own)
    }

    /// As [`new`](Self::new), its connections driven by this runtime.
    pub(super) fn in_runtime(client: &Client, limits: Limits, runtime: Runtime, own: u64) -> Result<Self, Error> {
        let info = client.get_connection_info().clone();
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let tcp = limits.tcp(info.tcp_settings().clone());
        let client = Client::open(info.set_tcp_settings(tcp).set_redis_settings(settings))?;
        Ok(Self::with(Single { client }, limits, runtime, own))
    }

    /// At this address.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if the URL makes no sense.
    #[cfg(test)]
    pub(crate) fn open(url: &str, limits: Limits, own: u64) -> Result<Self, Error> {
        Self::new(&Client::open(url)?, limits, own)
    }
}

impl Way for Single {
    type Connection = MultiplexedConnection;
    type Listening = MultiplexedConnection;
    const IS_CLUSTER: bool = false;

    fn connect(
        &self,
        limits: Limits,
        sender: Sender,
    ) -> impl Future<Output = RedisResult<MultiplexedConnection>> + Send + 'static {
        let client = self.client.clone();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(limits.connect))
            .set_response_timeout(Some(limits.response))
            .set_push_sender(sender);
        async move { client.get_multiplexed_async_connection_with_config(&config).await }
    }

    fn listen(
        &self,
        limits: Limits,
        sender: Sender,
    ) -> impl Future<Output = RedisResult<MultiplexedConnection>> + Send + 'static {
        self.connect(limits, sender)
    }

    async fn send(connection: &mut MultiplexedConnection, commands: Pipeline) -> Result<Vec<Value>, Failure> {
        Ok(connection.send_packed_commands(&commands, 0, commands.len()).await?)
    }

    async fn subscribe(connection: &MultiplexedConnection, channels: &[Arc<str>]) -> RedisResult<()> {
        let channels: Vec<&str> = channels.iter().map(|channel| &**channel).collect();
        connection.clone().subscribe(channels).await
    }

    /// It is no cluster.
    async fn is_there(_connection: &MultiplexedConnection, _channel: &str) -> bool {
        true
    }

    async fn ping(connection: &mut MultiplexedConnection) -> RedisResult<()> {
        connection.send_packed_command(&redis::cmd("PING")).await.map(drop)
    }
}

impl fmt::Debug for Single {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.get_connection_info().addr().fmt(f)
    }
}

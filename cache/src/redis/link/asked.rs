//! Connections to the servers that slots move to.

use super::Limits;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ErrorKind, Pipeline, ProtocolVersion};
use redis::{RedisError, RedisResult, ServerErrorKind, Value};
use std::collections::HashMap;

/// Connections to servers that slots of a cluster move to, beside the client's own: such a server may have no slots yet. The client
/// does not know it then, and would connect to all others anew if it was to send something there.
pub(super) struct Asked {
    /// How to reach one of the servers.
    info: Option<ConnectionInfo>,
    limits: Limits,
    connections: Mutex<HashMap<String, MultiplexedConnection>>,
}

impl Asked {
    /// As one server is reached, so are the others.
    pub(super) fn new(info: Option<&ConnectionInfo>, limits: Limits) -> Self {
        let info = info.map(|info| {
            let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
            info.clone().set_redis_settings(settings).set_tcp_settings(limits.tcp(info.tcp_settings().clone()))
        });
        Self { info, limits, connections: Mutex::default() }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Sends the commands to the server at this address, which needs to be told each time that it is asked for what is not its
    /// own yet. That they belong elsewhere all the same is an error, as with the client.
    pub(super) async fn send(&self, address: &str, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        let mut connection = self.connection(address).await?;
        let mut asking = Pipeline::new();
        for command in commands.cmd_iter() {
            asking.cmd("ASKING").add_command(command.clone());
        }
        let sent = connection.send_packed_commands(&asking, 0, asking.len()).await;
        let replies = sent.inspect_err(|_| drop(self.connections.lock().remove(address)))?;
        let replies: Vec<Value> = replies.into_iter().skip(1).step_by(2).collect();
        match replies.iter().find_map(elsewhere) {
            Some(error) => Err(error),
            None => Ok(replies),
        }
    }

    async fn connection(&self, address: &str) -> RedisResult<MultiplexedConnection> {
        let there = self.connections.lock().get(address).cloned();
        if let Some(connection) = there {
            return Ok(connection);
        }
        let info = self.at(address).ok_or((ErrorKind::Client, "a slot moves to an address that makes no sense"))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.limits.connect))
            .set_response_timeout(Some(self.limits.response));
        let connection = Client::open(info)?.get_multiplexed_async_connection_with_config(&config).await?;
        let before = self.connections.lock().insert(address.to_owned(), connection.clone());
        drop(before);
        Ok(connection)
    }

    fn at(&self, address: &str) -> Option<ConnectionInfo> {
        let info = self.info.as_ref()?;
        let (host, port) = address.rsplit_once(':')?;
        // So says a server that does not know.
        if matches!(host, "" | "?") {
            return None;
        }
        let (host, port) = (host.to_owned(), port.parse().ok()?);
        let address = match info.addr() {
            ConnectionAddr::Tcp(..) => ConnectionAddr::Tcp(host, port),
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
            }
            _ => return None,
        };
        Some(info.clone().set_addr(address))
    }
}

fn elsewhere(reply: &Value) -> Option<RedisError> {
    let Value::ServerError(error) = reply else { return None };
    let kind = error.kind()?;
    let is_elsewhere = matches!(kind, ServerErrorKind::Moved | ServerErrorKind::Ask | ServerErrorKind::TryAgain);
    is_elsewhere.then(|| error.clone().into())
}

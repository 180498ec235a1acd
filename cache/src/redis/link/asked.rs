//! Connections to the servers that slots move to.

use super::runtime::Runtime;
use super::{Limits, Link, TaskLink};
use crate::redis::error::Error;
use parking_lot::Mutex;
use redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, Pipeline, RedisError, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Connections to servers that slots of a cluster move to, beside the client's own: such a server may have no slots yet. The client
/// does not know it then, and would connect to all others anew if it was to send something there.
pub(super) struct Asked {
    /// How to reach one of the servers.
    info: Option<ConnectionInfo>,
    limits: Limits,
    runtime: Runtime,
    /// By their addresses. All who are sent to one at the same time share its connection, also while it is made.
    links: Mutex<HashMap<String, Arc<TaskLink>>>,
}

impl Asked {
    /// As one server is reached, so are the others.
    pub(super) fn new(info: Option<&ConnectionInfo>, limits: Limits, runtime: Runtime) -> Self {
        Self { info: info.cloned(), limits, runtime, links: Mutex::default() }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Sends the commands to the server at this address, which needs to be told each time that it is asked for what is not its
    /// own yet.
    pub(super) async fn send(&self, address: &str, commands: &Pipeline) -> Result<Vec<Value>, Error> {
        let link = self.link(address)?;
        let mut asking = Pipeline::new();
        for command in commands.cmd_iter() {
            asking.cmd("ASKING").add_command(command.clone());
        }
        let replies = link.send(asking).await?;
        Ok(replies.into_iter().skip(1).step_by(2).collect())
    }

    fn link(&self, address: &str) -> Result<Arc<TaskLink>, Error> {
        let mut links = self.links.lock();
        if let Some(link) = links.get(address) {
            return Ok(Arc::clone(link));
        }
        let no_sense = || RedisError::from((ErrorKind::Client, "a slot moves to an address that makes no sense"));
        let client = Client::open(self.at(address).ok_or_else(no_sense)?)?;
        // Nobody listens over it, so its number does not matter.
        let link = Arc::new(TaskLink::in_runtime(&client, self.limits, self.runtime.clone(), 0)?);
        links.insert(address.to_owned(), Arc::clone(&link));
        Ok(link)
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

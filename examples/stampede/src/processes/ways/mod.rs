//! How a caller gets the value that all processes share. `none.rs` and `naive.rs` are what one finds in most services;
//! `ours.rs` is the same with `oneflight-cache`.

mod naive;
mod none;
mod ours;

use alloc::sync::Arc;
use core::time::Duration;

use oneflight_cache::BoxError;

use super::loader::Loader;
use super::options::Ways;
use super::protocol::{Setup, Terms};

/// The name of the value that all want.
const KEY: &str = "page";

/// How long the plain client waits for the server, and ours as well: much longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A way for the callers of one process.
pub(crate) trait Way: Send + Sync {
    /// Makes a caller, which is connected.
    fn caller(&self) -> Result<Box<dyn Caller>, BoxError>;

    /// The value that is stored.
    fn stored(&self) -> Result<Option<String>, BoxError>;
}

/// A thread's own way to the value.
pub(crate) trait Caller {
    /// The value, from the cache or loaded.
    fn get(&mut self) -> Result<String, BoxError>;
}

/// Makes the way that the setup asks for.
pub(crate) fn make(setup: &Setup, loader: Arc<Loader>) -> Result<Box<dyn Way>, BoxError> {
    Ok(match setup.way {
        Ways::None => Box::new(none::Unprotected::new(Plain::new(setup)?, loader)),
        Ways::Naive => Box::new(naive::Locked::new(Plain::new(setup)?, loader)),
        Ways::Ours | Ways::All => ours::make(setup, loader)?,
    })
}

/// What the plain client has to know.
#[derive(Clone)]
struct Plain {
    client: redis::Client,
    value: String,
    lock: String,
    terms: Terms,
}

impl Plain {
    fn new(setup: &Setup) -> Result<Self, BoxError> {
        let Setup { url, prefix, terms, .. } = setup;
        let client = redis::Client::open(url.as_str())?;
        Ok(Self { client, value: format!("{prefix}:{KEY}"), lock: format!("{prefix}:{KEY}:lock"), terms: *terms })
    }

    fn connect(&self) -> Result<redis::Connection, BoxError> {
        let connection = self.client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(connection)
    }

    fn read(&self, connection: &mut redis::Connection) -> Result<Option<String>, BoxError> {
        Ok(redis::cmd("GET").arg(&self.value).query(connection)?)
    }

    fn store(&self, connection: &mut redis::Connection, value: &str) -> Result<(), BoxError> {
        let ttl = self.terms.ttl.as_millis() as u64;
        Ok(redis::cmd("SET").arg(&self.value).arg(value).arg("PX").arg(ttl).query(connection)?)
    }
}

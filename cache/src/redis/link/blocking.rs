//! For threads: a few connections that are used by turns.

use super::subscriber::Subscriber;
use super::{Limits, Link};
use crate::redis::error::Error;
use crate::redis::push::Pushes;
use crate::time::BoxFuture;
use parking_lot::Mutex;
use redis::{Client, Connection, Pipeline, Value};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A pool of connections, one for each thread that sends at the same time, and one more for what is pushed.
///
/// A connection goes back into the pool only when all replies of an exchange have been read. After any error it is dropped: so
/// no reply is ever left for the next. That includes a read that a signal has interrupted, as happens when the process is
/// stopped and goes on: whether the reply would still come is not known, so it is as if the time were up.
pub(crate) struct BlockingLink {
    pool: Arc<Pool>,
    subscriber: Arc<Subscriber>,
    pushes: Arc<Pushes>,
}

impl BlockingLink {
    /// Connects when the first command is sent, so it works with a server that is away at first.
    pub(crate) fn new(client: Client, limits: Limits, own: u64) -> Self {
        let pool = Arc::new(Pool { client, limits: limits.positive(), idle: Mutex::default() });
        let pushes = Pushes::new(own);
        let subscriber = Arc::new(Subscriber::new(Arc::clone(&pool)));
        let (asked, weak) = (Arc::clone(&subscriber), Arc::downgrade(&pushes));
        pushes.on_wanted(move || asked.wake(&weak));
        Self { pool, subscriber, pushes }
    }

    /// At this address.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the URL makes no sense.
    pub(crate) fn open(url: &str, limits: Limits, own: u64) -> Result<Self, Error> {
        Ok(Self::new(Client::open(url)?, limits, own))
    }
}

impl Link for BlockingLink {
    async fn send(&self, commands: Pipeline) -> Result<Vec<Value>, Error> {
        self.pool.exchange(&commands)
    }

    /// Does it at once: nothing here waits for another task.
    fn spawn(&self, work: BoxFuture) {
        crate::time::block_on(work);
    }

    fn pushes(&self) -> &Arc<Pushes> {
        &self.pushes
    }
}

impl Drop for BlockingLink {
    /// Does not wait for the thread of the pushes, which ends within a second or two.
    fn drop(&mut self) {
        self.subscriber.end();
    }
}

impl fmt::Debug for BlockingLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingLink")
            .field("address", self.pool.client.get_connection_info().addr())
            .field("limits", &self.pool.limits)
            .finish_non_exhaustive()
    }
}

/// The connections that nobody uses at the moment.
pub(super) struct Pool {
    pub(super) client: Client,
    pub(super) limits: Limits,
    /// The one used last is last, and used first.
    idle: Mutex<Vec<(Connection, Instant)>>,
}

/// More than these are closed when they come back.
const MOST_IDLE: usize = 32;

/// One that has been idle for longer is asked whether it is alive before it is used, as servers and routers close idle ones.
const FRESH: Duration = Duration::from_secs(10);

impl Pool {
    /// Sends the commands and reads a reply to each. It takes no longer than the limits for a connection and for each reply.
    pub(super) fn exchange(&self, commands: &Pipeline) -> Result<Vec<Value>, Error> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let mut connection = self.connection()?;
        let replies = exchange(&mut connection, &commands.get_packed_pipeline(), commands.len());
        match replies {
            Ok(replies) => {
                self.put_back(connection);
                Ok(replies)
            }
            Err(error) => {
                // The others are most likely dead too. Without this each of them would fail a command after a restart.
                drop(std::mem::take(&mut *self.idle.lock()));
                Err(error)
            }
        }
    }

    fn connection(&self) -> Result<Connection, Error> {
        let idle = self.idle.lock().pop();
        match idle {
            Some((connection, since)) if since.elapsed() < FRESH => Ok(connection),
            Some((mut connection, _)) => {
                let ping = redis::cmd("PING").get_packed_command();
                if exchange(&mut connection, &ping, 1).is_ok() {
                    return Ok(connection);
                }
                drop(std::mem::take(&mut *self.idle.lock()));
                self.connect()
            }
            None => self.connect(),
        }
    }

    fn connect(&self) -> Result<Connection, Error> {
        let connection = self.client.get_connection_with_timeout(self.limits.connect)?;
        connection.set_read_timeout(Some(self.limits.response))?;
        connection.set_write_timeout(Some(self.limits.response))?;
        Ok(connection)
    }

    fn put_back(&self, connection: Connection) {
        let surplus = {
            let mut idle = self.idle.lock();
            if idle.len() < MOST_IDLE {
                idle.push((connection, Instant::now()));
                None
            } else {
                Some(connection)
            }
        };
        drop(surplus);
    }
}

/// Not by way of the client's own pipelines: these go on reading after an error, so a server that hangs would cost the limit
/// once for each command.
fn exchange(connection: &mut Connection, bytes: &[u8], replies: usize) -> Result<Vec<Value>, Error> {
    connection.send_packed_command(bytes)?;
    let mut values = Vec::with_capacity(replies);
    while values.len() < replies {
        match connection.recv_response()? {
            Value::Push { .. } => {}
            value => values.push(value),
        }
    }
    Ok(values)
}

#[cfg(test)]
impl BlockingLink {
    /// As if the idle connections had been idle for so much longer.
    pub(super) fn age(&self, by: Duration) {
        self.pool
            .idle
            .lock()
            .iter_mut()
            .for_each(|(_, since)| *since = since.checked_sub(by).expect("not so long ago"));
    }

    /// What its thread holds on to.
    pub(super) fn thread(&self) -> std::sync::Weak<Subscriber> {
        Arc::downgrade(&self.subscriber)
    }
}

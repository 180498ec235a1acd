//! So many connections at most.

use crate::redis::error::Error;
use crate::redis::link::Limits;
use parking_lot::{Condvar, Mutex};
use redis::{Client, Connection, Pipeline, Value};
use std::time::{Duration, Instant};

/// The connections to a server. Whoever finds all of them in use waits for one.
pub(in crate::redis::link) struct Pool {
    pub(in crate::redis::link) client: Client,
    pub(in crate::redis::link) limits: Limits,
    state: Mutex<State>,
    /// A connection is free, or may be made.
    free: Condvar,
}

#[derive(Default)]
struct State {
    /// The one used last is last, and used first.
    idle: Vec<(Connection, Instant)>,
    in_use: usize,
}

/// One that has been idle for longer is asked whether it is alive before it is used, as servers and routers close idle ones.
const FRESH: Duration = Duration::from_secs(10);

/// Leave to use a connection, until it is dropped.
struct Turn<'p>(&'p Pool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().in_use -= 1;
        self.0.free.notify_one();
    }
}

impl Pool {
    pub(super) fn new(client: Client, limits: Limits) -> Self {
        Self { client, limits, state: Mutex::default(), free: Condvar::new() }
    }

    /// Sends the commands and reads a reply to each. It takes no longer than the limits for a connection, for its turn, and for
    /// each reply.
    pub(in crate::redis::link) fn exchange(&self, commands: &Pipeline) -> Result<Vec<Value>, Error> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let _turn = self.turn()?;
        let mut connection = self.connection()?;
        let replies = exchange(&mut connection, &commands.get_packed_pipeline(), commands.len());
        match replies {
            Ok(replies) => {
                self.state.lock().idle.push((connection, Instant::now()));
                Ok(replies)
            }
            Err(error) => {
                // The others are most likely dead too. Without this each of them would fail a command after a restart.
                self.close_idle();
                Err(error)
            }
        }
    }

    /// Waits until fewer connections are in use than there may be.
    fn turn(&self) -> Result<Turn<'_>, Error> {
        let end = Instant::now().checked_add(self.limits.response);
        let mut state = self.state.lock();
        while state.in_use >= self.limits.connections {
            let timed_out = match end {
                None => {
                    self.free.wait(&mut state);
                    false
                }
                Some(end) => self.free.wait_until(&mut state, end).timed_out(),
            };
            if timed_out && state.in_use >= self.limits.connections {
                return Err(Error::Busy);
            }
        }
        state.in_use += 1;
        Ok(Turn(self))
    }

    fn connection(&self) -> Result<Connection, Error> {
        let idle = self.state.lock().idle.pop();
        match idle {
            Some((connection, since)) if since.elapsed() < FRESH => Ok(connection),
            Some((mut connection, _)) => {
                let ping = redis::cmd("PING").get_packed_command();
                if exchange(&mut connection, &ping, 1).is_ok() {
                    return Ok(connection);
                }
                self.close_idle();
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

    fn close_idle(&self) {
        let idle = std::mem::take(&mut self.state.lock().idle);
        drop(idle);
    }

    #[cfg(test)]
    pub(super) fn age(&self, by: Duration) {
        let mut state = self.state.lock();
        state.idle.iter_mut().for_each(|(_, since)| *since = since.checked_sub(by).expect("not so long ago"));
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

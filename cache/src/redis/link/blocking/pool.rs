//! So many connections at most.

use crate::redis::error::Error;
use crate::redis::link::Limits;
use crate::redis::link::limits::Retreats;
use crate::redis::reply;
use crate::time_limit::{TimeLimit, deadline, time_left};
use parking_lot::{Condvar, Mutex};
use redis::{Client, Cmd, Connection, ConnectionAddr, Pipeline, RedisConnectionInfo, Value};
use std::net::ToSocketAddrs;
use std::time::{Duration, Instant};

/// The connections to a server. Whoever finds all of them in use waits for one.
pub(in crate::redis::link) struct Pool {
    pub(in crate::redis::link) client: Client,
    pub(in crate::redis::link) limits: Limits,
    state: Mutex<State>,
    retreats: Retreats,
    /// A connection is free, or may be made.
    free: Condvar,
}

#[derive(Default)]
struct State {
    /// The one used last is last, and used first.
    idle: Vec<(Connection, Instant)>,
    in_use: usize,
    /// How often all connections were given up because the server is a replica.
    demotions: u64,
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
        let (state, retreats, free) = (Mutex::default(), Retreats::default(), Condvar::new());
        Self { client, limits, state, retreats, free }
    }

    /// Sends the commands and reads a reply to each. It takes no longer than the limits for a connection, for its turn, and for
    /// each reply; nor, as a whole, than the [time limit](TimeLimit) of its caller. But a reply that trickles takes longer than
    /// either, as the limit is for each piece of it that is read.
    pub(in crate::redis::link) fn exchange(&self, commands: &Pipeline) -> Result<Vec<Value>, Error> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let limit = in_time(self.limits.response).ok_or(Error::Busy)?;
        let _turn = self.turn(limit)?;
        let demotions = self.demotions();
        let mut connection = self.connection()?;
        let replies = exchange(&mut connection, &commands.get_packed_pipeline(), commands.len(), self.limits.response);
        match replies {
            Ok(replies) => {
                let is_demoted = replies.iter().any(reply::is_demoted) && self.retreats.may();
                let mut state = self.state.lock();
                if is_demoted {
                    state.demotions += 1;
                    let idle = std::mem::take(&mut state.idle);
                    drop(state);
                    drop(idle);
                } else if state.demotions == demotions {
                    state.idle.push((connection, Instant::now()));
                }
                Ok(replies)
            }
            // It was the caller who had too little time.
            Err(error) if TimeLimit::is_over() => Err(error),
            Err(error) => {
                // The others are most likely dead too. Without this each of them would fail a command after a restart.
                self.close_idle();
                Err(error)
            }
        }
    }

    /// How often the server was a replica: what was connected before is not used any more.
    pub(in crate::redis::link) fn demotions(&self) -> u64 {
        self.state.lock().demotions
    }

    /// Waits until fewer connections are in use than there may be.
    fn turn(&self, limit: Duration) -> Result<Turn<'_>, Error> {
        let end = deadline(limit);
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
                if exchange(&mut connection, &ping, 1, self.limits.response).is_ok() {
                    return Ok(connection);
                }
                self.close_idle();
                self.connect()
            }
            None => self.connect(),
        }
    }

    /// Connects, and introduces itself as the client would, but within the limit as a whole: the client waits that long for each
    /// reply to what it sends first.
    fn connect(&self) -> Result<Connection, Error> {
        let begun = Instant::now();
        let limit = in_time(self.limits.connect).ok_or(Error::Busy)?;
        let info = self.client.get_connection_info();
        let mute = RedisConnectionInfo::default().set_skip_set_lib_name();
        let tcp = self.limits.tcp_of_threads(info.tcp_settings().clone());
        let client = Client::open(info.clone().set_redis_settings(mute).set_tcp_settings(tcp))?;
        let mut connection = client.get_connection_with_timeout(share(limit, addresses(info.addr())))?;
        let left = limit.saturating_sub(begun.elapsed());
        greet(&mut connection, info.redis_settings(), left)?;
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

/// So long, but no longer than the caller has time; `None` if it has none.
fn in_time(limit: Duration) -> Option<Duration> {
    let limit = TimeLimit::left().map_or(limit, |left| left.min(limit));
    (!limit.is_zero()).then_some(limit)
}

/// To how many addresses the client connects, one after the other: those of a name.
fn addresses(addr: &ConnectionAddr) -> usize {
    match addr {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            // What has no address is for the client to report.
            (host.as_str(), *port).to_socket_addrs().map_or(1, Iterator::count)
        }
        _ => 1,
    }
}

/// The client waits that long for each of them.
fn share(limit: Duration, addresses: usize) -> Duration {
    let addresses = u32::try_from(addresses).unwrap_or(u32::MAX).max(1);
    (limit / addresses).max(Duration::from_millis(1))
}

/// Says who it is, and which database it uses.
fn greet(connection: &mut Connection, settings: &RedisConnectionInfo, limit: Duration) -> Result<(), Error> {
    let end = deadline(limit);
    let mut ask = |command: &Cmd| {
        let left = time_left(end).unwrap_or(limit);
        let left =
            Some(left).filter(|left| !left.is_zero()).ok_or_else(|| Error::odd("there was no connection in time"))?;
        connection.set_read_timeout(Some(left))?;
        connection.set_write_timeout(Some(left))?;
        reply::good(exchange(connection, &command.get_packed_command(), 1, left)?.pop())
    };
    if let Some(password) = settings.password() {
        let with_name = settings.username().map(|name| ask(redis::cmd("AUTH").arg(name).arg(password)));
        match with_name {
            Some(Ok(_)) => {}
            // Before Redis 6 there were no users.
            Some(Err(error)) if !error.to_string().contains(WRONG_NUMBER) => return Err(error),
            _ => drop(ask(redis::cmd("AUTH").arg(password))?),
        }
    }
    if settings.db() != 0 {
        ask(redis::cmd("SELECT").arg(settings.db()))?;
    }
    Ok(())
}

const WRONG_NUMBER: &str = "wrong number of arguments";

/// Not by way of the client's own pipelines: these go on reading after an error, so a server that hangs would cost the limit
/// once for each command. The connection waits for `limit`, and less if the caller has less time.
fn exchange(connection: &mut Connection, bytes: &[u8], replies: usize, limit: Duration) -> Result<Vec<Value>, Error> {
    let is_limited = TimeLimit::left().is_some();
    let hurry = |connection: &Connection| -> Result<(), Error> {
        if is_limited {
            let left = Some(in_time(limit).ok_or_else(|| Error::odd("there is no time to wait for an answer"))?);
            connection.set_read_timeout(left)?;
            connection.set_write_timeout(left)?;
        }
        Ok(())
    };
    hurry(connection)?;
    connection.send_packed_command(bytes)?;
    let mut values = Vec::with_capacity(replies);
    while values.len() < replies {
        hurry(connection)?;
        match connection.recv_response()? {
            Value::Push { .. } => {}
            value => values.push(value),
        }
    }
    if is_limited {
        connection.set_read_timeout(Some(limit))?;
        connection.set_write_timeout(Some(limit))?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_divided_among_the_addresses_of_a_name() {
        let second = Duration::from_secs(1);
        assert_eq!(
            [0, 1, 2, 4, 1_000_000].map(|count| share(second, count)),
            [1_000, 1_000, 500, 250, 1].map(Duration::from_millis)
        );
        assert_eq!(share(Duration::MAX, 2), Duration::MAX / 2);
        let local = ("localhost", 1).to_socket_addrs().expect("it has a name").count();
        for (host, count) in [("127.0.0.1", 1), ("::1", 1), ("localhost", local), ("a name. of nobody", 1)] {
            assert_eq!(addresses(&ConnectionAddr::Tcp(host.to_owned(), 1)), count, "{host}");
        }
        assert_eq!(addresses(&ConnectionAddr::Unix("/nowhere".into())), 1);
    }
}

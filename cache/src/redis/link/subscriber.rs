//! The thread that listens, where there are no tasks.

use super::blocking::Pool;
use super::limits::Pauses;
use crate::nonce::nonce;
use crate::redis::error::Error;
use crate::redis::push::Pushes;
use redis::{Client, Connection, ProtocolVersion, PushKind, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

/// Starts a thread with the first channel that somebody wants. It blocks on a connection of its own, and is woken by a message
/// on a channel of its own, which the thread that wants one more channel publishes.
///
/// When nothing has come for a second, it subscribes to its own channel once more. If the server does not confirm that within
/// another second, the connection is dead. It also looks then for channels whose message was lost, and whether the store is
/// still there. So the thread ends within two seconds of the store, or within the limit for a connection.
pub(super) struct Subscriber {
    pool: Arc<Pool>,
    /// Named after the first channel that is wanted, so that whoever is permitted that and what begins like it needs no more.
    own_channel: OnceLock<String>,
    is_started: AtomicBool,
    /// It reads what is published on its own channel.
    awake: AtomicBool,
    ended: AtomicBool,
}

const SILENCE: Duration = Duration::from_secs(1);

impl Subscriber {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self {
            pool,
            own_channel: OnceLock::new(),
            is_started: AtomicBool::new(false),
            awake: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    /// There are channels that are not listened to. Takes as long as a command if the thread is there and blocks.
    pub(super) fn wake(self: &Arc<Self>, pushes: &Weak<Pushes>) {
        if !self.is_started.swap(true, Ordering::SeqCst) {
            let first = pushes.upgrade().and_then(|pushes| pushes.silent().pop());
            let _ = self.own_channel.set(format!("{}:{:032x}", first.as_deref().unwrap_or_default(), nonce()));
            let (subscriber, pushes) = (Arc::clone(self), Weak::clone(pushes));
            let thread = thread::Builder::new().name("oneflight-pushes".to_owned());
            if thread.spawn(move || subscriber.run(&pushes)).is_err() {
                self.is_started.store(false, Ordering::SeqCst);
            }
            return;
        }
        // The channel was added before this is read, and the thread sets it before it looks which are there. So either this
        // finds it true, or the thread finds the channel.
        if !self.awake.load(Ordering::SeqCst) {
            return;
        }
        let Some(channel) = self.own_channel.get() else { return };
        let mut wake = redis::pipe();
        wake.cmd("PUBLISH").arg(channel).arg("");
        // If it is lost, the thread looks by itself a second later.
        let _ = self.pool.exchange(&wake);
    }

    /// Soon. Does not wait for it.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    fn run(&self, pushes: &Weak<Pushes>) {
        let mut pauses = Pauses::default();
        for connection in 0.. {
            let _ = self.listen(connection, pushes, &mut pauses);
            self.awake.store(false, Ordering::SeqCst);
            let Some(pushes) = self.still(pushes) else { return };
            pushes.broke(connection);
            drop(pushes);
            thread::sleep(pauses.next());
        }
    }

    fn still(&self, pushes: &Weak<Pushes>) -> Option<Arc<Pushes>> {
        pushes.upgrade().filter(|_| !self.ended.load(Ordering::Acquire))
    }

    /// Until the store is gone, or an error.
    fn listen(&self, connection: u64, pushes: &Weak<Pushes>, pauses: &mut Pauses) -> Result<(), Error> {
        let Some(own_channel) = self.own_channel.get() else { return Ok(()) };
        let demotions = self.pool.demotions();
        let mut socket = self.connect()?;
        subscribe(&mut socket, [own_channel.as_str()])?;
        let mut asked = Vec::new();
        // Whether it was silent for a second.
        let mut is_silent = false;
        loop {
            let reply = socket.recv_response();
            let Some(pushes) = self.still(pushes) else { return Ok(()) };
            match reply {
                Ok(Value::Push { kind, data }) => {
                    is_silent = false;
                    match (kind, &data[..]) {
                        (PushKind::Message, [Value::BulkString(channel), Value::BulkString(message)]) => {
                            pushes.heard(channel, message);
                        }
                        (PushKind::Subscribe, [Value::BulkString(channel), ..]) => {
                            if channel == own_channel.as_bytes() {
                                self.awake.store(true, Ordering::SeqCst);
                                pauses.reset();
                            }
                            pushes.listens(connection, channel);
                        }
                        _ => {}
                    }
                }
                Ok(Value::ServerError(error)) => return Err(error.into()),
                Ok(_) => return Err(Error::odd("a reply that nobody has asked for")),
                Err(error) if error.is_timeout() && !is_silent => {
                    is_silent = true;
                    subscribe(&mut socket, [own_channel.as_str()])?;
                }
                Err(error) => return Err(error.into()),
            }
            if self.pool.demotions() != demotions {
                return Err(Error::odd("another server is written to"));
            }
            let mut wanted = pushes.silent();
            wanted.retain(|channel| !asked.contains(channel));
            if !wanted.is_empty() && self.awake.load(Ordering::SeqCst) {
                subscribe(&mut socket, wanted.iter().map(|channel| &**channel))?;
                asked.append(&mut wanted);
            }
        }
    }

    /// With RESP3: there what is pushed is told from replies, so a reply that comes after the read was given up does not count
    /// as the next one's.
    fn connect(&self) -> Result<Connection, Error> {
        let info = self.pool.client.get_connection_info().clone();
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings))?;
        let connection = client.get_connection_with_timeout(self.pool.limits.connect)?;
        connection.set_read_timeout(Some(SILENCE))?;
        connection.set_write_timeout(Some(self.pool.limits.response))?;
        Ok(connection)
    }
}

fn subscribe<'c>(connection: &mut Connection, channels: impl IntoIterator<Item = &'c str>) -> Result<(), Error> {
    let mut command = redis::cmd("SUBSCRIBE");
    channels.into_iter().for_each(|channel| {
        command.arg(channel);
    });
    Ok(connection.send_packed_command(&command.get_packed_command())?)
}

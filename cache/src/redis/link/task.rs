//! For tasks: a connection that all share.

use super::attempts::{Attempt, Attempts};
use super::health::Health;
use super::limits::Retreats;
use super::listener::Listener;
use super::runtime::Runtime;
use super::{Limits, Link};
use crate::redis::error::Error;
use crate::redis::push::Pushes;
use crate::redis::reply;
use crate::time::BoxFuture;
use parking_lot::Mutex;
use redis::{Pipeline, PushInfo, PushKind, RedisError, RedisResult, Value};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// What a connection tells beside replies. It is called by the task that reads from it.
pub(crate) type Sender = Box<dyn Fn(PushInfo) -> Result<(), redis::aio::SendError> + Send + Sync>;

/// How to reach a server, or a cluster.
pub(crate) trait Way: fmt::Debug + Send + Sync + 'static {
    /// Cheap to clone. Whoever drops what it is doing with one leaves it as it should be for the others.
    type Connection: Clone + Send + Sync + 'static;

    /// One that is there to listen, and carries no commands of others.
    type Listening: Send + Sync + 'static;

    /// See [`Link::is_cluster`]. If so, both connections repair themselves when they break, or a part of them.
    const IS_CLUSTER: bool;

    /// Connects within the limits. The sender is told if it breaks, unless it repairs itself.
    fn connect(
        &self,
        limits: Limits,
        sender: Sender,
    ) -> impl Future<Output = RedisResult<Self::Connection>> + Send + 'static;

    /// Connects within the limits. The sender is told what is pushed.
    fn listen(
        &self,
        limits: Limits,
        sender: Sender,
    ) -> impl Future<Output = RedisResult<Self::Listening>> + Send + 'static;

    /// Sends the commands, and returns a reply to each, or an error if not all of these have come.
    fn send(
        connection: &mut Self::Connection,
        commands: Pipeline,
    ) -> impl Future<Output = Result<Vec<Value>, Failure>> + Send;

    /// Subscribes to the channels, and waits for the server's answer. If some fail, the others are subscribed to all the same.
    fn subscribe(connection: &Self::Listening, channels: &[Arc<str>]) -> impl Future<Output = RedisResult<()>> + Send;

    /// Whether the server of the channel answers, and has it, as far as is known here. Only for a cluster: if not, it begins to
    /// repair itself.
    fn is_there(connection: &Self::Listening, channel: &str) -> impl Future<Output = bool> + Send;

    /// Waits for any answer. Not for a cluster.
    fn ping(connection: &mut Self::Listening) -> impl Future<Output = RedisResult<()>> + Send;
}

/// Why commands have no replies.
pub(crate) struct Failure {
    error: Error,
    /// None came in time.
    is_timeout: bool,
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self { is_timeout: error.is_timeout(), error: error.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { is_timeout: false, error }
    }
}

/// A connection that all tasks share, and [another](Listener) over which things are pushed. It connects when the first command is
/// sent, and again after it broke; so it works with a server that is away at first. One task connects, and the others wait for it
/// and share what comes of it, also the error: so whatever has piled up has failed after one limit for a connection.
///
/// A command that is dropped has been sent or not; its reply is read and thrown away.
pub(crate) struct Tasks<W: Way> {
    shared: Arc<Shared<W>>,
    pushes: Arc<Pushes>,
}

struct Shared<W: Way> {
    way: Arc<W>,
    limits: Limits,
    runtime: Runtime,
    current: Mutex<Option<Current<W::Connection>>>,
    attempts: Arc<Attempts>,
    listener: Arc<Listener<W>>,
    retreats: Retreats,
}

struct Current<C> {
    connection: C,
    health: Arc<Health>,
}

impl<C: Clone> Clone for Current<C> {
    fn clone(&self) -> Self {
        Self { connection: self.connection.clone(), health: Arc::clone(&self.health) }
    }
}

impl<W: Way> Tasks<W> {
    pub(super) fn with(way: W, limits: Limits, runtime: Runtime, own: u64) -> Self {
        let (way, limits, pushes) = (Arc::new(way), limits.positive(), Pushes::new(own));
        let listener = Listener::new(Arc::clone(&way), limits, runtime.clone(), Arc::downgrade(&pushes));
        let listener = Arc::new(listener);
        let weak = Arc::downgrade(&listener);
        pushes.on_wanted(move || {
            if let Some(listener) = weak.upgrade() {
                listener.wake();
            }
        });
        let shared = Shared {
            way,
            limits,
            runtime,
            current: Mutex::new(None),
            attempts: Arc::default(),
            listener,
            retreats: Retreats::default(),
        };
        Self { shared: Arc::new(shared), pushes }
    }

    /// Sees to it that `work` is done, beside whatever else goes on.
    pub(crate) fn spawn(&self, work: BoxFuture) {
        self.shared.runtime.spawn(work);
    }
}

impl<W: Way> Link for Tasks<W> {
    async fn send(&self, commands: Pipeline) -> Result<Vec<Value>, Error> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        self.shared.runtime.entered(self.shared.send(commands)).await
    }

    fn hint(&self, commands: Pipeline) {
        let shared = Arc::clone(&self.shared);
        self.spawn(Box::pin(async move {
            let _ = shared.runtime.entered(shared.send(commands)).await;
        }));
    }

    fn pushes(&self) -> &Arc<Pushes> {
        &self.pushes
    }

    fn is_cluster(&self) -> bool {
        W::IS_CLUSTER
    }
}

impl<W: Way> Drop for Tasks<W> {
    fn drop(&mut self) {
        self.shared.listener.end();
    }
}

impl<W: Way> fmt::Debug for Tasks<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { way, limits, runtime, .. } = &*self.shared;
        f.debug_struct("Tasks")
            .field("way", way)
            .field("limits", limits)
            .field("runtime", runtime)
            .finish_non_exhaustive()
    }
}

impl<W: Way> Shared<W> {
    async fn send(self: &Arc<Self>, commands: Pipeline) -> Result<Vec<Value>, Error> {
        let Current { mut connection, health } = self.connection().await?;
        let replies = W::send(&mut connection, commands).await;
        self.judge(&health, replies)
    }

    /// The replies, if they are those to the commands; and whether the connection is of any use after this.
    fn judge(
        self: &Arc<Self>,
        health: &Arc<Health>,
        replies: Result<Vec<Value>, Failure>,
    ) -> Result<Vec<Value>, Error> {
        match replies {
            Ok(replies) => {
                health.answers();
                if replies.iter().any(|reply| matches!(reply, Value::Push { .. })) {
                    health.mix_up();
                }
                if health.is_mixed_up() {
                    self.give_up(health);
                    return Err(Error::odd("something was pushed in place of a reply"));
                }
                // The client sees to that in a cluster.
                if !W::IS_CLUSTER && replies.iter().any(reply::is_demoted) && self.retreats.may() {
                    self.give_up(health);
                    self.listener.renew();
                }
                Ok(replies)
            }
            Err(Failure { error, is_timeout }) => {
                if W::IS_CLUSTER {
                    self.judge_repairs(health, &error);
                } else if !is_timeout || health.is_dead(self.limits) {
                    self.give_up(health);
                }
                Err(error)
            }
        }
    }

    /// A cluster repairs itself by way of the servers that it knows. If none of these is there any more, it looks for them again
    /// and again, without a pause, and for no others. So when nobody has answered for long, be it with a refusal, the addresses that
    /// were given are asked.
    fn judge_repairs(self: &Arc<Self>, health: &Arc<Health>, error: &Error) {
        if !matches!(error, Error::Away(_)) {
            health.answers();
        } else if health.is_dead(self.limits) && self.retreats.may() {
            self.replace(health);
        }
    }

    /// Connects anew. Meanwhile, and if that fails, the old connection is used: perhaps a single server is away, nobody has asked the
    /// others, and they may be reached over that one only.
    fn replace(self: &Arc<Self>, health: &Arc<Health>) {
        if let (_, Some(attempt)) = self.attempts.wait() {
            let (shared, old) = (Arc::clone(self), Arc::clone(health));
            self.runtime.spawn(Box::pin(async move { shared.connect(attempt, Some(old)).await }));
        }
    }

    fn give_up(&self, health: &Arc<Health>) {
        let gone = {
            let mut current = self.current.lock();
            current.take_if(|current| Arc::ptr_eq(&current.health, health))
        };
        drop(gone);
    }

    /// The connection, made by a task of its own if there is none: whoever waits for it may be dropped, or not be polled any
    /// more, and holds up nobody.
    async fn connection(self: &Arc<Self>) -> Result<Current<W::Connection>, Error> {
        loop {
            if let Some(current) = self.current() {
                return Ok(current);
            }
            let (mut waiting, attempt) = self.attempts.wait();
            if let Some(attempt) = attempt {
                let shared = Arc::clone(self);
                self.runtime.spawn(Box::pin(async move { shared.connect(attempt, None).await }));
            }
            if let Some(current) = self.current() {
                return Ok(current);
            }
            let too_late = async {
                futures_timer::Delay::new(self.limits.connect.saturating_add(self.limits.response)).await;
                Some(Error::odd("there was no connection in time"))
            };
            let ended = async {
                (&mut waiting.end).await;
                None
            };
            let late = futures_lite::future::or(ended, too_late).await;
            if let Some(error) = late.or_else(|| self.attempts.failure(&waiting)) {
                return Err(error);
            }
        }
    }

    /// Unless there is another connection than the old one.
    async fn connect(self: &Arc<Self>, attempt: Attempt, old: Option<Arc<Health>>) {
        // Perhaps somebody was faster.
        let is_old = |current: Current<_>| old.as_ref().is_some_and(|old| Arc::ptr_eq(old, &current.health));
        if self.current().is_some_and(|current| !is_old(current)) {
            return attempt.end(None);
        }
        let health = Arc::new(Health::new());
        let connecting = self.way.connect(self.limits, self.sender(Arc::clone(&health)));
        match connecting.await {
            Ok(connection) => {
                let gone = self.current.lock().replace(Current { connection, health });
                drop(gone);
                attempt.end(None);
            }
            Err(error) => attempt.end(Some(Error::from(error))),
        }
    }

    fn current(&self) -> Option<Current<W::Connection>> {
        self.current.lock().clone()
    }

    /// Nothing is subscribed to over the connection. If the server says something about subscriptions all the same, the client
    /// takes that for the reply to a command, and tells it here before it hands out any reply that is not the right one.
    fn sender(self: &Arc<Self>, health: Arc<Health>) -> Sender {
        let weak = Arc::downgrade(self);
        Box::new(move |PushInfo { kind, .. }| {
            let shared = weak.upgrade().ok_or(redis::aio::SendError)?;
            match kind {
                PushKind::Subscribe
                | PushKind::PSubscribe
                | PushKind::SSubscribe
                | PushKind::Unsubscribe
                | PushKind::PUnsubscribe
                | PushKind::SUnsubscribe => health.mix_up(),
                PushKind::Disconnection => {}
                _ => return Ok(()),
            }
            shared.give_up(&health);
            Ok(())
        })
    }
}

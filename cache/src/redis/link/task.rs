//! For tasks: a connection that all share.

use super::attempts::{Attempt, Attempts};
use super::limits::{DEAD, Pauses};
use super::runtime::Runtime;
use super::{Limits, Link};
use crate::redis::error::Error;
use crate::redis::push::Pushes;
use crate::time::BoxFuture;
use parking_lot::Mutex;
use redis::{Pipeline, PushInfo, PushKind, RedisResult, Value};
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// What a connection tells beside replies. It is called by the task that reads from it.
pub(crate) type Sender = Box<dyn Fn(PushInfo) -> Result<(), redis::aio::SendError> + Send + Sync>;

/// How to reach a server, or a cluster.
pub(crate) trait Way: fmt::Debug + Send + Sync + 'static {
    /// Cheap to clone. Whoever drops what it is doing with one leaves it as it should be for the others.
    type Connection: Clone + Send + Sync + 'static;

    /// Whether it connects again by itself when it breaks, or a part of it.
    const REPAIRS_ITSELF: bool;

    /// See [`Link::is_cluster`].
    const IS_CLUSTER: bool;

    /// Connects within the limits.
    fn connect(
        &self,
        limits: Limits,
        sender: Sender,
    ) -> impl Future<Output = RedisResult<Self::Connection>> + Send + 'static;

    /// Sends the commands, and returns a reply to each, or an error if not all of these have come.
    fn send(
        connection: &mut Self::Connection,
        commands: Pipeline,
    ) -> impl Future<Output = RedisResult<Vec<Value>>> + Send;

    /// Subscribes to the channels, and waits for the server's answer.
    fn subscribe(
        connection: &mut Self::Connection,
        channels: &[Arc<str>],
    ) -> impl Future<Output = RedisResult<()>> + Send;
}

/// A connection that all tasks share. It connects when the first command is sent, and again after it broke; so it works with a
/// server that is away at first. One task connects, and the others wait for it and share what comes of it, also the error: so
/// whatever has piled up has failed after one limit for a connection.
///
/// A command that is dropped has been sent or not; its reply is read and thrown away.
pub(crate) struct Tasks<W: Way> {
    shared: Arc<Shared<W>>,
    pushes: Arc<Pushes>,
}

struct Shared<W: Way> {
    way: W,
    limits: Limits,
    runtime: Runtime,
    /// The store's only: those who watch may live longer.
    pushes: Weak<Pushes>,
    current: Mutex<Option<Current<W::Connection>>>,
    attempts: Arc<Attempts>,
    /// The next connection's, for [`Pushes`].
    number: AtomicU64,
    /// There is a task that subscribes to what is not listened to.
    is_subscribing: AtomicBool,
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

/// What is known of a connection.
struct Health {
    /// Its number for [`Pushes`]; a new one when a part of it broke.
    number: AtomicU64,
    made: Instant,
    /// Since when it has not answered, in milliseconds after it was made, and one more. 0: it has.
    silent_since: AtomicU64,
}

impl Health {
    fn new(number: u64) -> Arc<Self> {
        Arc::new(Self { number: AtomicU64::new(number), made: Instant::now(), silent_since: AtomicU64::new(0) })
    }

    fn answers(&self) {
        if self.silent_since.load(Ordering::Relaxed) != 0 {
            self.silent_since.store(0, Ordering::Relaxed);
        }
    }

    /// An answer did not come in time. Whether that has been so for long.
    fn is_dead(&self, limits: Limits) -> bool {
        let now = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        match self.silent_since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => false,
            Err(since) => Duration::from_millis(now.saturating_sub(since)) >= limits.response.saturating_mul(DEAD),
        }
    }
}

impl<W: Way> Tasks<W> {
    pub(super) fn with(way: W, limits: Limits, runtime: Runtime, own: u64) -> Self {
        let pushes = Pushes::new(own);
        let shared = Arc::new(Shared {
            way,
            limits: limits.positive(),
            runtime,
            pushes: Arc::downgrade(&pushes),
            current: Mutex::new(None),
            attempts: Arc::default(),
            number: AtomicU64::new(0),
            is_subscribing: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&shared);
        pushes.on_wanted(move || {
            if let Some(shared) = weak.upgrade() {
                shared.subscribe();
            }
        });
        Self { shared, pushes }
    }
}

impl<W: Way> Link for Tasks<W> {
    async fn send(&self, commands: Pipeline) -> Result<Vec<Value>, Error> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        self.shared.runtime.entered(self.shared.send(commands)).await
    }

    fn spawn(&self, work: BoxFuture) {
        self.shared.runtime.spawn(work);
    }

    fn pushes(&self) -> &Arc<Pushes> {
        &self.pushes
    }

    fn is_cluster(&self) -> bool {
        W::IS_CLUSTER
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
        self.judge(&health, replies.as_ref().err());
        Ok(replies?)
    }

    /// Whether the connection is of any use after this.
    fn judge(self: &Arc<Self>, health: &Arc<Health>, error: Option<&redis::RedisError>) {
        let Some(error) = error else { return health.answers() };
        let is_dead = if error.is_timeout() { health.is_dead(self.limits) } else { true };
        if is_dead && !W::REPAIRS_ITSELF {
            self.give_up(health);
        }
    }

    fn give_up(self: &Arc<Self>, health: &Arc<Health>) {
        let gone = {
            let mut current = self.current.lock();
            current.take_if(|current| Arc::ptr_eq(&current.health, health))
        };
        drop(gone);
        self.broke(health.number.load(Ordering::Relaxed));
    }

    fn broke(self: &Arc<Self>, number: u64) {
        if let Some(pushes) = self.pushes.upgrade() {
            pushes.broke(number);
            if !pushes.silent().is_empty() {
                self.subscribe();
            }
        }
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
                self.runtime.spawn(Box::pin(async move { shared.connect(attempt).await }));
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

    async fn connect(self: &Arc<Self>, attempt: Attempt) {
        // Perhaps somebody was faster.
        if self.current().is_some() {
            return attempt.end(None);
        }
        let health = Health::new(self.number.fetch_add(1, Ordering::Relaxed));
        let connecting = self.way.connect(self.limits, self.sender(Arc::clone(&health)));
        match connecting.await {
            Ok(connection) => {
                *self.current.lock() = Some(Current { connection, health });
                attempt.end(None);
            }
            Err(error) => attempt.end(Some(Error::from(error))),
        }
    }

    fn current(&self) -> Option<Current<W::Connection>> {
        self.current.lock().clone()
    }

    /// What is pushed over the connection goes to those who watch.
    fn sender(self: &Arc<Self>, health: Arc<Health>) -> Sender {
        let weak = Arc::downgrade(self);
        Box::new(move |PushInfo { kind, data }| {
            let Some(shared) = weak.upgrade() else { return Err(redis::aio::SendError) };
            let number = &health.number;
            match (kind, &data[..]) {
                (PushKind::Disconnection, _) if W::REPAIRS_ITSELF => {
                    let next = shared.number.fetch_add(1, Ordering::Relaxed);
                    shared.broke(number.swap(next, Ordering::Relaxed));
                }
                (PushKind::Disconnection, _) => shared.give_up(&health),
                (
                    PushKind::Message | PushKind::SMessage,
                    [Value::BulkString(channel), Value::BulkString(message), ..],
                ) => {
                    if let Some(pushes) = shared.pushes.upgrade() {
                        pushes.heard(channel, message);
                    }
                }
                (PushKind::Subscribe | PushKind::SSubscribe, [Value::BulkString(channel), ..]) => {
                    if let Some(pushes) = shared.pushes.upgrade() {
                        pushes.listens(number.load(Ordering::Relaxed), channel);
                    }
                }
                _ => {}
            }
            Ok(())
        })
    }

    /// Sees to it that a task subscribes to what is wanted and not listened to, until there is nothing left.
    fn subscribe(self: &Arc<Self>) {
        if self.is_subscribing.swap(true, Ordering::SeqCst) {
            return;
        }
        let weak = Arc::downgrade(self);
        let runtime = self.runtime.clone();
        self.runtime.spawn(Box::pin(async move {
            let subscribing = async {
                let mut pauses = Pauses::default();
                while let Some(shared) = weak.upgrade() {
                    let Some(silent) = shared.silent() else { return };
                    let went_well = shared.try_subscribe(&silent).await;
                    drop(shared);
                    if went_well {
                        pauses.reset();
                    } else {
                        futures_timer::Delay::new(pauses.next()).await;
                    }
                }
            };
            runtime.entered(subscribing).await;
        }));
    }

    /// What is to be subscribed to. `None`: nothing, and the task that subscribes must end.
    fn silent(&self) -> Option<Vec<Arc<str>>> {
        let silent = self.pushes.upgrade()?.silent_or_done(&self.is_subscribing);
        (!silent.is_empty()).then_some(silent)
    }

    /// Whether all of them are listened to.
    async fn try_subscribe(self: &Arc<Self>, channels: &[Arc<str>]) -> bool {
        let Ok(Current { mut connection, health }) = self.connection().await else { return false };
        let answer = W::subscribe(&mut connection, channels).await;
        self.judge(&health, answer.as_ref().err().filter(|error| error.is_io_error()));
        let silent = self.pushes.upgrade().map(|pushes| pushes.silent()).unwrap_or_default();
        answer.is_ok() && !channels.iter().any(|channel| silent.contains(channel))
    }
}

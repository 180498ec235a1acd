//! The task that listens, where there are tasks.

use super::Limits;
use super::health::Health;
use super::limits::Pauses;
use super::runtime::Runtime;
use super::task::{Sender, Way};
use crate::many::together::all;
use crate::redis::push::Pushes;
use event_listener::{Event, EventListener};
use futures_lite::future::or;
use futures_timer::Delay;
use redis::{PushInfo, PushKind, RedisError, Value};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Starts a task with the first channel that somebody wants. It has a connection of its own: over one that carries commands too
/// what is pushed unasked may be taken for the reply to a command, as when a server of a cluster says that a slot has moved; and
/// a server allows a client that has subscribed far less memory for what it has not read yet.
///
/// It subscribes to whatever is not listened to. When nothing has come for a second, it asks the server whether it is there, so
/// a connection that is dead and does not say so is replaced. The connections to a cluster repair themselves, but only when they
/// are used, or break: so every few seconds the servers are asked, one for each channel, whether they answer, and still have it.
pub(super) struct Listener<W> {
    way: Arc<W>,
    limits: Limits,
    runtime: Runtime,
    /// The store's only: those who watch may live longer.
    pushes: Weak<Pushes>,
    is_started: AtomicBool,
    /// The next connection's, for [`Pushes`].
    number: AtomicU64,
    /// What is written goes to another server than when the connection was made.
    is_outdated: AtomicBool,
    /// There is something to be done: a channel that is not listened to, or another connection.
    woken: Event,
    has_ended: AtomicBool,
    end: Event,
}

/// What is known of the connection.
struct Line {
    /// Its number for [`Pushes`]; a new one when a part of it broke.
    number: AtomicU64,
    health: Health,
    is_broken: AtomicBool,
    /// Something has come over it since this was looked at last.
    is_heard: AtomicBool,
}

const SILENCE: Duration = Duration::from_secs(1);

/// How often the servers of a cluster are asked. Tests that wait for it need not wait so long.
const ROUNDS: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });

impl<W: Way> Listener<W> {
    pub(super) fn new(way: Arc<W>, limits: Limits, runtime: Runtime, pushes: Weak<Pushes>) -> Self {
        Self {
            way,
            limits,
            runtime,
            pushes,
            is_started: AtomicBool::new(false),
            number: AtomicU64::new(0),
            is_outdated: AtomicBool::new(false),
            woken: Event::new(),
            has_ended: AtomicBool::new(false),
            end: Event::new(),
        }
    }

    /// There are channels that are not listened to.
    pub(super) fn wake(self: &Arc<Self>) {
        if self.is_started.swap(true, Ordering::SeqCst) {
            // The channel was added before. So either the task finds it, or it has begun to wait for this before it looked.
            self.woken.notify(usize::MAX);
            return;
        }
        let (listener, runtime) = (Arc::clone(self), self.runtime.clone());
        self.runtime.spawn(Box::pin(async move { runtime.entered(or(listener.ended(), listener.run())).await }));
    }

    /// The server is a replica: another may have taken over, so the connection is to be made anew.
    pub(super) fn renew(&self) {
        self.is_outdated.store(true, Ordering::SeqCst);
        self.woken.notify(usize::MAX);
    }

    /// The store is gone. Does not wait for the task, which ends when it is polled next.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.end.notify(usize::MAX);
    }

    async fn ended(&self) {
        loop {
            let end = self.end.listen();
            if self.has_ended.load(Ordering::SeqCst) {
                return;
            }
            end.await;
        }
    }

    async fn run(self: &Arc<Self>) {
        let mut pauses = Pauses::default();
        loop {
            let line = Arc::new(Line::new(self.number.fetch_add(1, Ordering::Relaxed)));
            self.listen(&line, &mut pauses).await;
            let Some(pushes) = self.pushes.upgrade() else { return };
            pushes.broke(line.number.load(Ordering::Relaxed));
            drop(pushes);
            Delay::new(pauses.next()).await;
        }
    }

    /// Until the connection is of no use any more.
    async fn listen(self: &Arc<Self>, line: &Arc<Line>, pauses: &mut Pauses) {
        self.is_outdated.store(false, Ordering::SeqCst);
        let connecting = self.way.listen(self.limits, self.sender(line));
        let Ok(mut connection) = connecting.await else { return };
        loop {
            // Before it looks: what comes after that wakes it.
            let woken = self.woken.listen();
            let Some(silent) = self.pushes.upgrade().map(|pushes| pushes.silent()) else { return };
            if W::IS_CLUSTER && line.is_broken.swap(false, Ordering::SeqCst) {
                // The old one may be the only way to servers that are there, so it is kept until there is another.
                line.health.answers();
                if let Ok(anew) = self.way.listen(self.limits, self.sender(line)).await {
                    connection = anew;
                    let Some(pushes) = self.pushes.upgrade() else { return };
                    pushes.broke(self.renumber(line));
                }
                continue;
            }
            if line.is_broken.load(Ordering::SeqCst) || self.is_outdated.load(Ordering::SeqCst) {
                return;
            }
            if !silent.is_empty() {
                if !self.subscribe(&connection, line, &silent).await {
                    Delay::new(pauses.next()).await;
                }
                continue;
            }
            pauses.reset();
            if W::IS_CLUSTER {
                if is_silent(woken, ROUNDS).await {
                    self.look_for(&connection, line).await;
                }
            } else if is_silent(woken, SILENCE).await {
                self.check(&mut connection, line).await;
            }
        }
    }

    /// Whether all of them are listened to.
    async fn subscribe(&self, connection: &W::Listening, line: &Line, channels: &[Arc<str>]) -> bool {
        match W::subscribe(connection, channels).await {
            Err(error) if error.is_io_error() => {
                self.judge(line, &error);
                return false;
            }
            // It was refused.
            Err(_) => {
                line.health.answers();
                return false;
            }
            Ok(()) => line.health.answers(),
        }
        let silent = self.pushes.upgrade().map(|pushes| pushes.silent()).unwrap_or_default();
        !channels.iter().any(|channel| silent.contains(channel))
    }

    /// Asks a server that has said nothing for a while, until it answers, or has not for too long.
    async fn check(&self, connection: &mut W::Listening, line: &Line) {
        while !line.is_heard.swap(false, Ordering::Relaxed) && !line.is_broken.load(Ordering::SeqCst) {
            match W::ping(connection).await {
                Ok(()) => return line.health.answers(),
                Err(error) => self.judge(line, &error),
            }
        }
    }

    /// Looks which channels are where they are listened to. The others are lost, and are subscribed to again.
    async fn look_for(&self, connection: &W::Listening, line: &Line) {
        let Some(channels) = self.pushes.upgrade().map(|pushes| pushes.listened_to()) else { return };
        // What breaks meanwhile is known, and has another number.
        let number = line.number.load(Ordering::Relaxed);
        let there = all(channels.iter().map(|channel| W::is_there(connection, channel))).await;
        let Some(pushes) = self.pushes.upgrade() else { return };
        for (channel, _) in channels.iter().zip(there).filter(|(_, is_there)| !is_there) {
            pushes.lost(number, channel.as_bytes());
        }
    }

    /// Whether the connection is of any use after this. A cluster's is, unless nothing at all is listened to for long: then
    /// perhaps none of the servers that it knows is there any more, and it asks no others.
    fn judge(&self, line: &Line, error: &RedisError) {
        if W::IS_CLUSTER && self.pushes.upgrade().is_some_and(|pushes| !pushes.listened_to().is_empty()) {
            return line.health.answers();
        }
        let may_be_late = W::IS_CLUSTER || error.is_timeout();
        if !may_be_late || line.health.is_dead(self.limits) {
            line.is_broken.store(true, Ordering::SeqCst);
        }
    }

    /// What is pushed over the connection goes to those who watch.
    fn sender(self: &Arc<Self>, line: &Arc<Line>) -> Sender {
        let (weak, line) = (Arc::downgrade(self), Arc::clone(line));
        Box::new(move |pushed| {
            let listener = weak.upgrade().ok_or(redis::aio::SendError)?;
            let pushes = listener.pushes.upgrade().ok_or(redis::aio::SendError)?;
            listener.hear(&pushes, &line, pushed);
            Ok(())
        })
    }

    /// What is listened to from now on is so by another number than this.
    fn renumber(&self, line: &Line) -> u64 {
        line.number.swap(self.number.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed)
    }

    fn hear(&self, pushes: &Pushes, line: &Line, PushInfo { kind, data }: PushInfo) {
        line.is_heard.store(true, Ordering::Relaxed);
        let number = line.number.load(Ordering::Relaxed);
        match (kind, &data[..]) {
            (PushKind::Disconnection, _) => {
                if W::IS_CLUSTER {
                    self.renumber(line);
                } else {
                    line.is_broken.store(true, Ordering::SeqCst);
                }
                pushes.broke(number);
                self.woken.notify(usize::MAX);
            }
            (PushKind::Message | PushKind::SMessage, [Value::BulkString(channel), Value::BulkString(message), ..]) => {
                pushes.heard(channel, message);
            }
            (PushKind::Subscribe | PushKind::SSubscribe, [Value::BulkString(channel), ..]) => {
                pushes.listens(number, channel);
            }
            // Nobody has asked for it: the slot of the channel has moved to another server.
            (PushKind::Unsubscribe | PushKind::SUnsubscribe, [Value::BulkString(channel), ..]) => {
                pushes.lost(number, channel);
                self.woken.notify(usize::MAX);
            }
            _ => {}
        }
    }
}

impl Line {
    fn new(number: u64) -> Self {
        Self {
            number: AtomicU64::new(number),
            health: Health::new(),
            is_broken: AtomicBool::new(false),
            is_heard: AtomicBool::new(false),
        }
    }
}

/// Whether nothing wakes it for a while.
async fn is_silent(woken: EventListener, silence: Duration) -> bool {
    let woken = async {
        woken.await;
        false
    };
    let silence = async {
        Delay::new(silence).await;
        true
    };
    or(woken, silence).await
}

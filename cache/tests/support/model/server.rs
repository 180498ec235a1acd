//! What the server does for each request.

use oneflight_cache::fill::{Epoch, Token, Version};
use oneflight_cache::lease::{Acquired, Claim, Publication, Push, Written};
use oneflight_cache::{Clock, Entry, Time};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Server<V> {
    pub(super) clock: Box<dyn Clock>,
    pub(super) slots: HashMap<Vec<u8>, Slot<V>>,
    pub(super) watchers: Vec<Watcher>,
    pub(super) listeners: Vec<Listener>,
    /// Whether what is written is told to nobody.
    pub(super) loses_pushes: bool,
    /// Whether nobody listens to anything.
    pub(super) is_deaf: bool,
    /// How many epochs, watchers and processes there have been: a number that is nobody else's.
    pub(super) drawn: usize,
    pub(super) is_full: bool,
    /// Whether it says of whatever was seen, and if nothing was, that it is gone.
    pub(super) says_gone: bool,
    pub(super) failure: Option<Failure>,
    pub(super) steps: Vec<&'static str>,
}

/// What there is under one key, each with its end.
pub(super) struct Slot<V> {
    pub(super) value: Option<Value<V>>,
    pub(super) lease: Option<(Token, Time)>,
    pub(super) epoch: Option<(Epoch, Time)>,
}

pub(super) enum Value<V> {
    /// With its times as the server's clock has them.
    Readable(Entry<V>),
    Unreadable(Version),
    /// Nothing that a cache has put there.
    Foreign,
}

pub(super) struct Watcher {
    pub(super) number: usize,
    pub(super) process: usize,
    pub(super) key: Vec<u8>,
    pub(super) told: Arc<dyn Fn(Push) + Send + Sync>,
}

/// Who is told of all writes.
pub(super) struct Listener {
    pub(super) number: usize,
    pub(super) process: usize,
    pub(super) told: Arc<dyn Fn(Written) + Send + Sync>,
}

/// How a server fails when it is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It says so, and does nothing.
    Refuses,
    /// The request is lost.
    LosesRequest,
    /// The answer is lost.
    LosesAnswer,
}

/// Why a request has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelError {
    Refused,
    /// Nobody knows whether it was done.
    NoAnswer,
    Full,
    WrongType,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the model of a store fails: {self:?}")
    }
}

impl std::error::Error for ModelError {}

impl<V: Clone> Server<V> {
    pub(super) fn new(clock: Box<dyn Clock>) -> Self {
        Self {
            clock,
            slots: HashMap::new(),
            watchers: Vec::new(),
            listeners: Vec::new(),
            loses_pushes: false,
            is_deaf: false,
            drawn: 0,
            is_full: false,
            says_gone: false,
            failure: None,
            steps: Vec::new(),
        }
    }

    /// What there is under the key at this moment, in the server's time.
    pub(super) fn slot(&mut self, key: &[u8]) -> (&mut Slot<V>, Time) {
        let now = self.clock.now();
        let slot = self.slots.entry(key.to_owned()).or_insert(Slot { value: None, lease: None, epoch: None });
        if let Some(Value::Readable(entry)) = &slot.value
            && entry.stale_until() <= now
        {
            slot.value = None;
        }
        slot.lease = slot.lease.filter(|(_, until)| *until > now);
        slot.epoch = slot.epoch.filter(|(_, until)| *until > now);
        (slot, now)
    }

    pub(super) fn get(&mut self, key: &[u8], now: Time) -> Result<Option<Entry<V>>, ModelError> {
        let (slot, server_now) = self.slot(key);
        match &slot.value {
            Some(Value::Readable(entry)) => Ok(Some(moved(entry, server_now, now))),
            Some(Value::Unreadable(_)) | None => Ok(None),
            Some(Value::Foreign) => Err(ModelError::WrongType),
        }
    }

    /// A write: what was acquired before it is not published after it.
    pub(super) fn write(&mut self, key: &[u8], entry: Option<Entry<V>>, now: Time) -> Result<(), ModelError> {
        let is_full = self.is_full;
        let (slot, server_now) = self.slot(key);
        if let Some(Value::Foreign) = slot.value {
            return Err(ModelError::WrongType);
        }
        if entry.is_some() && is_full {
            return Err(ModelError::Full);
        }
        let value = entry.map(|entry| Value::Readable(moved(&entry, now, server_now)));
        *slot = Slot { value, lease: None, epoch: None };
        Ok(())
    }

    pub(super) fn acquire(&mut self, key: &[u8], claim: Claim, now: Time) -> Result<Acquired<V>, ModelError> {
        if self.says_gone {
            return Ok(Acquired::Gone);
        }
        let (is_full, epoch) = (self.is_full, self.draw() as Epoch);
        let (slot, server_now) = self.slot(key);
        match &slot.value {
            Some(Value::Readable(entry)) if claim.seen != Some(entry.version()) => {
                return Ok(Acquired::Filled(moved(entry, server_now, now)));
            }
            Some(Value::Unreadable(version)) if claim.seen != Some(*version) => {
                return Ok(Acquired::Unreadable { version: *version });
            }
            Some(Value::Foreign) => return Err(ModelError::WrongType),
            None if claim.seen.is_some() => return Ok(Acquired::Gone),
            _ => {}
        }
        if let Some((holder, until)) = slot.lease
            && holder != claim.token
        {
            return Ok(Acquired::Held { left: until.since(server_now), holder });
        }
        if is_full {
            return Err(ModelError::Full);
        }
        slot.lease = Some((claim.token, server_now.after(claim.lease)));
        let (epoch, until) = slot.epoch.unwrap_or((epoch, server_now));
        slot.epoch = Some((epoch, until.max(server_now.after(claim.epoch_life))));
        Ok(Acquired::Leader { epoch })
    }

    pub(super) fn renew(&mut self, key: &[u8], token: Token, lease: Duration) -> bool {
        let (slot, now) = self.slot(key);
        let is_holder = slot.is_held_by(token);
        if is_holder {
            slot.lease = Some((token, now.after(lease)));
        }
        is_holder
    }

    pub(super) fn publish(
        &mut self,
        key: &[u8],
        token: Token,
        epoch: Epoch,
        entry: &Entry<V>,
        now: Time,
    ) -> Result<Publication, ModelError> {
        let is_full = self.is_full;
        let (slot, server_now) = self.slot(key);
        if let Some(Value::Foreign) = slot.value {
            return Err(ModelError::WrongType);
        }
        match slot.epoch {
            Some((present, _)) if present == epoch => {}
            None if slot.value.is_some() => return Ok(Publication::Superseded),
            _ => return Ok(Publication::Invalidated),
        }
        let is_over = entry.stale_until() <= now;
        let replaces = slot.is_held_by(token) || (is_over && slot.lease.is_none());
        if !replaces && slot.value.is_some() {
            return Ok(Publication::Superseded);
        }
        // What is over already needs no room: it is gone at the next look.
        if is_full && !is_over {
            return Err(ModelError::Full);
        }
        slot.value = Some(Value::Readable(moved(entry, now, server_now)));
        if !replaces {
            return Ok(Publication::Late);
        }
        (slot.lease, slot.epoch) = (None, None);
        Ok(Publication::Stored)
    }

    /// Whether it was this token's.
    pub(super) fn release(&mut self, key: &[u8], token: Token) -> bool {
        let (slot, _) = self.slot(key);
        let is_holder = slot.is_held_by(token);
        if is_holder {
            slot.lease = None;
        }
        is_holder
    }

    pub(super) fn draw(&mut self) -> usize {
        self.drawn += 1;
        self.drawn
    }
}

impl<V> Slot<V> {
    pub(super) fn is_held_by(&self, token: Token) -> bool {
        self.lease.is_some_and(|(holder, _)| holder == token)
    }
}

/// The entry with its times on another clock: `from` on the one is the moment `to` on the other.
fn moved<V: Clone>(entry: &Entry<V>, from: Time, to: Time) -> Entry<V> {
    let time = |time: Time| match time {
        Time::NEVER => Time::NEVER,
        time if time >= from => to.after(time.since(from)),
        time => to.before(from.since(time)),
    };
    let (loaded_at, fresh_until, stale_until) =
        (time(entry.loaded_at()), time(entry.fresh_until()), time(entry.stale_until()));
    Entry::new(entry.value().clone(), entry.version(), loaded_at, fresh_until, stale_until, entry.cost())
}

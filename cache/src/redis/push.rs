//! What is pushed, and who is told.
//!
//! A channel carries what happens to many keys. A message is 33 bytes: what has happened, who did it (16 hexadecimal digits),
//! and the key (16 more).
//!
//! | first byte | has happened | is told |
//! |---|---|---|
//! | `r` | a value was published, or a lease given up | those who watch the key |
//! | `w` | the key was written | those who watch the key, unless this store wrote it |
//! | `a` | all keys were written | all who watch a key of the channel, unless this store wrote them |
//!
//! Anything else is ignored: whoever may publish on the server can send what he likes.

use crate::lease::{Push, Told, Watch};
use crate::room::after_burst;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What is told to those who watch everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushedMessage {
    /// One more channel is listened to. Until now something may have happened there that nobody has told.
    Listening,
    /// Another store has written the key.
    Written(u64),
    /// Another store has written all keys.
    AllWritten,
}

/// Who is told of everything: must neither block nor call the store.
pub(crate) type ToldAll = Box<dyn Fn(PushedMessage) + Send + Sync>;

/// Who watches which keys, and which channels are listened to for that. A channel that is listened to once is listened to for
/// ever: a store has few.
///
/// Who is told is told outside of the lock, by whatever thread reads from the connection.
pub(crate) struct Pushes {
    own: u64,
    state: Mutex<State>,
    /// Tells the link that there are channels it does not listen to yet.
    wanted: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct State {
    /// Connections have numbers, each greater than the one before. What those before this one confirm does not count any more.
    connection: u64,
    channels: HashMap<Arc<str>, Channel>,
    all: Vec<Arc<ToldAll>>,
}

#[derive(Default)]
struct Channel {
    /// Written under the lock.
    listening: Arc<AtomicBool>,
    keys: HashMap<u64, Vec<Arc<Told>>>,
}

impl Pushes {
    /// For the store whose number is `own`: it is not told of its own writes.
    pub(crate) fn new(own: u64) -> Arc<Self> {
        Arc::new(Self { own, state: Mutex::default(), wanted: OnceLock::new() })
    }

    /// The number by which the messages of this store are told from others'.
    pub(crate) fn own(&self) -> u64 {
        self.own
    }

    /// What to do when somebody watches a channel for the first time: to see to it that [`silent`](Self::silent) channels are
    /// listened to. Only the first that is given counts.
    pub(super) fn on_wanted(&self, wanted: impl Fn() + Send + Sync + 'static) {
        let _ = self.wanted.set(Box::new(wanted));
    }

    /// Begins to listen to `channel`, if nobody does yet, and tells what is pushed there about the key of this `id`, and about
    /// all keys. If it is listened to already, [`Push::Listening`] is told at once, from here.
    ///
    /// With a blocking link this may take as long as a request.
    pub(crate) fn watch(self: &Arc<Self>, channel: String, id: u64, told: Told) -> Box<dyn Watch> {
        let channel: Arc<str> = channel.into();
        let told = Arc::new(told);
        let (watch, is_new) = {
            let mut state = self.state.lock();
            let (entry, is_new) = state.channel(&channel);
            entry.keys.entry(id).or_default().push(Arc::clone(&told));
            let listening = Arc::clone(&entry.listening);
            (KeyWatch { pushes: Arc::clone(self), channel, id, told, listening }, is_new)
        };
        if watch.is_listening() {
            (watch.told)(Push::Listening);
        }
        self.want(is_new);
        Box::new(watch)
    }

    /// Begins to listen to all of `channels`, and tells what is pushed on any of them, and on all others that are listened to.
    pub(crate) fn watch_all(
        self: &Arc<Self>,
        channels: impl IntoIterator<Item = String>,
        told: ToldAll,
    ) -> Box<dyn Watch> {
        let told = Arc::new(told);
        let mut any_new = false;
        let watch = {
            let mut state = self.state.lock();
            state.all.push(Arc::clone(&told));
            let mut listening = Vec::new();
            for channel in channels {
                let (entry, is_new) = state.channel(&channel.into());
                listening.push(Arc::clone(&entry.listening));
                any_new |= is_new;
            }
            AllWatch { pushes: Arc::clone(self), told, listening }
        };
        if watch.is_listening() {
            (watch.told)(PushedMessage::Listening);
        }
        self.want(any_new);
        Box::new(watch)
    }

    fn want(&self, is_new: bool) {
        if let Some(wanted) = self.wanted.get().filter(|_| is_new) {
            wanted();
        }
    }

    /// The channels that somebody watches, or has watched, and that are not listened to.
    pub(super) fn silent(&self) -> Vec<Arc<str>> {
        self.state.lock().channels(false)
    }

    /// The channels that are listened to.
    #[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
    pub(super) fn listened_to(&self) -> Vec<Arc<str>> {
        self.state.lock().channels(true)
    }

    /// The server has confirmed that the channel is listened to, over the connection of this number.
    pub(super) fn listens(&self, connection: u64, channel: &[u8]) {
        let Ok(channel) = str::from_utf8(channel) else { return };
        let (keys, all) = {
            let mut state = self.state.lock();
            if connection < state.connection {
                return;
            }
            let Some(entry) = state.channels.get_mut(channel) else { return };
            // Before anybody is told: who asks the store in answer to that must find it true.
            entry.listening.store(true, Ordering::Release);
            let everyone = (entry.everyone(), state.all.clone());
            state.connection = connection;
            everyone
        };
        keys.iter().for_each(|told| told(Push::Listening));
        all.iter().for_each(|told| told(PushedMessage::Listening));
    }

    /// The connection of this number, or one that it is made of, broke or is given up: no channel is listened to. What it
    /// confirms later does not count, as the thread that reads from it may be late.
    pub(super) fn broke(&self, connection: u64) {
        let mut state = self.state.lock();
        if connection < state.connection {
            return;
        }
        state.connection = connection + 1;
        for channel in state.channels.values() {
            channel.listening.store(false, Ordering::Release);
        }
    }

    /// The server has said that the channel is not listened to any more over the connection of this number.
    #[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
    pub(super) fn lost(&self, connection: u64, channel: &[u8]) {
        let Ok(channel) = str::from_utf8(channel) else { return };
        let state = self.state.lock();
        if connection < state.connection {
            return;
        }
        if let Some(entry) = state.channels.get(channel) {
            entry.listening.store(false, Ordering::Release);
        }
    }

    /// A message has come.
    pub(super) fn heard(&self, channel: &[u8], message: &[u8]) {
        let Some(Message { what, writer, id }) = Message::parse(message) else { return };
        if writer == self.own && what != What::Released {
            return;
        }
        let Ok(channel) = str::from_utf8(channel) else { return };
        let (keys, all) = {
            let state = self.state.lock();
            let Some(entry) = state.channels.get(channel) else { return };
            let keys = match what {
                What::AllWritten => entry.everyone(),
                What::Released | What::Written => entry.keys.get(&id).cloned().unwrap_or_default(),
            };
            let all = if what == What::Released { Vec::new() } else { state.all.clone() };
            (keys, all)
        };
        let (push, pushed) = match what {
            What::Released => (Push::Released, None),
            What::Written => (Push::Written, Some(PushedMessage::Written(id))),
            What::AllWritten => (Push::Written, Some(PushedMessage::AllWritten)),
        };
        keys.iter().for_each(|told| told(push));
        if let Some(pushed) = pushed {
            all.iter().for_each(|told| told(pushed));
        }
    }
}

impl State {
    fn channels(&self, listening: bool) -> Vec<Arc<str>> {
        let those = self.channels.iter().filter(|(_, channel)| channel.listening.load(Ordering::Acquire) == listening);
        those.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// The channel, and whether it is new.
    fn channel(&mut self, name: &Arc<str>) -> (&mut Channel, bool) {
        match self.channels.entry(Arc::clone(name)) {
            Entry::Occupied(entry) => (entry.into_mut(), false),
            Entry::Vacant(entry) => (entry.insert(Channel::default()), true),
        }
    }
}

impl Channel {
    fn everyone(&self) -> Vec<Arc<Told>> {
        self.keys.values().flatten().cloned().collect()
    }
}

struct KeyWatch {
    pushes: Arc<Pushes>,
    channel: Arc<str>,
    id: u64,
    told: Arc<Told>,
    listening: Arc<AtomicBool>,
}

impl Watch for KeyWatch {
    fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Acquire)
    }
}

impl Drop for KeyWatch {
    fn drop(&mut self) {
        let mut state = self.pushes.state.lock();
        let Some(channel) = state.channels.get_mut(&self.channel) else { return };
        let Some(told) = channel.keys.get_mut(&self.id) else { return };
        // Not the last one, which this watch has itself: so nobody else's drop runs under the lock.
        told.retain(|told| !Arc::ptr_eq(told, &self.told));
        if told.is_empty() {
            channel.keys.remove(&self.id);
            if let Some(room) = after_burst(channel.keys.len(), channel.keys.capacity()) {
                channel.keys.shrink_to(room);
            }
        }
    }
}

struct AllWatch {
    pushes: Arc<Pushes>,
    told: Arc<ToldAll>,
    listening: Vec<Arc<AtomicBool>>,
}

impl Watch for AllWatch {
    /// To all of them.
    fn is_listening(&self) -> bool {
        self.listening.iter().all(|listening| listening.load(Ordering::Acquire))
    }
}

impl Drop for AllWatch {
    fn drop(&mut self) {
        self.pushes.state.lock().all.retain(|told| !Arc::ptr_eq(told, &self.told));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Released,
    Written,
    AllWritten,
}

#[derive(Debug, PartialEq, Eq)]
struct Message {
    what: What,
    writer: u64,
    id: u64,
}

impl Message {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 33] = bytes.try_into().ok()?;
        let (&what, numbers) = bytes.split_first()?;
        let what = match what {
            b'r' => What::Released,
            b'w' => What::Written,
            b'a' => What::AllWritten,
            _ => return None,
        };
        let (writer, id) = numbers.split_at(16);
        Some(Self { what, writer: number(writer)?, id: number(id)? })
    }
}

/// Hexadecimal digits, and nothing else: no sign.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, &digit| Some(number << 4 | u64::from(char::from(digit).to_digit(16)?)))
}

#[cfg(test)]
mod tests;

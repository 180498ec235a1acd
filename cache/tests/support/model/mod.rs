//! A store with leases, in memory: what a real one does, in the plainest words. [`server`] is the specification of the scripts
//! of the Redis store. The rest makes it a store of tasks and of threads, which stands in for a server in tests of the cache.
//!
//! Time is that of the server's own clock, whatever the clocks of those who use it say. So tests move it by hand, and may give
//! each process a clock of its own.

#![allow(dead_code, reason = "no target uses all of it")]

mod announces;
mod requests;
mod server;

pub(crate) use server::{Failure, ModelError};

use oneflight_cache::Clock;
use oneflight_cache::fill::Version;
use oneflight_cache::lease::{Push, Watch};
use server::{Server, Slot, Value, Watcher};
use std::cell::Cell;
use std::sync::{Arc, Mutex};

std::thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether the server is at work in this thread. A real one makes no clones of values: these are no harm of the cache's.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// One process's way to the server. A clone is the same process's.
pub(crate) struct ModelStore<V> {
    server: Arc<Mutex<Server<V>>>,
    process: usize,
}

/// What tests do to the server.
impl<V: Clone> ModelStore<V> {
    /// An empty server, whose time is `clock`'s, and the first process.
    pub(crate) fn new(clock: impl Clock) -> Self {
        Self { server: Arc::new(Mutex::new(Server::new(Box::new(clock)))), process: 0 }
    }

    /// Another process that uses the same server.
    pub(crate) fn another_process(&self) -> Self {
        Self { server: Arc::clone(&self.server), process: self.with(Server::draw) }
    }

    /// How many values it has.
    pub(crate) fn len(&self) -> usize {
        let is_value = |slot: &&Slot<V>| matches!(slot.value, Some(Value::Readable(_)));
        self.with(|server| server.slots.values().filter(is_value).count())
    }

    /// All is forgotten, and nobody is told.
    pub(crate) fn flush(&self) {
        self.with(|server| server.slots.clear());
    }

    /// The epoch of the key is evicted.
    pub(crate) fn lose_epoch(&self, key: impl AsRef<[u8]>) {
        self.with(|server| server.slot(key.as_ref()).0.epoch = None);
    }

    /// The lease of the key ends.
    pub(crate) fn lose_lease(&self, key: impl AsRef<[u8]>) {
        self.with(|server| server.slot(key.as_ref()).0.lease = None);
    }

    /// The value of the key is evicted.
    pub(crate) fn lose_value(&self, key: impl AsRef<[u8]>) {
        self.with(|server| server.slot(key.as_ref()).0.value = None);
    }

    /// Whether there is a lease for the key.
    pub(crate) fn is_held(&self, key: impl AsRef<[u8]>) -> bool {
        self.with(|server| server.slot(key.as_ref()).0.lease.is_some())
    }

    /// There is something under the key that cannot be read, and that is told by `version`.
    pub(crate) fn set_unreadable(&self, key: impl AsRef<[u8]>, version: Version) {
        self.with(|server| server.slot(key.as_ref()).0.value = Some(Value::Unreadable(version)));
    }

    /// There is something under the key that is no value at all.
    pub(crate) fn set_foreign(&self, key: impl AsRef<[u8]>) {
        self.with(|server| server.slot(key.as_ref()).0.value = Some(Value::Foreign));
    }

    pub(crate) fn is_foreign(&self, key: impl AsRef<[u8]>) -> bool {
        self.with(|server| matches!(server.slot(key.as_ref()).0.value, Some(Value::Foreign)))
    }

    /// Whether there is no room for anything new.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.with(|server| server.is_full = is_full);
    }

    /// Whether whoever asks for a lease is told that what was seen is gone.
    pub(crate) fn set_says_gone(&self, says_gone: bool) {
        self.with(|server| server.says_gone = says_gone);
    }

    /// How all requests fail from now on, if they do.
    pub(crate) fn set_failure(&self, failure: Option<Failure>) {
        self.with(|server| server.failure = failure);
    }

    /// Whether nobody listens to anything from now on. All who watch are told when they listen again.
    pub(crate) fn set_deaf(&self, is_deaf: bool) {
        self.with(|server| server.is_deaf = is_deaf);
        if !is_deaf {
            self.push(None, Push::Listening);
        }
    }

    /// The names of all requests since the last time that it was asked, failed ones too.
    pub(crate) fn take_steps(&self) -> Vec<&'static str> {
        self.with(|server| std::mem::take(&mut server.steps))
    }

    fn with<T>(&self, step: impl FnOnce(&mut Server<V>) -> T) -> T {
        let mut server = self.server.lock().expect("nothing panics while it is held");
        let was_inside = INSIDE.replace(true);
        let done = step(&mut server);
        INSIDE.set(was_inside);
        done
    }

    fn request<T>(
        &self,
        name: &'static str,
        step: impl FnOnce(&mut Server<V>) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        self.with(|server| {
            server.steps.push(name);
            match server.failure {
                None => step(server),
                Some(Failure::Refuses) => Err(ModelError::Refused),
                Some(Failure::LosesRequest) => Err(ModelError::NoAnswer),
                Some(Failure::LosesAnswer) => step(server).and(Err(ModelError::NoAnswer)),
            }
        })
    }

    /// Tells those who watch the key, or any key, while no lock is held. What was written is for other processes to know.
    fn push(&self, key: Option<&[u8]>, push: Push) {
        let is_concerned = |watcher: &&Watcher| {
            key.is_none_or(|key| watcher.key == key) && (push != Push::Written || watcher.process != self.process)
        };
        let told: Vec<_> = self.with(|server| {
            let is_told = |watcher: &&Watcher| !server.is_deaf && is_concerned(watcher);
            server.watchers.iter().filter(is_told).map(|it| Arc::clone(&it.told)).collect()
        });
        told.into_iter().for_each(|told| told(push));
        if push == Push::Written {
            self.announce(key);
        }
    }
}

impl<V> Clone for ModelStore<V> {
    fn clone(&self) -> Self {
        Self { server: Arc::clone(&self.server), process: self.process }
    }
}

/// Listens until it is dropped.
struct Watching<V: Clone> {
    store: ModelStore<V>,
    number: usize,
}

impl<V: Clone + Send + Sync> Watch for Watching<V> {
    fn is_listening(&self) -> bool {
        self.store.with(|server| !server.is_deaf)
    }
}

impl<V: Clone> Drop for Watching<V> {
    fn drop(&mut self) {
        let is_mine = |watcher: &mut Watcher| watcher.number == self.number;
        // What it was told by is dropped when the lock is free again.
        let _gone: Vec<Watcher> = self.store.with(|server| server.watchers.extract_if(.., is_mine).collect());
    }
}

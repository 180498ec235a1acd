//! What a cache reads from, and what its callers may be given.

use crate::breach::Breach;
use oneflight_cache::{Error, Fetched, Source};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// How many values are alive.
static DATA: AtomicI64 = AtomicI64::new(0);

pub(crate) fn alive() -> i64 {
    DATA.load(Ordering::SeqCst)
}

/// What stands for the call where the loader is that of a collector. No call has this number.
pub(crate) const COLLECTED: u64 = 0;

/// A value.
#[derive(Debug)]
pub(crate) struct Datum {
    pub(crate) key: u32,
    /// The call whose loader made it, or that put it.
    pub(crate) call: u64,
    since: Since,
}

/// How new a value is at most: when its loader began; when its `put` had returned, and before that it is as new as can be.
#[derive(Clone, Debug)]
pub(crate) struct Since(Arc<AtomicU64>);

/// Why a loader has no value.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    keys: Vec<u32>,
    since: u64,
}

/// The keys of one cache in one round.
#[derive(Debug)]
pub(crate) struct World {
    /// Of each key, when the last write of this cache's began that has finished.
    floors: Vec<AtomicU64>,
    shared: Arc<Shared>,
}

/// What several caches over one server share.
#[derive(Debug)]
struct Shared {
    tick: AtomicU64,
    /// Runs of a loader that have begun.
    runs: AtomicU64,
    /// Of each key, runs of a loader that came to a value.
    loads: Vec<AtomicU64>,
}

/// A write that is on.
pub(crate) struct Write<'w> {
    world: &'w World,
    keys: Vec<u32>,
    begun: u64,
    value: Option<Since>,
}

/// A call that reads.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) number: u64,
    keys: Vec<(u32, u64)>,
}

/// Whose loader a call has, and which errors it may get apart from that of a loader.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct May {
    /// That of a collector, not its own.
    pub(crate) collected: bool,
    pub(crate) deadline: bool,
    pub(crate) load_timed_out: bool,
    pub(crate) overloaded: bool,
    pub(crate) closed: bool,
    pub(crate) recursive: bool,
    /// Those of the server, or of waiting for another process.
    pub(crate) shared: bool,
}

impl Datum {
    fn new(key: u32, call: u64, since: Since) -> Self {
        DATA.fetch_add(1, Ordering::SeqCst);
        Self { key, call, since }
    }
}

impl Clone for Datum {
    fn clone(&self) -> Self {
        Self::new(self.key, self.call, self.since.clone())
    }
}

impl Drop for Datum {
    fn drop(&mut self) {
        DATA.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a loader of {:?} failed", self.keys)
    }
}

impl World {
    pub(crate) fn new(keys: u32) -> Self {
        let shared = Shared { tick: AtomicU64::new(1), runs: AtomicU64::new(0), loads: zeros(keys) };
        Self { floors: zeros(keys), shared: Arc::new(shared) }
    }

    /// The same keys, as another process has them.
    pub(crate) fn elsewhere(&self) -> Self {
        Self { floors: zeros(self.floors.len() as u32), shared: Arc::clone(&self.shared) }
    }

    fn floor(&self, key: u32) -> &AtomicU64 {
        &self.floors[key as usize]
    }

    pub(crate) fn now(&self) -> u64 {
        self.shared.tick.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn runs(&self) -> u64 {
        self.shared.runs.load(Ordering::SeqCst)
    }

    /// Runs of a loader for `key` that came to a value.
    pub(crate) fn loads(&self, key: u32) -> u64 {
        self.shared.loads[key as usize].load(Ordering::SeqCst)
    }

    /// A loader begins. Returns when.
    pub(crate) fn load(&self) -> u64 {
        self.shared.runs.fetch_add(1, Ordering::SeqCst);
        self.now()
    }

    /// What a loader that began `since` has found.
    pub(crate) fn found(&self, keys: &[u32], call: u64, since: u64) -> Vec<Datum> {
        keys.iter().for_each(|&key| _ = self.shared.loads[key as usize].fetch_add(1, Ordering::SeqCst));
        keys.iter().map(|&key| Datum::new(key, call, Since(Arc::new(AtomicU64::new(since))))).collect()
    }

    pub(crate) fn fault(&self, keys: &[u32], since: u64) -> Fault {
        Fault { keys: keys.to_vec(), since }
    }

    /// A write of `keys` begins: with a value if it is a `put`.
    pub(crate) fn write(&self, keys: impl IntoIterator<Item = u32>) -> Write<'_> {
        Write { world: self, keys: keys.into_iter().collect(), begun: self.now(), value: None }
    }

    /// A call of `keys` begins.
    pub(crate) fn read(&self, keys: &[u32]) -> Read {
        let keys = keys.iter().map(|&key| (key, self.floor(key).load(Ordering::SeqCst))).collect();
        Read { number: self.now(), keys }
    }
}

/// A value that a call of the key has got which began when the last write that had finished had begun at `floor`.
#[track_caller]
fn check(key: u32, floor: u64, fetched: &Fetched<Datum>) {
    let datum = &fetched.value;
    if datum.key != key {
        Breach::ForeignKey { got: datum.key }.raise(key);
    }
    let since = datum.since.0.load(Ordering::SeqCst);
    if since < floor {
        Breach::Stale { value: since, write: floor, from: Some(fetched.source) }.raise(key);
    }
}

fn zeros(keys: u32) -> Vec<AtomicU64> {
    (0..keys).map(|_| AtomicU64::new(0)).collect()
}

impl Write<'_> {
    /// The value that is put.
    pub(crate) fn value(&mut self) -> Datum {
        let since = self.value.insert(Since(Arc::new(AtomicU64::new(u64::MAX))));
        Datum::new(self.keys[0], self.begun, since.clone())
    }

    /// Its value is as new as this, and not newer.
    pub(crate) fn settle(&self) {
        if let Some(Since(since)) = &self.value {
            since.store(self.world.now(), Ordering::SeqCst);
        }
    }

    /// It has returned. If it has failed, nobody knows whether it was done.
    pub(crate) fn end(self, done: &Result<(), Error<Fault>>) {
        match done {
            Ok(()) => self.finish(),
            Err(_) => self.settle(),
        }
    }

    /// It was done.
    pub(crate) fn finish(self) {
        self.settle();
        for &key in &self.keys {
            self.world.floor(key).fetch_max(self.begun, Ordering::SeqCst);
        }
    }
}

impl Read {
    /// Whose loader it is that this call has.
    pub(crate) fn loader(&self, may: May) -> u64 {
        if may.collected { COLLECTED } else { self.number }
    }

    fn key(&self) -> u32 {
        self.keys[0].0
    }

    /// It has returned with these values, in the order of its keys.
    pub(crate) fn got<'f>(&self, values: impl ExactSizeIterator<Item = &'f Fetched<Datum>>, may: May) {
        if values.len() != self.keys.len() {
            Breach::WrongLength { asked: self.keys.len(), got: values.len() }.raise(self.key());
        }
        for (&(key, floor), fetched) in self.keys.iter().zip(values) {
            check(key, floor, fetched);
            let call = fetched.value.call;
            if fetched.source == Source::Loaded && call != self.loader(may) {
                Breach::Failed(format!("loaded by call {call}, returned as its own to {}", self.number)).raise(key);
            }
        }
    }

    /// It has returned with what was stored of its keys, in their order.
    pub(crate) fn found(&self, values: &[Option<Fetched<Datum>>]) {
        if values.len() != self.keys.len() {
            Breach::WrongLength { asked: self.keys.len(), got: values.len() }.raise(self.key());
        }
        for (&(key, floor), found) in self.keys.iter().zip(values) {
            let Some(fetched) = found else { continue };
            check(key, floor, fetched);
            if fetched.source == Source::Loaded {
                Breach::Failed("looked up, and said to be loaded".to_owned()).raise(key);
            }
        }
    }

    /// It has returned without a value.
    pub(crate) fn failed(&self, error: &Error<Fault>, may: May) {
        let allowed = match error {
            Error::Load(fault) => {
                let floor = self.keys.iter().filter(|(key, _)| fault.keys.contains(key)).map(|(_, floor)| *floor).max();
                if floor.is_some_and(|floor| fault.since < floor) && self.keys.len() == 1 {
                    Breach::Stale { value: fault.since, write: floor.unwrap_or(0), from: None }.raise(self.key());
                }
                floor.is_some()
            }
            Error::LoadTimedOut => may.load_timed_out,
            Error::Deadline => may.deadline,
            Error::Overloaded => may.overloaded,
            Error::Reentrant => may.recursive,
            Error::Closed => may.closed,
            Error::Store(_) | Error::Held => may.shared,
            _ => false,
        };
        if !allowed {
            Breach::Failed(error.to_string()).raise(self.key());
        }
    }
}

//! Children, as the parent sees them.

use super::settings::Settings;
use crate::redis_support::process::Process;
use std::ops::Deref;
use std::time::Instant;

/// How a load goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Millis(u64),
    /// Until [`Peer::open`].
    Gate,
}

/// A process with a cache.
pub(crate) struct Peer(Process);

impl Deref for Peer {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

impl Peer {
    /// One that has made its cache.
    pub(crate) fn start(settings: &Settings) -> Self {
        let [peer] = Self::several(settings);
        peer
    }

    /// Several, started together.
    pub(crate) fn several<const N: usize>(settings: &Settings) -> [Self; N] {
        let peers = [(); N].map(|()| Self(Process::start(crate::CHILD, &settings.to_string())));
        for peer in &peers {
            peer.wait_for(1, "ready");
        }
        peers
    }

    /// So many callers begin to read `key`; whichever of them loads, loads `value`. Their answers go by `id`.
    pub(crate) fn read(&self, id: &str, key: &str, callers: usize, load: Load, value: &str) {
        let load = match load {
            Load::Millis(millis) => millis.to_string(),
            Load::Gate => "gate".to_owned(),
        };
        self.say(&format!("read {id} {key} {callers} {load} {value}"));
    }

    /// One caller reads `key`, without loading it. The value; `None` if there is none.
    ///
    /// # Panics
    ///
    /// If it fails.
    #[track_caller]
    pub(crate) fn get(&self, id: &str, key: &str) -> Option<String> {
        self.say(&format!("get {id} {key}"));
        let [got, nothing, failed] = ["got", "nothing", "failed"].map(|what| format!("{what} {id} "));
        crate::redis_support::until("an answer", || {
            assert_eq!(self.count(&failed), 0, "{:#?}", self.events());
            (self.count(&got) + self.count(&nothing) > 0).then_some(())
        });
        self.answers(id).pop()
    }

    /// The load of that value ends.
    pub(crate) fn open(&self, value: &str) {
        self.say(&format!("open {value}"));
    }

    /// Waits until a load of `key` has begun.
    #[track_caller]
    pub(crate) fn wait_for_load(&self, key: &str) {
        self.wait_for(1, &format!("load {key} "));
    }

    /// Waits until so many callers wait for another caller of the same process.
    #[track_caller]
    pub(crate) fn wait_for_waiters(&self, key: &str, count: usize) {
        self.say(&format!("waiters {key} {count}"));
        self.wait_for(1, &format!("waiters {key}"));
    }

    /// As [`wait_for_waiters`](Self::wait_for_waiters), for a process that is not to load. False if it does, as it has waited for
    /// the server for too long, or a lease has run out.
    #[track_caller]
    pub(crate) fn waits(&self, key: &str, count: usize) -> bool {
        self.say(&format!("waiters {key} {count}"));
        let waiters = format!("waiters {key}");
        crate::redis_support::until("callers wait or load", || {
            let waits = self.count(&waiters) > 0;
            (waits || self.loads(key) > 0).then_some(waits)
        })
    }

    /// Waits for so many answers that go by `id`: when the last of them came, and all values.
    ///
    /// # Panics
    ///
    /// If one of them is an error.
    #[track_caller]
    pub(crate) fn wait_for_answers(&self, id: &str, count: usize) -> (Instant, Vec<String>) {
        let failed = format!("failed {id} ");
        let got = crate::redis_support::until(&format!("{count} answers of {id}"), || {
            assert_eq!(self.count(&failed), 0, "{:#?}", self.events());
            let got = self.try_wait_for(count, &format!("got {id} "), std::time::Duration::from_millis(100));
            got.map(|(moment, _)| moment)
        });
        (got, self.answers(id))
    }

    /// Waits until the write has returned.
    ///
    /// # Panics
    ///
    /// If it has failed.
    #[track_caller]
    pub(crate) fn wait_for_write(&self, id: &str) {
        self.wait_for(1, &format!("done {id} "));
    }

    /// The values that go by `id` so far.
    pub(crate) fn answers(&self, id: &str) -> Vec<String> {
        let head = format!("got {id} ");
        let events = self.events();
        let values = events.iter().filter_map(|(_, event)| event.strip_prefix(&head)?.split(' ').next());
        values.map(str::to_owned).collect()
    }

    /// How many loads of `key` it has begun.
    pub(crate) fn loads(&self, key: &str) -> usize {
        self.count(&format!("load {key} "))
    }
}

/// How many loads of `key` they have begun together.
pub(crate) fn loads<'a>(peers: impl IntoIterator<Item = &'a Peer>, key: &str) -> usize {
    peers.into_iter().map(|peer| peer.loads(key)).sum()
}

//! A store on a server of its own, and a look at what is there.

use crate::redis_support::server::Server;
use oneflight_cache::fill::{Epoch, Token, Version};
use oneflight_cache::lease::{Acquired, BlockingLease, Claim, Publication};
use oneflight_cache::redis::blocking::RedisStore;
use oneflight_cache::redis::{Builder, Error};
use oneflight_cache::{BlockingStore, Entry, FoundMany, Time};
use redis::{Commands, Connection, FromRedisValue};
use std::time::Duration;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Of leases, in all tests: long enough for any machine.
pub(crate) const LEASE: Duration = Duration::from_secs(100);
const EPOCH_LIFE: Duration = Duration::from_secs(1_000);
pub(crate) const KEY: &str = "k";

/// Not the first moment, as entries have a past.
pub(crate) fn now() -> Time {
    Time::START.after(SECOND * 1_000_000)
}

/// An entry that is fresh for a minute, and of some use for half a minute more.
pub(crate) fn entry(value: &str, version: Version) -> Entry<String> {
    let fresh_until = now().after(SECOND * 60);
    Entry::new(value.to_owned(), version, now(), fresh_until, fresh_until.after(SECOND * 30), SECOND / 8)
}

/// What does not depend on how long the server took.
pub(crate) fn known(entry: Option<Entry<String>>) -> Option<(String, Version)> {
    entry.map(|entry| (entry.value().clone(), entry.version()))
}

/// Of several keys, none of which fails.
pub(crate) fn all_found(found: FoundMany<String, Error>) -> Vec<Option<Entry<String>>> {
    found.unwrap().into_iter().map(Result::unwrap).collect()
}

/// Values are strings, in the codec of bytes.
pub(crate) struct Bench {
    pub(crate) server: Server,
    pub(crate) store: RedisStore,
    pub(crate) raw: Connection,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::on(Server::start())
    }

    pub(crate) fn on(server: Server) -> Self {
        let store = settings().connect_blocking(&server.url()).unwrap();
        let client = redis::Client::open(server.url()).unwrap();
        Self { store, raw: client.get_connection().unwrap(), server }
    }

    /// Another process's store.
    pub(crate) fn other(&self) -> RedisStore {
        settings().connect_blocking(&self.server.url()).unwrap()
    }

    pub(crate) fn claim(token: Token, seen: Option<Version>) -> Claim {
        Claim { token, lease: LEASE, epoch_life: EPOCH_LIFE, seen }
    }

    pub(crate) fn acquire(&mut self, token: Token, seen: Option<Version>) -> Acquired<String> {
        self.try_acquire(token, seen).unwrap()
    }

    pub(crate) fn try_acquire(&mut self, token: Token, seen: Option<Version>) -> Result<Acquired<String>, Error> {
        let acquired = self.store.acquire(KEY, Self::claim(token, seen), now());
        self.check();
        acquired
    }

    /// Acquires what must be free.
    #[track_caller]
    pub(crate) fn lead(&mut self, token: Token) -> Epoch {
        match self.acquire(token, None) {
            Acquired::Leader { epoch } => epoch,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn publish(&mut self, token: Token, epoch: Epoch, value: &str) -> Publication {
        self.try_publish(token, epoch, value).unwrap()
    }

    pub(crate) fn try_publish(&mut self, token: Token, epoch: Epoch, value: &str) -> Result<Publication, Error> {
        let done = self.store.publish(KEY, token, epoch, entry(value, 7), now());
        self.check();
        done
    }

    pub(crate) fn renew(&mut self, token: Token, lease: Duration) -> bool {
        let renewed = BlockingLease::<_, String>::renew(&self.store, KEY, token, lease).unwrap();
        self.check();
        renewed
    }

    pub(crate) fn release(&mut self, token: Token) {
        BlockingLease::<_, String>::release(&self.store, KEY, token).unwrap();
        self.check();
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.entry().map(|entry| entry.value().clone())
    }

    pub(crate) fn entry(&self) -> Option<Entry<String>> {
        self.store.get(KEY, now()).unwrap()
    }

    pub(crate) fn put(&mut self, value: &str, version: Version) {
        self.store.put(KEY, entry(value, version), now()).unwrap();
        self.check();
    }

    pub(crate) fn remove(&mut self) {
        BlockingStore::<_, String>::remove(&self.store, KEY).unwrap();
        self.check();
    }

    /// What the value (`v`), the lease (`l`) or the epoch (`g`) of [`KEY`] is called.
    pub(crate) fn name(&mut self, letter: char) -> String {
        // The generation is a part of the name, and is in that of any other key.
        self.store.put("probe", entry("", 0), now()).unwrap();
        let names: Vec<String> = self.raw.keys("*:probe}:v").unwrap();
        let generation: String = self.raw.get("{5:tests:0}:gen").unwrap();
        let name = names.iter().find(|name| name.contains(&hash(&generation))).expect("it was put");
        name.replace("probe}:v", &format!("{KEY}}}:{letter}"))
    }

    pub(crate) fn there<T: FromRedisValue>(&mut self, letter: char) -> T {
        let name = self.name(letter);
        self.raw.get(name).unwrap()
    }

    pub(crate) fn is_there(&mut self, letter: char) -> bool {
        self.there::<Option<Vec<u8>>>(letter).is_some()
    }

    pub(crate) fn left(&mut self, letter: char) -> i64 {
        let name = self.name(letter);
        self.raw.pttl(name).unwrap()
    }

    pub(crate) fn set(&mut self, letter: char, bytes: &[u8]) {
        let name = self.name(letter);
        let _: () = self.raw.set(name, bytes).unwrap();
    }

    pub(crate) fn delete(&mut self, letter: char) {
        let name = self.name(letter);
        let _: () = self.raw.del(name).unwrap();
    }

    /// Case K7: whenever everything stops, each lease and each epoch runs out by itself.
    pub(crate) fn check(&mut self) {
        for pattern in ["*:l", "*:g"] {
            let names: Vec<Vec<u8>> = self.raw.keys(pattern).unwrap();
            for name in names {
                let left: i64 = self.raw.pttl(&name).unwrap();
                // -2: it has ended since.
                assert_ne!(left, -1, "{} never ends", String::from_utf8_lossy(&name));
            }
        }
    }
}

pub(crate) fn settings() -> Builder {
    RedisStore::builder().prefix("tests").response_timeout(SECOND * 60).connect_timeout(SECOND * 60)
}

/// How a generation is written in names.
fn hash(generation: &str) -> String {
    let hash = generation
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

//! Real servers, as threads and as tasks ask them.

use crate::bench::{Bench, HOUR, KEY, Steps};
use crate::redis_support::server::Server;
use oneflight_cache::fill::Token;
use oneflight_cache::lease::BlockingLease;
use oneflight_cache::redis::{Builder, Error, blocking};
use oneflight_cache::{BlockingStore, Entry, Time};
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// How a store is connected.
pub(crate) trait Way: Sync {
    type Store: Steps<Failure = Error>;

    fn serve() -> Server {
        Server::start()
    }
    fn connect(settings: Builder, url: &str) -> Self::Store;
    fn abandon(store: &Self::Store, token: Token);
}

/// A server of its own, and a store of its own for what tests do to that.
pub(crate) struct OnRedis<W> {
    server: Server,
    hands: blocking::RedisStore,
    begun: Instant,
    way: PhantomData<W>,
}

/// Nobody but a store that clears sees that it has, unless it is told: nothing here depends on when somebody looks.
fn settings() -> Builder {
    let limit = Duration::from_secs(30);
    blocking::RedisStore::builder()
        .prefix("conformance")
        .connect_timeout(limit)
        .response_timeout(limit)
        .generation_life(HOUR)
}

impl<W> OnRedis<W> {
    /// What the value (`v`), the lease (`l`) or the epoch (`g`) of the key is called, if it is there.
    fn name(&self, letter: char) -> Option<String> {
        let mut names = self.server.keys();
        names.retain(|name| name.ends_with(&format!(":{KEY}}}:{letter}")));
        assert!(names.len() < 2, "{names:?}");
        names.pop()
    }

    /// The name of the key's value, which may be given to something else.
    fn name_of_value(&self) -> String {
        let now = self.now();
        let until = now.after(HOUR);
        let entry = Entry::new(b"value".to_vec(), 7, now, until, until, Duration::ZERO);
        self.hands.put(KEY, entry, now).unwrap();
        self.name('v').expect("it was put")
    }

    fn now(&self) -> Time {
        Time::from_start(Duration::from_secs(1_000_000) + self.begun.elapsed())
    }
}

impl<W: Way> Bench for OnRedis<W> {
    type Store = W::Store;

    fn new() -> Self {
        let server = W::serve();
        let hands = settings().connect_blocking(&server.url()).unwrap();
        Self { server, hands, begun: Instant::now(), way: PhantomData }
    }

    fn store(&self) -> W::Store {
        W::connect(settings(), &self.server.url())
    }

    fn now(&self) -> Time {
        Self::now(self)
    }

    fn pass(&self, time: Duration) {
        // To the server's clock, which is cut off to milliseconds, it may be one less.
        std::thread::sleep(time + Duration::from_millis(1));
    }

    fn flush(&self) {
        self.server.flush_all();
    }

    fn lose_epoch(&self) {
        let name = self.name('g').expect("somebody may publish");
        assert_eq!(self.server.cli(&["DEL", &name]), "1");
    }

    fn set_unreadable(&self) {
        let name = self.name_of_value();
        assert_eq!(self.server.cli(&["SET", &name, "what nobody of ours has written"]), "OK");
    }

    fn set_foreign(&self) {
        let name = self.name_of_value();
        self.server.cli(&["DEL", &name]);
        self.server.cli(&["RPUSH", &name, "one", "two"]);
    }

    fn is_foreign(&self) -> bool {
        self.name('v').is_some_and(|name| self.server.cli(&["LRANGE", &name, "0", "-1"]) == "one\ntwo")
    }

    fn set_full(&self, is_full: bool) {
        self.server.config_set("maxmemory", if is_full { "1" } else { "0" });
    }

    fn is_wrong_type(error: &Error) -> bool {
        matches!(error, Error::WrongType)
    }

    fn abandon(&self, store: &W::Store, token: Token) {
        W::abandon(store, token);
    }
}

pub(crate) struct Threads;

impl Way for Threads {
    type Store = blocking::RedisStore;

    fn connect(settings: Builder, url: &str) -> Self::Store {
        settings.connect_blocking(url).unwrap()
    }

    fn abandon(store: &Self::Store, token: Token) {
        BlockingLease::<str, Vec<u8>>::release(store, KEY, token).unwrap();
    }
}

#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
pub(crate) mod tasks {
    use super::{Builder, KEY, Token, Way};
    use crate::tasks::Tasks;
    use oneflight_cache::lease::Lease;
    use oneflight_cache::redis::RedisStore;

    fn abandon(Tasks(store): &Tasks<RedisStore>, token: Token) {
        Lease::<str, Vec<u8>>::abandon(store, KEY, token);
    }

    /// Driven by smol's own threads.
    #[cfg(feature = "redis-smol")]
    pub(crate) struct Smol;

    #[cfg(feature = "redis-smol")]
    impl Way for Smol {
        type Store = Tasks<RedisStore>;

        fn connect(settings: Builder, url: &str) -> Self::Store {
            Tasks(settings.connect(url).unwrap())
        }

        fn abandon(store: &Self::Store, token: Token) {
            abandon(store, token);
        }
    }

    /// Driven by a runtime of tokio, and asked from outside of it.
    #[cfg(feature = "redis-tokio")]
    pub(crate) struct Tokio;

    #[cfg(feature = "redis-tokio")]
    impl Tokio {
        fn runtime() -> &'static tokio::runtime::Runtime {
            static RUNTIME: std::sync::LazyLock<tokio::runtime::Runtime> = std::sync::LazyLock::new(|| {
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
            });
            &RUNTIME
        }
    }

    #[cfg(feature = "redis-tokio")]
    impl Way for Tokio {
        type Store = Tasks<RedisStore>;

        fn connect(settings: Builder, url: &str) -> Self::Store {
            let _inside = Self::runtime().enter();
            Tasks(settings.connect(url).unwrap())
        }

        fn abandon(store: &Self::Store, token: Token) {
            abandon(store, token);
        }
    }

    /// A cluster of one node.
    #[cfg(feature = "redis-cluster")]
    pub(crate) struct Cluster;

    #[cfg(feature = "redis-cluster")]
    impl Way for Cluster {
        type Store = Tasks<RedisStore>;

        fn serve() -> crate::redis_support::server::Server {
            crate::redis_support::server::Server::cluster()
        }

        fn connect(settings: Builder, url: &str) -> Self::Store {
            #[cfg(feature = "redis-tokio")]
            let _inside = Tokio::runtime().enter();
            Tasks(settings.connect_cluster([url]).unwrap())
        }

        fn abandon(store: &Self::Store, token: Token) {
            abandon(store, token);
        }
    }
}

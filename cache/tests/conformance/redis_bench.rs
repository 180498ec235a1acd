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
    /// A case has done with it.
    fn spare(server: Server) {
        drop(server);
    }
    fn connect(settings: Builder, url: &str) -> Self::Store;
    fn abandon(store: &Self::Store, token: Token);
}

/// A server of its own, and a store of its own for what tests do to that.
pub(crate) struct OnRedis<W: Way> {
    /// There is one until this is dropped.
    server: Option<Server>,
    hands: blocking::RedisStore,
    begun: Instant,
    way: PhantomData<W>,
}

fn settings() -> Builder {
    let limit = Duration::from_secs(30);
    blocking::RedisStore::builder()
        .prefix("conformance")
        .connect_timeout(limit)
        .response_timeout(limit)
        // Nothing that one server does may depend on how often somebody looks whether all was cleared.
        .generation_life(HOUR)
}

impl<W: Way> OnRedis<W> {
    fn server(&self) -> &Server {
        self.server.as_ref().expect("it is not dropped yet")
    }

    /// What the value (`v`), the lease (`l`) or the epoch (`g`) of the key is called, if it is there.
    fn name(&self, letter: char) -> Option<String> {
        let mut names = self.server().keys();
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

impl<W: Way> Drop for OnRedis<W> {
    fn drop(&mut self) {
        // One that a case has failed on may be in any state.
        if let (Some(server), false) = (self.server.take(), std::thread::panicking()) {
            W::spare(server);
        }
    }
}

impl<W: Way> Bench for OnRedis<W> {
    type Store = W::Store;

    fn new() -> Self {
        let server = W::serve();
        let hands = settings().connect_blocking(&server.url()).unwrap();
        Self { server: Some(server), hands, begun: Instant::now(), way: PhantomData }
    }

    fn store(&self) -> W::Store {
        W::connect(settings(), &self.server().url())
    }

    fn now(&self) -> Time {
        Self::now(self)
    }

    fn pass(&self, time: Duration) {
        // To the server's clock, which is cut off to milliseconds, it may be one less.
        std::thread::sleep(time + Duration::from_millis(1));
    }

    fn flush(&self) {
        self.server().flush_all();
    }

    fn lose_epoch(&self) {
        let name = self.name('g').expect("somebody may publish");
        assert_eq!(self.server().cli(&["DEL", &name]), "1");
    }

    fn set_unreadable(&self) {
        let name = self.name_of_value();
        assert_eq!(self.server().cli(&["SET", &name, "what nobody of ours has written"]), "OK");
    }

    fn set_foreign(&self) {
        let name = self.name_of_value();
        self.server().cli(&["DEL", &name]);
        self.server().cli(&["RPUSH", &name, "one", "two"]);
    }

    fn is_foreign(&self) -> bool {
        self.name('v').is_some_and(|name| self.server().cli(&["LRANGE", &name, "0", "-1"]) == "one\ntwo")
    }

    fn set_full(&self, is_full: bool) {
        self.server().config_set("maxmemory", if is_full { "1" } else { "0" });
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
    #[cfg(feature = "redis-cluster")]
    use {super::Server, std::sync::Mutex};

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

    /// A cluster of one node. As it takes two seconds until it is ready, a case leaves it to another.
    #[cfg(feature = "redis-cluster")]
    pub(crate) struct Cluster;

    #[cfg(feature = "redis-cluster")]
    static SPARE: Mutex<Vec<Server>> = Mutex::new(Vec::new());

    #[cfg(feature = "redis-cluster")]
    impl Way for Cluster {
        type Store = Tasks<RedisStore>;

        fn serve() -> Server {
            let spare = SPARE.lock().unwrap().pop();
            spare.unwrap_or_else(Server::cluster)
        }

        fn spare(server: Server) {
            server.config_set("maxmemory", "0");
            server.flush_all();
            SPARE.lock().unwrap().push(server);
        }

        fn connect(settings: Builder, url: &str) -> Self::Store {
            #[cfg(feature = "redis-tokio")]
            let _inside = Tokio::runtime().enter();
            // In a cluster a store that is flushed goes on with the old names until it looks again.
            Tasks(settings.generation_life(std::time::Duration::ZERO).connect_cluster([url]).unwrap())
        }

        fn abandon(store: &Self::Store, token: Token) {
            abandon(store, token);
        }
    }
}

//! The settings of a store on a server.

use super::blocking;
use super::codec::Bytes;
use super::error::Error;
use super::generation::Generation;
use super::link::{BlockingLink, Limits};
use super::name::Names;
use super::standalone::Leases;
use super::steps::Steps;
use super::values::Values;
use crate::nonce::nonce;
use std::time::Duration;

#[cfg(feature = "redis-cluster")]
use super::link::ClusterLink;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
use super::{any_link::AnyLink, link::TaskLink, store::RedisStore, task_lease::RedisLease};

/// Builds a store or a lease, for tasks or for threads. Each cache should have a [`prefix`](Self::prefix) of its own: without one,
/// all that use the server share their values.
///
/// | setting | default |
/// |---|---|
/// | [`prefix`](Self::prefix) | `oneflight` |
/// | [`schema`](Self::schema) | 0 |
/// | [`codec`](Self::codec) | [`Bytes`] |
/// | [`connect_timeout`](Self::connect_timeout) | 1 s |
/// | [`response_timeout`](Self::response_timeout) | 500 ms |
/// | [`max_connections`](Self::max_connections) (threads) | 32 |
/// | [`generation_life`](Self::generation_life) | 1 s |
///
/// # Examples
///
/// ```
/// use oneflight_cache::redis::blocking::RedisStore;
/// use oneflight_cache::{BoxError, blocking};
///
/// let store = RedisStore::builder().prefix("shop").schema(2).connect_blocking("redis://localhost:6379")?;
/// let pages: blocking::Cache<String, String, BoxError, _> = blocking::Cache::builder().store(store).build_blocking();
/// # let _ = pages;
/// # Ok::<(), oneflight_cache::redis::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is connected"]
pub struct Builder<C = Bytes> {
    prefix: String,
    schema: u32,
    codec: C,
    limits: Limits,
    generation_life: Duration,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            prefix: "oneflight".to_owned(),
            schema: 0,
            codec: Bytes,
            limits: Limits::default(),
            generation_life: Duration::from_secs(1),
        }
    }
}

impl<C> Builder<C> {
    /// What the names of all keys and channels begin with: stores with different prefixes share nothing.
    ///
    /// Give each cache its own. Two caches with the same prefix, or without one, read each other's values under the same keys, whatever
    /// each means by these, and clear each other. Braces in it are harmless, but with a `}` all keys and channels are in one slot of a
    /// cluster, so one server has all the work.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisStore;
    ///
    /// let store = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
    /// # let _ = store;
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The version of what is stored: stores with different ones share nothing. So during a deploy the old and the new version
    /// of a program do not overwrite each other's values.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisStore;
    ///
    /// let store = RedisStore::builder().prefix("shop").schema(2).connect_blocking("redis://localhost:6379")?;
    /// # let _ = store;
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn schema(mut self, version: u32) -> Self {
        self.schema = version;
        self
    }

    /// How values are made into bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "serde")]
    /// # {
    /// use oneflight_cache::redis::{Serde, blocking::RedisStore};
    ///
    /// let builder = RedisStore::builder().codec(Serde);
    /// # let _ = builder;
    /// # }
    /// ```
    pub fn codec<D>(self, codec: D) -> Builder<D> {
        let Self { prefix, schema, limits, generation_life, .. } = self;
        Builder { prefix, schema, codec, limits, generation_life }
    }

    /// How long to wait for a connection.
    ///
    /// If the name of a server has several addresses, a store for threads waits for each of them for its share of that; to look the
    /// name up may take longer, as the system does not limit that. For a connection to one server of a cluster it is a third of the
    /// [time for a reply](Self::response_timeout) at most, TLS and log-in included, as all requests wait while the client looks for
    /// servers: where that is too short, no server can be reached, so set a longer one.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisStore;
    /// use std::time::Duration;
    ///
    /// let store = RedisStore::builder().connect_timeout(Duration::from_millis(200)).connect_blocking("redis://localhost:6379")?;
    /// # let _ = store;
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.limits.connect = limit;
        self
    }

    /// How long to wait for each reply. After that the request has failed, whether it was carried out or not.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisStore;
    /// use std::time::Duration;
    ///
    /// let store = RedisStore::builder().response_timeout(Duration::from_millis(50)).connect_blocking("redis://localhost:6379")?;
    /// # let _ = store;
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn response_timeout(mut self, limit: Duration) -> Self {
        self.limits.response = limit;
        self
    }

    /// How many connections a store for threads may have open, one of which is used by one thread at a time; 32 unless it is set.
    /// Whoever finds all of them in use waits for one as long as for a reply.
    ///
    /// A store for tasks has one connection for all; in a cluster one to each server. Either kind of store has one more, or in a
    /// cluster one more to each server, for what is pushed, from the first time that it listens.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisStore;
    ///
    /// let store = RedisStore::builder().max_connections(8).connect_blocking("redis://localhost:6379")?;
    /// # let _ = store;
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.limits.connections = connections;
        self
    }

    /// After another process has cleared the store, this one may read old values for so long, unless it is told before that.
    /// Once in that time a read also asks whether the store was cleared, in the same round trip.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisStore;
    /// use std::time::Duration;
    ///
    /// let store = RedisStore::builder().generation_life(Duration::from_millis(100)).connect_blocking("redis://localhost:6379")?;
    /// # let _ = store;
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn generation_life(mut self, life: Duration) -> Self {
        self.generation_life = life;
        self
    }

    /// A store for threads, at this address: `redis://`, `redis+unix://`, or `rediss://` with a TLS feature of the client. It
    /// connects when it is first used, so the server may be away until then.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] if the URL makes no sense.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::{Error, blocking::RedisStore};
    ///
    /// let store = RedisStore::builder().connect_blocking("redis://localhost:6379")?;
    /// assert_eq!(store.unreadable(), 0);
    /// assert!(matches!(RedisStore::builder().connect_blocking("localhost"), Err(Error::Settings(_))));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn connect_blocking(self, url: &str) -> Result<blocking::RedisStore<C>, Error> {
        Ok(self.with_client_blocking(redis::Client::open(url)?))
    }

    /// As [`connect_blocking`](Self::connect_blocking), by a client that has been set up already: for TLS with certificates of
    /// one's own, say.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisStore;
    ///
    /// let client = redis::Client::open("redis://localhost:6379")?;
    /// let store = RedisStore::builder().prefix("shop").with_client_blocking(client);
    /// # let _ = store;
    /// # Ok::<(), redis::RedisError>(())
    /// ```
    #[must_use]
    pub fn with_client_blocking(self, client: redis::Client) -> blocking::RedisStore<C> {
        let link = BlockingLink::new(client, self.limits, nonce() as u64);
        let steps = Steps::new(link, self.names(), Generation::new(self.generation_life));
        blocking::RedisStore(Values::new(steps, self.codec))
    }

    /// Leases alone, for threads.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] if the URL makes no sense.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisLease;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_blocking("redis://localhost:6379")?;
    /// # let _ = leases;
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn lease_blocking(self, url: &str) -> Result<blocking::RedisLease, Error> {
        let link = BlockingLink::new(redis::Client::open(url)?, self.limits, nonce() as u64);
        Ok(blocking::RedisLease(Leases::new(Steps::new(link, self.names(), Generation::fixed()))))
    }

    fn names(&self) -> Names {
        Names::new(&self.prefix, self.schema)
    }
}

/// For tasks.
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
impl<C> Builder<C> {
    /// A store for tasks, at this address: `redis://`, `redis+unix://`, or `rediss://` with a TLS feature of the client. It
    /// connects when it is first used, so the server may be away until then.
    ///
    /// With the feature `redis-tokio` its connections are driven by the runtime of tokio in which this is called, if it is called
    /// in one; otherwise, with `redis-smol`, by smol's own threads. Its futures may be polled on any executor either way; with both
    /// features, a runtime of tokio that polls them needs its timers (`enable_time`), which the client uses wherever it finds one. A
    /// runtime of tokio that drives the connections must be driven for as long as the store is used, one of a single thread too:
    /// while nobody runs it, requests hang.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] if the URL makes no sense; and outside of tokio, if there is only the feature `redis-tokio`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis-smol")] {
    /// use oneflight_cache::redis::RedisStore;
    ///
    /// let store = RedisStore::builder().prefix("shop").connect("redis://localhost:6379")?;
    /// # let _ = store;
    /// # }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn connect(self, url: &str) -> Result<RedisStore<C>, Error> {
        let link = AnyLink::Single(TaskLink::open(url, self.limits, nonce() as u64)?);
        Ok(self.on(link))
    }

    /// As [`connect`](Self::connect), by a client that has been set up already: for TLS with certificates of one's own, say.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`] outside of tokio, if there is only the feature `redis-tokio`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis-smol")] {
    /// use oneflight_cache::redis::RedisStore;
    ///
    /// let client = redis::Client::open("redis://localhost:6379")?;
    /// let store = RedisStore::builder().prefix("shop").with_client(&client)?;
    /// # let _ = store;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_client(self, client: &redis::Client) -> Result<RedisStore<C>, Error> {
        let link = AnyLink::Single(TaskLink::new(client, self.limits, nonce() as u64)?);
        Ok(self.on(link))
    }

    /// A store on a cluster, some of whose servers are at these addresses. These need Redis 7 or Valkey, as what is pushed goes
    /// over sharded channels.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), and if there is no URL.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis-smol")] {
    /// use oneflight_cache::redis::RedisStore;
    ///
    /// let servers = ["redis://localhost:7000", "redis://localhost:7001"];
    /// let store = RedisStore::builder().prefix("shop").connect_cluster(servers)?;
    /// # let _ = store;
    /// # }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    #[cfg(feature = "redis-cluster")]
    pub fn connect_cluster<U: redis::IntoConnectionInfo>(
        self,
        urls: impl IntoIterator<Item = U>,
    ) -> Result<RedisStore<C>, Error> {
        let link = AnyLink::Cluster(ClusterLink::open(urls, self.limits, nonce() as u64)?);
        Ok(self.on(link))
    }

    /// Leases alone, for tasks.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis-smol")] {
    /// use oneflight_cache::redis::RedisLease;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease("redis://localhost:6379")?;
    /// # let _ = leases;
    /// # }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    pub fn lease(self, url: &str) -> Result<RedisLease, Error> {
        let link = AnyLink::Single(TaskLink::open(url, self.limits, nonce() as u64)?);
        Ok(RedisLease(Leases::new(Steps::new(link, self.names(), Generation::fixed()))))
    }

    fn on(self, link: AnyLink) -> RedisStore<C> {
        let steps = Steps::new(link, self.names(), Generation::new(self.generation_life));
        RedisStore(Values::new(steps, self.codec))
    }
}

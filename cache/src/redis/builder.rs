//! The settings of a store on a server.

mod connect;

use super::codec::Bytes;
use super::link::Limits;
use std::time::Duration;

/// Builds a store or a lease, for tasks or for threads. Each cache should have a [`prefix`](Self::prefix) of its own: without one,
/// all that use the server share their values.
///
/// A process that forks should make its stores after that, not before: a store that was made before has the same connections in both,
/// so one may read the replies to the other, no threads in the child, and takes what either writes for its own.
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
    /// Tasks wait so long for a reply as a whole, threads for each piece of it that arrives: one that trickles takes them longer.
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
}

//! From the settings to a store or to leases.

use super::Builder;
use crate::nonce::nonce;
use crate::redis::blocking;
use crate::redis::error::Error;
use crate::redis::generation::Generation;
use crate::redis::link::BlockingLink;
use crate::redis::name::Names;
use crate::redis::standalone::Leases;
use crate::redis::steps::Steps;
use crate::redis::values::Values;

#[cfg(feature = "redis-cluster")]
use crate::redis::link::ClusterLink;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
use crate::redis::{any_link::AnyLink, link::TaskLink, store::RedisStore, task_lease::RedisLease};

impl<C> Builder<C> {
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
        let steps = Steps::new(self.blocking(client), self.names(), Generation::new(self.generation_life));
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
        Ok(self.lease_with_client_blocking(redis::Client::open(url)?))
    }

    /// As [`lease_blocking`](Self::lease_blocking), by a client that has been set up already.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight_cache::redis::blocking::RedisLease;
    ///
    /// let client = redis::Client::open("redis://localhost:6379")?;
    /// let leases = RedisLease::builder().prefix("reports").lease_with_client_blocking(client);
    /// # let _ = leases;
    /// # Ok::<(), redis::RedisError>(())
    /// ```
    #[must_use]
    pub fn lease_with_client_blocking(self, client: redis::Client) -> blocking::RedisLease {
        blocking::RedisLease(Leases::new(Steps::new(self.blocking(client), self.names(), Generation::fixed())))
    }

    fn blocking(&self, client: redis::Client) -> BlockingLink {
        BlockingLink::new(client, self.limits, nonce() as u64)
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
        self.with_client(&redis::Client::open(url)?)
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
        let link = self.single(client)?;
        Ok(self.on(link))
    }

    /// A store on a cluster, some of whose servers are at these addresses. With the feature `redis-cluster`. The servers need Redis 7 or Valkey, as what is pushed goes
    /// over sharded channels. With `rediss://` its servers are vouched for by the system's authorities; with rustls, by those of the file
    /// that the environment variable `SSL_CERT_FILE` names.
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
        let link = self.cluster(urls)?;
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
        self.lease_with_client(&redis::Client::open(url)?)
    }

    /// As [`lease`](Self::lease), by a client that has been set up already.
    ///
    /// # Errors
    ///
    /// As [`with_client`](Self::with_client).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis-smol")] {
    /// use oneflight_cache::redis::RedisLease;
    ///
    /// let client = redis::Client::open("redis://localhost:6379")?;
    /// let leases = RedisLease::builder().prefix("reports").lease_with_client(&client)?;
    /// # let _ = leases;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lease_with_client(self, client: &redis::Client) -> Result<RedisLease, Error> {
        let link = self.single(client)?;
        Ok(self.leases_on(link))
    }

    /// Leases alone, on a cluster.
    ///
    /// # Errors
    ///
    /// As [`connect_cluster`](Self::connect_cluster). With the feature `redis-cluster`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis-smol")] {
    /// use oneflight_cache::redis::RedisLease;
    ///
    /// let leases = RedisLease::builder().prefix("reports").lease_cluster(["redis://localhost:7000"])?;
    /// # let _ = leases;
    /// # }
    /// # Ok::<(), oneflight_cache::redis::Error>(())
    /// ```
    #[cfg(feature = "redis-cluster")]
    pub fn lease_cluster<U: redis::IntoConnectionInfo>(
        self,
        urls: impl IntoIterator<Item = U>,
    ) -> Result<RedisLease, Error> {
        let link = self.cluster(urls)?;
        Ok(self.leases_on(link))
    }

    fn single(&self, client: &redis::Client) -> Result<AnyLink, Error> {
        Ok(AnyLink::Single(TaskLink::new(client, self.limits, nonce() as u64)?))
    }

    #[cfg(feature = "redis-cluster")]
    fn cluster<U: redis::IntoConnectionInfo>(&self, urls: impl IntoIterator<Item = U>) -> Result<AnyLink, Error> {
        Ok(AnyLink::Cluster(ClusterLink::open(urls, self.limits, nonce() as u64)?))
    }

    fn on(self, link: AnyLink) -> RedisStore<C> {
        let steps = Steps::new(link, self.names(), Generation::new(self.generation_life));
        RedisStore(Values::new(steps, self.codec))
    }

    fn leases_on(self, link: AnyLink) -> RedisLease {
        RedisLease(Leases::new(Steps::new(link, self.names(), Generation::fixed())))
    }
}

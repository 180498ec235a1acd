//! Values on a Redis or Valkey server, and leases across all the processes that share it.
//!
//! [`RedisStore`] is for tasks (feature `redis-smol` or `redis-tokio`), [`blocking::RedisStore`] for threads (feature `redis`); one [`Builder`] makes both, and both read what the other
//! wrote. So a value is loaded by one process, and the others get it from the server.
//!
//! ```no_run
//! use oneflight_cache::redis::blocking::RedisStore;
//! use oneflight_cache::{BoxError, blocking::Cache};
//! use std::time::Duration;
//!
//! let store = RedisStore::builder().prefix("shop").connect_blocking("redis://localhost:6379")?;
//! let pages: Cache<String, String, BoxError, _> =
//!     Cache::builder().store(store).ttl(Duration::from_secs(30)).build_blocking();
//! let page = pages.get_or_load("home", || Ok("<h1>hello</h1>".to_owned()))?;
//! # let _ = page;
//! # Ok::<(), BoxError>(())
//! ```
//!
//! # What is on the server
//!
//! | name | is |
//! |---|---|
//! | `{4:shop:2:<generation>:<key>}:v` | a value: a header of 32 bytes, and what the [`Codec`] has made of it |
//! | the same with `:l` | the lease: the token of whoever loads |
//! | the same with `:g` | the epoch: a random number, while anybody may publish; after a load that failed it is there for ten minutes more, or longer if [`max_hold`](crate::Builder::max_hold) is |
//! | `{4:shop:2}:gen` | the generation, a random number that [clearing](crate::Store::clear) sets anew |
//! | `{4:shop:2:00}:c` to `{4:shop:2:63}:c` | the channels on which processes tell each other what has happened |
//!
//! Here the [prefix](Builder::prefix) is `shop`, of four bytes, and the [schema](Builder::schema) 2. Leases and epochs always
//! expire. Values expire when they are of no more use. The generation stays; if the server loses it, all values are lost, so
//! let it evict what expires only (`volatile-lru`, say) if you can. Cleared values are not removed: they expire. Those that were to
//! last for ever (`Duration::MAX`) do not, nor are they evicted then, so give values an end if you clear.
//!
//! Whatever is not a string under one of these names is left alone, and is [`Error::WrongType`]. What is a string and cannot be
//! read is a miss, is counted, and is overwritten.
//!
//! A hit is one round trip, of `PTTL` and `GET`. All that changes something is a script that is carried out as a whole, or not
//! at all; if the server is out of memory, say, nothing has been done.
//!
//! # Which servers
//!
//! - Redis 6.0 or later, or any Valkey, for tasks: they are told what is pushed in RESP3. The scripts and the commands for
//!   threads are older.
//! - Redis 7.0 or later, or any Valkey, as a cluster (feature `redis-cluster`): there it is pushed over sharded channels. All
//!   names of a key are in one slot, but not its channel, so who writes does not wait until that has been pushed. If the process
//!   ends at once after a write, it may not be. While a slot moves to another server, its values are found on either; but a server
//!   refuses a script (`TRYAGAIN`) unless all names of the key are there, which most never are. It is asked again for as long as
//!   [a reply may take](Builder::response_timeout), and then it is an error: nothing is stored or invalidated in that slot until it
//!   has moved, and its missing keys are loaded past the store.
//! - TLS comes with the client: enable a feature of `redis`, and use a URL that begins with `rediss://`. For threads `tls-rustls`
//!   or `tls-native-tls`; for tasks `smol-rustls-comp`, `tokio-rustls-comp`, `smol-native-tls-comp` or `tokio-native-tls-comp`. With
//!   rustls, install a `CryptoProvider` of it for the process first. Users and passwords are a part of the URL, and are never
//!   shown.
//! - With `tls-native-tls` the client does not limit how long a handshake takes: a server that accepts a connection, and says no more,
//!   holds up the thread that connects for as long as it likes. With `tls-rustls`, and for tasks, there are the limits.
//! - Nor does it limit for threads how long it takes to connect over `redis+unix://`: while more clients wait to be let in than the
//!   server has room for, a thread waits for as long as that lasts. For tasks there are the limits.
//!
//! A user needs, with `4:shop` for the length of the prefix and the prefix:
//!
//! ```text
//! ~{4:shop:* &{4:shop:* +get +set +pttl +evalsha +eval +type +exists +getrange +pexpire +del +publish +subscribe +ping +hello
//! ```
//!
//! If the URL names a database also `+select`; in a cluster also `+spublish +ssubscribe +asking +cluster|slots`. Without the
//! right to subscribe all works, and those who wait look at the server every few milliseconds instead. Without the right to
//! publish it is as if all that is pushed were lost: who listens looks every 100 ms only. `CONFIG`, keyspace events and modules
//! are not used.
//!
//! If a server says that it is a replica, connections are made anew, once in two seconds at most: another may have taken over under
//! its name. In a cluster the client finds it.
//!
//! A managed server may forbid some of it, most likely scripts (`EVAL`, `EVALSHA`), which nothing works without. It may close
//! idle connections, which are then made anew; and a proxy before it may let no `SUBSCRIBE` through.
//!
//! # What a lease is not
//!
//! It saves loads. It does not exclude anything:
//!
//! - **It runs out while its holder does not know.** A process that stands still for longer than its lease, in a garbage
//!   collection or in a virtual machine that is moved, goes on as if it had it, while another has it too. Here the server
//!   refuses what such a process publishes, if there is something newer or the key was written since. Nobody refuses what it
//!   does elsewhere: that needs a number that grows with each lease, a *fencing token*, and a resource that checks it.
//! - **It may be lost with a server.** Replicas are written to after the reply, so a replica that takes over may not know of a
//!   lease, an epoch, or the last write. Two processes then load, and a value that was removed just before may be back until it
//!   expires.
//! - **Clocks matter less than that.** Only the server's own expiries count, and durations measured by one process.
//!
//! Several independent servers (Redlock) do not change the first point. Martin Kleppmann's [How to do distributed
//! locking](https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html) explains it, and tells locks for
//! efficiency, as this is, from locks for correctness; Salvatore Sanfilippo's answer is [Is Redlock
//! safe?](http://antirez.com/news/101). What must never happen twice at once belongs into a transaction of the database that
//! it changes.

#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod any_link;
pub mod blocking;
mod builder;
mod codec;
mod error;
mod generation;
mod header;
mod key;
mod link;
mod name;
mod push;
mod reply;
mod script;
mod server;
mod standalone;
mod steps;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod store;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
mod task_lease;
mod thread_lease;
mod values;

pub use builder::Builder;
pub use codec::{Bytes, Codec};
pub use error::Error;
pub use key::CacheKey;

#[cfg(feature = "serde")]
pub use codec::Serde;
#[cfg(any(feature = "redis-smol", feature = "redis-tokio"))]
pub use {
    store::RedisStore,
    task_lease::{HeldLease, RedisLease},
};

//! Where values are kept.

mod blocking;

pub use blocking::Blocking;

use crate::entry::Entry;
use crate::lease::{BlockingLease, Lease};
use crate::time::Time;
use std::error::Error;
use std::future::Future;

/// What a store says of several keys: for each in their order what [`Store::get`] would, or an error of all of them.
///
/// # Examples
///
/// ```
/// use oneflight_cache::{Entry, FoundMany};
///
/// /// How many of the keys there is no value of, as far as that is known.
/// fn missing(found: &FoundMany<String, std::io::Error>) -> usize {
///     found.iter().flatten().filter(|of_one| matches!(of_one, Ok(None))).count()
/// }
/// assert_eq!(missing(&Ok(vec![Ok(None), Err(std::io::ErrorKind::TimedOut.into())])), 1);
/// assert_eq!(missing(&Err(std::io::ErrorKind::TimedOut.into())), 0);
/// ```
pub type FoundMany<V, E> = Result<Vec<Result<Option<Entry<V>>, E>>, E>;

/// Keeps values: in memory, in a server, in a table. `K` is what values are looked up by, which may be a borrowed form of the
/// key, such as `str`.
///
/// A store decides nothing. The cache asks it for an entry, looks at its times, and sees to it that nothing that was loaded
/// before a write is put after it, in this process: while it puts or removes, it does nothing else with that key.
///
/// # Cancel safety
///
/// The cache drops what these futures are in the middle of: a read when its caller is dropped or has [no more
/// time](crate::Call::timeout), a write when its caller is dropped or [`load_timeout`](crate::Builder::load_timeout) is over. The
/// request may be carried out or not. A connection that was sent one and whose reply was not read yet must not be used again, not
/// from a pool either: it would answer the next request, of another key, by that reply. Close it, or let a task of the store's own
/// read what comes.
///
/// # Examples
///
/// A table, as one would write it for a database. What it keeps outlives this process, whose [`Time`]s mean nothing elsewhere: so
/// times are kept by the database's clock, and what is told and taken is how long ago something was, or how long it lasts.
///
/// ```
/// use oneflight_cache::lease::NoLease;
/// use oneflight_cache::{Cache, Entry, Source, Store, Time};
/// use std::collections::HashMap;
/// use std::convert::Infallible;
/// use std::sync::Mutex;
/// use std::time::{Duration, SystemTime};
///
/// #[derive(Clone, Copy)]
/// struct Row {
///     value: u32,
///     version: u32,
///     loaded_at: Duration,
///     fresh_until: Duration,
///     stale_until: Duration,
///     cost: Duration,
/// }
///
/// #[derive(Default)]
/// struct Table(Mutex<HashMap<String, Row>>);
///
/// /// What the database's clock says.
/// fn clock() -> Duration {
///     SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
/// }
///
/// // For `String`, which the cache keeps, and for `str`, which callers look up.
/// impl<K: AsRef<str> + Sync + ?Sized> Store<K, u32> for Table {
///     type Error = Infallible;
///     type Displaced = ();
///     type Lease = NoLease;
///
///     async fn get(&self, key: &K, now: Time) -> Result<Option<Entry<u32>>, Infallible> {
///         let Some(row) = self.0.lock().unwrap().get(key.as_ref()).copied() else { return Ok(None) };
///         let clock = clock();
///         let time = |it: Duration| now.before(clock.saturating_sub(it)).after(it.saturating_sub(clock));
///         let (loaded_at, fresh_until, stale_until) = (time(row.loaded_at), time(row.fresh_until), time(row.stale_until));
///         let entry = Entry::new(row.value, row.version, loaded_at, fresh_until, stale_until, row.cost);
///         Ok(Some(entry).filter(|entry| entry.stale_until() > now))
///     }
///
///     async fn put(&self, key: &K, entry: Entry<u32>, now: Time) -> Result<(), Infallible> {
///         let clock = clock();
///         let row = Row {
///             value: *entry.value(),
///             version: entry.version(),
///             loaded_at: clock.saturating_sub(now.since(entry.loaded_at())),
///             fresh_until: clock.saturating_add(entry.fresh_until().since(now)),
///             stale_until: clock.saturating_add(entry.stale_until().since(now)),
///             cost: entry.cost(),
///         };
///         self.0.lock().unwrap().insert(key.as_ref().to_owned(), row);
///         Ok(())
///     }
///
///     async fn remove(&self, key: &K) -> Result<(), Infallible> {
///         self.0.lock().unwrap().remove(key.as_ref());
///         Ok(())
///     }
///
///     async fn clear(&self) -> Result<(), Infallible> {
///         self.0.lock().unwrap().clear();
///         Ok(())
///     }
/// }
///
/// # smol::block_on(async {
/// let ages = Cache::<String, u32>::builder().store(Table::default()).build();
/// assert_eq!(ages.get_or_load("Ada", || async { Ok(36) }).await?.source, Source::Loaded);
/// assert_eq!(ages.get_or_load("Ada", || async { Err("not called".into()) }).await?.source, Source::Hit);
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// # }).unwrap();
/// ```
pub trait Store<K: ?Sized, V>: Send + Sync + 'static {
    /// Why it failed.
    type Error: Error + Send + Sync + 'static;
    /// What a write has pushed out, for stores that keep the values themselves: the cache drops it when it holds no lock.
    /// Otherwise `()`.
    type Displaced: Send;
    /// Says which process loads, if several share the store. [`NoLease`](crate::lease::NoLease) for one that is a process's own.
    type Lease: Lease<K, V, Error = Self::Error>;

    /// Its leases, if it is one that several processes share.
    fn lease(&self) -> Option<&Self::Lease> {
        None
    }

    /// The entry of `key`, if the store has it in this process's memory, for stores that keep some of them there. It waits for
    /// nothing. The cache looks here first, and asks only for what is not here or may not be served any more: so what is here is
    /// served though the store does not answer.
    fn near(&self, key: &K, now: Time) -> Option<Entry<V>> {
        let _ = (key, now);
        None
    }

    /// How often `key` was written in this process, as far as the store knows, if it keeps entries [near](Self::near): asked by the
    /// cache before a load of which the store cannot be told, as it fails. Keys may share a number.
    fn near_writes(&self, key: &K) -> Option<u64> {
        let _ = key;
        None
    }

    /// Keeps the `entry` of such a load near, unless the key was written since there were so many `writes`. Waits for nothing.
    fn keep_near(&self, key: &K, entry: Entry<V>, writes: u64) {
        let _ = (key, entry, writes);
    }

    /// The entry of `key`, unless it is of no more use at `now`. What it cannot read is not there.
    fn get(&self, key: &K, now: Time) -> impl Future<Output = Result<Option<Entry<V>>, Self::Error>> + Send;

    /// As [`get`](Self::get), for several keys, in their order. A store that can ask for all at once should. As it is, this asks for
    /// one after the other, and the first error ends it.
    ///
    /// An error of one key is in its place, and costs the others nothing; one of all of them is returned instead.
    fn get_many(&self, keys: &[&K], now: Time) -> impl Future<Output = FoundMany<V, Self::Error>> + Send
    where
        K: Sync,
        V: Send,
    {
        async move {
            let mut found = Vec::with_capacity(keys.len());
            for key in keys {
                found.push(Ok(self.get(key, now).await?));
            }
            Ok(found)
        }
    }

    /// Keeps `entry` for `key`, in place of what is there, until [`Entry::stale_until`] or until it needs the room.
    fn put(
        &self,
        key: &K,
        entry: Entry<V>,
        now: Time,
    ) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send;

    /// What a value weighs, for a store that is bounded by weight: asked by the cache before it puts, where no lock is held.
    fn weigh(&self, key: &K, value: &V) -> u64 {
        let _ = (key, value);
        1
    }

    /// As [`put`](Self::put), of an entry that was [weighed](Self::weigh). A store that weighs should not do so again here, as the
    /// cache may hold a lock.
    fn put_weighed(
        &self,
        key: &K,
        entry: Entry<V>,
        weight: u64,
        now: Time,
    ) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send {
        let _ = weight;
        self.put(key, entry, now)
    }

    /// Keeps nothing for `key`.
    fn remove(&self, key: &K) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send;

    /// Keeps nothing at all.
    fn clear(&self) -> impl Future<Output = Result<Self::Displaced, Self::Error>> + Send;

    /// How many entries it has given up to make room, if it counts them.
    fn evictions(&self) -> u64 {
        0
    }

    /// Whether it is as quick as memory: nothing that it does takes longer than a look-up, and its futures need not wait. Then the
    /// cache writes to it under a short lock, which costs less than one that tasks can wait for. If in doubt, false; the cache panics
    /// if it has to wait all the same.
    fn is_immediate(&self) -> bool {
        false
    }
}

/// The same for threads: a store of a [`blocking::Cache`](crate::blocking::Cache).
///
/// # Examples
///
/// ```
/// use oneflight_cache::lease::NoLease;
/// use oneflight_cache::{BlockingStore, Entry, Time};
/// use std::collections::HashMap;
/// use std::convert::Infallible;
/// use std::sync::Mutex;
///
/// #[derive(Default)]
/// struct Map(Mutex<HashMap<u64, Entry<u32>>>);
///
/// impl BlockingStore<u64, u32> for Map {
///     type Error = Infallible;
///     type Displaced = Option<Entry<u32>>;
///     type Lease = NoLease;
///
///     fn get(&self, key: &u64, now: Time) -> Result<Option<Entry<u32>>, Infallible> {
///         Ok(self.0.lock().unwrap().get(key).filter(|entry| entry.stale_until() > now).cloned())
///     }
///     fn put(&self, key: &u64, entry: Entry<u32>, _now: Time) -> Result<Self::Displaced, Infallible> {
///         Ok(self.0.lock().unwrap().insert(*key, entry))
///     }
///     fn remove(&self, key: &u64) -> Result<Self::Displaced, Infallible> {
///         Ok(self.0.lock().unwrap().remove(key))
///     }
///     fn clear(&self) -> Result<Self::Displaced, Infallible> {
///         self.0.lock().unwrap().clear();
///         Ok(None)
///     }
/// }
/// let cache = oneflight_cache::Cache::<u64, u32>::builder().store(Map::default()).build_blocking();
/// assert_eq!(*cache.get_or_load(&7, || Ok(1))?, 1);
/// # Ok::<(), oneflight_cache::Error<oneflight_cache::BoxError>>(())
/// ```
pub trait BlockingStore<K: ?Sized, V>: Send + Sync + 'static {
    /// Why it failed.
    type Error: Error + Send + Sync + 'static;
    /// See [`Store::Displaced`].
    type Displaced: Send;
    /// See [`Store::Lease`].
    type Lease: BlockingLease<K, V, Error = Self::Error>;

    /// See [`Store::lease`].
    fn lease(&self) -> Option<&Self::Lease> {
        None
    }

    /// See [`Store::near`].
    fn near(&self, key: &K, now: Time) -> Option<Entry<V>> {
        let _ = (key, now);
        None
    }

    /// See [`Store::near_writes`].
    fn near_writes(&self, key: &K) -> Option<u64> {
        let _ = key;
        None
    }

    /// See [`Store::keep_near`].
    fn keep_near(&self, key: &K, entry: Entry<V>, writes: u64) {
        let _ = (key, entry, writes);
    }

    /// See [`Store::get`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn get(&self, key: &K, now: Time) -> Result<Option<Entry<V>>, Self::Error>;

    /// See [`Store::get_many`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn get_many(&self, keys: &[&K], now: Time) -> FoundMany<V, Self::Error> {
        keys.iter().map(|key| self.get(key, now).map(Ok)).collect()
    }

    /// See [`Store::put`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn put(&self, key: &K, entry: Entry<V>, now: Time) -> Result<Self::Displaced, Self::Error>;

    /// See [`Store::weigh`].
    fn weigh(&self, key: &K, value: &V) -> u64 {
        let _ = (key, value);
        1
    }

    /// See [`Store::put_weighed`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn put_weighed(&self, key: &K, entry: Entry<V>, weight: u64, now: Time) -> Result<Self::Displaced, Self::Error> {
        let _ = weight;
        self.put(key, entry, now)
    }

    /// See [`Store::remove`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn remove(&self, key: &K) -> Result<Self::Displaced, Self::Error>;

    /// See [`Store::clear`].
    ///
    /// # Errors
    ///
    /// If the store fails.
    fn clear(&self) -> Result<Self::Displaced, Self::Error>;

    /// See [`Store::evictions`].
    fn evictions(&self) -> u64 {
        0
    }

    /// See [`Store::is_immediate`].
    fn is_immediate(&self) -> bool {
        false
    }
}

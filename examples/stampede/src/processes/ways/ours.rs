//! The same with `oneflight-cache`: the callers of a process share a load, and a lease on the server says which process it is
//! that loads.

use alloc::sync::Arc;
use core::time::Duration;

use oneflight_cache::lease::NoLease;
use oneflight_cache::redis::Error;
use oneflight_cache::redis::blocking::RedisStore;
use oneflight_cache::{BlockingStore, BoxError, Entry, Time, blocking};

use super::{Caller, KEY, PATIENCE, Way};
use crate::processes::loader::Loader;
use crate::processes::protocol::{Moment, Setup};

type Cache<S> = blocking::Cache<String, String, BoxError, S>;

struct Protected<S> {
    cache: Cache<S>,
    loader: Arc<Loader>,
}

/// Makes the cache of one process.
pub(super) fn make(setup: &Setup, loader: Arc<Loader>) -> Result<Box<dyn Way>, BoxError> {
    let store = RedisStore::builder().prefix(&setup.prefix).response_timeout(PATIENCE).connect_timeout(PATIENCE);
    let store = store.connect_blocking(&setup.url)?;
    Ok(if setup.terms.leased {
        Box::new(Protected { cache: cache(setup, store), loader })
    } else {
        Box::new(Protected { cache: cache(setup, Alone(store)), loader })
    })
}

fn cache<S: BlockingStore<String, String>>(setup: &Setup, store: S) -> Cache<S> {
    let terms = setup.terms;
    // Values live exactly as long as in the other ways, or these could not be compared: a service would leave some jitter.
    let cache = blocking::Cache::builder().ttl(terms.ttl).ttl_jitter(0.0).lease(terms.lease).store(store);
    if terms.renewed { cache.build_blocking() } else { cache.max_hold(Duration::ZERO).build_blocking() }
}

impl<S> Way for Protected<S>
where
    S: BlockingStore<String, String> + BlockingStore<str, String, Error = <S as BlockingStore<String, String>>::Error>,
{
    fn caller(&self) -> Result<Box<dyn Caller>, BoxError> {
        // The cache keeps connections for whoever comes. As those of the other ways, they are made before anything is measured.
        self.cache.get("another page")?;
        let (cache, loader) = (self.cache.clone(), Arc::clone(&self.loader));
        Ok(Box::new(Protected { cache, loader }))
    }

    fn stored(&self) -> Result<Option<String>, BoxError> {
        Ok(self.cache.get(KEY)?.map(|value| value.into_value()))
    }
}

impl<S> Caller for Protected<S>
where
    S: BlockingStore<String, String> + BlockingStore<str, String, Error = <S as BlockingStore<String, String>>::Error>,
{
    fn get(&mut self) -> Result<String, BoxError> {
        let loader = Arc::clone(&self.loader);
        Ok(self.cache.get_or_load(KEY, move || Ok(loader.load(Moment::now())))?.into_value())
    }
}

/// The store without its leases, to show what they are for.
struct Alone(RedisStore);

macro_rules! alone {
    ($($key:ty)*) => { $(
        impl BlockingStore<$key, String> for Alone {
            type Error = Error;
            type Displaced = ();
            type Lease = NoLease<Error>;

            fn get(&self, key: &$key, now: Time) -> Result<Option<Entry<String>>, Error> {
                self.0.get(key, now)
            }

            fn put(&self, key: &$key, entry: Entry<String>, now: Time) -> Result<(), Error> {
                self.0.put(key, entry, now)
            }

            fn remove(&self, key: &$key) -> Result<(), Error> {
                BlockingStore::<$key, String>::remove(&self.0, key)
            }

            fn clear(&self) -> Result<(), Error> {
                BlockingStore::<$key, String>::clear(&self.0)
            }
        }
    )* };
}

alone!(String str);

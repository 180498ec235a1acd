//! Writes, which win over the loads that are on.

use super::{Inner, OnDrop};
use crate::config::Put;
use crate::entry::Entry;
use crate::error::Error;
use crate::loads::KeyHash;
use crate::sharing::IfOpen;
use crate::store::Store;
use crate::time::at_once;
use std::hash::Hash;

impl<V, S> Inner<V, S> {
    /// Puts a value, or removes what is there, so that no load that is on undoes it. `forget` lets nobody join the flight of
    /// the key that is on.
    pub(crate) async fn write<Q, E>(&self, key: &Q, put: Option<Put<V>>, forget: impl Fn()) -> Result<(), Error<E>>
    where
        Q: Hash + ?Sized,
        S: Store<Q, V>,
    {
        let hash = self.loads.hash(key);
        let is_shared = self.store.lease().is_some();
        let entry = match put {
            None => None,
            Some(put) => {
                let now = self.now();
                // What the last load took says how early the next must be. Not worth a request to another process.
                let former = if is_shared { None } else { self.look(key, now).await };
                let cost = former.map_or_else(|| self.usual_cost(), |former| former.cost());
                self.config.entry_put(put, now, cost)
            }
        };
        let is_put = entry.is_some();
        // The user's code, so not under the lock.
        let weighed = entry.map(|entry| (self.store.weigh(key, &entry.value), entry));
        if self.is_immediate::<Q>() {
            return self.write_at_once(key, hash, weighed, forget);
        }
        // A store with leases sees to the order of writes itself.
        let writing = if is_shared { None } else { Some(self.loads.write(hash).await) };
        // When the store has been written to, as a flight that begins meanwhile may find what was there before: whoever comes
        // from then on must not join it, and it must not undo the write. Also if the store fails, or this is dropped.
        let ends = OnDrop(|| {
            self.loads.void(hash);
            forget();
        });
        let written = match weighed {
            Some((weight, entry)) => {
                let put = || self.store.put_weighed(key, entry, weight, self.now());
                self.ask_with::<Q, _, _>(IfOpen::Ask, put).await
            }
            None => self.ask_with::<Q, _, _>(IfOpen::Ask, || self.store.remove(key)).await,
        };
        let mut removed = None;
        if is_put && let Err(failure) = &written {
            // The new value was refused, so the old one is not to be served as if it were still right.
            if !is_shared {
                removed = Some(self.store.remove(key).await);
            } else if !failure.is_ambiguous {
                drop(self.ask_with::<Q, _, _>(IfOpen::Ask, || self.store.remove(key)).await);
            }
        }
        drop(ends);
        drop(writing);
        self.removed(removed);
        let displaced = written.map_err(|failure| Error::Store(failure.error))?;
        drop(displaced);
        if is_put {
            self.note_evictions::<Q>();
            self.loads.succeed(hash);
        }
        Ok(())
    }

    /// That, in a store that never waits.
    fn write_at_once<Q, E>(
        &self,
        key: &Q,
        hash: KeyHash,
        weighed: Option<(u64, Entry<V>)>,
        forget: impl Fn(),
    ) -> Result<(), Error<E>>
    where
        Q: ?Sized,
        S: Store<Q, V>,
    {
        // The clock may be the user's, so not under the lock.
        let now = self.now();
        // As in `write`: at the end, whatever comes of it.
        let ends = OnDrop(forget);
        let remove = || at_once(self.store.remove(key));
        let written = self.loads.write_at_once(hash, weighed.is_some(), || match weighed {
            // As in `write`; and what is removed is not to be dropped under the lock.
            Some((weight, entry)) => {
                at_once(self.store.put_weighed(key, entry, weight, now)).map_err(|error| (error, Some(remove())))
            }
            None => remove().map_err(|error| (error, None)),
        });
        drop(ends);
        match written {
            Ok(displaced) => {
                drop(displaced);
                self.note_evictions::<Q>();
                Ok(())
            }
            Err((error, removed)) => {
                self.removed(removed);
                Err(Error::Store(self.refused(error).error))
            }
        }
    }

    /// What was refused has led to this. No lock is held here.
    pub(super) fn removed<T>(&self, removed: Option<Result<T, impl std::error::Error + Send + Sync + 'static>>) {
        if let Some(Err(error)) = removed {
            self.store_failed(error);
        }
    }

    /// Removes everything. `forget` lets nobody join any flight that is on.
    pub(crate) async fn clear<K, E>(&self, forget: impl Fn()) -> Result<(), Error<E>>
    where
        S: Store<K, V>,
    {
        let is_shared = self.store.lease().is_some();
        let is_immediate = self.is_immediate::<K>();
        let writing = if is_shared || is_immediate { Vec::new() } else { self.loads.write_all().await };
        // Without the locks, whoever stores something at this moment has done so when that is cleared, and nobody does so later whose
        // load has begun before.
        if is_immediate {
            self.loads.void_all();
        }
        // As in `write`.
        let ends = OnDrop(|| {
            if !is_immediate {
                self.loads.void_all();
            }
            forget();
        });
        let cleared = self.ask_with::<K, _, _>(IfOpen::Ask, || self.store.clear()).await;
        drop(ends);
        drop(writing);
        let displaced = cleared.map_err(|failure| Error::Store(failure.error))?;
        drop(displaced);
        Ok(())
    }
}

//! A server that hangs, with memory in front of it.

use super::leases::server;
use crate::support::model::{Failure, ModelError, ModelStore};
use crate::support::run::{Runs, run};
use crate::support::stores::{Request, Stops};
use crate::support::way::{AnyCache, Fail, Refreshes, SECOND, Way, builder};
use oneflight_cache::lease::{Announces, ToldWritten, Watch};
use oneflight_cache::{BlockingStore, Entry, Source, Store, Tiered, Time};

/// A server whose reads, and the answers to whose writes, hang where they are stopped.
pub(crate) struct Hanging(pub(crate) ModelStore<u32>, pub(crate) Stops);

impl<K: AsRef<[u8]> + ?Sized> BlockingStore<K, u32> for Hanging {
    type Error = ModelError;
    type Displaced = ();
    type Lease = ModelStore<u32>;

    fn lease(&self) -> Option<&ModelStore<u32>> {
        Some(&self.0)
    }

    fn get(&self, key: &K, now: Time) -> Result<Option<Entry<u32>>, ModelError> {
        self.1.stop(Request::Get);
        BlockingStore::get(&self.0, key, now)
    }

    fn put(&self, key: &K, entry: Entry<u32>, now: Time) -> Result<(), ModelError> {
        BlockingStore::put(&self.0, key, entry, now)?;
        self.1.stop(Request::Put);
        Ok(())
    }

    fn remove(&self, key: &K) -> Result<(), ModelError> {
        BlockingStore::<K, u32>::remove(&self.0, key)?;
        self.1.stop(Request::Remove);
        Ok(())
    }

    fn clear(&self) -> Result<(), ModelError> {
        BlockingStore::<K, u32>::clear(&self.0)?;
        self.1.stop(Request::Clear);
        Ok(())
    }
}

impl<K: AsRef<[u8]> + Sync + ?Sized> Store<K, u32> for Hanging {
    type Error = ModelError;
    type Displaced = ();
    type Lease = ModelStore<u32>;

    fn lease(&self) -> Option<&ModelStore<u32>> {
        Some(&self.0)
    }

    async fn get(&self, key: &K, now: Time) -> Result<Option<Entry<u32>>, ModelError> {
        self.1.stop_task(Request::Get).await;
        BlockingStore::get(&self.0, key, now)
    }

    async fn put(&self, key: &K, entry: Entry<u32>, now: Time) -> Result<(), ModelError> {
        BlockingStore::put(&self.0, key, entry, now)?;
        self.1.stop_task(Request::Put).await;
        Ok(())
    }

    async fn remove(&self, key: &K) -> Result<(), ModelError> {
        BlockingStore::<K, u32>::remove(&self.0, key)?;
        self.1.stop_task(Request::Remove).await;
        Ok(())
    }

    async fn clear(&self) -> Result<(), ModelError> {
        BlockingStore::<K, u32>::clear(&self.0)?;
        self.1.stop_task(Request::Clear).await;
        Ok(())
    }
}

impl<K: AsRef<[u8]> + ?Sized> Announces<K> for Hanging {
    fn key_number(&self, key: &K) -> u64 {
        self.0.key_number(key)
    }

    fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch> {
        Announces::<K>::watch_writes(&self.0, told)
    }
}

/// Each has missed before the first has loaded.
pub(crate) fn whoever_leads_past_a_server_that_hangs_looks_near_again<W: Way>() {
    for [first_is_batch, second_is_batch] in [[false, false], [false, true], [true, false], [true, true]] {
        let (server, clock) = server();
        let stops = Stops::default();
        let store = Tiered::new(100, SECOND, Hanging(server.another_process(), stops.clone()));
        let builder = builder(&clock).store(store).breaker(0, SECOND);
        let cache = <W::Cache<u32, _> as AnyCache<u32, _>>::with(builder, Refreshes::Beside);
        let runs = Runs::default();
        let caller = |is_batch: bool, value| {
            let read = stops.next(Request::Get);
            let (cache, runs) = (cache.clone(), runs.clone());
            let call = run(move || {
                if !is_batch {
                    return cache.get_or_load("k", runs.returning(Ok(value))).unwrap();
                }
                let values = cache.get_or_load_many(&["k"], move |_| {
                    runs.add();
                    Ok::<_, Fail>(vec![value])
                });
                values.unwrap().remove(0)
            });
            read.reached.wait();
            (read, call)
        };
        let (first, second) = (caller(first_is_batch, 1), caller(second_is_batch, 2));
        server.set_failure(Some(Failure::LosesRequest));
        for ((read, call), source) in [(first, Source::Loaded), (second, Source::Hit)] {
            read.go_on.open();
            let fetched = call.end();
            assert_eq!((fetched.value, fetched.source), (1, source));
        }
        assert_eq!((runs.get(), cache.stats().fallbacks), (1, 1));
        server.set_failure(None);
    }
}

/// Whoever writes may wait for long, or never be polled again.
pub(crate) fn a_write_whose_answer_hangs_has_left_nothing_old_near<W: Way>() {
    for (request, left) in [(Request::Put, Some(2)), (Request::Remove, None), (Request::Clear, None)] {
        let (server, clock) = server();
        let stops = Stops::default();
        let store = Tiered::new(100, SECOND, Hanging(server, stops.clone()));
        let cache = <W::Cache<u32, _> as AnyCache<u32, _>>::with(builder(&clock).store(store), Refreshes::Beside);
        cache.put("k", 1).unwrap();
        let read = || cache.get("k").unwrap().map(|fetched| fetched.value);
        assert_eq!(read(), Some(1));
        let answer = stops.next(request);
        let write = run({
            let cache = cache.clone();
            move || match request {
                Request::Put => cache.put("k", 2),
                Request::Remove => cache.invalidate("k"),
                _ => cache.invalidate_all(),
            }
        });
        answer.reached.wait();
        assert_eq!(read(), left);
        answer.go_on.open();
        write.end().unwrap();
        assert_eq!(read(), left);
    }
}

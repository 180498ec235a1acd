//! What a batch asks a store of one's own for, which may be a server that has no leases.

use crate::support::limits::within_limit;
use crate::support::way::{AnyCache, Fail, Made, SECOND, TTL, Way, builder, cache_in};
use futures_lite::future::{block_on, pending, poll_once};
use oneflight_cache::lease::NoLease;
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{BlockingStore, Cache, Clock, Entry, Error, FoundMany, Source, Store, Time};
use std::collections::HashMap;
use std::future::ready;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a [`Remote`] was asked for.
#[derive(Debug, Default)]
struct Asked {
    gets: AtomicUsize,
    batches: AtomicUsize,
    /// How many more batches are answered.
    answers: AtomicUsize,
    puts_on: AtomicUsize,
    most_puts_on: AtomicUsize,
}

impl Asked {
    fn so_far(&self) -> [usize; 2] {
        [&self.gets, &self.batches].map(|asked| asked.load(Ordering::SeqCst))
    }
}

/// A store that answers for several keys at once. Puts of tasks never end.
struct Remote {
    entries: Mutex<HashMap<String, Entry<u32>>>,
    asked: Arc<Asked>,
}

impl Remote {
    fn new(answers: usize) -> (Self, Arc<Asked>) {
        let asked = Arc::new(Asked { answers: AtomicUsize::new(answers), ..Asked::default() });
        (Self { entries: Mutex::default(), asked: Arc::clone(&asked) }, asked)
    }
}

impl<K: AsRef<str> + ?Sized> BlockingStore<K, u32> for Remote {
    type Error = io::Error;
    type Displaced = ();
    type Lease = NoLease<io::Error>;

    fn get(&self, key: &K, now: Time) -> io::Result<Option<Entry<u32>>> {
        self.asked.gets.fetch_add(1, Ordering::SeqCst);
        Ok(self.entries.lock().unwrap().get(key.as_ref()).filter(|entry| entry.stale_until() > now).cloned())
    }

    fn get_many(&self, keys: &[&K], now: Time) -> FoundMany<u32, io::Error> {
        self.asked.batches.fetch_add(1, Ordering::SeqCst);
        let answers = |left: usize| left.checked_sub(1);
        if self.asked.answers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, answers).is_err() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let entries = self.entries.lock().unwrap();
        let find = |key: &&K| Ok(entries.get(key.as_ref()).filter(|entry| entry.stale_until() > now).cloned());
        Ok(keys.iter().map(find).collect())
    }

    fn put(&self, key: &K, entry: Entry<u32>, _now: Time) -> io::Result<()> {
        self.entries.lock().unwrap().insert(key.as_ref().to_owned(), entry);
        Ok(())
    }

    fn remove(&self, key: &K) -> io::Result<()> {
        self.entries.lock().unwrap().remove(key.as_ref());
        Ok(())
    }

    fn clear(&self) -> io::Result<()> {
        self.entries.lock().unwrap().clear();
        Ok(())
    }
}

/// Counts a put that is on, until it is dropped.
struct On<'a>(&'a Asked);

impl Drop for On<'_> {
    fn drop(&mut self) {
        self.0.puts_on.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<K: AsRef<str> + Sync + ?Sized> Store<K, u32> for Remote {
    type Error = io::Error;
    type Displaced = ();
    type Lease = NoLease<io::Error>;

    async fn get(&self, key: &K, now: Time) -> io::Result<Option<Entry<u32>>> {
        BlockingStore::get(self, key, now)
    }

    async fn get_many(&self, keys: &[&K], now: Time) -> FoundMany<u32, io::Error> {
        BlockingStore::get_many(self, keys, now)
    }

    async fn put(&self, _key: &K, _entry: Entry<u32>, _now: Time) -> io::Result<()> {
        let on = self.asked.puts_on.fetch_add(1, Ordering::SeqCst) + 1;
        let _on = On(&self.asked);
        self.asked.most_puts_on.fetch_max(on, Ordering::SeqCst);
        pending().await
    }

    async fn remove(&self, key: &K) -> io::Result<()> {
        BlockingStore::remove(self, key)
    }

    async fn clear(&self) -> io::Result<()> {
        BlockingStore::<K, u32>::clear(self)
    }
}

/// When it reads, and when it is about to load.
pub(crate) fn a_batch_asks_a_store_twice_however_many_its_keys<W: Way>() {
    let (store, asked) = Remote::new(2);
    let (cache, _) = cache_in::<W, u32, _>(store, |builder| builder.ttl(std::time::Duration::ZERO));
    let fetched = cache.get_or_load_many(&["1", "2", "3"], |keys| Ok(vec![5; keys.len()])).unwrap();
    assert_eq!(fetched.iter().map(|it| it.value).collect::<Vec<_>>(), [5; 3]);
    assert_eq!(asked.so_far(), [0, 2]);
}

/// Nobody knows what its values would replace.
pub(crate) fn a_batch_whose_second_look_fails_hands_its_values_out_and_stores_none<W: Way>() {
    let (store, asked) = Remote::new(1);
    let (cache, _) = cache_in::<W, u32, _>(store, |builder| builder);
    let fetched = cache.get_or_load_many(&["1", "2", "3"], |keys| Ok(vec![5; keys.len()])).unwrap();
    assert_eq!(fetched.iter().map(|it| it.value).collect::<Vec<_>>(), [5; 3]);
    assert_eq!((asked.so_far(), cache.stats().store_errors), ([0, 2], 1));
    assert!(cache.store().entries.lock().unwrap().is_empty());
    assert_eq!(asked.most_puts_on.load(Ordering::SeqCst), 0);
}

/// Values are served as by [`get`](AnyCache::get), and nothing else is done.
pub(crate) fn what_there_is_of_several_keys_is_asked_for_once<W: Way>() {
    let (store, asked) = Remote::new(3);
    let set = |builder: Made<u32, Remote>| builder.stale_while_revalidate(SECOND * 10).stale_if_error(SECOND * 20);
    let (cache, clock) = cache_in::<W, u32, _>(store, set);
    for (key, after) in [("gone", TTL), ("if error", SECOND * 10), ("stale", SECOND * 5), ("fresh", SECOND * 5)] {
        let entry = Entry::new(1, 1, clock.now(), clock.now().after(TTL), clock.now().after(TTL + SECOND * 20), SECOND);
        cache.store().entries.lock().unwrap().insert(key.to_owned(), entry);
        clock.advance(after);
    }
    clock.advance(TTL - SECOND * 10);
    let found = cache.get_many(&["fresh", "stale", "if error", "gone", "none", "fresh"]).unwrap();
    let found: Vec<_> = found.into_iter().map(|found| found.map(|it| (it.value, it.source))).collect();
    let fresh = Some((1, Source::Hit));
    assert_eq!(found, [fresh, Some((1, Source::Stale)), None, None, None, fresh]);
    assert!(cache.get_many(&[]).unwrap().is_empty());
    assert_eq!(asked.so_far(), [0, 2]);
    assert_eq!((cache.stats().loads, cache.stats().refreshes), (0, 0));
    cache.get_many(&["fresh"]).unwrap();
    assert!(matches!(cache.get_many(&["fresh"]), Err(Error::Store(_))), "it is not answered");
}

/// All of them have the time of one.
#[test]
fn a_batch_whose_values_are_not_stored_in_time_hands_them_out() {
    within_limit(|| {
        let ((store, asked), clock) = (Remote::new(2), ManualClock::new());
        let cache: Cache<String, u32, Fail, Remote> = builder(&clock).load_timeout(SECOND).store(store).build();
        let keys: Vec<String> = (0..300).map(|number| number.to_string()).collect();
        block_on(async {
            let load = |keys: Vec<&str>| ready(Ok(vec![5; keys.len()]));
            let mut batch = pin!(cache.get_or_load_many(keys.iter().map(String::as_str), load));
            assert!(poll_once(&mut batch).await.is_none());
            clock.advance(SECOND);
            let fetched = poll_once(&mut batch).await.expect("it waits no longer").unwrap();
            assert!(fetched.iter().all(|it| it.value == 5));
        });
        let [on, most] = [&asked.puts_on, &asked.most_puts_on].map(|puts| puts.load(Ordering::SeqCst));
        assert!(on == 0 && (2..=128).contains(&most), "{on}, {most}");
        assert_eq!(cache.stats().store_errors, 300);
    });
}

//! Stores of the suite's own: one in a map, which stops where it is told to.

use super::gate::Gate;
use oneflight_cache::lease::NoLease;
use oneflight_cache::{BlockingStore, Entry, Store, Time};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

/// What a [`Map`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Get,
    Put,
    Remove,
    Clear,
}

/// Stops the next request of a kind: a read once it has read, a write before it writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stops(Arc<Mutex<Vec<(Request, Gate, Gate)>>>);

/// A request that is to be stopped.
pub(crate) struct Stopped {
    pub(crate) reached: Gate,
    pub(crate) go_on: Gate,
}

impl Stops {
    pub(crate) fn next(&self, request: Request) -> Stopped {
        let (reached, go_on) = (Gate::new(), Gate::new());
        self.0.lock().unwrap().push((request, reached.clone(), go_on.clone()));
        Stopped { reached, go_on }
    }

    fn take(&self, request: Request) -> Option<(Gate, Gate)> {
        let mut stops = self.0.lock().unwrap();
        let place = stops.iter().position(|(stop, ..)| *stop == request)?;
        let (_, reached, go_on) = stops.remove(place);
        Some((reached, go_on))
    }

    pub(crate) fn stop(&self, request: Request) {
        if let Some((reached, go_on)) = self.take(request) {
            reached.open();
            go_on.wait();
        }
    }

    pub(crate) async fn stop_task(&self, request: Request) {
        if let Some((reached, go_on)) = self.take(request) {
            reached.open();
            smol::unblock(move || go_on.wait()).await;
        }
    }
}

/// A store in a map, as a user would write one.
pub(crate) struct Map<V> {
    entries: Mutex<HashMap<String, Entry<V>>>,
    stops: Stops,
}

impl<V: Clone> Map<V> {
    pub(crate) fn new() -> (Self, Stops) {
        let stops = Stops::default();
        (Self { entries: Mutex::default(), stops: stops.clone() }, stops)
    }

    fn find(&self, key: &str, now: Time) -> Option<Entry<V>> {
        self.entries.lock().unwrap().get(key).filter(|entry| entry.stale_until() > now).cloned()
    }

    fn set(&self, key: &str, entry: Option<Entry<V>>) -> Option<Entry<V>> {
        let mut entries = self.entries.lock().unwrap();
        match entry {
            Some(entry) => entries.insert(key.to_owned(), entry),
            None => entries.remove(key),
        }
    }

    fn empty(&self) -> Vec<Entry<V>> {
        self.entries.lock().unwrap().drain().map(|(_, entry)| entry).collect()
    }
}

impl<K, V> Store<K, V> for Map<V>
where
    K: AsRef<str> + Sync + ?Sized,
    V: Clone + Send + Sync + 'static,
{
    type Error = Infallible;
    type Displaced = Vec<Entry<V>>;
    type Lease = NoLease;

    async fn get(&self, key: &K, now: Time) -> Result<Option<Entry<V>>, Infallible> {
        let found = self.find(key.as_ref(), now);
        self.stops.stop_task(Request::Get).await;
        Ok(found)
    }

    async fn put(&self, key: &K, entry: Entry<V>, _now: Time) -> Result<Vec<Entry<V>>, Infallible> {
        self.stops.stop_task(Request::Put).await;
        Ok(self.set(key.as_ref(), Some(entry)).into_iter().collect())
    }

    async fn remove(&self, key: &K) -> Result<Vec<Entry<V>>, Infallible> {
        self.stops.stop_task(Request::Remove).await;
        Ok(self.set(key.as_ref(), None).into_iter().collect())
    }

    async fn clear(&self) -> Result<Vec<Entry<V>>, Infallible> {
        self.stops.stop_task(Request::Clear).await;
        Ok(self.empty())
    }
}

impl<K, V> BlockingStore<K, V> for Map<V>
where
    K: AsRef<str> + ?Sized,
    V: Clone + Send + Sync + 'static,
{
    type Error = Infallible;
    type Displaced = Vec<Entry<V>>;
    type Lease = NoLease;

    fn get(&self, key: &K, now: Time) -> Result<Option<Entry<V>>, Infallible> {
        let found = self.find(key.as_ref(), now);
        self.stops.stop(Request::Get);
        Ok(found)
    }

    fn put(&self, key: &K, entry: Entry<V>, _now: Time) -> Result<Vec<Entry<V>>, Infallible> {
        self.stops.stop(Request::Put);
        Ok(self.set(key.as_ref(), Some(entry)).into_iter().collect())
    }

    fn remove(&self, key: &K) -> Result<Vec<Entry<V>>, Infallible> {
        self.stops.stop(Request::Remove);
        Ok(self.set(key.as_ref(), None).into_iter().collect())
    }

    fn clear(&self) -> Result<Vec<Entry<V>>, Infallible> {
        self.stops.stop(Request::Clear);
        Ok(self.empty())
    }
}

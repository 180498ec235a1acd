//! The writes of other processes, as they are told to one that keeps values in front of the store.

use super::ModelStore;
use super::server::Listener;
use oneflight_cache::lease::{Announces, ToldWritten, Watch, Written};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

impl<V: Clone + Send + Sync + 'static> ModelStore<V> {
    /// Whether nobody is told of writes from now on.
    pub(crate) fn lose_announcements(&self, lose: bool) {
        self.with(|server| server.loses_pushes = lose);
    }
}

impl<V: Clone> ModelStore<V> {
    pub(super) fn announce(&self, key: Option<&[u8]>) {
        let told: Vec<_> = self.with(|server| {
            let others = server.listeners.iter().filter(|it| !server.loses_pushes && it.process != self.process);
            others.map(|it| Arc::clone(&it.told)).collect()
        });
        told.into_iter().for_each(|told| told(key.map_or(Written::Any, |key| Written::Key(number(key)))));
    }
}

fn number(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl<K, V> Announces<K> for ModelStore<V>
where
    K: AsRef<[u8]> + ?Sized,
    V: Clone + Send + Sync + 'static,
{
    fn key_number(&self, key: &K) -> u64 {
        number(key.as_ref())
    }

    fn watch_writes(&self, told: ToldWritten) -> Box<dyn Watch> {
        let number = self.with(|server| {
            let number = server.draw();
            server.listeners.push(Listener { number, process: self.process, told: told.into() });
            number
        });
        Box::new(Listening { store: self.clone(), number })
    }
}

struct Listening<V: Clone> {
    store: ModelStore<V>,
    number: usize,
}

impl<V: Clone + Send + Sync> Watch for Listening<V> {
    fn is_listening(&self) -> bool {
        true
    }
}

impl<V: Clone> Drop for Listening<V> {
    fn drop(&mut self) {
        let _gone: Vec<Listener> =
            self.store.with(|server| server.listeners.extract_if(.., |it| it.number == self.number).collect());
    }
}

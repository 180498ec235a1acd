//! How a batch lets go of several flights at once: it leaves them all before it runs anything of the user's, which may call
//! any of them.

use super::visit::Departed;
use super::{Entry, Leading, Wake};
use crate::primitive::for_all;
use alloc::vec::Vec;
use core::mem;

/// The keys that a batch leads, by their index among its keys. Dropping it abandons all of them.
pub(crate) struct Leads<'g, K, V, S>(Vec<(usize, Leading<'g, K, V, S>)>);

impl<'g, K, V, S> Leads<'g, K, V, S> {
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn push(&mut self, index: usize, leading: Leading<'g, K, V, S>) -> &Leading<'g, K, V, S> {
        let place = self.0.len();
        self.0.push((index, leading));
        &self.0[place].1
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|&(index, _)| index)
    }

    pub(crate) fn into_each(mut self) -> impl Iterator<Item = (usize, Leading<'g, K, V, S>)> {
        mem::take(&mut self.0).into_iter()
    }

    pub(crate) fn abandon_into(&mut self, aftermath: &mut Aftermath<K, V>) {
        self.0.drain(..).for_each(|(_, leading)| leading.abandon_into(aftermath));
    }
}

impl<K, V, S> Drop for Leads<'_, K, V, S> {
    fn drop(&mut self) {
        self.abandon_into(&mut Aftermath::nothing());
    }
}

/// What is left to do for flights that have been left. It is done when this is dropped, whatever panics: everybody is woken,
/// and only then are the user's things dropped.
pub(crate) struct Aftermath<K, V> {
    wakes: Vec<Wake<V>>,
    things: Vec<Step<K, V>>,
}

enum Step<K, V> {
    Wake(Wake<V>),
    DropKey(K),
    DropEntry(Entry<K, V>),
    DropDeparted(Departed<V>),
}

impl<K, V> Aftermath<K, V> {
    pub(crate) const fn nothing() -> Self {
        Self { wakes: Vec::new(), things: Vec::new() }
    }

    pub(crate) fn wake(&mut self, wake: Wake<V>) {
        self.wakes.push(wake);
    }

    pub(crate) fn drop_key(&mut self, key: K) {
        if mem::needs_drop::<K>() {
            self.things.push(Step::DropKey(key));
        }
    }

    pub(crate) fn drop_entry(&mut self, entry: Option<Entry<K, V>>) {
        self.things.extend(entry.map(Step::DropEntry));
    }

    /// Wakes everybody now.
    pub(crate) fn send_wakes(&mut self) {
        for_all(self.wakes.drain(..), Wake::send);
    }

    pub(crate) fn drop_departed(&mut self, departed: Departed<V>) {
        self.things.push(Step::DropDeparted(departed));
    }
}

impl<K, V> Drop for Aftermath<K, V> {
    fn drop(&mut self) {
        let wakes = self.wakes.drain(..).map(Step::Wake);
        for_all(wakes.chain(self.things.drain(..)), |step| match step {
            Step::Wake(wake) => wake.send(),
            Step::DropKey(key) => drop(key),
            Step::DropEntry(entry) => drop(entry),
            Step::DropDeparted(departed) => drop(departed),
        });
    }
}

//! Keys that are gathered for one call of the loader: by whom they are asked for, and until when.
//!
//! What runs a batch is a flight, whose key is the number of the batch: whoever asks for one of its keys is a caller of it. So a
//! caller that leaves, panics or is not polled any more is replaced by another as in any flight, and a batch is
//! [run](Gather::run) from the start by whoever takes it over.

use super::output::Outcome;
use crate::room::after_burst;
use crate::time::{AnyClock, Time, Timer};
use event_listener::Event;
use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Loader<K, V, E> = Box<dyn Fn(Vec<K>) -> Loading<V, E> + Send + Sync>;
pub(crate) type Loading<V, E> = Pin<Box<dyn Future<Output = Vec<Outcome<V, E>>> + Send>>;

/// What a batch has come to, by the places of its keys. `None` where nobody asked any more, and where it was taken.
pub(crate) type Outcomes<V, E> = Arc<[RwLock<Option<Outcome<V, E>>>]>;

pub(crate) struct Gather<K, V, E> {
    pub(super) window: Duration,
    pub(super) max_batch: usize,
    pub(super) clock: AnyClock,
    pub(super) timer: Arc<dyn Timer>,
    pub(super) loader: Loader<K, V, E>,
    pub(super) state: Mutex<State<K, V, E>>,
}

/// The batches whose keys somebody asks for.
pub(super) struct State<K, V, E> {
    batches: HashMap<u64, Batch<K, V, E>>,
    /// The one that takes further keys.
    open: Option<u64>,
    next: u64,
}

struct Batch<K, V, E> {
    /// The place of each key, in the order in which they came. Changed only while the batch is open.
    places: Arc<HashMap<K, usize>>,
    /// By how many the key of each place is asked for.
    askers: Vec<usize>,
    /// How many places have any.
    live: usize,
    /// When the window ends.
    ends: Time,
    /// Tells that it takes no further keys before that.
    full: Arc<Event>,
    /// What it has come to, for those who ask for its keys and have not come to its flight before that has ended.
    landed: Option<Outcomes<V, E>>,
}

/// Keys of one batch that somebody asks for, until this is dropped.
pub(crate) struct Asked<K, V, E> {
    gather: Arc<Gather<K, V, E>>,
    pub(crate) batch: u64,
    places: Vec<usize>,
}

impl<K, V, E> Default for State<K, V, E> {
    fn default() -> Self {
        Self { batches: HashMap::new(), open: None, next: 0 }
    }
}

impl<K: Hash + Eq, V, E> State<K, V, E> {
    /// The number of the batch that takes further keys.
    fn open(&mut self, ends: Time) -> u64 {
        let Self { batches, open, next } = self;
        *open.get_or_insert_with(|| {
            let number = *next;
            *next += 1;
            let (places, full) = (Arc::default(), Arc::new(Event::new()));
            batches.insert(number, Batch { places, askers: Vec::new(), live: 0, ends, full, landed: None });
            number
        })
    }
}

impl<K: Hash + Eq, V, E> Batch<K, V, E> {
    /// The place of `key`, by one more of which it is asked for; and the key, if it was there.
    fn ask(&mut self, key: K) -> (usize, Option<K>) {
        let (place, spare) = match self.places.get(&key) {
            Some(&place) => (place, Some(key)),
            None => {
                let place = self.askers.len();
                let places = Arc::get_mut(&mut self.places).expect("others have them once it is closed");
                places.insert(key, place);
                self.askers.push(0);
                (place, None)
            }
        };
        self.live += usize::from(self.askers[place] == 0);
        self.askers[place] += 1;
        (place, spare)
    }
}

impl<K: Hash + Eq + Clone, V, E> Gather<K, V, E> {
    /// Asks for the keys: of the batch that is open and, as that fills up, of further ones. In the order of the keys.
    pub(crate) fn ask(self: &Arc<Self>, keys: Vec<K>) -> Vec<Asked<K, V, E>> {
        let ends = self.clock.now().after(self.window);
        // All of these are dropped when the lock is free again, also if `Hash` or `Eq` of a key panics.
        let mut asked: Vec<Asked<K, V, E>> = Vec::new();
        let (mut spares, mut full) = (Vec::with_capacity(keys.len()), Vec::new());
        let mut keys = keys.into_iter();
        let mut state = self.state.lock();
        for key in keys.by_ref() {
            let number = state.open(ends);
            let batch = state.batches.get_mut(&number).expect("it is open");
            if asked.last().is_none_or(|asked| asked.batch != number) {
                asked.push(Asked { gather: Arc::clone(self), batch: number, places: Vec::new() });
            }
            let (place, spare) = batch.ask(key);
            spares.push(spare);
            asked.last_mut().expect("there is one").places.push(place);
            if batch.live == self.max_batch {
                full.push(Arc::clone(&batch.full));
                state.open = None;
            }
        }
        drop(state);
        // Its partner is `window`, which listens before it looks whether the batch is still open.
        full.into_iter().for_each(|full| _ = full.notify(usize::MAX));
        asked
    }

    /// What becomes of a batch, from gathering its keys to what they come to.
    pub(crate) async fn run(self: Arc<Self>, number: u64) -> Outcomes<V, E> {
        if let Some(landed) = self.landed(number) {
            return landed;
        }
        self.window(number).await;
        let (mut landed, places, keys) = self.close(number);
        if !keys.is_empty() {
            let outcomes = (self.loader)(keys).await;
            for (place, outcome) in places.into_iter().zip(outcomes) {
                landed[place] = Some(outcome);
            }
        }
        let landed: Outcomes<V, E> = landed.into_iter().map(RwLock::new).collect();
        // Before the flight ends: whoever comes too late for it finds this.
        let mut state = self.state.lock();
        if let Some(batch) = state.batches.get_mut(&number) {
            batch.landed = Some(Arc::clone(&landed));
        }
        drop(state);
        landed
    }

    fn landed(&self, number: u64) -> Option<Outcomes<V, E>> {
        self.state.lock().batches.get(&number)?.landed.clone()
    }

    /// Until the batch is full, or its time is up.
    async fn window(&self, number: u64) {
        let Some((ends, full)) = self.gathering(number) else { return };
        let full = full.listen();
        if self.gathering(number).is_none() {
            return;
        }
        match ends.since(self.clock.now()) {
            Duration::ZERO => {}
            Duration::MAX => full.await,
            left => futures_lite::future::or(full, self.timer.sleep(left)).await,
        }
    }

    /// When the window of a batch ends that takes further keys, and what tells that it takes none any more.
    fn gathering(&self, number: u64) -> Option<(Time, Arc<Event>)> {
        let state = self.state.lock();
        let batch = state.batches.get(&number).filter(|_| state.open == Some(number))?;
        Some((batch.ends, Arc::clone(&batch.full)))
    }

    /// The batch takes no further keys. Room for what it comes to, and the keys that are asked for, each with its place.
    fn close(&self, number: u64) -> (Vec<Option<Outcome<V, E>>>, Vec<usize>, Vec<K>) {
        let mut state = self.state.lock();
        if state.open == Some(number) {
            state.open = None;
        }
        // None if all have left, and this is about to be dropped.
        let batch = state.batches.get(&number).map(|batch| (Arc::clone(&batch.places), batch.askers.clone()));
        drop(state);
        let (places, askers) = batch.unwrap_or_default();
        let mut wanted: Vec<(usize, &K)> = places.iter().map(|(key, &place)| (place, key)).collect();
        wanted.retain(|&(place, _)| askers[place] > 0);
        wanted.sort_unstable_by_key(|&(place, _)| place);
        let landed = askers.iter().map(|_| None).collect();
        let (places, keys) = wanted.into_iter().map(|(place, key)| (place, key.clone())).unzip();
        (landed, places, keys)
    }
}

impl<K, V, E> Gather<K, V, E> {
    /// How many keys the next batch has by now.
    pub(crate) fn gathered(&self) -> usize {
        let state = self.state.lock();
        state.open.map_or(0, |number| state.batches[&number].live)
    }
}

impl<K, V, E> Asked<K, V, E> {
    /// How many keys they are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }
}

impl<K, V: Clone, E> Asked<K, V, E> {
    /// What its keys have come to, in their order. Who is the last to ask for a key takes its value, so that it is copied for the
    /// others alone: if `Clone` panics, the value is still there.
    pub(crate) fn outcomes(self, landed: &Outcomes<V, E>) -> Vec<Outcome<V, E>> {
        let is_last: Vec<bool> = {
            let state = self.gather.state.lock();
            let askers = &state.batches[&self.batch].askers;
            self.places.iter().map(|&place| askers[place] == 1).collect()
        };
        let of_one = |(&place, is_last): (&usize, bool)| {
            // Nobody waits here: the batch is closed, so none comes after the last, and the others have left when they have copied.
            let outcome = if is_last { landed[place].write().take() } else { landed[place].read().clone() };
            outcome.expect("it was asked for until it landed")
        };
        self.places.iter().zip(is_last).map(of_one).collect()
    }
}

impl<K, V, E> Drop for Asked<K, V, E> {
    fn drop(&mut self) {
        let mut state = self.gather.state.lock();
        let State { batches, open, .. } = &mut *state;
        let Some(batch) = batches.get_mut(&self.batch) else { return };
        for &place in &self.places {
            batch.askers[place] -= 1;
            batch.live -= usize::from(batch.askers[place] == 0);
        }
        if batch.live > 0 {
            return;
        }
        // Whoever comes next has a window of its own.
        if *open == Some(self.batch) {
            *open = None;
        }
        let gone = batches.remove(&self.batch);
        if let Some(room) = after_burst(batches.len(), batches.capacity()) {
            batches.shrink_to(room);
        }
        // Its keys are the user's, and dropped when the lock is free again.
        drop(state);
        drop(gone);
    }
}

#[cfg(test)]
mod tests;

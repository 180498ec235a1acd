//! What cannot be seen from outside, or not each time.

use super::{Asked, Gather, Loader};
use crate::time::{AnyClock, BoxFuture, block_on};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A key whose `Hash` panics if it is unlucky.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key(u32);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert!(self.0 != 13, "unlucky");
        self.0.hash(state);
    }
}

/// A value whose first `Clone` panics.
struct Brittle(AtomicUsize);

impl Clone for Brittle {
    fn clone(&self) -> Self {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) > 0, "brittle");
        Self(AtomicUsize::new(1))
    }
}

type Keys<V = u32> = Gather<Key, V, ()>;

/// Without a window, and with what counts the calls of the loader.
fn gather(max_batch: usize) -> (Arc<Keys>, Arc<AtomicUsize>) {
    gather_of(max_batch, |number| number)
}

fn gather_of<V: Send + 'static>(max_batch: usize, value: fn(u32) -> V) -> (Arc<Keys<V>>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let loader: Loader<Key, V, ()> = Box::new(move |keys| {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(keys.iter().map(|key| Ok(value(key.0))).collect()))
    });
    let timer = Arc::new(|_| Box::pin(std::future::ready(())) as BoxFuture);
    let (window, clock, state) = (Duration::ZERO, AnyClock::system(), Default::default());
    (Arc::new(Gather { window, max_batch, clock, timer, loader, state }), calls)
}

fn ask<V>(gather: &Arc<Keys<V>>, keys: &[u32]) -> Vec<Asked<Key, V, ()>> {
    gather.ask(keys.iter().copied().map(Key).collect())
}

/// What the keys come to.
fn run<V: Clone>(gather: &Arc<Keys<V>>, asked: Asked<Key, V, ()>) -> Vec<Result<V, ()>> {
    let landed = block_on(Arc::clone(gather).run(asked.batch));
    asked.outcomes(&landed).into_iter().map(|outcome| outcome.map_err(drop)).collect()
}

fn batches(gather: &Keys) -> usize {
    gather.state.lock().batches.len()
}

#[test]
fn a_caller_that_comes_to_the_flight_when_it_has_ended_finds_what_it_came_to() {
    let (gather, calls) = gather(10);
    let [early, late] = [[1, 2], [2, 3]].map(|keys| ask(&gather, &keys).remove(0));
    assert_eq!(early.batch, late.batch);
    assert_eq!(run(&gather, early), [Ok(1), Ok(2)]);
    assert_eq!(run(&gather, late), [Ok(2), Ok(3)]);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn the_last_who_asks_for_a_key_takes_the_value_that_another_could_not_copy() {
    let (gather, calls) = gather_of(10, |_| Brittle(AtomicUsize::new(0)));
    let [first, last] = [[1, 2], [3, 1]].map(|keys| ask(&gather, &keys).remove(0));
    assert!(catch_unwind(AssertUnwindSafe(|| run(&gather, first))).is_err());
    let copies: Vec<usize> = run(&gather, last).into_iter().map(|value| value.unwrap().0.into_inner()).collect();
    assert_eq!(copies, [0, 1], "the only one who asks for a key makes none");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn nothing_is_left_of_a_batch_when_its_last_caller_has_gone() {
    let (gather, _) = gather(2);
    let asked = ask(&gather, &[1, 2, 3, 2, 1]);
    let keys: Vec<usize> = asked.iter().map(|asked| asked.places.len()).collect();
    assert_eq!(keys, [2, 2, 1]);
    assert_eq!((batches(&gather), gather.gathered()), (3, 1));
    assert_eq!(asked.into_iter().map(|asked| run(&gather, asked).len()).collect::<Vec<_>>(), keys);
    assert_eq!((batches(&gather), gather.gathered()), (0, 0));
}

#[test]
fn a_key_whose_hash_panics_takes_its_callers_other_keys_out_and_no_others() {
    let (gather, _) = gather(10);
    assert!(catch_unwind(AssertUnwindSafe(|| ask(&gather, &[13]))).is_err());
    assert_eq!(batches(&gather), 0);
    let other = ask(&gather, &[1]).remove(0);
    assert!(catch_unwind(AssertUnwindSafe(|| ask(&gather, &[1, 2, 13, 3]))).is_err());
    assert_eq!(gather.gathered(), 1);
    let next = ask(&gather, &[2]).remove(0);
    assert_eq!(run(&gather, other), [Ok(1)]);
    assert_eq!(run(&gather, next), [Ok(2)]);
}

#[test]
fn memory_for_many_batches_is_given_back_when_they_have_gone() {
    let (gather, _) = gather(1);
    let asked = ask(&gather, &(100..10_100).collect::<Vec<_>>());
    assert_eq!(batches(&gather), 10_000);
    drop(asked);
    let room = gather.state.lock().batches.capacity();
    assert!(room <= 28, "{room}");
}

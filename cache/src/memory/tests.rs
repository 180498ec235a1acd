//! What a memory is after code of the user's has panicked in the middle of it.

use super::*;
use crate::store::BlockingStore;
use std::cell::Cell;
use std::hash::Hasher;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

std::thread_local! {
    /// How many keys are hashed until one panics.
    static HASHES: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key(u32);

impl Hash for Key {
    fn hash<S: Hasher>(&self, state: &mut S) {
        HASHES.set(HASHES.get() - 1);
        if HASHES.get() == 0 {
            // Without the noise of a hook.
            resume_unwind(Box::new("a key cannot be hashed"));
        }
        self.0.hash(state);
    }
}

fn put(memory: &Memory<Key, u32>, key: u32) {
    let now = Time::START;
    let entry = Entry::new(key, 1, now, Time::NEVER, Time::NEVER, Duration::ZERO);
    let Ok(pushed) = BlockingStore::put(memory, &Key(key), entry, now);
    drop(pushed);
}

fn has(memory: &Memory<Key, u32>, key: u32) -> bool {
    memory.find(&Key(key), Time::START).is_some_and(|entry| *entry.value() == key)
}

/// The second key that a full memory hashes is the one that it gives up.
#[test]
fn a_key_that_cannot_be_hashed_when_it_is_given_up_does_no_lasting_harm() {
    let kinds = [Memory::new(10), Memory::weighted(10, |_, _| 1)];
    for memory in kinds {
        let mut panics = 0;
        for key in 0..1_000 {
            HASHES.set(2);
            panics += usize::from(catch_unwind(AssertUnwindSafe(|| put(&memory, key))).is_err());
            HASHES.set(usize::MAX);
        }
        assert!(panics > 20, "{panics}");
        for key in 2_000..2_005 {
            put(&memory, key);
        }
        assert!((2_000..2_005).all(|key| has(&memory, key)), "{memory:?}");
        for key in 0..1_000 {
            put(&memory, key);
            assert!(memory.len() <= 10 && memory.weight() == memory.len() as u64, "{memory:?}");
        }
    }
}

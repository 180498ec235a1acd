//! One load: whether what it comes to is to be stored.

use super::{KeyHash, Loads};
use crate::time::Time;
use std::sync::Arc;

/// A load that is on, until it is dropped.
pub(crate) struct Load {
    loads: Arc<Loads>,
    hash: KeyHash,
    epoch: u64,
    /// How many values had been stored when it began.
    stores: u32,
    has_succeeded: bool,
    /// Its value was stored, or there was nothing to store, and that was the end of it.
    is_over: bool,
}

/// Why the value of a load is not to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwanted {
    /// The key was written since the load began.
    Void,
    /// The value of a later load was stored already.
    Superseded,
}

impl Load {
    pub(super) fn new(loads: Arc<Loads>, hash: KeyHash, epoch: u64, stores: u32) -> Self {
        Self { loads, hash, epoch, stores, has_succeeded: false, is_over: false }
    }

    /// Whether the value is to be stored, of this load, which began `at` that time. To be asked while [`Loads::write`] is held.
    pub(crate) fn may_store(&self, at: Time) -> Result<(), Unwanted> {
        self.loads.shard(self.hash).lock().may_store(self.hash, self.epoch, at)
    }

    /// Stores the value in a store that never waits, if it is to be stored, as [`Loads::write_at_once`] writes: `store` is run under the
    /// same lock. Once it is stored, the load is over.
    pub(crate) fn store_at_once<T, E>(
        &mut self,
        at: Time,
        store: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T, E>, Unwanted> {
        let mut shard = self.loads.shard(self.hash).lock();
        shard.may_store(self.hash, self.epoch, at)?;
        let stored = store();
        if stored.is_ok() {
            shard.end(self.hash, |state| {
                state.loading -= 1;
                state.succeed();
            });
            self.is_over = true;
        }
        Ok(stored)
    }

    /// It has brought a value that is not to be kept, and there was nothing that it replaces. If no other load of the key is on, or has
    /// stored anything since, that is the end of it. Otherwise one that began earlier may still store its own, unless this one is told
    /// to be stored, or may have done so.
    pub(crate) fn end_if_alone(&mut self) -> bool {
        let mut shard = self.loads.shard(self.hash).lock();
        self.is_over = shard.find(self.hash).is_some_and(|state| state.loading == 1 && state.stores == self.stores);
        if self.is_over {
            shard.end(self.hash, |state| {
                state.loading -= 1;
                state.succeed();
            });
        }
        self.is_over
    }

    /// Whether the key was written since the load began.
    pub(crate) fn is_void(&self) -> bool {
        self.loads.shard(self.hash).lock().find(self.hash).is_none_or(|state| state.epoch != self.epoch)
    }

    /// It has brought a value.
    pub(crate) fn succeed(&mut self) {
        self.has_succeeded = true;
    }

    pub(crate) fn hash(&self) -> KeyHash {
        self.hash
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.loads.end(self.hash, |state| {
            state.loading -= 1;
            if self.has_succeeded {
                state.succeed();
            }
        });
    }
}

//! On whose behalf code runs: a thread's own, or, where a thread polls a task, that of the caller whose task it is.

use super::callers::{CALLER, LEADER};
use core::cell::Cell;
use std::thread;

std::thread_local! {
    /// For whom this thread acts right now, if not for itself.
    static ACTS_FOR: Cell<Option<Name>> = const { Cell::new(None) };
    /// Whether calls that are made here must be driven here.
    static ON_THE_SPOT: Cell<bool> = const { Cell::new(false) };
}

/// The name of a calling thread, for the names that matter.
pub(crate) type Name = Option<&'static str>;

/// Whether the code that asks runs for a calling thread of this name.
pub(crate) fn acts_for(name: &str) -> bool {
    own_name() == Some(name)
}

/// For whom this thread acts.
pub(crate) fn own_name() -> Name {
    ACTS_FOR.get().unwrap_or_else(|| {
        let thread = thread::current();
        [CALLER, LEADER].into_iter().find(|name| thread.name() == Some(name))
    })
}

/// Whether this thread polls a task, or blocks in a call: then a call that it makes must be driven on the spot, since nobody else
/// may be there to drive it.
pub(crate) fn is_on_the_spot() -> bool {
    ON_THE_SPOT.get()
}

/// As long as it lives, this thread acts for the caller of this name. One may be inside another.
pub(crate) struct Acting(Option<Name>, bool);

impl Acting {
    /// In a poll of its task, or in its thread.
    pub(crate) fn on_the_spot(name: Name) -> Self {
        Self(ACTS_FOR.replace(Some(name)), ON_THE_SPOT.replace(true))
    }

    /// Elsewhere.
    pub(crate) fn aside(name: Name) -> Self {
        Self(ACTS_FOR.replace(Some(name)), ON_THE_SPOT.replace(false))
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        ACTS_FOR.set(self.0);
        ON_THE_SPOT.set(self.1);
    }
}

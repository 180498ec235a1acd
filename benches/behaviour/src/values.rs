//! What the cases put through the peers: keys, values and errors that count what is done with them.
//!
//! A child process runs one case, so the counts are those of the process.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static KEYS: AtomicUsize = AtomicUsize::new(0);
static CLONES: AtomicUsize = AtomicUsize::new(0);
static NEXT_CLONE_PANICS: AtomicBool = AtomicBool::new(false);

/// A key. Those that are alive are counted.
#[derive(PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    pub(crate) fn new(number: u64) -> Self {
        KEYS.fetch_add(1, Ordering::SeqCst);
        Self(number)
    }

    pub(crate) const fn number(&self) -> u64 {
        self.0
    }

    /// How many there are.
    pub(crate) fn alive() -> usize {
        KEYS.load(Ordering::SeqCst)
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        KEYS.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A value. Its clones are counted, and one of them can be made to panic.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Value(pub(crate) u64);

impl Value {
    /// How often any of them was cloned, since the last time this was asked.
    pub(crate) fn clones() -> usize {
        CLONES.swap(0, Ordering::SeqCst)
    }

    pub(crate) fn next_clone_panics() {
        NEXT_CLONE_PANICS.store(true, Ordering::SeqCst);
    }
}

impl Clone for Value {
    fn clone(&self) -> Self {
        CLONES.fetch_add(1, Ordering::SeqCst);
        assert!(!NEXT_CLONE_PANICS.swap(false, Ordering::SeqCst), "a clone that panics, as the case wants it");
        Self(self.0)
    }
}

const FAILED: &str = "the work failed";

/// The error of a work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Failure;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FAILED)
    }
}

impl std::error::Error for Failure {}

/// What a work ends with.
pub(crate) type Answer = Result<Value, Failure>;

/// What a caller gets from a peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Got {
    /// A value: the number in it.
    Value(u64),
    /// The error of a work.
    Failure,
    /// An error of the peer's own, or one that does not say what went wrong in the work.
    Refused,
}

impl Got {
    /// An error of a peer's: that of the work, if it or what is behind it says so.
    pub(crate) fn error(error: &(dyn std::error::Error + 'static)) -> Self {
        let chain = std::iter::successors(Some(error), |error| error.source());
        let of_work = chain.map(ToString::to_string).any(|text| text.contains(FAILED));
        if of_work { Self::Failure } else { Self::Refused }
    }
}

impl From<Answer> for Got {
    fn from(answer: Answer) -> Self {
        answer.map_or(Self::Failure, |value| Self::Value(value.0))
    }
}

//! Why a call has no value.

#[cfg(any(feature = "std", feature = "critical-section"))]
use alloc::{sync::Arc, vec::Vec};
use core::fmt;

/// Why a call has no value. A work's own errors are not here: they are values (`V = Result<T, E>`).
///
/// # Examples
///
/// ```
/// use oneflight::{CallError, SyncGroup};
///
/// let group: SyncGroup<String, u32> = SyncGroup::new();
/// let inside = group.call("k").run(|| match group.call("k").run(|| 7) {
///     Err(CallError::Reentrant) => 0,
///     other => panic!("{other:?}"),
/// })?;
/// assert_eq!(inside.value, 0);
/// assert_eq!(CallError::TimedOut.to_string(), "timed out waiting for the flight to land");
/// # Ok::<(), CallError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallError {
    /// The caller's own time limit for waiting ran out. The flight goes on undisturbed.
    TimedOut,
    /// The call was made from inside the work of the very flight that it would have to wait for.
    Reentrant,
    /// The call would have closed a circle of threads that wait for each other. Only reported with feature
    /// `deadlock-detection`.
    WouldDeadlock,
    /// The leader left without a value, and this caller was not to take over, or no further attempt was allowed.
    Abandoned,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "timed out waiting for the flight to land",
            Self::Reentrant => "called from inside the work of the same flight, which would wait for itself",
            Self::WouldDeadlock => "waiting would close a circle of threads that wait for each other",
            Self::Abandoned => "the flight was abandoned by its leader",
        })
    }
}

impl core::error::Error for CallError {}

#[cfg(any(feature = "std", feature = "critical-section"))]
impl CallError {
    /// What callers that have no `Result` do with it.
    #[cold]
    #[track_caller]
    pub(crate) fn refuse(self) -> ! {
        panic!("oneflight: cannot wait for the flight: {self}")
    }
}

/// What work for `count` keys has come to, for each of them.
#[cfg(any(feature = "std", feature = "critical-section"))]
pub(crate) fn one_error_for_all<T: Clone, E>(loaded: Result<Vec<T>, E>, count: usize) -> Vec<Result<T, Arc<E>>> {
    match loaded {
        Ok(values) => values.into_iter().map(Ok).collect(),
        Err(error) => alloc::vec![Err(Arc::new(error)); count],
    }
}

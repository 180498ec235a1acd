//! Where a fill is, and what it remembers there.

use super::{Action, Epoch, Outcome, Published, Time, Version};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    Reading,
    Acquiring {
        /// When that was asked. Ages are counted from here: the answer may have taken any time to arrive.
        asked: Time,
    },
    Waiting {
        until: Time,
    },
    /// With a lease or without.
    Loading(Option<Lease>),
    Publishing {
        epoch: Epoch,
    },
    Releasing(Next),
    Done(Outcome),
}

/// The lease of a leader that loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    pub(super) epoch: Epoch,
    pub(super) since: Time,
    /// `None` once it is renewed no more.
    pub(super) renewal: Option<Time>,
}

/// The value that is to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub(crate) version: Version,
    /// It may be served if there will be no other.
    pub(crate) is_usable: bool,
}

/// What follows a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Next {
    Done(Outcome),
    FallBack,
}

impl State {
    pub(super) fn action(self, seen: Option<Seen>) -> Action {
        match self {
            Self::Reading => Action::Read,
            Self::Acquiring { .. } => Action::Acquire { seen: seen.map(|seen| seen.version) },
            Self::Waiting { until } => Action::Wait { until },
            Self::Loading(lease) => Action::Load { uncached: lease.is_none() },
            Self::Publishing { epoch } => Action::Publish { epoch },
            Self::Releasing(_) => Action::Release,
            Self::Done(outcome) => Action::Done(outcome),
        }
    }

    pub(super) fn loaded(published: Published) -> Self {
        Self::Done(Outcome::Loaded(published))
    }

    /// Gives the lease up first, and ends with the value then.
    pub(super) fn unpublished(published: Published) -> Self {
        Self::Releasing(Next::Done(Outcome::Loaded(published)))
    }
}

impl Seen {
    pub(super) fn unreadable(version: Version) -> Self {
        Self { version, is_usable: false }
    }
}

//! What is explored: who there is, how the store works, and what may go wrong.

use super::super::Config;
use core::fmt;

/// How the store publishes, releases and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Ours,
    /// `SET NX`, load, `SET`, `DEL`: whose the lease is, is never looked at.
    NoToken,
    /// The token is compared when the lease is given up, and only then.
    TokenOnRelease,
    /// A value is stored late if none is there, whatever was invalidated meanwhile.
    LateWithoutEpoch,
    /// Nothing is stored but by the holder of the lease.
    HolderOnly,
    /// Each write sets an epoch that none before it had, and there is none before the first.
    EpochOfWrites,
    /// As ours, but an epoch that is made anew is the one that was there before, as that of a counter would be.
    EpochsRepeat,
    /// As ours, but a lease whose holder was killed stays.
    NoExpiry,
}

/// Who there is, and how often what may happen.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) scheme: Scheme,
    pub(super) config: Config,
    pub(super) reads: usize,
    pub(super) refreshes: usize,
    pub(super) writes: usize,
    /// Writes come one after the other, and each may put what it has written, instead of an invalidation.
    pub(super) puts: bool,
    /// There is a value to begin with, and any value may be found stale.
    pub(super) is_cached: bool,
    /// Every load takes longer than a lease.
    pub(super) long_loads: bool,
    /// Loads are counted, and every refresh is one of the value that there is to begin with.
    pub(super) counts_loads: bool,
    pub(super) budget: Budget,
}

impl Scheme {
    /// A write does away with the lease and the epoch.
    pub(super) fn has_epochs(self) -> bool {
        matches!(self, Self::Ours | Self::NoExpiry | Self::EpochOfWrites | Self::EpochsRepeat)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    /// Leases that run out while their holder is alive. Others run out anyway.
    pub(super) expiries: u8,
    /// Requests that the store refuses, whose answers are lost, or, for one that publishes, that arrive later than all else.
    pub(super) errors: u8,
    /// Loads that fail, and values that are not to be stored, or not to be kept.
    pub(super) failures: u8,
    /// Looks at the store after the time for waiting.
    pub(super) deadlines: u8,
    /// Callers that are killed.
    pub(super) kills: u8,
    /// Values or epochs that the store loses, or all that it has.
    pub(super) losses: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A caller got what was older than an invalidation that had ended before it began.
    StaleResult,
    /// No write is under way, and the store has an older value than the database.
    StaleStore,
    /// Somebody has ended and has not given its lease up, though nothing has kept it from that. Others wait until that ends.
    LeaseLeft,
    /// Whatever happens, somebody never ends.
    NeverEnds,
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Budget { expiries, errors, failures, deadlines, kills, losses } = self.budget;
        let counts = [
            (self.reads, "reads"),
            (self.refreshes, "refreshes"),
            (self.writes, "writes"),
            (expiries.into(), "expiries"),
            (errors.into(), "errors"),
            (failures.into(), "failures"),
            (deadlines.into(), "deadlines"),
            (kills.into(), "kills"),
            (losses.into(), "losses"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0).enumerate();
        for (index, (count, what)) in counts {
            write!(f, "{}{what} {count}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

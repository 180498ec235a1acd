//! What is explored: who there is, how the store works, and what may go wrong.

use super::super::Config;

/// How the store publishes, releases and invalidates.
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
    /// There is a value to begin with, and any value may be found stale.
    pub(super) is_cached: bool,
    /// Every load takes longer than a lease.
    pub(super) long_loads: bool,
    /// Loads are counted, and every refresh is one of the value that there is to begin with.
    pub(super) counts_loads: bool,
    pub(super) budget: Budget,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    /// Leases that run out while their holder is alive. Others run out anyway.
    pub(super) expiries: u8,
    /// Requests that the store refuses, whose answers are lost, or, for one that publishes, that arrive later than all else.
    pub(super) errors: u8,
    /// Loads that fail, and values that the loader does not let be stored.
    pub(super) failures: u8,
    /// Looks at the store after the time for waiting.
    pub(super) deadlines: u8,
    /// Callers that are killed.
    pub(super) kills: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A caller got what was older than an invalidation that had ended before it began.
    StaleResult,
    /// No write is under way, and the store has an older value than the database.
    StaleStore,
    /// Whatever happens, somebody never ends.
    NeverEnds,
}

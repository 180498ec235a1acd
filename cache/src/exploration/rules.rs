//! What is explored: how the cache is set up, and how often what may happen.

use oneflight::refresh::Policy;
use std::fmt;

/// In seconds, as all times here.
pub(super) const TTL: u64 = 10;
/// By so much the clock goes on at a time: a value is fresh after none, early after one, stale after two, useful only if its load
/// fails after three, and useless after four.
pub(super) const TICK: u64 = 6;
/// How long it may be served after its end while it is refreshed.
pub(super) const REVALIDATE: u64 = 6;
/// And if its load fails.
pub(super) const IF_ERROR: u64 = 12;
/// The wait after the first failure: until the next tick.
pub(super) const BACKOFF: u64 = 6;

/// How a loader ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Value,
    /// A value that is not to be stored.
    Fleeting,
    Failure,
    Panic,
}

impl Outcome {
    pub(super) const ALL: [Self; 4] = [Self::Value, Self::Fleeting, Self::Failure, Self::Panic];
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Put,
    Invalidate,
    InvalidateAll,
}

impl Write {
    pub(super) const ALL: [Self; 3] = [Self::Put, Self::Invalidate, Self::InvalidateAll];
}

/// Each step is atomic in a cache in memory: it holds a lock for as long as that matters, and waits for nothing but a loader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A `get_or_load` begins, and is polled.
    Read,
    /// A `refresh` begins, and is polled.
    Ask,
    /// A call or a refresh beside it is polled, as it was woken.
    Poll(usize),
    /// It is polled though nobody has woken it.
    Poke(usize),
    Drop(usize),
    /// The loader of a call ends, and wakes whoever polled it last.
    End(usize, Outcome),
    Write(Write),
    /// Time goes on.
    Tick,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => f.write_str("read"),
            Self::Ask => f.write_str("refresh"),
            Self::Poll(actor) => write!(f, "poll {actor}"),
            Self::Poke(actor) => write!(f, "poke {actor}"),
            Self::Drop(actor) => write!(f, "drop {actor}"),
            Self::End(loader, outcome) => write!(f, "loader {loader}: {outcome:?}"),
            Self::Write(Write::Put) => f.write_str("put"),
            Self::Write(Write::Invalidate) => f.write_str("invalidate"),
            Self::Write(Write::InvalidateAll) => f.write_str("invalidate all"),
            Self::Tick => f.write_str("tick"),
        }
    }
}

/// How often what may happen in one sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) reads: u8,
    pub(super) asks: u8,
    pub(super) writes: u8,
    pub(super) ticks: u8,
    pub(super) drops: u8,
    /// Loaders that end in another way than by a value that is stored.
    pub(super) odd: u8,
    pub(super) pokes: u8,
}

impl Budget {
    pub(super) fn take(&mut self, step: Step) {
        match step {
            Step::Read => self.reads -= 1,
            Step::Ask => self.asks -= 1,
            Step::Tick => self.ticks -= 1,
            Step::Poke(_) => self.pokes -= 1,
            Step::Drop(_) => self.drops -= 1,
            Step::End(_, Outcome::Value) | Step::Poll(_) => {}
            Step::End(..) => self.odd -= 1,
            Step::Write(_) => self.writes -= 1,
        }
    }

    /// What may happen whatever has happened before.
    pub(super) fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        let ours = [(self.reads, Step::Read), (self.asks, Step::Ask), (self.ticks, Step::Tick)];
        let writes = Write::ALL.map(|write| (self.writes, Step::Write(write)));
        ours.into_iter().chain(writes).filter(|(left, _)| *left > 0).map(|(_, step)| step)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reads, asks, writes, ticks, drops, odd, pokes } = *self;
        let parts = [
            ("reads", reads),
            ("refreshes", asks),
            ("writes", writes),
            ("ticks", ticks),
            ("drops", drops),
            ("odd ends", odd),
            ("idle polls", pokes),
        ];
        let parts = parts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} {count}"));
        f.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Each read in the second half of a value's life refreshes it, unless a refresh is on.
    pub(super) early: bool,
    /// Refreshes go on beside the calls that drew them.
    pub(super) spawner: bool,
    pub(super) stale_while_revalidate: bool,
    pub(super) stale_if_error: bool,
    pub(super) coalescing: bool,
    /// There is a value to begin with.
    pub(super) is_cached: bool,
    pub(super) budget: Budget,
    /// How many steps a sequence has at most; then it is brought to its end without a choice.
    pub(super) depth: usize,
}

impl Rules {
    /// How long a value may be served after its end while it is refreshed.
    pub(super) fn revalidate(&self) -> u64 {
        if self.stale_while_revalidate { REVALIDATE } else { 0 }
    }

    /// And if its load fails.
    pub(super) fn if_error(&self) -> u64 {
        if self.stale_if_error { IF_ERROR } else { 0 }
    }

    pub(super) fn policy(&self) -> Policy {
        if self.early { Policy::Eager { window: 0.5 } } else { Policy::Never }
    }
}

//! What an execution does: chosen before it begins, so that it does not hang on which caller runs it.

use super::ledger::{Ledger, Running};
use crate::bomb::Blast;
use crate::things::Answer;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
}

/// One thing that it does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Pause(Duration),
    Yield,
    /// Calls its own key.
    Recurse,
    /// Calls a greater key. Never a smaller one: works that wait for each other in a circle hang, as the docs say.
    Descend(u32),
    /// Forgets its own key.
    Forget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Value,
    Error,
    Panic,
}

/// What scripts may contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// How many keys there are.
    pub(crate) keys: u32,
    pub(crate) forgets: bool,
    /// Whether it calls others.
    pub(crate) nested: bool,
}

impl Script {
    /// One for the greatest of its keys, which is its only one if it is to call itself.
    pub(crate) fn random(rng: &mut fastrand::Rng, terms: Terms, greatest: u32, is_single: bool) -> Self {
        let steps = (0..rng.usize(..4)).map(|_| match rng.u8(..24) {
            0 if terms.nested && is_single => Step::Recurse,
            1..3 if terms.nested && greatest + 1 < terms.keys => Step::Descend(rng.u32(greatest + 1..terms.keys)),
            3 if terms.forgets && is_single => Step::Forget,
            4..12 => Step::Pause(Duration::from_micros(rng.u64(..300))),
            _ => Step::Yield,
        });
        let steps = steps.collect();
        let end = match rng.u8(..12) {
            0 => End::Panic,
            1..3 => End::Error,
            _ => End::Value,
        };
        Self { steps, end }
    }

    /// A short one for the calls that works make.
    pub(crate) fn leaf(rng: &mut fastrand::Rng) -> Self {
        let terms = Terms { keys: 0, forgets: false, nested: false };
        Self { steps: Vec::new(), ..Self::random(rng, terms, 0, false) }
    }
}

impl End {
    /// Ends the execution of each key.
    pub(crate) fn reach(self, call: u64, all: &[Running]) -> Vec<Answer> {
        let answer = |running: &Running| match self {
            Self::Value => Ok(running.produce()),
            Self::Error => Err(Arc::new(running.produce())),
            Self::Panic => Blast::Work { call }.go(),
        };
        all.iter().map(answer).collect()
    }
}

/// The executions of `keys` begin.
pub(crate) fn start_all(ledger: &Arc<Ledger>, call: u64, keys: &[u32]) -> Vec<Running> {
    keys.iter().map(|&key| ledger.start(key, call)).collect()
}

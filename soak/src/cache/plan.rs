//! What a loader does.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) end: End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Pause(Duration),
    Yield,
    /// Calls the cache for its own key.
    Recurse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Value,
    Error,
    Panic,
}

impl Plan {
    /// A `quiet` one comes to a value.
    pub(crate) fn random(rng: &mut fastrand::Rng, quiet: bool) -> Self {
        let steps = (0..rng.usize(..4)).map(|_| match rng.u8(..32) {
            0 if !quiet => Step::Recurse,
            1..12 => Step::Pause(Duration::from_micros(rng.u64(..400))),
            _ => Step::Yield,
        });
        let steps = steps.collect();
        let end = match rng.u8(..12) {
            0 if !quiet => End::Panic,
            1..3 if !quiet => End::Error,
            _ => End::Value,
        };
        Self { steps, end }
    }

    /// A short one for the calls that loaders make.
    pub(crate) fn leaf() -> Self {
        Self { steps: Vec::new(), end: End::Value }
    }
}

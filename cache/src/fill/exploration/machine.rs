//! The machine that is explored, as a table that is filled on the way.

use super::super::state::{Lease, State};
use super::super::{Config, Event, Fill};
use core::time::Duration;
use std::collections::HashMap;

/// Every state that a fill has been in, by number, and where its events lead.
#[derive(Debug)]
pub(super) struct Machine {
    config: Config,
    fills: Vec<Fill>,
    numbers: HashMap<Fill, u8>,
    steps: HashMap<(u8, Event, bool), u8>,
    /// How often a value was stored, over all steps tried.
    pub(super) stores: usize,
}

/// Numbers of callers without a fill; those of fills begin after them.
pub(super) const ENDED: u8 = 0;
pub(super) const READ_TO_COME: u8 = 1;
pub(super) const REFRESH_TO_COME: u8 = 2;
pub(super) const FIRST_FILL: u8 = 3;

/// Every epoch that is gone, whichever it was: random numbers do not come back.
pub(super) const GONE: u8 = 3;

impl Machine {
    pub(super) fn new(config: Config) -> Self {
        Self { config, fills: Vec::new(), numbers: HashMap::new(), steps: HashMap::new(), stores: 0 }
    }

    pub(super) fn number(&mut self, fill: Fill) -> u8 {
        let next = FIRST_FILL + u8::try_from(self.fills.len()).expect("few states");
        *self.numbers.entry(fill).or_insert_with_key(|fill| {
            self.fills.push(fill.clone());
            next
        })
    }

    pub(super) fn fill(&self, number: u8) -> Option<&Fill> {
        self.fills.get(usize::from(number.checked_sub(FIRST_FILL)?))
    }

    /// The same but that it was acquired in an epoch that is gone, if it was in `epoch`.
    pub(super) fn outlive(&mut self, number: u8, epoch: u8) -> u8 {
        let Some(fill) = self.fill(number) else { return number };
        let mut fill = fill.clone();
        match &mut fill.state {
            State::Loading(Some(Lease { epoch: own, .. })) | State::Publishing { epoch: own }
                if *own == epoch.into() =>
            {
                *own = GONE.into();
            }
            _ => return number,
        }
        self.number(fill)
    }

    pub(super) fn step(&mut self, number: u8, event: Event, is_late: bool) -> u8 {
        if let Some(next) = self.steps.get(&(number, event, is_late)) {
            return *next;
        }
        let mut fill = self.fill(number).expect("it has begun").clone();
        let now = if is_late { self.config.wait } else { Duration::ZERO };
        let _ = fill.step(event, now).unwrap_or_else(|refused| panic!("{refused}"));
        let next = self.number(fill);
        self.steps.insert((number, event, is_late), next);
        next
    }
}

//! The store, the database, and everybody who uses them: one state of the exploration, and its next steps.

use super::super::{Action, Epoch, Event, Fill, Outcome, Renewal};
use super::machine::{ENDED, Machine, READ_TO_COME, REFRESH_TO_COME};
use super::rules::{Budget, Fault, Rules};
use core::time::Duration;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Caller {
    pub(super) fill: u8,
    /// It has the lease, in the store's view.
    pub(super) holds: bool,
    /// What its loader has read, while that runs and after; 0 before.
    pub(super) loaded: u8,
    /// That is not to be kept.
    pub(super) is_over: bool,
    /// The stale value that it keeps.
    pub(super) kept: u8,
    /// Older than this its value must not be.
    pub(super) oldest: u8,
    /// What it has asked to be published and does not wait for any more, though it may still arrive: the epoch and the value.
    pub(super) sent: (u8, u8),
}

impl Caller {
    /// What is left of it in the store's view.
    pub(super) fn ended(self) -> Self {
        Self { holds: self.holds, sent: self.sent, ..Self::default() }
    }

    /// What it publishes: 0 if that is not to be kept.
    pub(super) fn published(&self) -> u8 {
        if self.is_over { 0 } else { self.loaded }
    }
}

pub(super) fn small(epoch: Epoch) -> u8 {
    u8::try_from(epoch).expect("few epochs")
}

/// Of the value that there is to begin with.
pub(super) const FIRST_NONCE: u8 = 1;

/// Versions are those of the database, from 1 on.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    pub(super) callers: [Caller; 3],
    /// 0: to come. 1: done. Otherwise the database has this version, and the cache has not been told.
    pub(super) writers: [u8; 2],
    pub(super) database: u8,
    /// The newest version whose invalidation is over.
    pub(super) invalidated: u8,
    /// 0: none.
    pub(super) value: u8,
    /// Tells the value from others that live fills know of.
    pub(super) nonce: u8,
    /// 0: none.
    pub(super) epoch: u8,
    /// At most 3, if they are counted.
    pub(super) loads: u8,
    pub(super) left: Budget,
}

impl World {
    pub(super) fn new(rules: &Rules) -> Self {
        let mut callers = [Caller::default(); 3];
        let kinds = [(READ_TO_COME, rules.reads), (REFRESH_TO_COME, rules.refreshes)];
        let kinds = kinds.into_iter().flat_map(|(kind, count)| core::iter::repeat_n(kind, count));
        kinds.enumerate().for_each(|(index, kind)| callers[index].fill = kind);
        let mut writers = [1; 2];
        writers[..rules.writes].fill(0);
        let value = u8::from(rules.is_cached);
        Self {
            callers,
            writers,
            database: 1,
            invalidated: 0,
            value,
            nonce: value * FIRST_NONCE,
            epoch: 0,
            loads: 0,
            left: rules.budget,
        }
    }

    /// All of it in one number. Callers and writers are interchangeable, so the order among them is left out.
    pub(super) fn code(&self) -> u128 {
        let mut callers = self.callers.map(|caller| {
            let Caller { loaded, kept, oldest, sent, .. } = caller;
            let flags = u8::from(caller.holds) | u8::from(caller.is_over) << 1;
            let small = [loaded, kept, oldest, sent.0, sent.1, flags];
            small.into_iter().fold(u32::from(caller.fill), |code, part| code << 2 | u32::from(part))
        });
        callers.sort_unstable();
        let mut writers = self.writers;
        writers.sort_unstable();
        let code = callers.into_iter().fold(0, |code, caller| code << 20 | u128::from(caller));
        let left = &self.left;
        let small = [
            [writers[0], writers[1], self.database, self.invalidated, self.value, self.epoch, self.loads],
            [left.expiries, left.errors, left.failures, left.deadlines, left.kills, left.losses, 0],
        ];
        let code = small.into_iter().flatten().fold(code, |code, part| code << 2 | u128::from(part));
        code << 3 | u128::from(self.nonce)
    }

    pub(super) fn is_over(&self) -> bool {
        self.callers.iter().all(|caller| caller.fill == ENDED) && self.writers == [1, 1]
    }

    pub(super) fn is_cached(&self) -> bool {
        self.value != 0
    }

    pub(super) fn is_stale(&self) -> bool {
        !self.is_being_written() && self.is_cached() && self.value != self.database
    }

    pub(super) fn has_left_lease(&self, rules: &Rules) -> bool {
        let is_left = |caller: &Caller| caller.fill == ENDED && caller.holds;
        (rules.budget.errors, rules.budget.kills) == (0, 0) && self.callers.iter().any(is_left)
    }

    pub(super) fn is_being_written(&self) -> bool {
        self.writers.iter().any(|writer| *writer > 1)
    }

    /// Adds the worlds that one more step may lead to.
    pub(super) fn steps(&self, rules: &Rules, machine: &mut Machine, after: &mut Vec<Self>) -> Result<(), Fault> {
        for index in 0..self.callers.len() {
            self.caller_steps(index, rules, machine, after)?;
            self.lease_steps(index, rules, machine, after);
        }
        for index in 0..self.writers.len() {
            self.writer_steps(index, rules, machine, after);
        }
        if let Some(losses) = self.left.losses.checked_sub(1) {
            after.extend(self.with(Budget { losses, ..self.left }).losses(rules.scheme, machine));
        }
        Ok(())
    }

    fn caller_steps(
        &self,
        index: usize,
        rules: &Rules,
        machine: &mut Machine,
        after: &mut Vec<Self>,
    ) -> Result<(), Fault> {
        let caller = self.callers[index];
        let becomes = |caller| {
            let mut next = *self;
            next.callers[index] = caller;
            next
        };
        let Some(fill) = machine.fill(caller.fill) else {
            let fill = match caller.fill {
                READ_TO_COME => Fill::read(rules.config, 0, Duration::ZERO),
                REFRESH_TO_COME if self.value != 0 => {
                    let seen = if rules.counts_loads { FIRST_NONCE } else { self.nonce };
                    Fill::refresh(rules.config, 0, seen.into(), Duration::ZERO)
                }
                // Nothing is there to be refreshed.
                REFRESH_TO_COME => {
                    after.push(becomes(caller.ended()));
                    return Ok(());
                }
                _ => return Ok(()),
            };
            let (fill, oldest) = (machine.number(fill), self.invalidated);
            after.push(becomes(Caller { fill, oldest, ..caller.ended() }));
            return Ok(());
        };
        let action = fill.action();
        if let Action::Load { .. } = action {
            if caller.loaded == 0 {
                let mut next = becomes(Caller { loaded: self.database, ..caller });
                next.loads = (self.loads + u8::from(rules.counts_loads)).min(3);
                after.push(next);
            }
            if !caller.holds && fill.renewal().is_some() {
                let mut fill = fill.clone();
                fill.renewed(Renewal::Lost, Duration::ZERO);
                after.push(becomes(Caller { fill: machine.number(fill), ..caller }));
            }
        }
        for (next, event, is_late) in self.answers(index, action, rules, machine) {
            after.push(next.told(index, event, is_late, machine)?);
        }
        Ok(())
    }

    /// What may come of the caller's action: the world after it, the event, and whether that is after the time for waiting.
    fn answers(&self, index: usize, action: Action, rules: &Rules, machine: &mut Machine) -> Vec<(Self, Event, bool)> {
        const LOST: Event = Event::StoreError { ambiguous: true };
        const REFUSED: Event = Event::StoreError { ambiguous: false };
        let caller = &self.callers[index];
        let mut next = *self;
        let mut answers = Vec::new();
        match action {
            Action::Read if self.value == 0 => answers.push((*self, Event::Miss { unreadable: None }, false)),
            Action::Read => {
                answers.push((*self, Event::Hit, false));
                if rules.is_cached {
                    answers.push((*self, Event::Stale { version: self.nonce.into() }, false));
                }
            }
            Action::Acquire { seen } => {
                let event = next.acquire(index, seen, rules.scheme);
                answers.push((next, event, false));
                if let (Event::Held { .. }, Some(deadlines)) = (event, self.left.deadlines.checked_sub(1)) {
                    answers.push((self.with(Budget { deadlines, ..self.left }), event, true));
                }
            }
            Action::Load { .. } if caller.loaded == 0 => {}
            Action::Load { .. } => {
                if !(rules.long_loads && caller.holds) {
                    answers.push((next, Event::LoadOk { store: true }, false));
                }
                if let Some(failures) = self.left.failures.checked_sub(1) {
                    let failing = self.with(Budget { failures, ..self.left });
                    answers.push((failing, Event::LoadOk { store: false }, false));
                    let mut over = failing;
                    over.callers[index].is_over = true;
                    answers.push((over, Event::LoadOk { store: true }, false));
                    answers.push((failing, Event::LoadFailed, false));
                }
            }
            Action::Publish { epoch } => {
                let event = next.publish(index, rules.scheme, small(epoch), caller.published(), machine);
                answers.push((next, event, false));
                if let Some(errors) = self.left.errors.checked_sub(1) {
                    let mut delayed = self.with(Budget { errors, ..self.left });
                    delayed.callers[index].sent = (small(epoch), caller.published());
                    answers.push((delayed, LOST, false));
                }
            }
            Action::Release => {
                next.release(index, rules.scheme);
                answers.push((next, Event::Released, false));
            }
            Action::Wait { .. } => answers.push((next, Event::Tick, false)),
            Action::Done(_) => unreachable!("it has ended"),
        }
        if let (Some(errors), false) =
            (self.left.errors.checked_sub(1), matches!(action, Action::Load { .. } | Action::Wait { .. }))
        {
            // Not done, not known whether done and not, the same and done.
            for (world, event) in [(self, REFUSED), (self, LOST), (&next, LOST)] {
                answers.push((world.with(Budget { errors, ..self.left }), event, false));
            }
        }
        answers
    }

    fn with(&self, left: Budget) -> Self {
        Self { left, ..*self }
    }

    /// Goes on with the caller after `event`, and checks what it gets when that ends it.
    fn told(mut self, index: usize, event: Event, is_late: bool, machine: &mut Machine) -> Result<Self, Fault> {
        let (value, number) = (self.value, machine.step(self.callers[index].fill, event, is_late));
        let caller = &mut self.callers[index];
        caller.fill = number;
        if let Event::Stale { .. } = event {
            caller.kept = value;
        }
        let fill = machine.fill(number).expect("it has begun");
        let got = match fill.action() {
            Action::Done(Outcome::Hit | Outcome::Filled) => value,
            Action::Done(Outcome::Stale { .. }) => caller.kept,
            Action::Done(Outcome::Loaded(_)) => caller.loaded,
            _ => u8::MAX,
        };
        if got < caller.oldest {
            return Err(Fault::StaleResult);
        }
        match fill.action() {
            // What no longer matters must not make a difference.
            Action::Done(_) => *caller = caller.ended(),
            Action::Acquire { .. } | Action::Load { .. } => caller.loaded = 0,
            _ => {}
        }
        caller.is_over &= matches!(fill.action(), Action::Publish { .. });
        if !fill.has_stale() {
            caller.kept = 0;
        }
        Ok(self)
    }
}

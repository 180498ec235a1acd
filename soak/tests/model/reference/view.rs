//! What the reference says of the group as a whole.

use super::{At, Execution, Reference, Stage};

impl Reference {
    /// How many callers there have been, seats and drivers among them.
    pub(crate) fn count(&self) -> usize {
        self.callers.len()
    }

    /// The flight that newcomers would join.
    pub(super) fn open(&self, key: u8) -> Option<usize> {
        self.flights.iter().position(|flight| flight.as_ref().is_some_and(|flight| flight.is_open && flight.key == key))
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.flights.iter().flatten().count()
    }

    pub(crate) fn waiters(&self, key: u8) -> usize {
        let Some(flight) = self.open(key).and_then(|flight| self.flights[flight].as_ref()) else { return 0 };
        let leaders = usize::from(matches!(flight.stage, Stage::Owned(_) | Stage::Inline(..)));
        flight.inside.len() + flight.leaving.len() - leaders
    }

    pub(crate) fn attempts(&self, key: u8) -> Option<u32> {
        self.open(key).and_then(|flight| self.flights[flight].as_ref()).map(|flight| flight.attempts)
    }

    /// For each execution whose it is, and whether its work is still there.
    pub(crate) fn executions(&self) -> Vec<(usize, bool)> {
        self.executions.iter().map(|execution| (execution.maker, execution.alive)).collect()
    }

    /// Callers that have only to hear that their flight was abandoned.
    pub(crate) fn leaving(&self) -> Vec<usize> {
        self.flights.iter().flatten().flat_map(|flight| flight.leaving.iter().copied()).collect()
    }

    /// Groups of callers of which so many at least must have been woken: each that has something to get, and for each flight that
    /// can go on those who can go on with it. Of those who drive two, so that one of them may be parked.
    pub(crate) fn must_be_woken(&self) -> Vec<(Vec<usize>, usize)> {
        let has = |caller: &usize| matches!(self.callers[*caller].at, At::Has(_));
        let mut all: Vec<(Vec<usize>, usize)> =
            (0..self.callers.len()).filter(has).map(|caller| (vec![caller], 1)).collect();
        for flight in self.flights.iter().flatten() {
            let can_go_on = |execution: u32| {
                let Execution { maker, end, .. } = self.executions[execution as usize];
                end.is_some() || self.callers[maker].call.restless
            };
            match flight.stage {
                Stage::Vacant if !flight.inside.is_empty() => all.push((flight.inside.clone(), 1)),
                Stage::Owned(execution) if can_go_on(execution) => {
                    all.push((flight.inside.clone(), flight.inside.len().min(2)));
                }
                Stage::Inline(leader, execution) if can_go_on(execution) => all.push((vec![leader], 1)),
                _ => {}
            }
        }
        all
    }
}

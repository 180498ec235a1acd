//! What a poll may come to.

use super::super::site::{Event, Page};
use super::flights::{Attempt, End};
use super::{Checked, Got, Kind, Oracle, Plan, ensure};
use crate::entry::Source;

impl Oracle {
    /// A call has begun, and was polled.
    pub(in super::super) fn began(&mut self, actor: usize, plan: &Plan, events: &[Event], got: &Got) -> Checked {
        self.may_get_at_all(actor, got)?;
        match plan {
            Plan::Goes => self.told(actor, events, got),
            Plan::Served { page, source, .. } => {
                ensure!(events.is_empty(), "{events:?} when {actor} was to be served {page:?}");
                let is_right = matches!(got, Got::Page(got, from) if (got, from) == (page, source));
                ensure!(is_right, "{actor} got {}, not {page:?} from {source:?}", got.name());
                Ok(())
            }
        }
    }

    /// An actor was polled.
    pub(in super::super) fn told(&mut self, actor: usize, events: &[Event], got: &Got) -> Checked {
        for event in events {
            self.heard(actor, *event)?;
        }
        self.may_get_at_all(actor, got)?;
        match got {
            Got::Pending => return self.waits(actor),
            Got::Panicked => {
                let is_due = self.panics.contains(&actor);
                ensure!(is_due, "{actor} panics, by another's loader: {:?}", self.panics);
                self.panics.retain(|due| *due != actor);
            }
            _ => self.answered(actor, got)?,
        }
        self.is_over(actor);
        self.leave(actor);
        Ok(())
    }

    /// It waits: in the flight that it was in, or in the one that is open now.
    fn waits(&mut self, actor: usize) -> Checked {
        ensure!(!self.panics.contains(&actor), "{actor} waits, and was to panic");
        if self.flight_of(actor).is_some() {
            return Ok(());
        }
        let end = self.actors[actor].flight.and_then(|flight| self.flights[flight].end);
        let begins_anew = end == Some(End::Nothing) && !matches!(self.actors[actor].kind, Kind::Refresh { .. });
        ensure!(end.is_none() || begins_anew, "{actor} waits after {end:?}");
        let Some(open) = self.open.filter(|_| self.shares(actor)) else {
            return Err(format!("{actor} waits for a load that is not to be joined"));
        };
        self.leave(actor);
        self.join(actor, open);
        Ok(())
    }

    /// It leads, or takes over, in this step, and ends with what there is: nothing was loaded.
    fn leads_in_vain(&mut self, actor: usize) -> Checked {
        let flight = self.led_by(actor)?;
        let end = match self.attempt(actor) {
            Attempt::Loads { .. } => return Err(format!("{actor} was answered without a load")),
            Attempt::Finds(page) => End::Landed { page, by: actor, is_found: true },
            Attempt::Nothing => End::Nothing,
        };
        if let Kind::Refresh { .. } = self.actors[actor].kind {
            self.counts.ducked += 1;
        }
        self.end(flight, end);
        Ok(())
    }

    fn answered(&mut self, actor: usize, got: &Got) -> Checked {
        let kind = self.actors[actor].kind;
        let is_refresh = matches!(kind, Kind::Refresh { .. });
        let end = |oracle: &Self| oracle.actors[actor].flight.and_then(|flight| oracle.flights[flight].end);
        if end(self).is_none() || end(self) == Some(End::Nothing) && !is_refresh {
            self.leads_in_vain(actor)?;
        }
        let end = end(self).expect("it has ended by now");
        let expected: Option<(Page, Source)> = match (kind, end) {
            (Kind::Refresh { is_spawned: true, .. }, _) => {
                ensure!(matches!(got, Got::Over), "refresh {actor} has a result: {}", got.name());
                return Ok(());
            }
            (Kind::Refresh { source, .. }, End::Landed { page, .. }) => Some((page, source)),
            (Kind::Refresh { old, source, .. }, _) => Some((old, source)),
            (_, End::Landed { page, by, is_found: true }) if by == actor => Some((page, Source::Hit)),
            (_, End::Landed { page, by, is_found: false }) if by == actor => Some((page, Source::Loaded)),
            (_, End::Landed { page, .. }) => Some((page, Source::Joined)),
            (Kind::Read { instead }, _) => instead.map(|page| (page, Source::Stale)),
            (Kind::Ask, _) => None,
        };
        let is_right = match (got, &expected) {
            (Got::Page(page, source), Some(expected)) => (*page, *source) == *expected,
            (Got::Failed, None) => true,
            _ => false,
        };
        ensure!(is_right, "{actor} got {}, not {expected:?}", got.name());
        if matches!(end, End::Failed { by } if by != actor) && !is_refresh {
            self.counts.joins += 1;
        }
        // What it found in the end it had missed before.
        if let Some((_, source)) = expected
            && source != Source::Hit
        {
            self.count(source);
        }
        Ok(())
    }
}

impl Got {
    fn name(&self) -> String {
        match self {
            Self::Pending => "nothing yet".to_owned(),
            Self::Over => "no answer".to_owned(),
            Self::Page(page, source) => format!("{page:?} from {source:?}"),
            Self::Failed => "an error".to_owned(),
            Self::Panicked => "a panic".to_owned(),
            Self::Wrong(what) => what.clone(),
        }
    }
}

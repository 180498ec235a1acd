//! Flights: who is in them, who loads, and what becomes of the value.

use super::super::rules::{BACKOFF, Outcome};
use super::super::site::{Event, Page};
use super::{Checked, Kind, Oracle, ensure};

#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) members: Vec<usize>,
    /// Others may join it.
    pub(super) is_shared: bool,
    pub(super) loader: Option<usize>,
    /// When the load began, and how often the row had been written by then.
    began: (u64, u8),
    /// There was a value when the load began.
    had_value: bool,
    /// Another load has been stored since.
    is_overtaken: bool,
    pub(super) end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Found or loaded by that actor.
    Landed {
        page: Page,
        by: usize,
        is_found: bool,
    },
    Failed {
        by: usize,
    },
    /// Whoever needs a value begins anew.
    Nothing,
    /// Everybody has left.
    Left,
}

/// What the leader of a flight does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Loads {
        had_value: bool,
    },
    Finds(Page),
    /// What it was to refresh is gone.
    Nothing,
}

impl Flight {
    pub(super) fn is_on(&self) -> bool {
        self.end.is_none()
    }
}

impl Oracle {
    /// The flight that the actor is in, if that is on.
    pub(super) fn flight_of(&self, actor: usize) -> Option<usize> {
        self.actors[actor].flight.filter(|flight| self.flights[*flight].is_on())
    }

    /// What comes of it if that actor leads now.
    pub(super) fn attempt(&self, actor: usize) -> Attempt {
        let kind = self.actors[actor].kind;
        let stored = self.stored.filter(|stored| self.now < stored.stale_until);
        let fresh = stored.filter(|stored| self.now < stored.fresh_until);
        let loads = Attempt::Loads { had_value: stored.is_some() };
        match kind {
            Kind::Ask => loads,
            Kind::Read { .. } => fresh.map_or(loads, |fresh| Attempt::Finds(fresh.page)),
            Kind::Refresh { old, .. } if stored.is_some_and(|stored| stored.page == old) => loads,
            Kind::Refresh { .. } => fresh.map_or(Attempt::Nothing, |fresh| Attempt::Finds(fresh.page)),
        }
    }

    /// Whether the actor's flight is shared: without coalescing only that of a refresh.
    pub(super) fn shares(&self, actor: usize) -> bool {
        self.rules.coalescing || matches!(self.actors[actor].kind, Kind::Refresh { .. })
    }

    pub(super) fn join(&mut self, actor: usize, flight: usize) {
        self.flights[flight].members.push(actor);
        self.actors[actor].flight = Some(flight);
    }

    /// The actor is in no flight any more. The last one ends it.
    pub(super) fn leave(&mut self, actor: usize) -> Option<usize> {
        let flight = self.actors[actor].flight?;
        self.flights[flight].members.retain(|member| *member != actor);
        if self.flights[flight].members.is_empty() && self.flights[flight].is_on() {
            self.end(flight, End::Left);
            return self.flights[flight].loader.take();
        }
        None
    }

    pub(super) fn end(&mut self, flight: usize, end: End) {
        self.flights[flight].end = Some(end);
        if self.open == Some(flight) {
            self.open = None;
        }
    }

    /// A loader is called: it begins a flight, or goes on with one that has lost its leader.
    pub(super) fn called(&mut self, loader: usize) -> Checked {
        let actor = self.owners[loader];
        let Attempt::Loads { had_value } = self.attempt(actor) else {
            return Err(format!("loader {loader} was called, and there is a value: {:?}", self.stored));
        };
        let flight = self.led_by(actor)?;
        let (at, written) = (self.now, self.written);
        let flight = &mut self.flights[flight];
        (flight.loader, flight.began, flight.had_value) = (Some(loader), (at, written), had_value);
        flight.is_overtaken = false;
        self.counts.loads += 1;
        Ok(())
    }

    /// The flight that the actor leads from now on: the one that it is in, or the one that is open, if nobody leads that, or a new one.
    pub(super) fn led_by(&mut self, actor: usize) -> Checked<usize> {
        let flight = match (self.flight_of(actor), self.open) {
            (Some(flight), _) => flight,
            (None, Some(open)) if self.shares(actor) => {
                self.join(actor, open);
                open
            }
            (None, _) => self.begin(actor),
        };
        ensure!(self.flights[flight].loader.is_none(), "{actor} leads beside another: {:?}", self.flights[flight]);
        Ok(flight)
    }

    /// A flight begins.
    fn begin(&mut self, actor: usize) -> usize {
        let flight = self.flights.len();
        let (members, loader, began, end) = (Vec::new(), None, (self.now, self.written), None);
        let is_shared = self.shares(actor);
        self.flights.push(Flight { members, is_shared, loader, began, had_value: false, is_overtaken: false, end });
        if self.shares(actor) {
            self.open = Some(flight);
        }
        self.join(actor, flight);
        flight
    }

    /// A loader has ended, and what it has brought is stored in the same step.
    pub(super) fn ended(&mut self, driver: usize, loader: usize, outcome: Outcome, page: Page) -> Checked {
        let flight = self.flights.iter().position(|flight| flight.is_on() && flight.loader == Some(loader));
        let flight = flight.ok_or_else(|| format!("loader {loader} went on without a flight"))?;
        if self.flight_of(driver).is_none() && self.shares(driver) {
            // It has joined, and was the first to be polled since the loader woke.
            ensure!(self.open == Some(flight), "{driver} drives a load that is not to be joined");
            self.join(driver, flight);
        }
        ensure!(self.flight_of(driver) == Some(flight), "{driver} drives another's load");
        let owner = self.owners[loader];
        match outcome {
            Outcome::Value | Outcome::Fleeting => {
                self.land(flight, page);
                self.end(flight, End::Landed { page, by: owner, is_found: false });
            }
            Outcome::Failure => {
                self.fail(flight);
                self.end(flight, End::Failed { by: owner });
            }
            Outcome::Panic if matches!(self.actors[owner].kind, Kind::Refresh { .. }) => {
                self.fail(flight);
                self.end(flight, End::Nothing);
            }
            Outcome::Panic => {
                self.fail(flight);
                self.flights[flight].loader = None;
                // To whose loader it is, if that is still there; the others go on with their own.
                if !self.actors[owner].is_over {
                    self.panics.push(owner);
                    self.leave(owner);
                    self.actors[owner].flight = None;
                }
            }
        }
        Ok(())
    }

    fn land(&mut self, flight: usize, page: Page) {
        let Flight { began: (at, written), had_value, is_overtaken, .. } = self.flights[flight];
        self.succeed();
        let is_alone = self.flights.iter().filter(|flight| flight.is_on() && flight.loader.is_some()).count() == 1;
        if !page.is_kept && !had_value && is_alone && !is_overtaken {
            return;
        }
        if written != self.written {
            self.counts.invalidated += 1;
        } else if at >= self.newest {
            self.newest = at;
            self.stored = None;
            self.flights.iter_mut().for_each(|flight| flight.is_overtaken = true);
            if page.is_kept {
                self.store(page, at);
            }
        }
    }

    /// There is a wait before the next refresh, if there is something to refresh.
    fn fail(&mut self, flight: usize) {
        self.counts.load_errors += 1;
        let Flight { began: (_, written), had_value, .. } = self.flights[flight];
        if had_value && written == self.written {
            self.not_before = self.now + (BACKOFF << self.failures);
            self.failures += 1;
        }
    }

    /// A call is dropped, or a refresh beside one.
    pub(in super::super) fn left(&mut self, actor: usize, events: &[Event]) -> Checked {
        let loader = self.leave(actor);
        let expected: Vec<_> = loader.into_iter().map(|loader| Event::Dropped { loader }).collect();
        ensure!(*events == *expected, "{events:?} when {actor} was dropped, not {expected:?}");
        self.is_over(actor);
        self.panics.retain(|due| *due != actor);
        Ok(())
    }

    pub(super) fn is_over(&mut self, actor: usize) {
        self.actors[actor].is_over = true;
        if self.refreshing == Some(actor) {
            self.refreshing = None;
        }
    }
}

//! What must come of each step: a second, much simpler cache, that is told what the loaders do, and says what then is in the store,
//! who may load, who gets what, and who may still wait.

mod answers;
mod flights;
mod reads;

use super::rules::{Rules, TTL, Write};
use super::site::{Event, Page};
use crate::entry::{Entry, Source};
use crate::inner::Inner;
use crate::stats::{LoadTimes, Stats};
use crate::time::Time;
use flights::Flight;
use std::time::Duration;

pub(super) type Checked<T = ()> = Result<T, String>;

/// What a poll has come to.
pub(super) enum Got {
    Pending,
    /// A refresh beside its call is over.
    Over,
    Page(Page, Source),
    Failed,
    Panicked,
    /// What nothing should come to.
    Wrong(String),
}

/// What a read does that begins.
pub(super) enum Plan {
    /// It is answered at once; a refresh was spawned, if there is one.
    Served {
        page: Page,
        source: Source,
        spawned: bool,
    },
    Goes,
}

/// An entry of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    page: Page,
    loaded_at: u64,
    fresh_until: u64,
    stale_until: u64,
}

/// A call, or a refresh beside one.
#[derive(Clone, Copy, Debug)]
struct Actor {
    kind: Kind,
    /// How often the row had been written when it began.
    since: u8,
    /// When it began; for a refresh when it was drawn.
    at: u64,
    flight: Option<usize>,
    is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read {
        /// What it may get if the load fails.
        instead: Option<Page>,
    },
    Ask,
    /// A refresh of that page, for which its call gets that if it comes to nothing; a spawned one is nobody's.
    Refresh {
        old: Page,
        source: Source,
        is_spawned: bool,
    },
}

pub(super) struct Oracle {
    rules: Rules,
    pub(super) now: u64,
    /// How often the row has been written.
    written: u8,
    stored: Option<Stored>,
    actors: Vec<Actor>,
    /// Whose each loader is.
    owners: Vec<usize>,
    flights: Vec<Flight>,
    /// The flight that newcomers join.
    open: Option<usize>,
    /// Who has leave to refresh.
    refreshing: Option<usize>,
    failures: u32,
    not_before: u64,
    /// When the newest load began whose value was stored.
    newest: u64,
    /// To whom a panic is due.
    panics: Vec<usize>,
    /// Each page that was stored, and until when it was fresh.
    lives: Vec<(u8, u64)>,
    /// But for how long loads took.
    pub(super) counts: Stats,
}

/// An error unless that is so.
macro_rules! ensure {
    ($holds:expr, $($says:tt)+) => {
        if !$holds {
            return Err(format!($($says)+));
        }
    };
}
use ensure;

impl Oracle {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            now: 0,
            written: 0,
            stored: None,
            actors: Vec::new(),
            owners: Vec::new(),
            flights: Vec::new(),
            open: None,
            refreshing: None,
            failures: 0,
            not_before: 0,
            newest: 0,
            panics: Vec::new(),
            lives: Vec::new(),
            counts: Stats::default(),
        }
    }

    /// A page was stored.
    fn store(&mut self, page: Page, loaded_at: u64) {
        let stale = self.rules.revalidate().max(self.rules.if_error());
        let fresh_until = self.now + TTL;
        self.lives.push((page.serial, fresh_until));
        self.stored = Some(Stored { page, loaded_at, fresh_until, stale_until: fresh_until + stale });
    }

    fn succeed(&mut self) {
        (self.failures, self.not_before) = (0, 0);
    }

    /// The page was put before anything else.
    pub(super) fn begins_with(&mut self, page: Page) {
        self.store(page, 0);
    }

    /// A write has returned.
    pub(super) fn wrote(&mut self, write: Write, page: Page) {
        self.written = page.made;
        self.open = None;
        self.refreshing = None;
        self.stored = None;
        if write == Write::Put {
            self.store(page, self.now);
            self.succeed();
        }
    }

    /// What is in the store, whatever the time.
    pub(super) fn sees(&mut self, entry: Option<&Entry<Page>>) -> Checked {
        let time = |time: u64| Time::from_start(Duration::from_secs(time));
        if let Some(entry) = entry {
            let made = entry.value().made;
            ensure!(made == self.written, "the store has a page of write {made} after write {}", self.written);
        }
        if entry.is_none() && self.stored.is_some_and(|stored| stored.stale_until <= self.now) {
            // A read has cleared it away.
            self.stored = None;
        }
        let is_right = match (entry, &self.stored) {
            (None, None) => true,
            (Some(entry), Some(stored)) => {
                (*entry.value(), entry.loaded_at(), entry.fresh_until(), entry.stale_until())
                    == (stored.page, time(stored.loaded_at), time(stored.fresh_until), time(stored.stale_until))
            }
            _ => false,
        };
        ensure!(is_right, "there is {entry:?} in the store, not {:?}", self.stored);
        Ok(())
    }

    pub(super) fn counts_flights(&self, in_flight: usize) -> Checked {
        let on = self.flights.iter().filter(|flight| flight.is_on() && flight.is_shared).count();
        ensure!(in_flight == on, "{in_flight} flights are on, not {on}");
        Ok(())
    }

    /// A `get` has come to that.
    pub(super) fn got(&mut self, got: Option<(Page, Source)>) -> Checked {
        let stored = self.stored.filter(|stored| self.now < stored.fresh_until + self.rules.revalidate());
        let source = |stored: &Stored| if self.now < stored.fresh_until { Source::Hit } else { Source::Stale };
        let expected = stored.map(|stored| (stored.page, source(&stored)));
        ensure!(got == expected, "a get comes to {got:?}, not {expected:?}");
        match got {
            Some((_, source)) => self.count(source),
            None => self.counts.misses += 1,
        }
        Ok(())
    }

    /// Whether a `get` would leave the store as it is: what is of no use any more it clears away.
    pub(super) fn may_get(&self) -> bool {
        self.stored.is_none_or(|stored| self.now < stored.stale_until)
    }

    /// Nobody is woken. Then whoever waits must wait for a loader that was not told to end.
    pub(super) fn rests(&self, is_waiting: impl Fn(usize) -> bool) -> Checked {
        for (number, actor) in self.actors.iter().enumerate().filter(|(_, actor)| !actor.is_over) {
            let loader = actor.flight.and_then(|flight| self.flights[flight].loader);
            ensure!(loader.is_some_and(&is_waiting), "{number} waits, and nobody is woken: {actor:?}");
        }
        Ok(())
    }

    /// The statistics, at the end.
    pub(super) fn counted(&self, stats: &Stats) -> Checked {
        let stats = Stats { load_times: LoadTimes::default(), ..stats.clone() };
        ensure!(stats == self.counts, "{stats:?}, not {:?}", self.counts);
        Ok(())
    }

    /// Everybody has ended: nothing is remembered of the key but its back-off, and nobody refreshes or waits.
    pub(super) fn nothing_is_left<V, S>(&self, inner: &Inner<V, S>, waiters: usize) -> Checked {
        let (remembered, expected) = (inner.loads.len(), usize::from(self.not_before > 0));
        let is_right = remembered == expected && inner.refreshing.is_empty() && waiters == 0;
        ensure!(is_right, "something is left: {remembered} keys are remembered, not {expected}");
        Ok(())
    }

    /// Whether somebody is to take over, who has not yet.
    pub(super) fn has_heirs(&self) -> bool {
        self.flights.iter().any(|flight| flight.is_on() && flight.loader.is_none())
    }

    /// Something has happened in the thread whose loader it is.
    pub(super) fn hears(&mut self, event: Event) -> Checked {
        let (Event::Called { loader } | Event::Ended { loader, .. } | Event::Dropped { loader }) = event;
        self.heard(self.owners[loader], event)
    }

    /// Something has happened in a poll of `driver`.
    fn heard(&mut self, driver: usize, event: Event) -> Checked {
        match event {
            Event::Called { loader } => self.called(loader),
            Event::Ended { loader, outcome, page } => self.ended(driver, loader, outcome, page),
            Event::Dropped { loader } => Err(format!("loader {loader} was dropped, and somebody waits for it")),
        }
    }
}

//! What threads and tasks do in the same words: lead by a guard, forget, look.

use super::arena::{Arena, Group};
use super::call::Got;
use super::ledger::{Ledger, Running};
use super::script::End;
use crate::bomb::Blast;
use crate::breach::Breach;
use crate::things::{Answer, Hashing, Key, Product, product};
use oneflight::{Lead, OnAbandon, Stats};
use std::sync::Arc;
use std::time::Duration;

/// A lead and its execution.
pub(crate) struct Guard<'g> {
    lead: Lead<'g, Key, Answer, Hashing>,
    running: Running,
}

/// Leads the key, if nobody does.
pub(crate) fn try_lead<'a, G: Group>(arena: &'a Arena<G>, call: u64, key: u32, with: bool) -> Option<Guard<'a>> {
    let id = arena.id(key);
    let lead = if with { arena.group.try_lead_with(id) } else { arena.group.try_lead(id) }?;
    Some(Guard { lead, running: arena.ledger.start(key, call) })
}

impl Guard<'_> {
    /// Something is done while the lead is held.
    pub(crate) fn hold(&self, doing: impl FnOnce()) {
        let _step = self.running.step();
        doing();
    }

    /// Lands, or abandons the flight by a drop or while unwinding.
    pub(crate) fn end(self, end: End, call: u64) -> Got {
        match end {
            End::Value => {
                let outcome = self.lead.land(Ok(self.running.produce()));
                Got::One(outcome.value, Some((outcome.role, outcome.shared)))
            }
            End::Error => Got::Nothing,
            // The guard is dropped by the panic.
            End::Panic => Blast::Work { call }.go(),
        }
    }
}

/// Which way to forget.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Forget {
    One,
    Unshared,
    All,
}

pub(crate) fn forget<G: Group>(arena: &Arena<G>, key: u32, which: Forget) -> bool {
    let ledger = &arena.ledger;
    let keys = if matches!(which, Forget::All) { 0..arena.settings.keys } else { key..key + 1 };
    let begun: Vec<(u32, u64)> = keys.map(|key| (key, ledger.forgetting(key))).collect();
    let id = arena.id(key);
    let done = match which {
        Forget::One => {
            arena.group.forget(id);
            true
        }
        Forget::Unshared => arena.group.forget_unshared(id),
        Forget::All => {
            arena.group.forget_all();
            true
        }
    };
    if done {
        begun.into_iter().for_each(|(key, begun)| ledger.forgotten(key, begun));
    }
    done
}

/// Looks at everything that a group tells about itself.
pub(crate) fn look<G: Group>(arena: &Arena<G>, key: u32, before: &mut Stats) {
    let group = &arena.group;
    let id = arena.id(key);
    let stats = group.stats();
    for (what, then, now) in [
        ("flights", before.flights, stats.flights),
        ("joins", before.joins, stats.joins),
        ("take-overs", before.take_overs, stats.take_overs),
        ("abandons", before.abandons, stats.abandons),
        ("timeouts", before.timeouts, stats.timeouts),
        ("forgets", before.forgets, stats.forgets),
    ] {
        if now < then {
            Breach::Counter { what, counted: now, seen: then }.raise(key);
        }
    }
    *before = stats;
    for flight in group.snapshot().into_iter().chain(group.flight_info(id)) {
        if flight.attempts == 0 {
            Breach::Counter { what: "attempts of a flight", counted: 0, seen: 1 }.raise(key);
        }
    }
    if group.flight_info(id).is_some_and(|flight| flight.forgotten) {
        Breach::Counter { what: "forgotten flights that newcomers would join", counted: 1, seen: 0 }.raise(key);
    }
    // These two have no right answer while others are at it.
    _ = (group.in_flight(), group.waiters(id));
}

/// The options of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallOptions {
    pub(crate) limit: Option<Duration>,
    pub(crate) attempts: Option<u32>,
    pub(crate) on_abandon: Option<OnAbandon>,
    pub(crate) share: Share,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Share {
    Default,
    Ok,
    Even,
}

impl CallOptions {
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        Self {
            limit: (rng.u8(..3) == 0).then(|| Duration::from_micros(rng.u64(..600))),
            attempts: (rng.u8(..4) == 0).then(|| rng.u32(1..4)),
            on_abandon: match rng.u8(..6) {
                0 => Some(OnAbandon::Fail),
                1 => Some(OnAbandon::TakeOver),
                _ => None,
            },
            share: [Share::Default, Share::Ok, Share::Even][rng.usize(..3)],
        }
    }
}

/// One answer of a list that has one.
pub(crate) fn only(answers: Vec<Answer>) -> Answer {
    answers.into_iter().next().expect("one key, one answer")
}

/// [`Share::Even`]. What it refuses is for one caller.
pub(crate) fn is_even(ledger: &Arc<Ledger>) -> impl FnOnce(&Answer) -> bool + Send + 'static {
    let ledger = Arc::clone(ledger);
    move |answer| {
        let Product { key, execution } = *product(answer);
        let is_even = execution.is_multiple_of(2);
        if !is_even {
            ledger.keep_for_one(key, execution);
        }
        is_even
    }
}

/// As [`Answer`], before the error is shared.
pub(crate) fn unshared(answer: Answer) -> Result<Product, Product> {
    answer.map_err(|error| Arc::into_inner(error).expect("nobody else has it yet"))
}

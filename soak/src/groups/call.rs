//! One call: what it asks for, what it may come to, and whether it did.

use super::ledger::Ledger;
use crate::bomb::{Blast, Bomb, Fuse, Spot};
use crate::breach::Breach;
use crate::counts::Ending;
use crate::things::Answer;
use oneflight::{CallError, Role};
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A call that has begun.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) number: u64,
    pub(crate) begun: u64,
    pub(crate) begun_at: Instant,
    /// Its keys, and when the last `forget` of each began that has returned.
    keys: Vec<(u32, u64)>,
    pub(crate) may: May,
    ledger: Arc<Ledger>,
}

/// How it may end without a value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct May {
    /// Its time limit.
    pub(crate) limit: Option<Duration>,
    pub(crate) abandoned: bool,
    /// It is made from inside the work of its own key: re-entrant unless the flight has been left behind.
    pub(crate) recursive: bool,
    /// Wakers panic.
    pub(crate) wake: bool,
}

/// What it came to.
#[derive(Debug)]
pub(crate) enum Got {
    /// A value, and what the caller was told of its role and of whether others have it.
    One(Answer, Option<(Role, bool)>),
    /// The values of a batch.
    Many(Vec<Answer>),
    Refused(CallError),
    /// It was dropped before it ended.
    Dropped,
    /// There was nothing to get.
    Nothing,
}

impl Got {
    pub(crate) fn of(outcome: Result<oneflight::Outcome<Answer>, CallError>) -> Self {
        match outcome {
            Ok(outcome) => Self::One(outcome.value, Some((outcome.role, outcome.shared))),
            Err(error) => Self::Refused(error),
        }
    }

    pub(crate) fn value(value: Result<Answer, CallError>) -> Self {
        value.map_or_else(Self::Refused, |value| Self::One(value, None))
    }

    pub(crate) fn many(values: Result<Vec<Answer>, CallError>) -> Self {
        values.map_or_else(Self::Refused, Self::Many)
    }
}

impl Call {
    /// A call of `keys` begins.
    pub(crate) fn begin(ledger: &Arc<Ledger>, keys: &[u32], may: May) -> Self {
        let keys = keys.iter().map(|&key| (key, ledger.floor(key))).collect();
        let begun = ledger.now();
        Self { number: begun, begun, begun_at: Instant::now(), keys, may, ledger: Arc::clone(ledger) }
    }

    pub(crate) fn floor(&self, key: u32) -> u64 {
        self.keys.iter().find(|(of, _)| *of == key).map_or(0, |(_, floor)| *floor)
    }

    fn key(&self) -> u32 {
        self.keys[0].0
    }

    /// A bomb for it, if the random number says so.
    pub(crate) fn fuse(&self, rng: &mut fastrand::Rng, bombs: bool) -> Fuse {
        let is_armed = bombs && rng.u8(..8) == 0;
        let spot = Spot::ALL[rng.usize(..Spot::ALL.len())];
        Fuse(is_armed.then(|| Bomb { call: self.number, spot, count: rng.u32(1..5) }))
    }

    /// It has ended. Checks that it may have ended so.
    pub(crate) fn end(self, ended: Result<Got, Box<dyn Any + Send>>) -> Ending {
        match ended {
            Ok(got) => self.returned(got),
            Err(payload) => {
                self.panicked(&*payload);
                Ending::Panicked
            }
        }
    }

    fn returned(&self, got: Got) -> Ending {
        match got {
            Got::One(answer, told) => {
                if self.must_recurse() {
                    Breach::NotRefused.raise(self.key());
                }
                let followed = self.ledger.receive(self, self.key(), &answer, told);
                if followed { Ending::Followed } else { Ending::Value }
            }
            Got::Many(answers) => {
                if answers.len() != self.keys.len() {
                    Breach::WrongLength { asked: self.keys.len(), got: answers.len() }.raise(self.key());
                }
                let (mut seen, mut followed) = (Vec::new(), false);
                for ((key, _), answer) in self.keys.iter().zip(&answers) {
                    // A key that stands there twice gets one value, and clones of it.
                    if !seen.contains(key) {
                        seen.push(*key);
                        followed |= self.ledger.receive(self, *key, answer, None);
                    }
                }
                if followed { Ending::Followed } else { Ending::Value }
            }
            Got::Refused(error) => {
                self.refused(error);
                Ending::Refused
            }
            Got::Dropped => Ending::Dropped,
            Got::Nothing => Ending::Value,
        }
    }

    fn must_recurse(&self) -> bool {
        self.may.recursive && self.ledger.is_strict(self.key())
    }

    fn refused(&self, error: CallError) {
        let may = match error {
            CallError::TimedOut => match self.may.limit {
                Some(limit) if self.begun_at.elapsed() < limit => Breach::TooSoon.raise(self.key()),
                limit => limit.is_some(),
            },
            CallError::Abandoned => self.may.abandoned,
            CallError::Reentrant => self.may.recursive,
            _ => false,
        };
        if !may || (self.must_recurse() && error != CallError::Reentrant) {
            Breach::Refused(error).raise(self.key());
        }
    }

    fn panicked(&self, payload: &(dyn Any + Send)) {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a payload");
        let may = match payload.downcast_ref::<Blast>() {
            Some(Blast::Work { call } | Blast::Bomb { call, .. }) => *call == self.number,
            Some(Blast::Wake) => self.may.wake,
            None => self.may.recursive && text.contains("called from inside"),
        };
        if !may {
            let what = payload.downcast_ref::<Blast>().map_or_else(|| text.to_owned(), |blast| format!("{blast:?}"));
            Breach::Panicked(format!("{what} in call {}", self.number)).raise(self.key());
        }
    }
}

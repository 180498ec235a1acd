//! Which generation of the store's keys holds.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// What this process knows of the number that is a part of the name of each key. Clearing the store sets another one.
#[derive(Debug)]
pub(crate) struct Generation {
    /// How long the number is taken to hold without another look; `None` if it never changes.
    life: Option<Duration>,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    number: Option<u64>,
    /// When it has to be looked at again.
    until: Option<Instant>,
    /// How often another number was found, or this process has said that what is known may not hold.
    changes: u64,
}

/// What was known when a request began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The number that held when somebody looked last.
    pub(crate) number: Option<u64>,
    /// Whether it is time to look again.
    pub(crate) over: bool,
    /// Whether it may not hold any more, for all that is known.
    pub(crate) is_in_doubt: bool,
    began: Instant,
    changes: u64,
}

impl Generation {
    pub(crate) fn new(life: Duration) -> Self {
        Self { life: Some(life), known: Mutex::new(Known { number: None, until: None, changes: 0 }) }
    }

    /// One that never changes.
    pub(crate) fn fixed() -> Self {
        Self { life: None, known: Mutex::new(Known { number: Some(0), until: None, changes: 0 }) }
    }

    pub(crate) fn is_fixed(&self) -> bool {
        self.life.is_none()
    }

    /// To be called before the request is sent that looks.
    pub(crate) fn look(&self) -> Look {
        let began = Instant::now();
        let known = self.known.lock();
        let over = !self.is_fixed() && known.until.is_none_or(|until| until <= began);
        let is_in_doubt = known.until.is_none();
        Look { number: known.number, over, is_in_doubt, began, changes: known.changes }
    }

    /// The request has found `number`. If the generation may have changed since the look began, it is looked at again at once: the
    /// answer may be older than that of a look that began later and was quicker, and what was written since is not to be hidden.
    pub(crate) fn found(&self, look: Look, number: u64) {
        let Some(life) = self.life else { return };
        let mut known = self.known.lock();
        let is_latest = known.changes == look.changes;
        if known.number != Some(number) {
            known.number = Some(number);
            known.until = None;
            known.changes += 1;
        }
        if is_latest {
            // A life that never ends is one that is always over: rather a look too many.
            known.until = look.began.checked_add(life);
        }
    }

    /// What is known may not hold any more.
    pub(crate) fn doubt(&self) {
        let mut known = self.known.lock();
        known.changes += 1;
        known.until = None;
    }

    /// What is known does not hold any more.
    pub(crate) fn forget(&self) {
        let mut known = self.known.lock();
        known.changes += 1;
        known.number = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn what_was_found_holds_for_its_life() {
        let generation = Generation::new(HOUR);
        let look = generation.look();
        assert!(look.over && look.number.is_none());
        generation.found(look, 7);
        assert!(!generation.look().over && generation.look().number == Some(7));

        let restless = Generation::new(Duration::ZERO);
        restless.found(restless.look(), 7);
        assert!(restless.look().over && restless.look().number == Some(7));
    }

    #[test]
    fn what_was_looked_at_before_a_change_does_not_hold() {
        let generation = Generation::new(HOUR);
        let changes: [fn(&Generation); 3] =
            [Generation::doubt, Generation::forget, |generation| generation.found(generation.look(), 2)];
        for change in changes {
            generation.forget();
            let before = [generation.look(), generation.look()];
            change(&generation);
            generation.found(generation.look(), 2);
            generation.found(before[0], 2);
            assert!(!generation.look().over, "it is the same");
            generation.found(before[1], 1);
            assert!(generation.look().over && generation.look().is_in_doubt, "either may be the later one");
            generation.found(generation.look(), 2);
            assert!(!generation.look().is_in_doubt && generation.look().number == Some(2));
        }
        generation.doubt();
        assert!(generation.look().over && generation.look().number == Some(2));
        generation.forget();
        assert_eq!(generation.look().number, None);
    }

    #[test]
    fn a_fixed_one_is_never_looked_at() {
        let generation = Generation::fixed();
        assert!(!generation.look().over && generation.look().number == Some(0));
    }
}

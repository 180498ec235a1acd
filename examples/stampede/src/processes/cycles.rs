//! Which life of the value a load belongs to, so that loads can be counted by lives.

use core::time::Duration;
use std::time::Instant;

use super::protocol::Moment;
use crate::lives::{Generation, Lives};

/// All callers want the same value.
const PRODUCT: u32 = 0;

/// As if values lived a little shorter: so a refresh at the very beginning of the second half of a life, where refreshes begin,
/// is a renewal, also if clocks and stores round otherwise.
fn shorter(ttl: Duration) -> Duration {
    ttl / 5 * 4
}

/// A load that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// When its caller looked into the cache for the last time before it.
    pub(crate) looked: Moment,
    pub(crate) begun: Moment,
    pub(crate) ended: Moment,
}

/// How many loads each life of a value that lives for `ttl` had, in place of which another came. A load belongs to the life
/// that the value was in when its caller looked; those before there was a value are left out.
pub(crate) fn loads_of_lives(loads: &[Load], ttl: Duration) -> Vec<usize> {
    let start = Instant::now();
    let first = loads.iter().map(|load| load.looked).min().unwrap_or(Moment(0));
    let instant = |moment: Moment| start + Duration::from_micros(moment.0.saturating_sub(first.0));

    let mut by_end = loads.to_vec();
    by_end.sort_unstable_by_key(|load| load.ended);
    let mut by_look = loads.to_vec();
    by_look.sort_unstable_by_key(|load| load.looked);

    let (lives, mut looks, mut counts) = (Lives::default(), by_look.iter().peekable(), Vec::new());
    let mut count = |generation: Generation| {
        let index = generation.0 as usize;
        counts.resize(counts.len().max(index + 1), 0);
        counts[index] += 1;
    };
    for load in by_end {
        while let Some(look) = looks.next_if(|look| look.looked < load.ended) {
            count(lives.of(PRODUCT));
            debug_assert!(look.looked <= look.begun);
        }
        lives.renew(PRODUCT, instant(load.begun), instant(load.ended), shorter(ttl));
    }
    // Nobody looks after the end of the last load and loads. The last life has no end.
    counts.truncate(lives.of(PRODUCT).0 as usize);
    if counts.is_empty() { counts } else { counts.split_off(1) }
}

/// Counts lives while loads are still coming: quickly, and by the order in which they come, so it may be a little off.
pub(crate) struct Counter {
    ttl: Duration,
    lives: Lives,
    start: Instant,
    first: Option<Moment>,
    loads: usize,
}

impl Counter {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self { ttl, lives: Lives::default(), start: Instant::now(), first: None, loads: 0 }
    }

    /// How many lives have ended, if these are all loads so far.
    pub(crate) fn ended(&mut self, loads: &[Load]) -> u32 {
        for load in loads.iter().skip(self.loads) {
            let first = *self.first.get_or_insert(load.looked);
            let instant = |moment: Moment| self.start + Duration::from_micros(moment.0.saturating_sub(first.0));
            self.lives.renew(PRODUCT, instant(load.begun), instant(load.ended), shorter(self.ttl));
        }
        self.loads = loads.len();
        self.lives.of(PRODUCT).0.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_micros(100);

    fn load(looked: u64, ended: u64) -> Load {
        Load { looked: Moment(1_000 + looked), begun: Moment(1_000 + looked), ended: Moment(1_000 + ended) }
    }

    #[test]
    fn a_load_counts_for_the_life_in_which_its_caller_looked() {
        // Two when there was nothing; three at the first expiry, one of them a straggler; one refresh.
        let loads =
            [load(0, 10), load(1, 11), load(111, 121), load(112, 122), load(120, 135), load(200, 210), load(320, 330)];
        assert_eq!(loads_of_lives(&loads, TTL), [3, 1, 1]);
        let mut counter = Counter::new(TTL);
        let ended: Vec<u32> = (0..=loads.len()).map(|loaded| counter.ended(&loads[..loaded])).collect();
        assert_eq!(ended, [0, 0, 0, 1, 1, 1, 2, 3]);
    }

    #[test]
    fn without_renewals_there_are_no_lives() {
        assert!(loads_of_lives(&[], TTL).is_empty());
        assert!(loads_of_lives(&[load(0, 10), load(1, 11)], TTL).is_empty());
    }

    #[test]
    fn a_load_too_many_early_in_a_life_counts_for_that_life() {
        assert_eq!(loads_of_lives(&[load(0, 10), load(20, 30), load(110, 120)], TTL), [2]);
    }
}

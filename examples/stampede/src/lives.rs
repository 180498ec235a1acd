//! Which life of its page a product is in. No way of serving has a use for it: it is how the figures tell the queries of
//! one expiry from those of the next, by one rule for all ways.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

/// How many times the page of a product has been renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Generation(pub(crate) u32);

impl Generation {
    /// There has been no page yet.
    pub(crate) const COLD: Self = Self(0);
}

struct Life {
    generation: Generation,
    /// From here on a new page begins a new life.
    half_over: Instant,
}

/// The lives that the pages of all products are in.
#[derive(Default)]
pub(crate) struct Lives(Mutex<HashMap<u32, Life>>);

impl Lives {
    /// The life of the newest page of a product.
    pub(crate) fn of(&self, product: u32) -> Generation {
        self.lock().get(&product).map_or(Generation::COLD, |life| life.generation)
    }

    /// There is a new page of a product, made since `begun`, which will live for `ttl` from `now` on.
    ///
    /// In the second half of a life (or after it) that is a renewal. In the first half it is not, as no page is refreshed so
    /// early: it is the straggler of a stampede, or a query too many. So that one counts for a life that had its query, and
    /// is seen in the figures.
    pub(crate) fn renew(&self, product: u32, begun: Instant, now: Instant, ttl: Duration) {
        // As the policies of early refresh count: a life begins with the query.
        let half_over = begun + (now - begun + ttl) / 2;
        let mut lives = self.lock();
        let generation = match lives.get(&product) {
            Some(life) if now < life.half_over => life.generation,
            Some(life) => Generation(life.generation.0 + 1),
            None => Generation(Generation::COLD.0 + 1),
        };
        lives.insert(product, Life { generation, half_over });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Life>> {
        self.0.lock().expect("nothing panics under this lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(2);

    #[test]
    fn a_page_that_replaces_an_expired_one_or_one_near_its_end_begins_a_new_life() {
        let (lives, start) = (Lives::default(), Instant::now());
        let renew = |now| lives.renew(1, now, now, TTL);
        assert_eq!(lives.of(1), Generation::COLD);
        renew(start);
        assert_eq!(lives.of(1), Generation(1));
        renew(start + TTL);
        assert_eq!(lives.of(1), Generation(2));
        renew(start + TTL + TTL / 2);
        assert_eq!(lives.of(1), Generation(3));
        assert_eq!(lives.of(2), Generation::COLD);
    }

    #[test]
    fn stragglers_and_queries_too_many_are_of_the_life_that_had_its_query() {
        let (lives, start) = (Lives::default(), Instant::now());
        let renew = |now| lives.renew(1, now, now, TTL);
        renew(start);
        let just_before = TTL / 2 - Duration::from_nanos(1);
        renew(start + just_before);
        assert_eq!(lives.of(1), Generation(1));
        // Its page lives as long as any other.
        renew(start + 2 * just_before);
        assert_eq!(lives.of(1), Generation(1));
        renew(start + 2 * just_before + TTL);
        assert_eq!(lives.of(1), Generation(2));
    }

    #[test]
    fn the_time_of_the_query_is_part_of_the_life() {
        let (lives, start) = (Lives::default(), Instant::now());
        lives.renew(1, start, start + TTL / 2, TTL);
        lives.renew(1, start + TTL * 3 / 4, start + TTL * 3 / 4, TTL);
        assert_eq!(lives.of(1), Generation(2));
    }
}

//! The cache of rendered pages: a map with a time to live, such as many services have.

use alloc::sync::Arc;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::RwLock;
use std::time::Instant;

use crate::database::Page;

/// How many times the page of a product has been renewed: counts one up whenever a page takes the place of none or of
/// an expired one, and not when a page that is still fresh is overwritten.
///
/// The cache itself has no use for it. It is what tells the queries of one expiry from those of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Generation(pub(crate) u32);

impl Generation {
    /// No page has been stored yet.
    pub(crate) const COLD: Self = Self(0);
}

/// What a look into the cache finds.
#[derive(Debug)]
pub(crate) enum Look {
    /// A page that may be shown.
    Fresh(Arc<Page>),
    /// No page (then the generation is [`Generation::COLD`]), or an expired one of this generation.
    Gone(Generation),
}

struct Entry {
    page: Arc<Page>,
    expires_at: Instant,
    generation: Generation,
}

/// Rendered pages by product.
pub(crate) struct PageCache {
    // Sharded: a thread that the system suspends in the middle of a look must not stop the visitors of all products.
    shards: [RwLock<HashMap<u32, Entry>>; 64],
    ttl: Duration,
}

impl PageCache {
    /// An empty cache whose pages live for `ttl`.
    pub(crate) fn new(ttl: Duration) -> Self {
        Self { shards: core::array::from_fn(|_| RwLock::default()), ttl }
    }

    /// The page of a product, if there is one that has not expired at `now`.
    pub(crate) fn look(&self, product: u32, now: Instant) -> Look {
        let pages = self.shard(product).read().expect("nothing panics under this lock");
        match pages.get(&product) {
            Some(entry) if now < entry.expires_at => Look::Fresh(Arc::clone(&entry.page)),
            Some(entry) => Look::Gone(entry.generation),
            None => Look::Gone(Generation::COLD),
        }
    }

    /// Keeps a page from `now` on.
    pub(crate) fn store(&self, product: u32, page: Arc<Page>, now: Instant) {
        self.store_until(product, page, now, now + self.ttl);
    }

    /// Keeps a page from `now` on, but only until the given moment.
    pub(crate) fn store_until(&self, product: u32, page: Arc<Page>, now: Instant, expires_at: Instant) {
        let mut pages = self.shard(product).write().expect("nothing panics under this lock");
        let generation = match pages.get(&product) {
            Some(entry) if now < entry.expires_at => entry.generation,
            Some(entry) => Generation(entry.generation.0 + 1),
            None => Generation(Generation::COLD.0 + 1),
        };
        pages.insert(product, Entry { page, expires_at, generation });
    }

    fn shard(&self, product: u32) -> &RwLock<HashMap<u32, Entry>> {
        &self.shards[product as usize % self.shards.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(2);

    fn page(html: &str) -> Arc<Page> {
        Arc::new(Page { html: html.to_owned() })
    }

    fn generation(look: &Look) -> Option<u32> {
        match look {
            Look::Fresh(_) => None,
            Look::Gone(generation) => Some(generation.0),
        }
    }

    #[test]
    fn a_page_is_fresh_for_its_time_to_live_and_then_gone() {
        let (cache, start) = (PageCache::new(TTL), Instant::now());
        assert_eq!(generation(&cache.look(1, start)), Some(0));
        cache.store(1, page("a"), start);
        let last_moment = start + TTL - Duration::from_nanos(1);
        assert!(matches!(cache.look(1, last_moment), Look::Fresh(page) if page.html == "a"));
        assert_eq!(generation(&cache.look(1, start + TTL)), Some(1));
        assert_eq!(generation(&cache.look(2, start)), Some(0));
    }

    #[test]
    fn stragglers_of_one_expiry_are_one_generation() {
        let (cache, start) = (PageCache::new(TTL), Instant::now());
        cache.store(1, page("a"), start);
        cache.store(1, page("straggler"), start + TTL / 2);
        // The straggler's page is shown from then on, for a time to live of its own.
        assert!(matches!(cache.look(1, start + TTL), Look::Fresh(page) if page.html == "straggler"));
        assert_eq!(generation(&cache.look(1, start + 2 * TTL)), Some(1));
        cache.store(1, page("b"), start + 2 * TTL);
        cache.store(1, page("straggler"), start + 2 * TTL);
        assert_eq!(generation(&cache.look(1, start + 3 * TTL)), Some(2));
    }
}

//! A cache of rendered pages such as many services have: a map with a time to live.

use alloc::sync::Arc;
use std::collections::HashMap;
use std::sync::RwLock;
use std::time::Instant;

use crate::shop::Page;

struct Entry {
    page: Arc<Page>,
    expires_at: Instant,
}

/// Rendered pages by product.
pub(crate) struct PageCache {
    // Sharded: a thread that the system suspends in the middle of a look must not stop the visitors of all products.
    shards: [RwLock<HashMap<u32, Entry>>; 64],
}

impl PageCache {
    /// An empty cache.
    pub(crate) fn new() -> Self {
        Self { shards: core::array::from_fn(|_| RwLock::default()) }
    }

    /// The page of a product, if there is one that has not expired at `now`.
    pub(crate) fn look(&self, product: u32, now: Instant) -> Option<Arc<Page>> {
        let pages = self.shard(product).read().expect("nothing panics under this lock");
        let entry = pages.get(&product)?;
        (now < entry.expires_at).then(|| Arc::clone(&entry.page))
    }

    /// Keeps a page from `now` on.
    pub(crate) fn store(&self, product: u32, page: Arc<Page>, now: Instant) {
        let expires_at = now + page.ttl;
        let mut pages = self.shard(product).write().expect("nothing panics under this lock");
        pages.insert(product, Entry { page, expires_at });
    }

    fn shard(&self, product: u32) -> &RwLock<HashMap<u32, Entry>> {
        &self.shards[product as usize % self.shards.len()]
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::lives::Generation;

    #[test]
    fn a_page_is_fresh_for_its_time_to_live_and_then_gone() {
        let ttl = Duration::from_secs(2);
        let (cache, start) = (PageCache::new(), Instant::now());
        assert!(cache.look(1, start).is_none());
        cache.store(1, Arc::new(Page { html: "a".to_owned(), begun: start, ttl, follows: Generation::COLD }), start);
        let last_moment = start + ttl - Duration::from_nanos(1);
        assert!(cache.look(1, last_moment).is_some_and(|page| page.html == "a"));
        assert!(cache.look(1, start + ttl).is_none());
        assert!(cache.look(2, start).is_none());
    }
}

//! What every way of getting a page has at hand, and the log of the queries that it made.

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;
use std::time::Instant;

use crate::database::{Database, Page};
use crate::measure::Query;
use crate::page_cache::{Generation, Look, PageCache};

/// A page, or why the database could not give one. Both can be shared, as all callers of a flight get the same.
pub(crate) type PageResult = Result<Arc<Page>, Arc<rusqlite::Error>>;

const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;

/// The shop as one way sees it: a cache of its own before the common database.
pub(crate) struct Shop {
    cache: PageCache,
    ttl: Duration,
    database: Arc<Database>,
    queries: Mutex<Vec<Query>>,
    start: Instant,
}

impl Shop {
    /// A shop with a cold cache; its log counts the time from `start`.
    pub(crate) fn new(database: Arc<Database>, ttl: Duration, start: Instant) -> Self {
        Self { cache: PageCache::new(ttl), ttl, database, queries: Mutex::default(), start }
    }

    /// Makes a shop that has been open for a while: the given pages are cached already, and have anything from nothing
    /// to the whole time to live before them.
    pub(crate) fn warm_up(&self, pages: &[(u32, Arc<Page>)]) {
        for ((product, page), number) in pages.iter().zip(1..) {
            // Multiples of the golden ratio, less their whole part, keep any first few of the pages well apart, so that
            // no two hot ones expire at about the same moment.
            let life = (f64::from(number) * GOLDEN_RATIO).fract();
            let expires_at = self.start + self.ttl.mul_f64(life);
            self.cache.store_until(*product, Arc::clone(page), self.start, expires_at);
        }
    }

    /// Looks into the cache.
    pub(crate) fn look(&self, product: u32) -> Look {
        self.cache.look(product, Instant::now())
    }

    /// Queries the database for a page and caches it; `seen` is what the caller's look into the cache found.
    pub(crate) fn load(&self, product: u32, seen: Generation) -> PageResult {
        let begun = self.start.elapsed();
        let page = self.database.product_page(product);
        self.log(Query { product, seen, begun, ended: self.start.elapsed() });
        let page = Arc::new(page?);
        self.cache.store(product, Arc::clone(&page), Instant::now());
        Ok(page)
    }

    /// All queries so far; the log is empty afterwards.
    pub(crate) fn take_queries(&self) -> Vec<Query> {
        core::mem::take(&mut self.queries.lock().expect("nothing panics under this lock"))
    }

    fn log(&self, query: Query) {
        self.queries.lock().expect("nothing panics under this lock").push(query);
    }
}

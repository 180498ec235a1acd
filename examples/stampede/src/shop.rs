//! What every way of getting a page has at hand, and the log of the queries that it made.

use alloc::sync::Arc;
use core::time::Duration;
use std::sync::Mutex;
use std::time::Instant;

use crate::database::Database;
use crate::lives::{Generation, Lives};
use crate::measure::Query;

/// A rendered product page.
#[derive(Debug)]
pub(crate) struct Page {
    /// What the visitor gets.
    pub(crate) html: String,
    /// When its query began.
    pub(crate) begun: Instant,
    /// How long a cache may show it.
    pub(crate) ttl: Duration,
    /// The life after which it comes.
    pub(crate) follows: Generation,
}

/// The shop as one way sees it, before the common database.
pub(crate) struct Shop {
    ttl: Duration,
    database: Arc<Database>,
    lives: Lives,
    queries: Mutex<Vec<Logged>>,
}

struct Logged {
    product: u32,
    seen: Generation,
    begun: Instant,
    ended: Instant,
}

impl Shop {
    /// A shop whose pages may be cached for `ttl`.
    pub(crate) fn new(database: Arc<Database>, ttl: Duration) -> Self {
        Self { ttl, database, lives: Lives::default(), queries: Mutex::default() }
    }

    /// Makes the page of a product: the query that a cache is to save.
    ///
    /// It counts for the life that the product's page is in when the query begins.
    pub(crate) fn load(&self, product: u32) -> rusqlite::Result<Arc<Page>> {
        let page = self.query(product, self.seen(product))?;
        self.renewed(product, &page);
        Ok(page)
    }

    /// Makes a page that was made before anything is measured and has only `life` left.
    pub(crate) fn load_unmeasured(&self, product: u32, life: Duration) -> rusqlite::Result<Arc<Page>> {
        let begun = Instant::now();
        let html = self.database.product_page(product)?;
        let page = Arc::new(Page { html, begun, ttl: life, follows: Generation::COLD });
        self.renewed(product, &page);
        Ok(page)
    }

    /// The life of the product's page; for [`query`](Self::query), before a look into the cache.
    pub(crate) fn seen(&self, product: u32) -> Generation {
        self.lives.of(product)
    }

    /// As [`load`](Self::load), for a caller that saw for itself which life has ended, and who says when the page
    /// [is in its cache](Self::renewed).
    pub(crate) fn query(&self, product: u32, seen: Generation) -> rusqlite::Result<Arc<Page>> {
        let begun = Instant::now();
        let html = self.database.product_page(product);
        let logged = Logged { product, seen, begun, ended: Instant::now() };
        self.queries.lock().expect("nothing panics under this lock").push(logged);
        Ok(Arc::new(Page { html: html?, begun, ttl: self.ttl, follows: seen }))
    }

    /// The page is the product's newest from now on.
    pub(crate) fn renewed(&self, product: u32, page: &Page) {
        self.lives.renew(product, page.begun, Instant::now(), page.ttl);
    }

    /// All queries so far, their times counted from `start`; the log is empty afterwards.
    pub(crate) fn take_queries(&self, start: Instant) -> Vec<Query> {
        let logged = core::mem::take(&mut *self.queries.lock().expect("nothing panics under this lock"));
        let since = |moment: Instant| moment.saturating_duration_since(start);
        let query =
            |Logged { product, seen, begun, ended }| Query { product, seen, begun: since(begun), ended: since(ended) };
        logged.into_iter().map(query).collect()
    }
}

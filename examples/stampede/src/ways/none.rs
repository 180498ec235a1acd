//! Without protection: every request that finds no fresh page queries for itself.

use alloc::sync::Arc;
use core::time::Duration;
use std::time::Instant;

use oneflight_cache::BoxError;

use super::{Served, Way};
use crate::lives::Generation;
use crate::page_cache::PageCache;
use crate::shop::{Page, Shop};

/// A cache alone.
pub(crate) struct Unprotected {
    shop: Arc<Shop>,
    cache: PageCache,
}

impl Unprotected {
    pub(crate) fn new(shop: Arc<Shop>) -> Self {
        Self { shop, cache: PageCache::new() }
    }

    fn query(&self, product: u32, seen: Generation) -> rusqlite::Result<Arc<Page>> {
        let page = self.shop.query(product, seen)?;
        self.cache.store(product, Arc::clone(&page), Instant::now());
        self.shop.renewed(product, &page);
        Ok(page)
    }
}

impl Way for Unprotected {
    fn warm_up(&self, product: u32, life: Duration) -> Result<(), BoxError> {
        let page = self.shop.load_unmeasured(product, life)?;
        self.cache.store(product, page, Instant::now());
        Ok(())
    }

    fn page(&self, product: u32) -> Served {
        // Seen before the look: a caller that is suspended between its look and its query is of the expiry that it looked at.
        let seen = self.shop.seen(product);
        match self.cache.look(product, Instant::now()) {
            Some(page) => Served { page: Ok(page), waited: false },
            None => Served { page: self.query(product, seen).map_err(Into::into), waited: true },
        }
    }
}

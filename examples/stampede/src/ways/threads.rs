//! With `oneflight_cache::blocking::Cache`, for services whose requests are threads.

use alloc::sync::Arc;
use core::time::Duration;

use oneflight_cache::blocking::Cache;
use oneflight_cache::{BoxError, Builder};

use super::{PATIENCE, Served, Way};
use crate::shop::{Page, Shop};

/// The cache in front of the shop.
pub(crate) struct Protected {
    shop: Arc<Shop>,
    cache: Cache<u32, Arc<Page>, rusqlite::Error>,
}

impl Protected {
    pub(crate) fn new(shop: Arc<Shop>, settings: Builder<u32, Arc<Page>, rusqlite::Error>) -> Self {
        // Refreshes go on in two threads of the cache.
        Self { shop, cache: settings.build_blocking() }
    }
}

impl Way for Protected {
    fn warm_up(&self, product: u32, life: Duration) -> Result<(), BoxError> {
        self.cache.refresh(&product, || self.shop.load_unmeasured(product, life))?;
        Ok(())
    }

    fn page(&self, product: u32) -> Served {
        let shop = Arc::clone(&self.shop);
        self.cache.get_or_load(&product, move || shop.load(product)).into()
    }

    fn close(&self) {
        self.cache.close(PATIENCE);
    }
}

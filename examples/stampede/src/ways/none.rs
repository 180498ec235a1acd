//! Without protection: every request that finds no fresh page queries for itself.

use alloc::sync::Arc;

use super::{Served, Way};
use crate::page_cache::Look;
use crate::shop::Shop;

/// The cache alone.
pub(crate) struct Unprotected {
    shop: Arc<Shop>,
}

impl Unprotected {
    pub(crate) fn new(shop: Arc<Shop>) -> Self {
        Self { shop }
    }
}

impl Way for Unprotected {
    fn name(&self) -> &'static str {
        "none"
    }

    fn title(&self) -> &'static str {
        "Cache alone"
    }

    fn page(&self, product: u32) -> Served {
        match self.shop.look(product) {
            Look::Fresh(page) => Served::at_once(page),
            Look::Gone(seen) => {
                let page = self.shop.load(product, seen);
                Served::after_a_query(page, seen)
            }
        }
    }
}

//! With a `SyncGroup`: of all requests that find no fresh page, one queries and the others share its page.

use alloc::sync::Arc;

use oneflight::SyncGroup;

use super::{Served, Way};
use crate::page_cache::Look;
use crate::shop::{PageResult, Shop};

/// The cache, and a group for what is not in it.
pub(crate) struct Coalesced {
    shop: Arc<Shop>,
    flights: SyncGroup<u32, PageResult>,
}

impl Coalesced {
    pub(crate) fn new(shop: Arc<Shop>) -> Self {
        let flights = SyncGroup::new();
        Self { shop, flights }
    }

    /// Runs for one caller at a time of each product.
    fn look_again_and_load(&self, product: u32) -> PageResult {
        match self.shop.look(product) {
            // Without this second look there would be double loads: this caller found no page, then a whole flight of
            // somebody else landed and stored one, and only then did this caller ask the group, to find nobody there
            // and lead. The group cannot know, since it keeps nothing. The cache does.
            Look::Fresh(page) => Ok(page),
            Look::Gone(seen) => self.shop.load(product, seen),
        }
    }
}

impl Way for Coalesced {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn title(&self) -> &'static str {
        "Cache + SyncGroup"
    }

    fn page(&self, product: u32) -> Served {
        match self.shop.look(product) {
            Look::Fresh(page) => Served::at_once(page),
            Look::Gone(seen) => {
                let page = self.flights.do_call(&product, || self.look_again_and_load(product));
                Served::after_a_query(page, seen)
            }
        }
    }
}

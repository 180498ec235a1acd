//! With an `AsyncGroup`: of all tasks that find no fresh page, one has it queried and the others share it.

use alloc::sync::Arc;

use oneflight::AsyncGroup;

use super::{Served, Way};
use crate::page_cache::Look;
use crate::shop::{PageResult, Shop};

/// The cache, and a group for what is not in it.
pub(crate) struct Coalesced {
    shop: Arc<Shop>,
    flights: AsyncGroup<u32, PageResult>,
}

impl Coalesced {
    pub(crate) fn new(shop: Arc<Shop>) -> Self {
        let flights = AsyncGroup::new();
        Self { shop, flights }
    }

    async fn serve(&self, product: u32) -> Served {
        match self.shop.look(product) {
            Look::Fresh(page) => Served::at_once(page),
            Look::Gone(seen) => {
                // The flight owns its work, which therefore owns its shop: if the first caller hung up, others could go on.
                let page =
                    self.flights.do_call(&product, || look_again_and_load(Arc::clone(&self.shop), product)).await;
                Served::after_a_query(page, seen)
            }
        }
    }
}

/// Runs once at a time for each product.
async fn look_again_and_load(shop: Arc<Shop>, product: u32) -> PageResult {
    match shop.look(product) {
        // Without this second look there would be double loads; `ways/sync.rs` tells how.
        Look::Fresh(page) => Ok(page),
        // SQLite blocks, and a task must not: so the query gets a thread, of which smol starts as many as there are queries
        // at a time, up to 500.
        Look::Gone(seen) => smol::unblock(move || shop.load(product, seen)).await,
    }
}

impl Way for Coalesced {
    fn name(&self) -> &'static str {
        "async"
    }

    fn title(&self) -> &'static str {
        "Cache + AsyncGroup"
    }

    /// The request is a task, and its thread an executor with nothing else to do: as many requests are served at once as in
    /// the other ways, or the figures could not be compared. No reactor: there is neither socket nor timer in it.
    fn page(&self, product: u32) -> Served {
        smol::future::block_on(self.serve(product))
    }
}

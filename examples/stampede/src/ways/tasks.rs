//! With `oneflight_cache::Cache`, for services whose requests are tasks.

use alloc::sync::Arc;
use core::time::Duration;

use oneflight_cache::{BoxError, Builder, Cache};

use super::{PATIENCE, Served, Way};
use crate::shop::{Page, Shop};

/// The cache in front of the shop.
pub(crate) struct Protected {
    shop: Arc<Shop>,
    cache: Cache<u32, Arc<Page>, rusqlite::Error>,
}

impl Protected {
    pub(crate) fn new(shop: Arc<Shop>, settings: Builder<u32, Arc<Page>, rusqlite::Error>) -> Self {
        Self { shop, cache: settings.spawner(|refresh| smol::spawn(refresh).detach()).build() }
    }

    async fn serve(&self, product: u32) -> Served {
        let shop = Arc::clone(&self.shop);
        // SQLite blocks, and a task must not: so the query gets a thread, of which smol starts as many as there are queries
        // at a time, up to 500.
        self.cache.get_or_load(&product, move || smol::unblock(move || shop.load(product))).await.into()
    }
}

impl Way for Protected {
    fn warm_up(&self, product: u32, life: Duration) -> Result<(), BoxError> {
        let shop = Arc::clone(&self.shop);
        let load = move || smol::unblock(move || shop.load_unmeasured(product, life));
        smol::future::block_on(self.cache.refresh(&product, load))?;
        Ok(())
    }

    /// The request is a task, and its thread an executor with nothing else to do: as many requests are served at once as in
    /// the other ways, or the figures could not be compared. No reactor: there is neither socket nor timer in it.
    fn page(&self, product: u32) -> Served {
        smol::future::block_on(self.serve(product))
    }

    fn close(&self) {
        smol::future::block_on(self.cache.close(PATIENCE));
    }
}

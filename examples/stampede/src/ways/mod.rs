//! How a request gets its page. `none.rs` is what most services do; `threads.rs` and `tasks.rs` are the same service with
//! `oneflight-cache`, and differ in nothing but their API. What the strategies are is said here, in [`settings`].

mod none;
mod tasks;
mod threads;

use alloc::sync::Arc;
use core::time::Duration;

use oneflight_cache::{BoxError, Builder, Cache, Error, Fetched, Policy, Source};

use crate::options::{Api, Strategy};
use crate::shop::{Page, Shop};

/// The settings of a cache with a strategy; with `none` there is no such cache.
fn settings(strategy: Strategy) -> Builder<u32, Arc<Page>, rusqlite::Error> {
    // Pages live exactly as long as without protection, or the ways could not be compared: a service would leave some jitter.
    let cache = Cache::builder().ttl_of(|page: &Arc<Page>| page.ttl).ttl_jitter(0.0);
    match strategy {
        // The default's `beta` of 1 is right for loads that take as long as the last one did. Here the visitors and the query
        // share a few cores, and it may well take several times as long.
        Strategy::Early => cache.early_refresh(Policy::XFetch { beta: 5.0, max_window: 0.5 }),
        Strategy::Stale => cache.early_refresh(Policy::Never).stale_while_revalidate(Duration::from_secs(60)),
        Strategy::Flight | Strategy::None | Strategy::All => cache.early_refresh(Policy::Never),
    }
}

/// The strategies that are wanted, in the order in which they are tried and shown.
pub(crate) fn chosen(strategy: Strategy) -> Vec<Strategy> {
    match strategy {
        Strategy::All => vec![Strategy::None, Strategy::Flight, Strategy::Early, Strategy::Stale],
        one => vec![one],
    }
}

/// Makes the way that serves the requests of a shop.
pub(crate) fn make(strategy: Strategy, api: Api, shop: Arc<Shop>) -> Box<dyn Way> {
    match (strategy, api) {
        (Strategy::None, _) => Box::new(none::Unprotected::new(shop)),
        (_, Api::Sync) => Box::new(threads::Protected::new(shop, settings(strategy))),
        (_, Api::Async) => Box::new(tasks::Protected::new(shop, settings(strategy))),
    }
}

/// A way for many threads to get product pages.
pub(crate) trait Way: Send + Sync {
    /// Puts the page of a product into the cache, with `life` left to it, before anything is measured.
    fn warm_up(&self, product: u32, life: Duration) -> Result<(), BoxError>;

    /// Serves one request.
    fn page(&self, product: u32) -> Served;

    /// Ends what goes on beside the requests.
    fn close(&self) {}
}

/// How long a cache may take to close.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a request got.
#[derive(Debug)]
pub(crate) struct Served {
    /// The page, or the error of the query for it.
    pub(crate) page: Result<Arc<Page>, BoxError>,
    /// Whether the request had to wait for a query, its own or another's.
    pub(crate) waited: bool,
}

impl From<Result<Fetched<Arc<Page>>, Error<rusqlite::Error>>> for Served {
    fn from(fetched: Result<Fetched<Arc<Page>>, Error<rusqlite::Error>>) -> Self {
        match fetched {
            Ok(page) => {
                let waited = matches!(page.source, Source::Loaded | Source::Joined);
                Self { page: Ok(page.into_value()), waited }
            }
            Err(error) => Self { page: Err(error.into()), waited: true },
        }
    }
}

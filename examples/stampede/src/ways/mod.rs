//! How a request gets its page. One file a way; a new way is a new file and a line in [`chosen`].

mod r#async;
mod none;
mod sync;

use alloc::sync::Arc;

use crate::database::Page;
use crate::options::Api;
use crate::page_cache::Generation;
use crate::shop::{PageResult, Shop};

/// Makes the way that serves the requests of a shop.
pub(crate) type MakeWay = fn(Arc<Shop>) -> Box<dyn Way>;

/// The ways that are wanted, in the order in which they are tried and shown.
pub(crate) fn chosen(api: Api) -> Vec<MakeWay> {
    let unprotected: MakeWay = |shop| Box::new(none::Unprotected::new(shop));
    let threads: MakeWay = |shop| Box::new(sync::Coalesced::new(shop));
    let tasks: MakeWay = |shop| Box::new(r#async::Coalesced::new(shop));
    match api {
        Api::Sync => vec![unprotected, threads],
        Api::Async => vec![unprotected, tasks],
        Api::All => vec![unprotected, threads, tasks],
    }
}

/// A way for many threads to get product pages.
pub(crate) trait Way: Send + Sync {
    /// What scripts call it.
    fn name(&self) -> &'static str;

    /// What people call it.
    fn title(&self) -> &'static str;

    /// Serves one request.
    fn page(&self, product: u32) -> Served;
}

/// What a request got.
#[derive(Debug)]
pub(crate) struct Served {
    /// The page, or the error of the query for it.
    pub(crate) page: PageResult,
    /// What was found in place of a fresh page, if the request therefore had to wait for a query.
    pub(crate) waited_for: Option<Generation>,
}

impl Served {
    /// The page was fresh.
    fn at_once(page: Arc<Page>) -> Self {
        Self { page: Ok(page), waited_for: None }
    }

    /// The page was missing (or expired) and came from a query, this caller's own or another's.
    fn after_a_query(page: PageResult, seen: Generation) -> Self {
        Self { page, waited_for: Some(seen) }
    }
}

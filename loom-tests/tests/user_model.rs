//! A user's own model: how a user of oneflight checks their own code with loom.
//!
//! A small cache of pages stands before a database. On a miss it calls through a `SyncGroup`, so that those who miss together
//! load once. What is checked here is not the group but the cache's use of it: between a miss and the call, somebody's
//! whole flight may land, and then the work must find the page in the cache.
//!
//! What it takes: `loom` as a dependency under `cfg(loom)`, `oneflight` with the feature `loom`, one's own code on loom's
//! types under `cfg(loom)`, a new group in each iteration, and `RUSTFLAGS="--cfg loom" cargo test --release`.

#![cfg(loom)]

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use oneflight::SyncGroup;
use oneflight_loom_tests::check;
use std::collections::HashMap;

/// A database that counts its queries.
#[derive(Default)]
struct Database {
    queries: AtomicUsize,
}

impl Database {
    fn render(&self, id: u32) -> String {
        self.queries.fetch_add(1, Ordering::Relaxed);
        format!("page {id}")
    }
}

/// The code under test.
#[derive(Default)]
struct PageCache {
    database: Database,
    pages: Mutex<HashMap<u32, String>>,
    group: SyncGroup<u32, String>,
}

impl PageCache {
    fn page(&self, id: u32) -> String {
        self.cached(id).unwrap_or_else(|| self.group.do_call(&id, || self.load(id)))
    }

    fn load(&self, id: u32) -> String {
        // Look again: somebody else may have loaded it between this caller's miss and its flight.
        if let Some(page) = self.cached(id) {
            return page;
        }
        let page = self.database.render(id);
        self.pages.lock().unwrap().insert(id, page.clone());
        page
    }

    fn cached(&self, id: u32) -> Option<String> {
        self.pages.lock().unwrap().get(&id).cloned()
    }
}

/// However three readers meet, the page is loaded once.
#[test]
fn a_page_is_loaded_once() {
    check(|| {
        let cache = Arc::new(PageCache::default());
        let readers = [(); 2].map(|()| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || assert_eq!(cache.page(42), "page 42"))
        });
        assert_eq!(cache.page(42), "page 42");
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(cache.database.queries.load(Ordering::Relaxed), 1);
    });
}

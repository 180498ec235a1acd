//! Cache: a put or an invalidation during a load or a refresh is never undone by it, and whoever calls after it has returned
//! gets nothing that was loaded before.
//!
//! The store is the one in memory: each of its operations is one step here, as its own locks are not loom's. Each model runs with a
//! store that may wait, and (`.._at_once`) with one that is said never to do so, as memory is, which the cache writes to otherwise.

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::SeqCst};
use oneflight_cache::blocking::Cache;
use oneflight_cache::lease::NoLease;
use oneflight_cache::{BlockingStore, Clock, Entry, Error, Memory, Policy, Pushed, Time};
use oneflight_loom_tests::{KEY, check, join};
use std::convert::Infallible;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

type Pages = Cache<u32, u32, Infallible, Watched>;

/// The store in memory, with a step that loom sees before each operation: it takes two threads that have nothing in common
/// to be independent, in whatever order they run.
struct Watched {
    memory: Memory<u32, u32>,
    steps: AtomicU32,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    MayWait,
    AtOnce,
}

impl Watched {
    fn step(&self) -> &Memory<u32, u32> {
        self.steps.fetch_add(1, SeqCst);
        &self.memory
    }
}

impl BlockingStore<u32, u32> for Watched {
    type Error = Infallible;
    type Displaced = Pushed<u32, u32>;
    type Lease = NoLease;

    fn get(&self, key: &u32, now: Time) -> Result<Option<Entry<u32>>, Infallible> {
        BlockingStore::get(self.step(), key, now)
    }

    fn put(&self, key: &u32, entry: Entry<u32>, now: Time) -> Result<Self::Displaced, Infallible> {
        BlockingStore::put(self.step(), key, entry, now)
    }

    fn remove(&self, key: &u32) -> Result<Self::Displaced, Infallible> {
        BlockingStore::<u32, u32>::remove(self.step(), key)
    }

    fn clear(&self) -> Result<Self::Displaced, Infallible> {
        BlockingStore::<u32, u32>::clear(self.step())
    }

    fn is_immediate(&self) -> bool {
        self.kind == Kind::AtOnce
    }
}

/// Each look at it is a nanosecond later: the same in each run of the same schedule.
#[derive(Default)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> Time {
        Time::from_start(Duration::from_nanos(self.0.fetch_add(1, SeqCst)))
    }
}

fn pages(kind: Kind, policy: Policy) -> Pages {
    Cache::builder()
        .store(Watched { memory: Memory::new(4), steps: AtomicU32::new(0), kind })
        .ttl(Duration::from_secs(3_600))
        .ttl_jitter(0.0)
        .early_refresh(policy)
        .load_timeout(None)
        .helper_threads(0)
        .clock(Ticks::default())
        .rng(|| 0.0)
        .build_blocking()
}

/// A database with one row, and a cache of it.
struct Site {
    row: AtomicU32,
    pages: Pages,
}

impl Site {
    /// The row is 1, and nobody has read it.
    fn new(kind: Kind) -> Arc<Self> {
        Arc::new(Self { row: AtomicU32::new(1), pages: pages(kind, Policy::Never) })
    }

    /// The row is 1, its page is there, and each read of it refreshes it, before it returns.
    fn new_and_eager(kind: Kind) -> Arc<Self> {
        let site = Self { row: AtomicU32::new(1), pages: pages(kind, Policy::Eager { window: 1.0 }) };
        site.pages.put(&KEY, 1).expect("memory does not fail");
        Arc::new(site)
    }

    fn read(&self) -> u32 {
        let page = self.pages.get_or_load_inline(&KEY, || Ok(self.row.load(SeqCst)));
        page.unwrap_or_else(|error: Error<Infallible>| panic!("{error}")).into_value()
    }

    /// What is in the store, if anything.
    fn stored(&self) -> Option<u32> {
        self.pages.set_early_refresh(false);
        self.pages.get(&KEY).expect("memory does not fail").map(|page| page.into_value())
    }

    fn write_and_put(&self) {
        self.row.store(2, SeqCst);
        self.pages.put(&KEY, 2).expect("memory does not fail");
    }

    fn write_and_invalidate(&self) {
        self.row.store(2, SeqCst);
        self.pages.invalidate(&KEY).expect("memory does not fail");
    }

    fn write_and_invalidate_all(&self) {
        self.row.store(2, SeqCst);
        self.pages.invalidate_all().expect("memory does not fail");
    }
}

fn spawn<T: 'static>(site: &Arc<Site>, f: impl FnOnce(&Site) -> T + 'static) -> loom::thread::JoinHandle<T> {
    let site = Arc::clone(site);
    loom::thread::spawn(move || f(&site))
}

/// A reader that calls after the invalidation gets the new row, and so does everybody from then on.
fn invalidation_meets_load(site: &Arc<Site>) {
    let loading = spawn(site, Site::read);
    site.write_and_invalidate();
    assert_eq!(site.read(), 2, "it called after the invalidation");
    join(loading);
    assert_eq!(site.stored(), Some(2));
}

#[test]
fn an_invalidation_meets_a_load() {
    check(|| invalidation_meets_load(&Site::new(Kind::MayWait)));
}

#[test]
fn an_invalidation_meets_a_load_at_once() {
    check(|| invalidation_meets_load(&Site::new(Kind::AtOnce)));
}

/// As above, for all keys at once.
fn invalidation_of_everything_meets_load(site: &Arc<Site>) {
    let loading = spawn(site, Site::read);
    site.write_and_invalidate_all();
    assert_eq!(site.read(), 2, "it called after the invalidation");
    join(loading);
    assert_eq!(site.stored(), Some(2));
}

#[test]
fn an_invalidation_of_everything_meets_a_load() {
    check(|| invalidation_of_everything_meets_load(&Site::new(Kind::MayWait)));
}

#[test]
fn an_invalidation_of_everything_meets_a_load_at_once() {
    check(|| invalidation_of_everything_meets_load(&Site::new(Kind::AtOnce)));
}

fn put_meets_load(site: &Arc<Site>) {
    let loading = spawn(site, Site::read);
    site.write_and_put();
    assert_eq!(site.read(), 2);
    join(loading);
    assert_eq!(site.stored(), Some(2));
}

#[test]
fn a_put_meets_a_load() {
    check(|| put_meets_load(&Site::new(Kind::MayWait)));
}

#[test]
fn a_put_meets_a_load_at_once() {
    check(|| put_meets_load(&Site::new(Kind::AtOnce)));
}

/// A refresh that began before the put does not undo it; one that begins after it reads the new row.
fn put_meets_refresh(site: &Arc<Site>) {
    let refreshing = spawn(site, Site::read);
    site.write_and_put();
    join(refreshing);
    assert_eq!(site.stored(), Some(2));
}

#[test]
fn a_put_meets_a_refresh() {
    check(|| put_meets_refresh(&Site::new_and_eager(Kind::MayWait)));
}

#[test]
fn a_put_meets_a_refresh_at_once() {
    check(|| put_meets_refresh(&Site::new_and_eager(Kind::AtOnce)));
}

/// A refresh that began before the invalidation serves nobody who calls after it. Not asked of a store that is at once: there,
/// whoever reads refreshes what it finds, right or wrong.
fn invalidation_meets_refresh(site: &Arc<Site>, write: fn(&Site)) {
    let refreshing = spawn(site, Site::read);
    write(site);
    assert_eq!(site.read(), 2, "it called after the invalidation");
    join(refreshing);
    assert_eq!(site.stored(), Some(2));
}

/// A refresh that read the old row leaves nothing behind; one that begins too late finds nothing to refresh, and loads.
fn invalidation_voids_refresh(site: &Arc<Site>, write: fn(&Site)) {
    let refreshing = spawn(site, Site::read);
    write(site);
    join(refreshing);
    assert_ne!(site.stored(), Some(1));
}

#[test]
fn an_invalidation_meets_a_refresh() {
    check(|| invalidation_meets_refresh(&Site::new_and_eager(Kind::MayWait), Site::write_and_invalidate));
}

#[test]
fn an_invalidation_meets_a_refresh_at_once() {
    check(|| invalidation_voids_refresh(&Site::new_and_eager(Kind::AtOnce), Site::write_and_invalidate));
}

#[test]
fn an_invalidation_of_everything_meets_a_refresh() {
    check(|| invalidation_meets_refresh(&Site::new_and_eager(Kind::MayWait), Site::write_and_invalidate_all));
}

#[test]
fn an_invalidation_of_everything_meets_a_refresh_at_once() {
    check(|| invalidation_voids_refresh(&Site::new_and_eager(Kind::AtOnce), Site::write_and_invalidate_all));
}

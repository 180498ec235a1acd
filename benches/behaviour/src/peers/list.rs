//! All peers, in the order of the table.

use super::{OnTasks, OnThreads, Peer};
use super::{
    amalgam, cacheflight, foyer, hydracache, moka, once_map, oneflight, oneflight_cache, quick_cache, rs_singleflight,
    singleflight, singleflight_async, tower_resilience, uniflight,
};

/// A part of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Section {
    Groups,
    Caches,
    Threads,
}

/// How a peer is made.
#[derive(Clone, Copy)]
pub(crate) enum Make {
    ForTasks(fn() -> Box<dyn Peer<OnTasks>>),
    ForThreads(fn() -> Box<dyn Peer<OnThreads>>),
}

/// A column.
pub(crate) struct Entry {
    /// As a child process is told which one it is about.
    pub(crate) id: &'static str,
    /// The package, as the lock file calls it.
    pub(crate) package: &'static str,
    /// Which part of it, if it has several.
    pub(crate) part: &'static str,
    pub(crate) section: Section,
    pub(crate) make: Make,
}

const fn tasks(
    section: Section,
    id: &'static str,
    package: &'static str,
    part: &'static str,
    make: fn() -> Box<dyn Peer<OnTasks>>,
) -> Entry {
    Entry { id, package, part, section, make: Make::ForTasks(make) }
}

const fn threads(
    id: &'static str,
    package: &'static str,
    part: &'static str,
    make: fn() -> Box<dyn Peer<OnThreads>>,
) -> Entry {
    Entry { id, package, part, section: Section::Threads, make: Make::ForThreads(make) }
}

use Section::{Caches, Groups};

pub(crate) const PEERS: &[Entry] = &[
    tasks(Groups, "oneflight", "oneflight", "do_call", || Box::<oneflight::Owned>::default()),
    tasks(Groups, "oneflight-inline", "oneflight", "do_call_inline", || Box::<oneflight::Inline>::default()),
    tasks(Groups, "singleflight-async", "singleflight-async", "", || Box::new(singleflight_async::Tasks::new())),
    tasks(Groups, "rs-singleflight", "rs-singleflight", "", || Box::new(rs_singleflight::Tasks::new())),
    tasks(Groups, "async_singleflight", "async_singleflight", "", || Box::new(super::async_singleflight::Tasks::new())),
    tasks(Groups, "uniflight", "uniflight", "", || Box::new(uniflight::Tasks::new())),
    tasks(Groups, "mea", "mea", "", || Box::new(super::mea::Tasks::new())),
    tasks(Groups, "request_coalescer", "request_coalescer", "", || Box::new(super::request_coalescer::Tasks::new())),
    tasks(Groups, "tower-resilience", "tower-resilience-coalesce", "", || Box::new(tower_resilience::tasks())),
    tasks(Caches, "oneflight-cache", "oneflight-cache", "", || Box::new(oneflight_cache::tasks())),
    tasks(Caches, "moka", "moka", "future", || Box::new(moka::Tasks::new(moka::ROOM))),
    tasks(Caches, "quick_cache", "quick_cache", "async", || Box::new(quick_cache::Both::new(quick_cache::ROOM))),
    tasks(Caches, "foyer", "foyer-memory", "", || Box::new(foyer::tasks())),
    tasks(Caches, "amalgam", "amalgam-cache", "", || Box::new(amalgam::Tasks::new())),
    tasks(Caches, "hydracache", "hydracache", "", || Box::new(hydracache::tasks())),
    tasks(Caches, "cacheflight", "cacheflight", "", || Box::new(cacheflight::tasks())),
    threads("oneflight-sync", "oneflight", "SyncGroup", || Box::new(oneflight::Threads::new())),
    threads("singleflight", "singleflight", "", || Box::new(singleflight::Threads::new())),
    threads("oneflight-cache-sync", "oneflight-cache", "blocking", || Box::new(oneflight_cache::threads())),
    threads("moka-sync", "moka", "sync", || Box::new(moka::Threads::new(moka::ROOM))),
    threads("quick_cache-sync", "quick_cache", "sync", || Box::new(quick_cache::Both::new(quick_cache::ROOM))),
    threads("amalgam-sync", "amalgam-cache", "blocking", || Box::new(amalgam::both())),
    threads("once_map", "once_map", "", || Box::new(once_map::Threads::new())),
];

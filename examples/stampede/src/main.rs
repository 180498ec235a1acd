//! What a cache stampede does to a database, and what coalescing does about it.
//!
//! A shop renders product pages from a real SQLite catalogue and caches them for a short time. The same traffic is sent
//! to it several times, to the same cache each time: once unprotected, then with `oneflight::SyncGroup`, with
//! `oneflight::AsyncGroup`, or with each (`--api`). The part to read is `ways/`: `ways/none.rs` is what most services do
//! today, `ways/sync.rs` and `ways/async.rs` are the same with a group in between.
//!
//! | file | job |
//! |---|---|
//! | `ways/` | how a request gets its page: one file a way |
//! | `page_cache.rs` | the cache, an everyday map with a time to live |
//! | `shop.rs` | what every way has at hand: the cache, the database, and a log of the queries |
//! | `catalogue.rs`, `database.rs` | the products, and the query that is worth caching |
//! | `schedule.rs`, `traffic.rs` | when which page is asked for, and the threads that ask |
//! | `measure.rs` | from what happened to figures; says exactly what each figure means |
//! | `report.rs`, `chart.rs`, `picture.rs` | the figures as a table, as a terminal chart, as an SVG picture |

extern crate alloc;

mod catalogue;
mod chart;
mod database;
mod measure;
mod options;
mod page_cache;
mod picture;
mod report;
mod schedule;
mod shop;
mod traffic;
mod ways;

use alloc::sync::Arc;
use core::error::Error;
use core::time::Duration;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use database::Database;
use measure::{Figures, Run};
use options::Options;
use schedule::Schedule;
use shop::Shop;

/// Time for the threads to start before the first request is due.
const HEAD_START: Duration = Duration::from_millis(100);

/// Popular pages that are in the cache already when the traffic begins; more of them would take long to make.
const CACHED_AT_START: usize = 100;

fn main() -> ExitCode {
    let options = Options::from_command_line();
    match stampede(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stampede: {error}");
            ExitCode::FAILURE
        }
    }
}

fn stampede(options: &Options) -> Result<(), Box<dyn Error>> {
    let database = Arc::new(Database::create(options.seed, options.threads.into())?);
    let schedule = Schedule::new(options.seed, options.rate, options.seconds, options.keys);

    let mut popular = Vec::new();
    for &product in schedule.ranking.iter().take(CACHED_AT_START) {
        popular.push((product, Arc::new(database.product_page(product)?)));
    }

    let mut runs = Vec::new();
    for make_way in ways::chosen(options.api) {
        // Every way has a cache of its own, in the same state; the database is common to all, and only read.
        let start = Instant::now() + HEAD_START;
        let shop = Arc::new(Shop::new(Arc::clone(&database), options.ttl, start));
        let way = make_way(Arc::clone(&shop));
        shop.warm_up(&popular);
        let progress = report::progress(way.name(), schedule.arrivals.len());
        let requests = traffic::drive(&schedule, options.threads, start, way.as_ref(), &progress)?;
        progress.finish();
        runs.push(Run { name: way.name(), title: way.title(), requests, queries: shop.take_queries() });
    }

    let figures: Vec<Figures> = runs.iter().map(|run| Figures::of(run, &schedule.hot)).collect();
    if let Some(file) = &options.svg {
        std::fs::write(file, picture::svg(options, &schedule, &runs, &figures))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    let text = if options.json { report::json(&figures)? } else { report::text(options, &schedule, &runs, &figures) };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

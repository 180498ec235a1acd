//! What a cache stampede does to a database, and what `oneflight-cache` does about it.
//!
//! A shop renders product pages from a real SQLite catalogue and caches them for a short time. The same traffic is sent
//! to it four times: once with a cache that has no protection, then with `oneflight-cache` and three strategies. The part to
//! read is `ways/`: `ways/none.rs` is what most services do today, `ways/threads.rs` and `ways/tasks.rs` are the same with
//! `oneflight-cache`, and `ways/mod.rs` says what the strategies are.
//!
//! | file | job |
//! |---|---|
//! | `ways/` | how a request gets its page |
//! | `page_cache.rs` | the cache without protection, an everyday map with a time to live |
//! | `shop.rs` | what every way has at hand: how a page is made, and a log of the queries |
//! | `catalogue.rs`, `database.rs` | the products, and the query that is worth caching |
//! | `schedule.rs`, `traffic.rs` | when which page is asked for, and the threads that ask |
//! | `lives.rs` | which life of its page a product is in, so that queries can be counted by expiry |
//! | `measure.rs` | from what happened to figures; says exactly what each figure means |
//! | `report.rs`, `chart.rs`, `picture.rs` | the figures as a table, as a terminal chart, as an SVG picture |
//! | `processes/` | with `--redis`: what becomes of processes that share a server, instead of all that |
//!
//! The program is [`main`]. [`processes`] is there for others too: the benches play its scenarios.

extern crate alloc;

mod catalogue;
mod chart;
mod database;
mod lives;
mod measure;
mod options;
mod page_cache;
mod picture;
pub mod processes;
mod report;
mod schedule;
mod shop;
mod traffic;
mod ways;

use alloc::sync::Arc;
use core::time::Duration;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use oneflight_cache::BoxError;

use database::Database;
use measure::{Figures, Run};
use options::Options;
use schedule::Schedule;
use shop::Shop;
use ways::Way;

/// Time for the threads to start before the first request is due.
const HEAD_START: Duration = Duration::from_millis(100);

/// Popular pages that are in the cache already when the traffic begins; more of them would take long to make.
const CACHED_AT_START: usize = 100;

const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;

/// The program: reads the command line, and shows what it asks for.
pub fn main() -> ExitCode {
    if let Some(code) = processes::as_worker() {
        return code;
    }
    let options = Options::from_command_line();
    if options.shared.is_wanted() {
        return processes::run(&options.shared, options.json);
    }
    match stampede(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stampede: {error}");
            ExitCode::FAILURE
        }
    }
}

fn stampede(options: &Options) -> Result<(), BoxError> {
    let database = Arc::new(Database::create(options.seed, options.threads.into())?);
    let schedule = Schedule::new(options.seed, options.rate, options.seconds, options.keys);

    let mut runs = Vec::new();
    for strategy in ways::chosen(options.strategy) {
        let (name, title) = (strategy.name(), strategy.title());
        // Every way has a cache of its own, in the same state; the database is common to all, and only read.
        let shop = Arc::new(Shop::new(Arc::clone(&database), options.ttl));
        let way = ways::make(strategy, options.api, Arc::clone(&shop));
        warm_up(way.as_ref(), &schedule, options.ttl)?;
        let progress = report::progress(name, schedule.arrivals.len());
        let start = Instant::now() + HEAD_START;
        let requests = traffic::drive(&schedule, options.threads, start, name, way.as_ref(), &progress)?;
        progress.finish();
        // The log is complete, and nothing goes on beside the next way.
        way.close();
        runs.push(Run { name, title, requests, queries: shop.take_queries(start) });
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

/// Makes a shop that has been open for a while: the popular pages are cached already, and have anything from nothing to the
/// whole time to live before them.
fn warm_up(way: &dyn Way, schedule: &Schedule, ttl: Duration) -> Result<(), BoxError> {
    // The most popular last, so that making the others takes nothing from its life.
    let popular = &schedule.ranking[..schedule.ranking.len().min(CACHED_AT_START)];
    for (index, &product) in popular.iter().enumerate().rev() {
        // Multiples of the golden ratio, less their whole part, keep any first few of the pages well apart, so that no two
        // hot ones expire at about the same moment.
        let life = ((index + 1) as f64 * GOLDEN_RATIO).fract();
        way.warm_up(product, ttl.mul_f64(life))?;
    }
    Ok(())
}

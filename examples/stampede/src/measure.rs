//! From what happened to figures.
//!
//! Everything is computed after the run from the list of its requests and the list of its queries, so that counting does
//! not disturb what is counted. What the figures mean:
//!
//! - **Query**: one execution of the SQL statement behind a page, successful or not.
//! - **Hot**: the fewest products that together get at least half of the requests (see `schedule.rs`). The tail is left
//!   out of all figures about expiries, because a page that is seldom asked for cannot have a stampede, and thousands of
//!   such expiries at one query each would hide those of the hot pages.
//! - **Expiry**: the end of one life of a hot page (see `lives.rs`), if a query followed it. A life ends when the page has
//!   expired, or when it is refreshed early, which is what comes in the place of an expiry then. However many requests find
//!   that page expired, it is one expiry.
//! - **Queries per expiry**: each query belongs to the life that the page was in when its caller looked into the cache for
//!   the last time before it queried. So the stragglers of a stampede count for the expiry that started them, also if they
//!   end long after the first of them has stored a fresh page; and no query counts twice. With early refresh it is the
//!   refreshes in a life.
//! - **Cold starts** are not expiries. The popular pages are in the cache when the run begins; the first queries for any
//!   other, made by callers who found that there never was one, count as queries, in the total, the chart and the most
//!   queries at once, but in no figure about expiries.
//! - **Waited at expiry**: requests that found a hot page expired and had to wait for a query, their own or another's.
//!   One that did not even get to look, since all threads were busy with queries, is not among them; its latency tells. One
//!   that got no page is counted as failed instead.
//! - **Most queries at once**: over all products together. Several pages may well expire at the same time.
//! - **Latency**: from the moment at which the request was due (see `traffic.rs`) to its answer; percentiles are exact, by
//!   nearest rank.

use core::time::Duration;
use std::collections::HashMap;

use oneflight_cache::BoxError;
use serde::Serialize;

use crate::lives::Generation;

/// What became of one request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) product: u32,
    /// From when it was due to its answer.
    pub(crate) latency: Duration,
    /// The life that was over, if it had to wait for a new page.
    pub(crate) waited_for: Option<Generation>,
    /// Why there was no page, if there was none.
    pub(crate) error: Option<BoxError>,
}

/// One query; the times count from the start of the run.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) product: u32,
    /// The life that its page was in before the query.
    pub(crate) seen: Generation,
    pub(crate) begun: Duration,
    pub(crate) ended: Duration,
}

/// All that happened to one way.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) requests: Vec<Request>,
    pub(crate) queries: Vec<Query>,
}

impl Run {
    /// When the last query ended.
    pub(crate) fn length(&self) -> Duration {
        self.queries.iter().map(|query| query.ended).max().unwrap_or_default()
    }

    /// The queries begun in each of the time slots `0..slots` of the given length; later ones are left out.
    pub(crate) fn timeline(&self, slot: Duration, slots: usize) -> Vec<u32> {
        let mut timeline = vec![0; slots];
        for query in &self.queries {
            let number = (query.begun.as_nanos() / slot.as_nanos().max(1)) as usize;
            if let Some(count) = timeline.get_mut(number) {
                *count += 1;
            }
        }
        timeline
    }
}

/// The figures of one way, under the names that scripts know.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) name: &'static str,
    pub(crate) requests: usize,
    pub(crate) failed: usize,
    pub(crate) queries: usize,
    pub(crate) expiries: usize,
    /// Zero if nothing expired.
    pub(crate) queries_per_expiry_mean: f64,
    pub(crate) queries_per_expiry_max: usize,
    pub(crate) most_queries_at_once: usize,
    pub(crate) waited_at_expiry: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

impl Figures {
    /// Computes the figures of a run.
    pub(crate) fn of(run: &Run, hot: &[u32]) -> Self {
        let at_expiry = |product: &u32, seen: Generation| hot.contains(product) && seen != Generation::COLD;

        let mut expiries: HashMap<(u32, Generation), usize> = HashMap::new();
        for query in run.queries.iter().filter(|query| at_expiry(&query.product, query.seen)) {
            *expiries.entry((query.product, query.seen)).or_default() += 1;
        }
        let queries_at_expiry: usize = expiries.values().sum();

        let waited = |request: &&Request| request.waited_for.is_some_and(|seen| at_expiry(&request.product, seen));
        let mut latencies: Vec<Duration> = run.requests.iter().map(|request| request.latency).collect();
        latencies.sort_unstable();
        Self {
            name: run.name,
            requests: run.requests.len(),
            failed: run.requests.iter().filter(|request| request.error.is_some()).count(),
            queries: run.queries.len(),
            expiries: expiries.len(),
            queries_per_expiry_mean: queries_at_expiry as f64 / expiries.len().max(1) as f64,
            queries_per_expiry_max: expiries.into_values().max().unwrap_or_default(),
            most_queries_at_once: most_at_once(&run.queries),
            waited_at_expiry: run.requests.iter().filter(waited).count(),
            p50_ms: percentile_ms(&latencies, 50),
            p99_ms: percentile_ms(&latencies, 99),
            max_ms: percentile_ms(&latencies, 100),
        }
    }
}

fn most_at_once(queries: &[Query]) -> usize {
    let begun = queries.iter().map(|query| (query.begun, 1));
    let ended = queries.iter().map(|query| (query.ended, -1));
    let mut changes: Vec<(Duration, isize)> = begun.chain(ended).collect();
    // At the same moment ends come first: a query that begins when another ends does not run beside it.
    changes.sort_unstable();
    let mut running = 0;
    let mut most = 0;
    for (_, change) in changes {
        running += change;
        most = most.max(running);
    }
    most.unsigned_abs()
}

/// The smallest latency that at least `percent` of the requests do not exceed, in milliseconds to the microsecond.
pub(crate) fn percentile_ms(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    let latency = rank.checked_sub(1).map_or(Duration::ZERO, |index| sorted[index]);
    latency.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn query(product: u32, seen: u32, begun: u64, ended: u64) -> Query {
        Query { product, seen: Generation(seen), begun: ms(begun), ended: ms(ended) }
    }

    fn request(product: u32, waited_for: Option<u32>, latency: u64) -> Request {
        Request { product, latency: ms(latency), waited_for: waited_for.map(Generation), error: None }
    }

    fn run(requests: Vec<Request>, queries: Vec<Query>) -> Run {
        Run { name: "test", title: "Test", requests, queries }
    }

    #[test]
    fn queries_count_for_the_expiry_that_their_caller_saw() {
        let queries = vec![
            query(1, 1, 0, 10),
            query(1, 1, 5, 900),
            // Begun before that straggler ended, yet of the next expiry.
            query(1, 2, 500, 510),
            // The same life of another hot page is another expiry.
            query(2, 1, 0, 10),
            query(2, 1, 0, 10),
            query(2, 1, 0, 10),
        ];
        let figures = Figures::of(&run(Vec::new(), queries), &[1, 2]);
        assert_eq!(figures.queries, 6);
        assert_eq!(figures.expiries, 3);
        assert_eq!(figures.queries_per_expiry_mean, 2.0);
        assert_eq!(figures.queries_per_expiry_max, 3);
    }

    #[test]
    fn cold_starts_and_the_tail_count_as_queries_but_not_as_expiries() {
        let queries = vec![query(1, 0, 0, 10), query(1, 0, 0, 10), query(9, 1, 20, 30), query(1, 1, 40, 50)];
        let requests = vec![
            request(1, Some(0), 10),
            request(9, Some(1), 10),
            request(1, Some(1), 10),
            request(1, Some(1), 9),
            request(1, None, 0),
        ];
        let figures = Figures::of(&run(requests, queries), &[1]);
        assert_eq!(figures.queries, 4);
        assert_eq!(figures.expiries, 1);
        assert_eq!(figures.queries_per_expiry_mean, 1.0);
        assert_eq!(figures.queries_per_expiry_max, 1);
        assert_eq!(figures.waited_at_expiry, 2);
    }

    #[test]
    fn requests_without_a_page_count_as_failed() {
        let mut failed = request(1, Some(1), 10);
        failed.error = Some(Box::new(rusqlite::Error::QueryReturnedNoRows));
        let figures = Figures::of(&run(vec![failed, request(1, None, 0)], Vec::new()), &[]);
        assert_eq!((figures.requests, figures.failed), (2, 1));
    }

    #[test]
    fn most_queries_at_once_counts_overlaps_and_not_mere_touching() {
        assert_eq!(most_at_once(&[]), 0);
        assert_eq!(most_at_once(&[query(1, 0, 0, 10), query(1, 0, 10, 20)]), 1);
        assert_eq!(most_at_once(&[query(1, 0, 0, 11), query(2, 0, 10, 20), query(3, 0, 12, 13)]), 2);
        assert_eq!(most_at_once(&[query(1, 0, 0, 99), query(2, 0, 10, 20), query(3, 0, 12, 13)]), 3);
    }

    #[test]
    fn percentiles_are_exact_by_nearest_rank() {
        let latencies: Vec<Duration> = (1..=200).map(ms).collect();
        assert_eq!(percentile_ms(&latencies, 50), 100.0);
        assert_eq!(percentile_ms(&latencies, 99), 198.0);
        assert_eq!(percentile_ms(&latencies, 100), 200.0);
        assert_eq!(percentile_ms(&latencies[..1], 50), 1.0);
        assert_eq!(percentile_ms(&[], 50), 0.0);
        assert_eq!(percentile_ms(&[Duration::from_nanos(1_234_567)], 50), 1.234);
    }

    #[test]
    fn a_run_without_anything_gives_zeros() {
        let figures = Figures::of(&run(Vec::new(), Vec::new()), &[]);
        assert_eq!(figures.queries_per_expiry_mean, 0.0);
        assert_eq!(figures.queries_per_expiry_max, 0);
        assert_eq!(figures.max_ms, 0.0);
    }

    #[test]
    fn the_timeline_counts_each_query_where_it_begins() {
        let run =
            run(Vec::new(), vec![query(1, 0, 0, 99), query(1, 0, 9, 10), query(1, 0, 10, 11), query(1, 0, 30, 31)]);
        assert_eq!(run.timeline(ms(10), 3), [2, 1, 0]);
        assert_eq!(run.length(), ms(99));
    }
}

//! Whether each number has its name.

use crate::stats::{COUNTS, Count, Counters, Stats};
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Keeps what is counted, by name and labels.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Kept {
    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: String = key.labels().map(|label| format!(" {}={}", label.key(), label.value())).collect();
        Arc::clone(self.0.lock().unwrap().entry(format!("{}{labels}", key.name())).or_default())
    }
}

/// Keeps how many milliseconds were recorded.
struct Millis(Arc<AtomicU64>);

impl HistogramFn for Millis {
    fn record(&self, seconds: f64) {
        self.0.fetch_add((seconds * 1_000.0) as u64, Ordering::Relaxed);
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Millis(self.cell(key))))
    }
}

/// A count, what it is called in metrics, and which of the statistics it is.
type Name = (Count, &'static str, fn(&Stats) -> u64);

const NAMES: [Name; COUNTS] = [
    (Count::Hits, "requests_total outcome=hit", |stats| stats.hits),
    (Count::Early, "requests_total outcome=early", |stats| stats.early),
    (Count::Stale, "requests_total outcome=stale", |stats| stats.stale),
    (Count::Misses, "requests_total outcome=miss", |stats| stats.misses),
    (Count::Loads, "loads_total", |stats| stats.loads),
    (Count::Joins, "joins_total", |stats| stats.joins),
    (Count::Refreshes, "refreshes_total", |stats| stats.refreshes),
    (Count::Ducked, "refreshes_ducked_total", |stats| stats.ducked),
    (Count::LoadErrors, "load_errors_total", |stats| stats.load_errors),
    (Count::StoreErrors, "store_errors_total", |stats| stats.store_errors),
    (Count::Invalidated, "invalidated_loads_total", |stats| stats.invalidated),
    (Count::Overloaded, "overloaded_total", |stats| stats.overloaded),
    (Count::Held, "lease_events_total event=held", |stats| stats.held),
    (Count::Waited, "lease_events_total event=waited", |stats| stats.waited),
    (Count::TakenOver, "lease_events_total event=taken_over", |stats| stats.taken_over),
    (Count::Lost, "lease_events_total event=lost", |stats| stats.lost),
    (Count::Late, "lease_events_total event=late", |stats| stats.late),
    (Count::Superseded, "lease_events_total event=superseded", |stats| stats.superseded),
    (Count::Fallbacks, "lease_events_total event=fallback", |stats| stats.fallbacks),
    (Count::BreakerOpened, "lease_events_total event=breaker_opened", |stats| stats.breaker_opened),
];

#[test]
fn each_number_of_the_statistics_is_exported_by_its_name() {
    let kept = Kept::default();
    let counters = metrics::with_local_recorder(&kept, || Counters::new("users"));
    // Each another number of times.
    for ((count, ..), times) in NAMES.iter().zip(1..) {
        (0..times).for_each(|_| counters.add(*count));
    }
    [3, 2, 7, 7].into_iter().for_each(|evictions| counters.evicted(evictions));
    counters.took(Duration::from_millis(5));
    let stats = counters.stats(7);
    let mut expected = BTreeMap::new();
    let mut expect = |name: &str, number| {
        let (name, label) =
            name.split_once(' ').map_or((name, String::new()), |(name, label)| (name, format!(" {label}")));
        expected.insert(format!("oneflight_cache_{name} cache=users{label}"), number);
    };
    for ((_, name, number), times) in NAMES.iter().zip(1..) {
        assert_eq!(number(&stats), times, "{name}");
        expect(name, times);
    }
    expect("evictions_total", stats.evictions);
    expect("load_seconds", 5);
    let kept = kept.0.into_inner().unwrap();
    let kept: BTreeMap<_, _> = kept.into_iter().map(|(name, cell)| (name, cell.load(Ordering::Relaxed))).collect();
    assert_eq!(kept, expected);
}

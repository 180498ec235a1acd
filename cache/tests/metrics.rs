//! What `metrics` is told: counters and load times.

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use oneflight_cache::Cache;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Keeps what is counted, by name and labels.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Kept {
    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        Arc::clone(self.0.lock().unwrap().entry(format!("{} {}", key.name(), labels.join(" "))).or_default())
    }

    fn get(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).map_or(0, |cell| cell.load(Ordering::SeqCst))
    }
}

struct Counts(Arc<AtomicU64>);

impl HistogramFn for Counts {
    fn record(&self, seconds: f64) {
        assert!((0.0..60.0).contains(&seconds));
        self.0.fetch_add(1, Ordering::SeqCst);
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
        Histogram::from_arc(Arc::new(Counts(self.cell(key))))
    }
}

#[test]
fn metrics_count_what_the_stats_count() {
    let kept = Kept::default();
    let cache: oneflight_cache::blocking::Cache<u32, u32> =
        metrics::with_local_recorder(&kept, || Cache::builder().name("users").capacity(10).build_blocking());
    cache.get_or_load(&1, || Ok(1)).unwrap();
    cache.get_or_load(&1, || Ok(1)).unwrap();
    cache.get_or_load(&1, || Ok(1)).unwrap();
    cache.get_or_load(&2, || Err("it fails".into())).unwrap_err();
    assert!(cache.get(&3).unwrap().is_none());
    cache.get_or_load_many(&[1, 3, 4, 4], |keys| Ok(keys.iter().map(|_| 0).collect())).unwrap();
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.loads, stats.load_errors), (3, 6, 3, 1));
    assert_eq!(kept.get("oneflight_cache_requests_total cache=users outcome=hit"), 3);
    assert_eq!(kept.get("oneflight_cache_requests_total cache=users outcome=miss"), 6);
    assert_eq!(kept.get("oneflight_cache_loads_total cache=users"), 3);
    assert_eq!(kept.get("oneflight_cache_load_errors_total cache=users"), 1);
    assert_eq!(kept.get("oneflight_cache_load_seconds cache=users"), 3);
    // What a put pushes out, and what a load does.
    for put in 0..100 {
        cache.put(&put, 0).unwrap();
    }
    let evicted = || kept.get("oneflight_cache_evictions_total cache=users");
    let by_puts = evicted();
    assert!(by_puts > 0);
    for loaded in 100..200 {
        cache.get_or_load(&loaded, || Ok(0)).unwrap();
    }
    assert!(evicted() > by_puts);
    assert_eq!(evicted(), cache.stats().evictions);
}

//! What other crates are told: counters and load times by `metrics`, events by `tracing`.

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use oneflight_cache::Cache;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

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
        metrics::with_local_recorder(&kept, || Cache::builder().name("users").build_blocking());
    cache.get_or_load(&1, || Ok(1)).unwrap();
    cache.get_or_load(&1, || Ok(1)).unwrap();
    cache.get_or_load(&1, || Ok(1)).unwrap();
    cache.get_or_load(&2, || Err("it fails".into())).unwrap_err();
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.loads, stats.load_errors), (2, 2, 1));
    assert_eq!(kept.get("oneflight_cache_requests_total cache=users outcome=hit"), 2);
    assert_eq!(kept.get("oneflight_cache_loads_total cache=users"), 2);
    assert_eq!(kept.get("oneflight_cache_load_errors_total cache=users"), 1);
    assert_eq!(kept.get("oneflight_cache_load_seconds cache=users"), 2);
}

/// Keeps the texts of events, with all their fields.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().push(format!("{field}={value:?}"));
    }
}

impl Subscriber for Told {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "oneflight_cache"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn events_tell_of_loads_and_failures_and_neither_keys_nor_values() {
    let told = Told::default();
    tracing::subscriber::with_default(told.clone(), || {
        let cache: oneflight_cache::blocking::Cache<String, String> = Cache::builder().build_blocking();
        cache.get_or_load("secret key", || Ok("secret value".to_owned())).unwrap();
        cache.get_or_load("another", || Err("secret error".into())).unwrap_err();
    });
    let told = told.0.lock().unwrap().join("\n");
    assert!(told.contains("message=loaded") && told.contains("message=the load failed"), "{told}");
    assert!(!told.contains("secret"), "{told}");
}

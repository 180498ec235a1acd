//! What `tracing` is told: events. In a program of its own, as whether anybody listens is remembered by all of it.

use oneflight_cache::{Cache, Source, Time};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

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
        let cache: oneflight_cache::blocking::Cache<String, String> = Cache::builder().name("pages").build_blocking();
        cache.get_or_load("secret key", || Ok("secret value".to_owned())).unwrap();
        cache.get_or_load("another", || Err("secret error".into())).unwrap_err();
    });
    let told = told.0.lock().unwrap();
    let of_this_cache = told.iter().filter(|field| *field == "cache=\"pages\"").count();
    assert_eq!(of_this_cache, 2, "{told:?}");
    let told = told.join("\n");
    assert!(told.contains("message=loaded") && told.contains("message=the load failed"), "{told}");
    assert!(!told.contains("secret"), "{told}");
}

#[test]
fn a_panic_of_a_loader_is_told_once_wherever_it_goes_on() {
    let told = Told::default();
    tracing::subscriber::with_default(told.clone(), || {
        let clock = Arc::new(AtomicU64::new(0));
        let time = {
            let clock = Arc::clone(&clock);
            move || Time::from_start(Duration::from_secs(clock.load(Ordering::Relaxed)))
        };
        let builder = Cache::builder().clock(time).ttl(Duration::from_secs(60)).helper_threads(0);
        let cache: oneflight_cache::blocking::Cache<String, String> =
            builder.stale_while_revalidate(Duration::from_secs(60)).build_blocking();
        let panics = || told.0.lock().unwrap().iter().filter(|field| *field == "message=the loader panicked").count();
        catch_unwind(AssertUnwindSafe(|| cache.get_or_load("key", || panic!("on purpose")))).unwrap_err();
        assert_eq!((panics(), cache.stats().load_times.count()), (1, 1));
        catch_unwind(AssertUnwindSafe(|| cache.call("key").bypass().get_or_load(|| panic!("on purpose")))).unwrap_err();
        assert_eq!((panics(), cache.stats().load_times.count()), (2, 2));
        cache.put("key", "old value".to_owned()).unwrap();
        clock.store(90, Ordering::Relaxed);
        // The refresh catches it.
        assert_eq!(cache.get_or_load("key", || panic!("on purpose")).unwrap().source, Source::Stale);
        assert_eq!((panics(), cache.stats().load_times.count()), (3, 3));
    });
}

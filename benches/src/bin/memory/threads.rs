//! Allocations, clones and heap of `SyncGroup`, of the cache, and of what they are beside.

use ::quick_cache::sync::{Cache, GuardResult};
use alloc::sync::Arc;
use allocation_counter::measure;
use core::borrow::Borrow;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use oneflight::SyncGroup;
use oneflight_benches::contender::{Blocking, Key, Kind, Visitor, everybody, quick_cache, text_only};
use oneflight_benches::load;
use oneflight_benches::machine::ThreadName;
use oneflight_benches::options::Options;
use oneflight_benches::report::Bound::AtMost;
use oneflight_benches::report::Report;
use oneflight_benches::rounds::Spread;

/// Calls that an average is taken over.
const CALLS: usize = 1_000;

/// Keys that are in flight at once.
const IN_FLIGHT: usize = 100_000;
const MOST_IN_FLIGHT: usize = 200_000;

type Workload = fn(&mut Report, &str);

/// Runs those that are wanted.
pub(crate) fn run(options: &Options, report: &mut Report) {
    let of_threads: [(&str, Workload); 5] = [
        ("alone, u64 key: allocations", alone_number),
        ("alone, 16-byte string key: allocations", alone_text),
        ("alone: clones of the value", clones),
        ("100,000 u64 keys in flight: heap", in_flight),
        ("follower joins by a borrowed string key: allocations", follower),
    ];
    let of_the_cache: [(&str, Workload); 2] = [
        ("hit of a string key: allocations", cache_hit),
        ("10,000 entries of a u64 key and a shared value: heap", cache_entries),
    ];
    for (part, workloads) in [("memory of threads", &of_threads[..]), ("memory of the cache", &of_the_cache)] {
        report.begin(part);
        for (name, run) in workloads {
            if options.wants(part, name) {
                run(report, name);
            }
        }
    }
}

/// Allocations a call of one thread, once the contender has seen all keys: tables that grow to the size of the load are no
/// cost of a call.
struct Allocations<'r> {
    report: &'r mut Report,
    workload: &'r str,
}

impl<Q: Key + ?Sized> Visitor<Q> for Allocations<'_> {
    fn visit<C: Blocking<Q, u64> + Send + 'static>(&mut self, name: &'static str, kind: Kind, make: fn() -> C) {
        let (contender, keys) = (make(), Q::many(CALLS, 1));
        let call_all = || {
            for key in &keys {
                black_box(contender.call(key.borrow(), || black_box(1)));
            }
        };
        call_all();
        let allocations = measure(call_all).count_total as f64 / keys.len() as f64;
        self.report.figure(self.workload, name, kind, "a call", Spread::exact(allocations));
    }
}

fn alone_number(report: &mut Report, name: &str) {
    everybody::<u64>(&mut Allocations { report, workload: name });
    let ours = ours(report);
    report.target(name, AtMost(0.0), ours);
    report.least(name);
}

fn alone_text(report: &mut Report, name: &str) {
    let mut all = Allocations { report, workload: name };
    everybody::<str>(&mut all);
    text_only(&mut all);
    let ours = ours(report);
    report.target(name, AtMost(1.0), ours);
    report.least(name);
}

/// What has been noted last of the first contender, which is ours.
fn ours(report: &Report) -> Spread {
    report.rows().last().expect("it was noted just now").cells[0].spread
}

fn clones(report: &mut Report, name: &str) {
    let ours = clones_of(&SyncGroup::new());
    report.figure(name, "oneflight", Kind::Ours, "a call", ours);
    report.figure(name, "quick_cache", Kind::Crate, "a call", clones_of(&quick_cache()));
    report.target(name, AtMost(0.0), ours);
}

fn clones_of(contender: &impl Blocking<u64, Counted>) -> Spread {
    let clones = Arc::new(AtomicU64::new(0));
    for key in 0..CALLS as u64 {
        black_box(contender.call(&key, || Counted(Arc::clone(&clones))));
    }
    Spread::exact(clones.load(Ordering::Relaxed) as f64 / CALLS as f64)
}

/// A value that counts its clones.
struct Counted(Arc<AtomicU64>);

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

fn in_flight(report: &mut Report, name: &str) {
    let keys = load::numbers(MOST_IN_FLIGHT, 1);
    let ours = |keys: &[u64]| {
        let (group, base) = heap_of(SyncGroup::<u64, u64>::new);
        let (leads, heap) = heap_of(|| collect(keys, |key| group.try_lead(key)));
        assert_eq!((leads.len(), group.in_flight()), (keys.len(), keys.len()));
        (base + heap) / keys.len() as f64
    };
    let theirs = |keys: &[u64]| {
        let (cache, base) = heap_of(|| Cache::<u64, u64>::new(keys.len()));
        let (guards, heap) = heap_of(|| collect(keys, |key| cache.get_value_or_guard(key, None)));
        assert!(guards.iter().all(|guard| matches!(guard, GuardResult::Guard(_))));
        (base + heap) / keys.len() as f64
    };
    let usual = Spread::exact(ours(&keys[..IN_FLIGHT]));
    let sizes = (10_000..=MOST_IN_FLIGHT).step_by(5_000);
    let worst = sizes.map(|size| ours(&keys[..size])).fold(0.0, f64::max);
    report.figure(name, "oneflight", Kind::Ours, "bytes a key", usual);
    report.figure(name, "quick_cache", Kind::Crate, "bytes a key", Spread::exact(theirs(&keys[..IN_FLIGHT])));
    report.figure(
        &format!("{name}, worst of 10,000 to 200,000"),
        "oneflight",
        Kind::Ours,
        "bytes a key",
        Spread::exact(worst),
    );
    report.target(name, AtMost(72.0), usual);
    report.least(name);
}

/// What `f` makes of the keys. Where the caller keeps its guards is not what is measured.
fn collect<G>(keys: &[u64], f: impl FnMut(&u64) -> G) -> Vec<G> {
    let mut guards = None;
    allocation_counter::opt_out(|| guards = Some(Vec::with_capacity(keys.len())));
    let mut guards = guards.expect("it was made just now");
    guards.extend(keys.iter().map(f));
    guards
}

/// What `make` made, and the bytes on the heap that belong to it.
fn heap_of<T>(make: impl FnOnce() -> T) -> (T, f64) {
    let mut made = None;
    let used = measure(|| made = Some(make()));
    (made.expect("it was made just now"), used.bytes_current as f64)
}

fn follower(report: &mut Report, name: &str) {
    const KEY: &str = "0123456789abcdef";
    let group: SyncGroup<String, u64> = SyncGroup::new();
    let lead = group.try_lead(KEY).expect("nobody else leads");
    let [first, second] = joins(
        || group.do_call(KEY, || 0),
        || {
            lead.land(1);
        },
    );
    let [name_of_first, name_of_second] = ["first", "second"].map(|number| format!("{name}: the {number} one"));
    report.figure(&name_of_first, "oneflight", Kind::Ours, "a join", first);
    report.figure(&name_of_second, "oneflight", Kind::Ours, "a join", second);
    report.target(&name_of_second, AtMost(0.0), second);

    let cache = quick_cache::<String, u64>();
    let GuardResult::Guard(guard) = cache.get_value_or_guard(KEY, None) else { unreachable!("nobody else leads") };
    let [first, second] = joins(
        || Blocking::<str, _>::call(&cache, KEY, || 0),
        || guard.insert(1).expect("the placeholder is still there"),
    );
    report.figure(&name_of_first, "quick_cache", Kind::Crate, "a join", first);
    report.figure(&name_of_second, "quick_cache", Kind::Crate, "a join", second);
}

/// A value that is shared costs a hit nothing, and neither does a key that is looked up borrowed.
fn cache_hit(report: &mut Report, name: &str) {
    const KEY: &str = "0123456789abcdef";
    let cache: oneflight_cache::blocking::Cache<String, Arc<u64>> = oneflight_cache::Cache::builder().build_blocking();
    cache.put(KEY, Arc::new(1)).expect("memory does not fail");
    let hit = || {
        for _ in 0..CALLS {
            black_box(cache.get_or_load(KEY, || Err("it is there".into())).expect("it is there"));
        }
    };
    hit();
    let ours = Spread::exact(measure(hit).count_total as f64 / CALLS as f64);
    report.figure(name, "oneflight-cache", Kind::Ours, "a call", ours);
    report.target(name, AtMost(0.0), ours);
}

/// Without what the value holds, which is the same for all.
fn cache_entries(report: &mut Report, name: &str) {
    const ENTRIES: usize = 10_000;
    const TTL: Duration = Duration::from_secs(3_600);
    let keys = load::numbers(ENTRIES, 1);
    let value = Arc::new(1_u64);
    let mut entry = |contender: &str, kind, heap: f64| {
        report.figure(name, contender, kind, "bytes an entry", Spread::exact(heap / ENTRIES as f64));
    };
    let (_cache, heap) = heap_of(|| {
        let builder = oneflight_cache::Cache::builder().capacity(2 * ENTRIES).ttl(TTL);
        let cache: oneflight_cache::blocking::Cache<u64, Arc<u64>> = builder.build_blocking();
        for key in &keys {
            cache.put(key, Arc::clone(&value)).expect("memory does not fail");
        }
        cache
    });
    entry("oneflight-cache", Kind::Ours, heap);
    let (_cache, heap) = heap_of(|| {
        let cache = Cache::<u64, Arc<u64>>::new(2 * ENTRIES);
        keys.iter().for_each(|&key| cache.insert(key, Arc::clone(&value)));
        cache
    });
    entry("quick_cache, without a TTL", Kind::Crate, heap);
    let (_cache, heap) = heap_of(|| {
        let builder = moka::sync::Cache::builder().max_capacity(2 * ENTRIES as u64).time_to_live(TTL);
        let cache: moka::sync::Cache<u64, Arc<u64>> = builder.build();
        keys.iter().for_each(|&key| cache.insert(key, Arc::clone(&value)));
        cache.run_pending_tasks();
        cache
    });
    entry("moka, with a TTL", Kind::Crate, heap);
}

/// The allocations of two followers, from before their call to after it. The second one joins when the first one is asleep,
/// and `land` is called when both are.
fn joins(follow: impl Fn() -> u64 + Sync, land: impl FnOnce()) -> [Spread; 2] {
    let (tell, told) = std::sync::mpsc::channel();
    let follower = || {
        tell.send(ThreadName::current()).expect("somebody listens");
        let used = measure(|| {
            assert_eq!(follow(), 1, "a follower had to work");
        });
        Spread::exact(used.count_total as f64)
    };
    let wait_for_sleep = || {
        let name = told.recv().expect("a follower has started");
        // Once more than it takes to be seen asleep: the message itself may have been waited for.
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(10));
            while name.as_ref().is_some_and(|name| !name.is_asleep()) {
                std::thread::yield_now();
            }
        }
    };
    std::thread::scope(|scope| {
        let followers = [(); 2].map(|()| {
            let follower = scope.spawn(follower);
            wait_for_sleep();
            follower
        });
        land();
        followers.map(|follower| follower.join().expect("a follower panicked"))
    })
}

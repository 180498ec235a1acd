//! A lone caller, for those who want criterion's statistics and pictures. The targets are judged by `peers`.
//!
//!     cargo bench -p oneflight-benches --bench alone

use core::borrow::Borrow;
use core::hint::black_box;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use oneflight::SyncGroup;
use oneflight_benches::contender::floor::Floor;
use oneflight_benches::contender::{Blocking, quick_cache};
use oneflight_benches::load;

/// Keys that are asked for in turn.
const KEYS: usize = 1_024;
const SEED: u64 = 1;

fn bench<Q, K>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, contender: &impl Blocking<Q, u64>, keys: &[K])
where
    Q: ?Sized,
    K: Borrow<Q>,
{
    let mut asked = keys.iter().cycle();
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let key = asked.next().expect("there are keys");
            contender.call(black_box(key.borrow()), || black_box(1))
        });
    });
}

fn numbers(criterion: &mut Criterion) {
    let keys = load::numbers(KEYS, SEED);
    let mut group = criterion.benchmark_group("alone, u64 key");
    bench(&mut group, "oneflight", &SyncGroup::new(), &keys);
    bench(&mut group, "quick_cache", &quick_cache(), &keys);
    bench(&mut group, "floor", &Floor::new(), &keys);
    group.finish();
}

fn strings(criterion: &mut Criterion) {
    let keys = load::strings(KEYS, SEED);
    let mut group = criterion.benchmark_group("alone, 16-byte string key");
    bench::<str, _>(&mut group, "oneflight", &SyncGroup::<String, u64>::new(), &keys);
    bench::<str, _>(&mut group, "quick_cache", &quick_cache::<String, u64>(), &keys);
    bench::<str, _>(&mut group, "singleflight", &singleflight::Group::new(), &keys);
    bench::<str, _>(&mut group, "floor", &Floor::new(), &keys);
    group.finish();
}

criterion_group!(alone, numbers, strings);
criterion_main!(alone);

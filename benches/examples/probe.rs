#![allow(missing_docs)]
use oneflight_cache::{Cache, Policy, blocking};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
fn time(name: &str, keys: &[u64], mut f: impl FnMut(&u64) -> u64) {
    let mut best = f64::MAX;
    for _ in 0..400 {
        let s = Instant::now();
        for k in keys {
            black_box(f(black_box(k)));
        }
        best = best.min(s.elapsed().as_nanos() as f64 / keys.len() as f64);
    }
    println!("{name}: {best:.1}");
}
fn main() {
    let keys: Vec<u64> = (0..1000).collect();
    let plain = quick_cache::sync::Cache::<u64, Arc<u64>>::new(20000);
    let ours: blocking::Cache<u64, Arc<u64>> =
        Cache::builder().capacity(20000).ttl(Duration::from_secs(3600)).build_blocking();
    let task: Cache<u64, Arc<u64>> =
        Cache::builder().capacity(20000).ttl(Duration::from_secs(3600)).early_refresh(Policy::Never).build();
    for &k in &keys {
        let v = Arc::new(k);
        plain.insert(k, v.clone());
        {
            let v = v.clone();
            ours.get_or_load(&k, move || Ok(v)).unwrap();
        }
        smol::block_on(task.get_or_load(&k, || async move { Ok(v) })).unwrap();
    }
    let start = Instant::now();
    for _ in 0..2 {
        time("now", &keys, |_| {
            black_box(Instant::now());
            0
        });
        time("elapsed", &keys, |_| black_box(start.elapsed()).subsec_nanos() as u64);
        time("plain", &keys, |k| *plain.get(k).unwrap());
        time("floor", &keys, |k| {
            black_box(Instant::now());
            *plain.get(k).unwrap()
        });
        time("ours", &keys, |k| *ours.get_or_load(k, || Err("x".into())).as_ref().unwrap().value);
        time("get", &keys, |k| *ours.get(k).unwrap().unwrap().value);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        time("task", &keys, |k| {
            let f = std::pin::pin!(task.get_or_load(k, || async { Err("x".into()) }));
            match std::future::Future::poll(f, &mut cx) {
                std::task::Poll::Ready(v) => *v.as_ref().unwrap().value,
                _ => 0,
            }
        });
    }
    let k = 1u64;
    println!("future {}", std::mem::size_of_val(&task.get_or_load(&k, || async { Err("x".into()) })));
    println!("load {}", {
        let c: blocking::Cache<u64, u64> = Cache::builder().build_blocking();
        let s = Instant::now();
        for i in 0..10000u64 {
            c.get_or_load(&(i % 100), move || Ok(i)).unwrap();
            c.invalidate(&(i % 100)).unwrap();
        }
        s.elapsed().as_nanos() / 10000
    });
}

//! smoke
use oneflight::*;
use std::sync::{Arc, Barrier};
use std::time::Duration;
#[test]
fn many() {
    let g: Arc<SyncGroup<u64, u64>> = Arc::new(SyncGroup::new());
    let lead = g.try_lead(&1).unwrap();
    let hs: Vec<_> = (0..500)
        .map(|_| {
            let g = g.clone();
            std::thread::spawn(move || g.do_call(&1, || 5))
        })
        .collect();
    while g.waiters(&1) < 500 {
        std::thread::yield_now()
    }
    lead.land(7);
    for h in hs {
        assert_eq!(h.join().unwrap(), 7);
    }
    assert_eq!(g.in_flight(), 0);
}
#[test]
fn panics() {
    let g: Arc<SyncGroup<u64, u64>> = Arc::new(SyncGroup::new());
    let hs: Vec<_> = (0..100)
        .map(|_| {
            let g = g.clone();
            std::thread::spawn(move || {
                g.call(&1).max_attempts(3).run(|| {
                    while g.waiters(&1) + 1 < 5 && g.stats().abandons < 3 {}
                    panic!("x")
                })
            })
        })
        .collect();
    let r: Vec<_> = hs.into_iter().map(|h| h.join()).collect();
    println!("{:?} {:?}", r.iter().filter(|r| r.is_err()).count(), g.stats());
    assert_eq!(g.in_flight(), 0);
}

//! Clearing, and servers that forget.

use crate::bench::{Bench, KEY, SECOND, all_found, entry, known, now, settings};
use oneflight_cache::lease::{Acquired, BlockingLease, Publication};
use oneflight_cache::redis::blocking::RedisStore;
use oneflight_cache::{BlockingStore, Entry};
use redis::Commands;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

fn get(store: &RedisStore) -> Option<Entry<String>> {
    store.get(KEY, now()).unwrap()
}

fn clear(store: &RedisStore) {
    BlockingStore::<str, String>::clear(store).unwrap();
}

/// A store that takes for ever for granted what it has found, and one that takes nothing for granted.
fn trusting_and_doubting(bench: &Bench) -> (RedisStore, RedisStore) {
    let with = |life| settings().generation_life(life).connect_blocking(&bench.server.url()).unwrap();
    (with(SECOND * 1_000), with(Duration::ZERO))
}

#[test]
fn what_is_cleared_is_gone_for_this_process_at_once_and_for_others_when_they_look() {
    let mut bench = Bench::new();
    let (trusting, doubting) = trusting_and_doubting(&bench);
    bench.put("value", 7);
    assert!(get(&trusting).is_some() && get(&doubting).is_some());
    clear(&bench.store);
    assert_eq!(bench.get(), None);
    assert_eq!(get(&doubting), None);
    assert!(get(&trusting).is_some(), "it has not looked");
    bench.put("new", 8);
    assert_eq!(known(get(&doubting)), known(Some(entry("new", 8))));
    clear(&trusting);
    assert_eq!(get(&trusting), None);
    assert_eq!(get(&doubting), None);
}

#[test]
fn whoever_writes_or_acquires_looks_even_if_he_would_not_have_to() {
    let mut bench = Bench::new();
    let (trusting, _) = trusting_and_doubting(&bench);
    bench.put("value", 1);
    assert_eq!(known(get(&trusting)), known(Some(entry("value", 1))));
    clear(&bench.store);
    trusting.put(KEY, entry("put", 2), now()).unwrap();
    assert_eq!(bench.get().unwrap(), "put");

    clear(&bench.store);
    bench.put("value", 3);
    BlockingStore::<_, String>::remove(&trusting, KEY).unwrap();
    assert_eq!(bench.get(), None);

    clear(&bench.store);
    let acquired = trusting.acquire(KEY, Bench::claim(1, None), now()).unwrap();
    assert!(matches!(acquired, Acquired::<String>::Leader { .. }));
    assert!(matches!(bench.acquire(2, None), Acquired::Held { holder: 1, .. }), "in the same generation");
}

#[test]
fn what_was_acquired_before_the_clearing_is_never_published() {
    let mut bench = Bench::new();
    let (trusting, _) = trusting_and_doubting(&bench);
    let acquired = trusting.acquire(KEY, Bench::claim(1, None), now()).unwrap();
    let Acquired::<String>::Leader { epoch } = acquired else { panic!("{acquired:?}") };
    clear(&bench.store);
    assert_eq!(trusting.publish(KEY, 1, epoch, entry("old", 7), now()).unwrap(), Publication::Invalidated);
    assert_eq!(bench.get(), None);
    assert!(!BlockingLease::<_, String>::renew(&trusting, KEY, 1, SECOND).unwrap());

    let epoch = bench.lead(2);
    clear(&bench.store);
    let next = bench.lead(3);
    assert_eq!(bench.publish(2, epoch, "old"), Publication::Invalidated);
    assert_eq!(bench.publish(3, next, "new"), Publication::Stored);
}

#[test]
fn values_of_a_generation_that_was_forgotten_do_not_come_back() {
    let mut bench = Bench::new();
    let (trusting, doubting) = trusting_and_doubting(&bench);
    bench.put("value", 7);
    assert!(get(&trusting).is_some());
    let _: () = bench.raw.del("{5:tests:0}:gen").unwrap();
    assert_eq!(get(&doubting), None);
    doubting.put(KEY, entry("new", 8), now()).unwrap();
    trusting.put("other", entry("other", 9), now()).unwrap();
    assert_eq!(known(get(&trusting)), known(Some(entry("new", 8))), "the writing has told it");

    bench.server.flush_all();
    assert_eq!(get(&doubting), None);
    assert_eq!(get(&trusting), None);
    trusting.put(KEY, entry("newer", 10), now()).unwrap();
    assert_eq!(known(get(&doubting)), known(Some(entry("newer", 10))));
}

/// All of them find none, and make one at the same time.
#[test]
fn those_who_come_to_an_empty_server_together_are_in_one_generation() {
    let bench = Bench::new();
    let keys: Vec<String> = (0..8).map(|number| format!("k{number}")).collect();
    for _ in 0..50 {
        bench.server.flush_all();
        let ready = Barrier::new(keys.len());
        thread::scope(|scope| {
            for key in &keys {
                scope.spawn(|| {
                    let store = bench.other();
                    ready.wait();
                    store.put(key, entry(key, 7), now()).unwrap();
                });
            }
        });
        let keys: Vec<&String> = keys.iter().collect();
        let found = all_found(bench.other().get_many(&keys, now()));
        let found: Vec<String> = found.into_iter().flatten().map(|entry| entry.value().clone()).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), keys);
    }
}

#[test]
fn any_string_is_a_generation() {
    let mut bench = Bench::new();
    bench.put("value", 7);
    let _: () = bench.raw.set("{5:tests:0}:gen", b"\xff\0 ").unwrap();
    let (_, doubting) = trusting_and_doubting(&bench);
    assert_eq!(get(&doubting), None);
    doubting.put(KEY, entry("new", 8), now()).unwrap();
    assert_eq!(known(get(&doubting)), known(Some(entry("new", 8))));
}

/// A hit is one round trip of two commands; three when it looks at the generation. No script.
#[test]
fn a_hit_runs_no_script() {
    let mut bench = Bench::new();
    let (trusting, doubting) = trusting_and_doubting(&bench);
    bench.put("value", 7);
    for (store, commands) in [(&trusting, 2), (&doubting, 3)] {
        assert!(get(store).is_some());
        let scripts = bench.server.calls("evalsha");
        let before = bench.server.commands_processed();
        for _ in 0..100 {
            assert!(get(store).is_some());
        }
        let counted = bench.server.commands_processed() - before;
        // And those by which they are counted.
        assert!((100 * commands..=100 * commands + 3).contains(&counted), "{counted}");
        assert_eq!(bench.server.calls("evalsha"), scripts);
    }
}

//! What is kept, for how long, under which keys.

use crate::bench::{Bench, HOUR, MILLI, SHORT, epoch_of};
use oneflight_cache::lease::{BlockingLease, Claim, Publication};
use oneflight_cache::{BlockingStore, Entry, Time};
use std::time::Duration;

/// More than any request takes.
const SLACK: Duration = Duration::from_secs(300);

#[track_caller]
fn assert_near(time: Time, expected: Time) {
    let off = time.since(expected).max(expected.since(time));
    assert!(off < SLACK, "{time:?} is {off:?} off {expected:?}");
}

pub(crate) fn an_entry_is_the_same_in_another_process<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let now = bench.now();
    let (loaded_at, fresh_until) = (now.before(Duration::from_secs(900)), now.after(HOUR));
    let cost = Duration::from_micros(1_234_567);
    let entry = Entry::new(b"value".to_vec(), 0xfedc_ba98, loaded_at, fresh_until, fresh_until.after(HOUR * 5), cost);
    let assert_same = |found: Entry<Vec<u8>>| {
        assert_eq!((found.value(), found.version(), found.cost()), (&b"value".to_vec(), 0xfedc_ba98, cost));
        assert_near(found.loaded_at(), loaded_at);
        assert_near(found.fresh_until(), fresh_until);
        assert_near(found.stale_until(), fresh_until.after(HOUR * 5));
    };
    first.store.put(&first.key, entry.clone(), now).map(drop).unwrap();
    assert_same(second.find().expect("it was put"));
    first.remove();
    let epoch = first.lead();
    assert_eq!(first.store.publish(&first.key, first.token, epoch, entry, now).unwrap(), Publication::Stored);
    assert_same(second.find().expect("it was published"));
}

pub(crate) fn a_stale_entry_is_found_until_its_end<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let now = bench.now();
    let put = |stale: Duration| {
        let entry = Entry::new(b"a".to_vec(), 7, now, now.after(SHORT), now.after(SHORT + stale), MILLI);
        first.store.put(&first.key, entry, now).map(drop).unwrap();
    };
    put(HOUR);
    bench.pass(SHORT * 2);
    let found = second.find().expect("it is of some use");
    assert!(found.fresh_until() <= bench.now() && found.stale_until() > bench.now(), "{found:?}");
    put(SHORT);
    bench.pass(SHORT * 3);
    assert_eq!(second.find(), None);
}

pub(crate) fn i10_what_looks_like_nothing_is_a_value<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    for value in [b"".as_slice(), b"\0", b"0", b"false", b"nil", b"null", b"\r\n"] {
        first.remove();
        let epoch = first.lead();
        assert_eq!(first.publish(epoch, value), Publication::Stored);
        assert_eq!(second.get().as_deref(), Some(value));
        assert!(!second.is_kept_out());
        assert!(!second.renew(HOUR), "it was filled");
        first.put(value);
        assert_eq!(second.get().as_deref(), Some(value));
    }
}

pub(crate) fn i8_odd_keys_are_distinct<B: Bench>(bench: &B) {
    let long = "k".repeat(64 * 1024);
    let longer = format!("{long}k");
    let odd =
        ["", "\0", " ", "{", "}", "{}", "{a}", "a}", "a}:v", "a", "a:v", "a:l", "a:g", "a:", ":a", "*", "ä", "\r\n"];
    let keys = odd.into_iter().chain([long.as_str(), &longer]);
    let mut caller = bench.caller();
    let mut kept = Vec::new();
    for (index, key) in keys.enumerate() {
        caller.key = key.to_owned();
        assert_eq!(caller.get(), None, "{index}: {:.20}", key);
        let value = [index as u8];
        if index % 2 == 0 {
            caller.put(&value);
        } else {
            let epoch = caller.lead();
            assert_eq!(caller.publish(epoch, &value), Publication::Stored);
        }
        kept.push((caller.key.clone(), value.to_vec()));
    }
    for (key, value) in &kept {
        caller.key = key.clone();
        assert_eq!(caller.get().as_ref(), Some(value), "{key:.20}");
    }
    // Nor do their leases meet.
    for (key, value) in &kept {
        caller.key = key.clone();
        caller.lead_over(value);
    }
    for (key, _) in kept {
        caller.key = key;
        assert!(caller.renew(HOUR), "{:.20}", caller.key);
    }
}

pub(crate) fn i3_odd_lives_are_no_errors<B: Bench>(bench: &B) {
    let caller = bench.caller();
    let huge = Duration::from_millis(u64::MAX);
    let nanos = [0, 1, 999_000, 1_000_000].map(Duration::from_nanos);
    for life in nanos {
        for stale in nanos {
            for publishes in [false, true] {
                caller.remove();
                let now = bench.now();
                let fresh_until = now.after(life);
                let entry = Entry::new(b"a".to_vec(), 7, now, fresh_until, fresh_until.after(stale), MILLI);
                if publishes {
                    let epoch = caller.lead();
                    let published = caller.store.publish(&caller.key, caller.token, epoch, entry, now).unwrap();
                    assert_eq!(published, Publication::Stored);
                    assert!(!caller.renew(HOUR), "the lease is given up");
                } else {
                    caller.store.put(&caller.key, entry, now).map(drop).unwrap();
                }
                if life + stale == Duration::ZERO {
                    assert_eq!(caller.find(), None, "it is of no use");
                }
                bench.pass(MILLI * 8);
                assert_eq!(caller.find(), None, "{life:?} and {stale:?}");
            }
        }
    }
    for (life, stale) in [(Duration::MAX, Duration::ZERO), (huge, huge), (HOUR, Duration::MAX), (MILLI * 10, huge)] {
        let now = bench.now();
        let fresh_until = now.after(life);
        let entry = Entry::new(b"a".to_vec(), 7, now, fresh_until, fresh_until.after(stale), MILLI);
        caller.store.put(&caller.key, entry, now).map(drop).unwrap();
        bench.pass(MILLI * 20);
        let found = caller.find().expect("it lasts");
        assert_eq!(found.fresh_until() > bench.now(), life > SHORT, "{life:?} and {stale:?}: {found:?}");
        assert!(found.stale_until() > bench.now().after(HOUR / 2), "{life:?} and {stale:?}: {found:?}");
    }
}

pub(crate) fn i3_odd_leases_are_no_errors<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let claim = first.claim();
    for time in [0, 1, 999_000, 1_000_000].map(Duration::from_nanos) {
        first.remove();
        epoch_of(first.acquire(Claim { lease: time, epoch_life: time, ..claim }));
        bench.pass(MILLI * 8);
        second.lead();
        assert!(second.renew(time));
        bench.pass(MILLI * 8);
        first.lead();
    }
    for time in [Duration::MAX, Duration::from_millis(u64::MAX), HOUR * 24 * 365 * 1_000] {
        first.remove();
        let epoch = epoch_of(first.acquire(Claim { lease: time, epoch_life: time, ..claim }));
        assert!(second.is_kept_out());
        assert!(first.renew(time));
        assert!(second.is_kept_out());
        assert_eq!(first.publish(epoch, b"a"), Publication::Stored);
    }
}

pub(crate) fn many_are_found_in_their_order<B: Bench>(bench: &B) {
    let mut caller = bench.caller();
    for (key, value) in [("one", b"1"), ("two", b"2"), ("three", b"3")] {
        caller.key = key.to_owned();
        caller.put(value);
    }
    let asked = ["three", "absent", "one", "three", "", "two"].map(str::to_owned);
    let found = caller.store.get_many(&asked.each_ref(), bench.now()).unwrap();
    let found: Vec<_> = found.into_iter().map(|entry| entry.unwrap().map(|entry| entry.value()[0])).collect();
    assert_eq!(found, [Some(b'3'), None, Some(b'1'), Some(b'3'), None, Some(b'2')]);
    assert_eq!(caller.store.get_many(&[], bench.now()).unwrap().len(), 0);
}

//! What is put, read and removed.

use crate::bench::{Bench, KEY, SECOND, all_found, entry, known, now, settings};
use crate::redis_support::server::Server;
use oneflight_cache::redis::blocking::RedisStore;
use oneflight_cache::redis::{Builder, CacheKey, Codec, Error};
use oneflight_cache::{BlockingStore, Entry, FoundMany, Time};
use redis::Commands;
use std::collections::HashSet;
use std::time::Duration;

#[test]
fn what_is_put_is_read_until_it_is_removed() {
    let mut bench = Bench::new();
    assert_eq!(bench.get(), None);
    bench.put("first", 1);
    bench.put("second", 2);
    assert_eq!(known(bench.entry()), known(Some(entry("second", 2))));
    bench.remove();
    bench.remove();
    assert_eq!(bench.get(), None);
    assert_eq!(bench.store.unreadable(), 0);
}

#[test]
fn times_are_those_that_are_left() {
    let mut bench = Bench::new();
    bench.put("value", 7);
    let name = bench.name('v');
    assert_eq!(bench.server.cli(&["PEXPIRE", &name, "80000"]), "1");
    let found = bench.entry().unwrap();
    let fresh = found.fresh_until().since(now());
    assert!((SECOND * 10..=SECOND * 50).contains(&fresh), "{fresh:?}");
    assert_eq!(found.stale_until().since(found.fresh_until()), SECOND * 30);
    assert_eq!(found.fresh_until().since(found.loaded_at()), SECOND * 60);
    assert_eq!(found.cost(), SECOND / 8);

    assert_eq!(bench.server.cli(&["PEXPIRE", &name, "20000"]), "1");
    let found = bench.entry().unwrap();
    assert!(found.fresh_until() < now() && found.stale_until() > now(), "stale, and still of use");
}

/// Case I3.
#[test]
fn short_long_and_endless_lives() {
    /// Long enough to look at what is there.
    const LONG: Duration = Duration::from_secs(600);
    let mut bench = Bench::new();
    let nano = Duration::from_nanos(1);
    let lives = [nano, Duration::from_micros(999), SECOND / 1_000, Duration::from_millis(u64::MAX), Duration::MAX];
    for fresh in lives {
        for stale in [Duration::ZERO, nano, LONG, Duration::from_millis(u64::MAX), Duration::MAX] {
            let fresh_until = now().after(fresh);
            let entry = Entry::new("x".to_owned(), 7, now(), fresh_until, fresh_until.after(stale), SECOND);
            bench.store.put(KEY, entry, now()).unwrap();
            if fresh < SECOND && stale < SECOND {
                // It lives for two milliseconds at most. The time left is looked at first, as it may be gone by then.
                assert!(matches!(bench.left('v'), -2 | 0..=3));
                continue;
            }
            let found = bench.entry().unwrap();
            if fresh > SECOND {
                assert_eq!(bench.left('v'), -1, "{fresh:?}, {stale:?}");
                assert_eq!((found.fresh_until(), found.stale_until()), (Time::NEVER, Time::NEVER));
            } else {
                assert!(bench.left('v') > 0, "{fresh:?}, {stale:?}");
                assert!(found.fresh_until() <= now().after(SECOND / 500));
            }
            if stale > LONG {
                assert_eq!(found.stale_until(), Time::NEVER);
            }
        }
    }
    let none = Entry::new("x".to_owned(), 7, now(), now(), now(), SECOND);
    bench.store.put(KEY, none, now()).unwrap();
    assert!(!bench.is_there('v'), "not kept, and it replaces what was");
    let begun = Entry::new("x".to_owned(), 7, now(), now().after(nano), now().after(nano), SECOND);
    bench.store.put(KEY, begun, now().after(SECOND)).unwrap();
    assert!(!bench.is_there('v'), "of no use any more when it is put");
}

/// Case I6.
#[test]
fn what_cannot_be_read_is_a_miss_that_is_counted_and_overwritten() {
    let mut bench = Bench::new();
    bench.put("value", 7);
    let good: Vec<u8> = bench.there('v');
    let mut newer = good.clone();
    newer[4] += 1;
    let samples = [b"".to_vec(), b"garbage".to_vec(), good[..good.len() / 2].to_vec(), newer, vec![0xff; 100_000]];
    for (count, bytes) in (1..).zip(samples) {
        bench.set('v', &bytes);
        assert_eq!(bench.get(), None);
        assert_eq!(bench.store.unreadable(), count);
    }
    let mut no_text = good;
    no_text.push(0xff);
    bench.set('v', &no_text);
    assert_eq!(bench.get(), None, "the codec cannot read it");
    bench.put("good", 8);
    assert_eq!(bench.get().unwrap(), "good");
    assert_eq!(bench.store.unreadable(), 6);
}

#[test]
fn another_codec_or_schema_does_not_read_it() {
    struct Other;
    impl Codec<String> for Other {
        fn id(&self) -> u8 {
            200
        }
        fn encode(&self, value: &String, bytes: &mut Vec<u8>) -> Result<(), oneflight_cache::BoxError> {
            if value.is_empty() {
                return Err("nothing to write".into());
            }
            bytes.extend(value.bytes());
            Ok(())
        }
        fn decode(&self, bytes: &[u8]) -> Result<String, oneflight_cache::BoxError> {
            Ok(String::from_utf8(bytes.to_vec())?)
        }
    }
    let mut bench = Bench::new();
    bench.put("value", 7);
    let other = settings().codec(Other).connect_blocking(&bench.server.url()).unwrap();
    assert_eq!(other.get(KEY, now()).unwrap(), None);
    assert_eq!(other.unreadable(), 1);
    other.put(KEY, entry("other", 8), now()).unwrap();
    assert_eq!(known(other.get(KEY, now()).unwrap()), known(Some(entry("other", 8))));
    assert_eq!((bench.get(), bench.store.unreadable()), (None, 1));

    let error = other.put(KEY, entry("", 9), now()).unwrap_err();
    assert_eq!(error.to_string(), "the value cannot be encoded: nothing to write");
    assert_eq!(*other.get(KEY, now()).unwrap().unwrap().value(), "other");

    let next = settings().schema(1).connect_blocking(&bench.server.url()).unwrap();
    assert_eq!(BlockingStore::<_, String>::get(&next, KEY, now()).unwrap(), None);
    assert_eq!(next.unreadable(), 0, "it is elsewhere");
}

/// Case I8.
#[test]
fn odd_keys_are_all_distinct() {
    let server = Server::start();
    let store = |prefix: &str| settings_of(prefix).connect_blocking(&server.url()).unwrap();
    let stores: Vec<RedisStore> = ["a", "a:b", "", "{", "}", "a}b"].map(store).into();
    let mut keys: Vec<Vec<u8>> =
        ["", "\0", "k", "b:k", ":", "{", "}", "{}", "k}:v", "k}:l"].map(|key| key.as_bytes().to_vec()).into();
    keys.extend([vec![0xff], vec![0xff, 0], vec![b'x'; 65_536], vec![b'x'; 65_535]]);
    let value = |store: usize, key: usize| entry(&format!("{store} {key}"), 7);
    for (place, store) in stores.iter().enumerate() {
        for (at, key) in keys.iter().enumerate() {
            store.put(key, value(place, at), now()).unwrap();
        }
    }
    for (place, store) in stores.iter().enumerate() {
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(known(store.get(key, now()).unwrap()), known(Some(value(place, at))), "{place} {at}");
        }
        let all: Vec<&Vec<u8>> = keys.iter().collect();
        let found = all_found(store.get_many(&all, now()));
        let values: HashSet<String> = found.iter().flatten().map(|entry| entry.value().clone()).collect();
        assert_eq!(values.len(), keys.len());
    }
}

fn settings_of(prefix: &str) -> Builder {
    settings().prefix(prefix)
}

#[test]
fn keys_of_other_types_and_their_borrowed_forms() {
    let bench = Bench::new();
    fn check<K: CacheKey, B: CacheKey + ?Sized>(store: &RedisStore, owned: K, borrowed: &B) {
        store.put(&owned, entry("value", 7), now()).unwrap();
        assert_eq!(known(store.get(borrowed, now()).unwrap()), known(Some(entry("value", 7))));
    }
    check(&bench.store, "text".to_owned(), "text");
    check(&bench.store, vec![0_u8, 255], [0, 255].as_slice());
    check(&bench.store, ("tenant".to_owned(), 7_u64), &("tenant", 7_u64));
    check(&bench.store, (1_u8, -1_i64, 'c', true), &(&1_u8, &-1_i64, 'c', true));
}

/// Case I10.
#[test]
fn values_that_look_like_nothing_are_hits() {
    let bench = Bench::new();
    fn life<V>(value: V) -> Entry<V> {
        Entry::new(value, 7, now(), Time::NEVER, Time::NEVER, SECOND)
    }
    bench.store.put(KEY, life(Vec::<u8>::new()), now()).unwrap();
    assert_eq!(bench.store.get(KEY, now()).unwrap(), Some(life(Vec::<u8>::new())));
    bench.store.put(KEY, life(String::new()), now()).unwrap();
    assert_eq!(bench.get().unwrap(), "");
    let optional = settings().prefix("optional").connect_blocking(&bench.server.url()).unwrap();
    let none = life(None::<String>);
    optional.put(KEY, none.clone(), now()).unwrap();
    assert_eq!(optional.get(KEY, now()).unwrap().unwrap(), none);
    #[cfg(feature = "serde")]
    {
        let numbers = settings().prefix("numbers").codec(oneflight_cache::redis::Serde);
        let numbers = numbers.connect_blocking(&bench.server.url()).unwrap();
        let nothing = life((0_u64, false, None::<u8>));
        numbers.put(KEY, nothing.clone(), now()).unwrap();
        assert_eq!(numbers.get(KEY, now()).unwrap().unwrap(), nothing);
    }
}

/// Case I11.
#[test]
fn a_value_without_an_expiry_is_a_hit_that_stays_fresh() {
    let mut bench = Bench::new();
    bench.put("value", 7);
    let name = bench.name('v');
    assert_eq!(bench.server.cli(&["PERSIST", &name]), "1");
    let found = bench.entry().unwrap();
    assert_eq!((found.value().as_str(), found.fresh_until()), ("value", Time::NEVER));
    assert_eq!(found.freshness(now()).left, Duration::MAX);
}

#[test]
fn many_are_read_together_and_in_their_order() {
    let mut bench = Bench::new();
    for key in ["a", "b", "d"] {
        bench.store.put(key, entry(key, 7), now()).unwrap();
    }
    let found = all_found(bench.store.get_many(&["d", "c", "b", "a", "b"], now()));
    let values: Vec<Option<&str>> =
        found.iter().map(|found| found.as_ref().map(|entry| entry.value().as_str())).collect();
    assert_eq!(values, [Some("d"), None, Some("b"), Some("a"), Some("b")]);
    assert_eq!(all_found(BlockingStore::<str, String>::get_many(&bench.store, &[], now())), []);

    // More than are sent at once.
    let keys: Vec<String> = (0..2_500).map(|number| number.to_string()).collect();
    for key in keys.iter().step_by(7) {
        bench.store.put(key, entry(key, 7), now()).unwrap();
    }
    bench.set('v', b"garbage");
    let mut asked: Vec<&str> = keys.iter().map(String::as_str).collect();
    asked.push(KEY);
    let found = all_found(bench.store.get_many(&asked, now()));
    for (place, found) in found.iter().enumerate() {
        let expected = asked.get(place).filter(|_| place % 7 == 0 && place < 2_500);
        assert_eq!(found.as_ref().map(|entry| entry.value().as_str()), expected.copied());
    }
    assert_eq!(bench.store.unreadable(), 1);
}

#[test]
fn one_of_many_that_is_no_string_costs_the_others_nothing() {
    let mut bench = Bench::new();
    for key in ["a", "b"] {
        bench.store.put(key, entry(key, 7), now()).unwrap();
    }
    let name = bench.name('v');
    let _: () = bench.raw.lpush(&name, "item").unwrap();
    let found: FoundMany<String, Error> = bench.store.get_many(&["a", KEY, "none", "b"], now());
    match &found.unwrap()[..] {
        [Ok(Some(a)), Err(Error::WrongType), Ok(None), Ok(Some(b))] => {
            assert_eq!([a.value(), b.value()], ["a", "b"]);
        }
        other => panic!("{other:?}"),
    }
    let found: FoundMany<String, Error> = bench.store.get_many(&[KEY, KEY], now());
    assert!(matches!(found, Err(Error::WrongType)), "there is nothing else");
}

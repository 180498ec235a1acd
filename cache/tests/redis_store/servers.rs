//! Servers that refuse.

use crate::bench::{Bench, KEY, LEASE, SECOND, entry, known, now, settings};
use crate::pushes::watch;
use crate::redis_support::server::Server;
use crate::redis_support::until;
use oneflight_cache::lease::{Acquired, BlockingLease, Publication, Push};
use oneflight_cache::redis::Error;
use oneflight_cache::redis::blocking::RedisStore;
use oneflight_cache::{BlockingStore, Entry};
use redis::Commands;

/// The commands, keys and channels that the docs of the module name, and no more.
pub(crate) const RIGHTS: &str = "-@all resetkeys resetchannels ~{5:tests:* &{5:tests:* \
    +get +set +pttl +evalsha +eval +type +exists +getrange +pexpire +del +publish +subscribe +ping +hello";

/// The URL of a user with these rights.
pub(crate) fn user(server: &Server, rights: &str) -> String {
    let words: Vec<&str> = ["ACL", "SETUSER", "shop", "on", ">secret"].into_iter().chain(rights.split(' ')).collect();
    assert_eq!(server.cli(&words), "OK");
    server.url().replace("redis://", "redis://shop:secret@")
}

#[test]
fn a_full_server_refuses_values_and_does_all_else() {
    let mut bench = Bench::new();
    let epoch = bench.lead(1);
    bench.put("put", 1);
    bench.store.put("other", entry("other", 2), now()).unwrap();
    let again = bench.acquire(1, Some(1));
    assert!(matches!(again, Acquired::Leader { epoch: next } if next != epoch));
    let Acquired::Leader { epoch } = again else { panic!("{again:?}") };
    let (value, lease, life) = (bench.name('v'), bench.name('l'), bench.name('g'));
    bench.server.config_set("maxmemory-policy", "noeviction");
    bench.server.config_set("maxmemory", "1");

    let error = bench.try_publish(1, epoch, "new").unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
    assert!(!BlockingLease::<str, String>::is_ambiguous(&bench.store, &error));
    // Nothing of it was done.
    let there: (bool, bool) = (bench.raw.exists(&lease).unwrap(), bench.raw.exists(&life).unwrap());
    assert_eq!(there, (true, true));
    assert_eq!(bench.get().unwrap(), "put");
    let error = bench.store.put(KEY, entry("new", 3), now()).unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
    assert_eq!(bench.get().unwrap(), "put");
    let claim = Bench::claim(2, None);
    let error = BlockingLease::<_, String>::acquire(&bench.store, "third", claim, now()).unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");

    assert!(bench.renew(1, SECOND * 50));
    bench.release(1);
    assert!(!bench.raw.exists::<_, bool>(&lease).unwrap());
    bench.remove();
    assert!(!bench.raw.exists::<_, bool>(&value).unwrap());
    assert_eq!(bench.get(), None);
    bench.server.config_set("maxmemory", "0");
    let epoch = bench.lead(2);
    assert_eq!(bench.publish(2, epoch, "value"), Publication::Stored);
}

/// Each step, with something that is not a string under each of the three names.
#[test]
fn what_is_not_a_string_is_left_alone() {
    let mut bench = Bench::new();
    type Step = fn(&RedisStore) -> Result<(), Error>;
    let steps: [(&str, &str, Step); 7] = [
        ("get", "v", |store| BlockingStore::<_, String>::get(store, KEY, now()).map(drop)),
        ("get_many", "v", |store| BlockingStore::<_, String>::get_many(store, &[KEY], now()).map(drop)),
        ("acquire", "vlg", |store| {
            BlockingLease::<_, String>::acquire(store, KEY, Bench::claim(1, None), now()).map(drop)
        }),
        ("publish", "vlg", |store| store.publish(KEY, 1, 1, entry("x", 7), now()).map(drop)),
        ("renew", "lg", |store| BlockingLease::<_, String>::renew(store, KEY, 1, SECOND).map(drop)),
        ("release", "l", |store| BlockingLease::<_, String>::release(store, KEY, 1)),
        ("put", "vlg", |store| store.put(KEY, entry("x", 7), now())),
    ];
    for letter in ['v', 'l', 'g'] {
        let name = bench.name(letter);
        let _: () = bench.raw.lpush(&name, "item").unwrap();
        let mut keys = bench.server.keys();
        for (step, letters, run) in steps {
            let done = run(&bench.store);
            if letters.contains(letter) {
                assert!(matches!(done, Err(Error::WrongType)), "{step}, {letter}: {done:?}");
                assert_eq!(bench.server.keys(), keys, "{step}, {letter}");
            } else {
                assert!(done.is_ok(), "{step}, {letter}: {done:?}");
                keys = bench.server.keys();
            }
            assert_eq!(bench.raw.lrange::<_, Vec<String>>(&name, 0, -1).unwrap(), ["item"]);
        }
        let removed = BlockingStore::<_, String>::remove(&bench.store, KEY);
        assert!(matches!(removed, Err(Error::WrongType)));
        assert_eq!(bench.raw.lrange::<_, Vec<String>>(&name, 0, -1).unwrap(), ["item"]);
        let _: () = bench.raw.del(&name).unwrap();
        bench.remove();
    }
}

#[test]
fn a_generation_that_is_not_a_string_is_left_alone() {
    let mut bench = Bench::new();
    let _: () = bench.raw.lpush("{5:tests:0}:gen", "item").unwrap();
    let found: Result<Option<Entry<String>>, Error> = bench.store.get(KEY, now());
    assert!(matches!(found, Err(Error::WrongType)));
    assert!(matches!(bench.store.put(KEY, entry("x", 7), now()), Err(Error::WrongType)));
    assert!(matches!(BlockingStore::<str, String>::clear(&bench.store), Err(Error::WrongType)));
    assert_eq!(bench.server.keys(), ["{5:tests:0}:gen"]);
}

#[test]
fn scripts_that_the_server_has_forgotten_are_sent_again() {
    let mut bench = Bench::new();
    bench.server.script_flush();
    let epoch = bench.lead(1);
    bench.server.script_flush();
    assert!(bench.renew(1, SECOND * 10));
    bench.server.script_flush();
    assert_eq!(bench.publish(1, epoch, "value"), Publication::Stored);
    bench.server.script_flush();
    bench.release(1);
    bench.server.script_flush();
    bench.put("put", 2);
    bench.server.script_flush();
    bench.remove();
    bench.server.script_flush();
    BlockingStore::<str, String>::clear(&bench.store).unwrap();
    assert_eq!(bench.get(), None);
    let in_full = bench.server.calls("eval");
    bench.lead(3);
    bench.lead(3);
    // One was unknown: that which acquires.
    assert_eq!(bench.server.calls("eval"), in_full + 1);
}

/// Pushes are hints: who may not push stores all the same.
#[test]
fn who_may_not_push_does_all_else() {
    let mut bench = Bench::new();
    let url = user(&bench.server, "allkeys resetchannels +@all -publish");
    bench.store = settings().connect_blocking(&url).unwrap();
    every_step(&bench.store);
}

#[test]
fn the_rights_in_the_docs_are_enough_for_threads() {
    let bench = Bench::new();
    let store = settings().connect_blocking(&user(&bench.server, RIGHTS)).unwrap();
    every_step(&store);
    assert!(!format!("{store:?}").contains("secret"));
    let (_watch, told) = watch(&store);
    until("it is told", || {
        bench.store.put(KEY, entry("put", 9), now()).unwrap();
        told.try_iter().find(|push| *push == Push::Written)
    });
    let store = settings().connect_blocking(&user_of_a_database(&bench.server)).unwrap();
    every_step(&store);
    watch(&store);
    assert!(bench.server.cli(&["INFO", "keyspace"]).contains("db3:"), "it is where the URL says");
}

/// The URL of a user with the rights in the docs where the URL names a database.
pub(crate) fn user_of_a_database(server: &Server) -> String {
    format!("{}/3", user(server, &format!("{RIGHTS} +select")))
}

pub(crate) fn every_step(store: &RedisStore) {
    let acquired = store.acquire(KEY, Bench::claim(1, None), now()).unwrap();
    let Acquired::<String>::Leader { epoch } = acquired else { panic!("{acquired:?}") };
    assert!(BlockingLease::<_, String>::renew(store, KEY, 1, LEASE).unwrap());
    assert_eq!(store.publish(KEY, 1, epoch, entry("value", 7), now()).unwrap(), Publication::Stored);
    let acquired: Acquired<String> = store.acquire(KEY, Bench::claim(1, None), now()).unwrap();
    assert!(matches!(acquired, Acquired::Filled(_)));
    let acquired: Acquired<String> = store.acquire(KEY, Bench::claim(1, Some(7)), now()).unwrap();
    assert!(matches!(acquired, Acquired::Leader { .. }));
    BlockingLease::<_, String>::release(store, KEY, 1).unwrap();
    store.put(KEY, entry("put", 8), now()).unwrap();
    assert_eq!(known(store.get(KEY, now()).unwrap()), known(Some(entry("put", 8))));
    BlockingStore::<_, String>::remove(store, KEY).unwrap();
    BlockingStore::<str, String>::clear(store).unwrap();
    assert_eq!(BlockingStore::<_, String>::get(store, KEY, now()).unwrap(), None);
}

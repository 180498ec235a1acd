//! What others are told.

use crate::bench::{Bench, KEY, entry, known, now, settings};
use crate::redis_support::until;
use oneflight_cache::BlockingStore;
use oneflight_cache::lease::{Acquired, BlockingLease, Publication, Push, Watch};
use oneflight_cache::redis::blocking::RedisStore;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Watches, and waits until it is listened to.
pub(crate) fn watch(store: &RedisStore) -> (Box<dyn Watch>, Receiver<Push>) {
    let (tell, told) = channel();
    let tell = move |push| {
        let _ = tell.send(push);
    };
    let watch = BlockingLease::<_, String>::watch(store, KEY, Box::new(tell)).expect("it pushes");
    assert_eq!(told.recv_timeout(LIMIT), Ok(Push::Listening));
    assert!(watch.is_listening());
    (watch, told)
}

/// Does it again if the connection broke, as it does when the server says nothing for two seconds: then something may not be told.
fn undisturbed(round: impl Fn() -> Option<()>) {
    until("the connection lasts", round);
}

/// `None` if the connection has broken, and there is another.
fn next(told: &Receiver<Push>) -> Option<Push> {
    Some(told.recv_timeout(LIMIT).unwrap()).filter(|push| *push != Push::Listening)
}

#[test]
fn others_are_told_what_happens_to_a_key() {
    undisturbed(|| {
        let mut bench = Bench::new();
        let other = bench.other();
        let (_watch, told) = watch(&other);
        let epoch = bench.lead(1);
        assert_eq!(bench.publish(1, epoch, "value"), Publication::Stored);
        assert_eq!(next(&told)?, Push::Released);
        bench.put("put", 2);
        assert_eq!(next(&told)?, Push::Written);
        bench.remove();
        assert_eq!(next(&told)?, Push::Written);
        let epoch = bench.lead(1);
        bench.release(2);
        bench.release(1);
        assert_eq!(next(&told)?, Push::Released);
        assert_eq!(bench.publish(1, epoch, "late"), Publication::Late);
        assert_eq!(next(&told)?, Push::Released);
        assert_eq!(bench.publish(1, epoch, "superseded"), Publication::Superseded);
        BlockingStore::<str, String>::clear(&bench.store).unwrap();
        assert_eq!(next(&told)?, Push::Written, "all keys were");
        // Neither what is not done nor what happens to another key was told in between.
        bench.lead(1);
        bench.release(1);
        assert_eq!(next(&told)?, Push::Released);
        bench.put("put", 3);
        assert_eq!(next(&told)?, Push::Written);
        Some(())
    });
}

#[test]
fn one_is_not_told_of_ones_own_writes() {
    undisturbed(|| {
        let mut bench = Bench::new();
        let (watched, told) = watch(&bench.store);
        bench.put("put", 2);
        bench.remove();
        BlockingStore::<str, String>::clear(&bench.store).unwrap();
        bench.lead(1);
        bench.release(1);
        assert_eq!(next(&told)?, Push::Released, "another flight of this process may wait for that");
        bench.other().put(KEY, entry("other", 3), now()).unwrap();
        assert_eq!(next(&told)?, Push::Written);
        assert!(matches!(bench.acquire(1, Some(3)), Acquired::Leader { .. }));
        bench.release(1);
        assert_eq!(next(&told)?, Push::Released, "once for each");
        drop(watched);
        bench.other().put(KEY, entry("other", 4), now()).unwrap();
        assert!(told.iter().all(|push| push == Push::Listening), "nobody tells any more");
        Some(())
    });
}

/// A push that all was written ends what was taken for granted.
#[test]
fn who_is_told_that_all_is_cleared_looks_again() {
    undisturbed(|| {
        let mut bench = Bench::new();
        let trusting = settings().generation_life(LIMIT * 60).connect_blocking(&bench.server.url()).unwrap();
        let (_watch, told) = watch(&trusting);
        bench.put("value", 7);
        assert_eq!(next(&told)?, Push::Written);
        assert_eq!(known(trusting.get(KEY, now()).unwrap()), known(Some(entry("value", 7))));
        BlockingStore::<str, String>::clear(&bench.store).unwrap();
        assert_eq!(next(&told)?, Push::Written);
        assert_eq!(BlockingStore::<_, String>::get(&trusting, KEY, now()).unwrap(), None);
        Some(())
    });
}

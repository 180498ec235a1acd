//! Leases without a cache.

use crate::bench::SECOND;
use crate::redis_support::proxy::{Fault, Mode};
use crate::redis_support::server::Server;
use crate::redis_support::until;
use futures_lite::future::{pending, poll_once};
use oneflight_cache::lease::Publication;
use oneflight_cache::redis::{Builder, Error, RedisLease, blocking};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const TTL: Duration = Duration::from_secs(100);
const NAME: &str = "{4:jobs:0:0000000000000000:k}:";

/// For tests that fail only for other reasons than time.
fn patient() -> Builder {
    RedisLease::builder().prefix("jobs").response_timeout(SECOND * 30).connect_timeout(SECOND * 30)
}

fn leases(server: &Server) -> blocking::RedisLease {
    patient().lease_blocking(&server.url()).unwrap()
}

fn forget_lease(server: &Server) {
    assert_eq!(server.cli(&["DEL", &format!("{NAME}l")]), "1");
}

#[test]
fn one_of_two_has_it_until_it_is_released() {
    let server = Server::start();
    let (leases, others) = (leases(&server), leases(&server));
    let lease = leases.acquire("k", TTL).unwrap().expect("it is free");
    assert!(!lease.is_lost());
    assert!(others.acquire("k", TTL).unwrap().is_none());
    assert!(others.acquire("another", TTL).unwrap().is_some());
    assert!(lease.release().unwrap());
    assert!(others.acquire("k", TTL).unwrap().is_some());
    assert!(leases.acquire("k", TTL).unwrap().is_none(), "dropped, but not given up");
}

#[test]
fn it_is_renewed_with_its_epoch_until_it_is_lost() {
    let server = Server::start();
    let leases = leases(&server);
    let mut lease = leases.acquire("k", TTL).unwrap().expect("it is free");
    assert!(lease.renew(TTL * 10).unwrap());
    assert!(server.pttl(&format!("{NAME}l")) > 900_000 && server.pttl(&format!("{NAME}g")) > 1_000_000);
    forget_lease(&server);
    assert!(!lease.is_lost(), "it has not asked");
    assert!(!lease.renew(TTL).unwrap());
    assert!(lease.is_lost());
    assert!(!lease.release().unwrap());
}

/// The server may have shortened it.
#[test]
fn it_may_be_lost_when_the_time_is_up_that_was_asked_for_in_vain() {
    let server = Server::start();
    let proxy = server.proxy();
    let leases = patient().lease_blocking(&proxy.url()).unwrap();
    let mut lease = leases.acquire("k", TTL).unwrap().expect("it is free");
    assert!(lease.renew(TTL).unwrap(), "the server knows the script");
    proxy.once(|words| words[0] == "EVALSHA", Fault::CutAfter);
    assert!(lease.renew(SECOND / 20).is_err());
    until("the lease is another's", || leases.acquire("k", TTL).ok()?.map(drop));
    assert!(lease.is_lost());

    smol::block_on(async {
        let leases = patient().lease(&proxy.url()).unwrap();
        let mut lease = leases.acquire("of a task", TTL).await.unwrap().expect("it is free");
        proxy.set(Mode::Hang);
        assert!(poll_once(lease.renew(SECOND / 20)).await.is_none(), "it is dropped");
        until("the lease may be lost", || lease.is_lost().then_some(()));
        proxy.set(Mode::Pass);
        assert!(lease.renew(TTL).await.is_ok_and(|renewed| renewed != lease.is_lost()));
    });
}

#[test]
fn it_may_be_lost_when_its_time_is_up() {
    let server = Server::start();
    let lease = leases(&server).acquire("k", Duration::from_millis(1)).unwrap().expect("it is free");
    until("the lease is lost", || lease.is_lost().then_some(()));
    let endless = leases(&server).acquire("another", Duration::MAX).unwrap().expect("it is free");
    assert!(!endless.is_lost());
}

#[test]
fn what_is_stored_is_read_and_the_lease_is_free() {
    let server = Server::start();
    let leases = leases(&server);
    assert_eq!(leases.get("k").unwrap(), None);
    for value in [b"first".as_slice(), b"", b"third"] {
        let lease = leases.acquire("k", TTL).unwrap().expect("it is free, whatever is stored");
        assert_eq!(lease.store(value, SECOND * 60).unwrap(), Publication::Stored);
        assert_eq!(leases.get("k").unwrap().unwrap(), value);
    }
    let lease = leases.acquire("k", TTL).unwrap().expect("it is free");
    assert_eq!(lease.store(b"", Duration::ZERO).unwrap(), Publication::Stored);
    assert_eq!(leases.get("k").unwrap(), None);
    assert_eq!(server.keys(), Vec::<String>::new());
}

/// Case K2.
#[test]
fn what_is_older_does_not_replace_what_is_newer() {
    let server = Server::start();
    let leases = leases(&server);
    let paused = leases.acquire("k", TTL).unwrap().expect("it is free");
    forget_lease(&server);
    let other = leases.acquire("k", TTL).unwrap().expect("it is free");
    assert_eq!(other.store(b"newer", TTL).unwrap(), Publication::Stored);
    assert_eq!(paused.store(b"older", TTL).unwrap(), Publication::Superseded);
    assert_eq!(leases.get("k").unwrap().unwrap(), b"newer");

    let paused = leases.acquire("late", TTL).unwrap().expect("it is free");
    assert_eq!(server.cli(&["DEL", "{4:jobs:0:0000000000000000:late}:l"]), "1");
    assert_eq!(paused.store(b"late", TTL).unwrap(), Publication::Late);
    let paused = leases.acquire("k", TTL).unwrap().expect("it is free");
    server.flush_all();
    assert_eq!(paused.store(b"old", TTL).unwrap(), Publication::Invalidated);
}

#[test]
fn what_the_server_refuses_to_store_gives_the_lease_up() {
    let server = Server::start();
    let leases = leases(&server);
    server.config_set("maxmemory-policy", "noeviction");
    let full = |is_full: bool| server.config_set("maxmemory", if is_full { "1" } else { "0" });
    let lease = leases.acquire("k", TTL).unwrap().expect("it is free");
    full(true);
    assert!(matches!(lease.store(b"value", TTL), Err(Error::Refused(_))));
    full(false);
    let lease = leases.acquire("k", TTL).unwrap().expect("it is free");
    assert_eq!(server.cli(&["LPUSH", &format!("{NAME}v"), "foreign"]), "1");
    assert!(matches!(lease.store(b"value", TTL), Err(Error::WrongType)));
    smol::block_on(async {
        let tasks = RedisLease::builder().prefix("jobs").lease(&server.url()).unwrap();
        assert_eq!(server.cli(&["DEL", &format!("{NAME}v")]), "1");
        let lease = tasks.acquire("k", TTL).await.unwrap().expect("it is free");
        full(true);
        assert!(matches!(lease.store(b"value", TTL).await, Err(Error::Refused(_))));
        full(false);
        assert!(tasks.acquire("k", TTL).await.unwrap().is_some());
    });
}

#[test]
fn tasks_have_the_same_and_dropping_gives_it_up() {
    let server = Server::start();
    smol::block_on(async {
        let leases = patient().lease(&server.url()).unwrap();
        let mut lease = leases.acquire("k", TTL).await.unwrap().expect("it is free");
        assert!(leases.acquire("k", TTL).await.unwrap().is_none());
        assert!(lease.renew(TTL).await.unwrap() && !lease.is_lost());
        drop(lease);
        until("the lease is given up", || (server.pttl(&format!("{NAME}l")) == -2).then_some(()));
        let lease = leases.acquire("k", TTL).await.unwrap().expect("it is free");
        assert_eq!(lease.store(b"value", TTL).await.unwrap(), Publication::Stored);
        assert_eq!(leases.get("k").await.unwrap().unwrap(), b"value");
        let lease = leases.acquire("k", TTL).await.unwrap().expect("it is free");
        assert!(lease.release().await.unwrap());
        assert!(leases.acquire("k", TTL).await.unwrap().is_some());
    });
}

/// However they came to the server, they are the same leases.
#[cfg(feature = "redis-cluster")]
#[test]
fn by_a_client_of_ones_own_and_on_a_cluster() {
    let server = Server::cluster();
    let client = redis::Client::open(server.url()).unwrap();
    let threads = patient().lease_with_client_blocking(client.clone());
    smol::block_on(async {
        let tasks = patient().lease_with_client(&client).unwrap();
        let cluster = patient().lease_cluster([server.url()]).unwrap();
        let lease = cluster.acquire("k", TTL).await.unwrap().expect("it is free");
        assert!(threads.acquire("k", TTL).unwrap().is_none());
        assert!(tasks.acquire("k", TTL).await.unwrap().is_none());
        assert_eq!(lease.store(b"value", TTL).await.unwrap(), Publication::Stored);
        assert_eq!(threads.get("k").unwrap().unwrap(), b"value");
        assert_eq!(tasks.get("k").await.unwrap().unwrap(), b"value");
        let lease = tasks.acquire("k", TTL).await.unwrap().expect("it is free");
        assert!(cluster.acquire("k", TTL).await.unwrap().is_none());
        assert!(lease.release().await.unwrap());
    });
    assert!(RedisLease::builder().lease_cluster(Vec::<String>::new()).is_err());
}

/// The lease would be up before the work is done.
#[test]
fn it_is_renewed_while_the_work_goes_on() {
    let server = Server::start();
    let (leases, others) = (leases(&server), leases(&server).clone());
    let renewals = || server.calls("pexpire");
    let round = |seconds: u64| {
        let (key, ttl) = (seconds.to_string(), SECOND * seconds as u32);
        let is_up = || server.pttl(&format!("{{4:jobs:0:0000000000000000:{key}}}:l")) == -2;
        // Twice; or a renewal came too late, and the round is in vain.
        let is_enough = |before: u64| renewals() >= before + 4 || is_up();
        let is_kept = || others.acquire(&key, TTL).unwrap().is_none();
        let mut lease = leases.acquire(&key, ttl).unwrap().expect("it is free");
        let before = renewals();
        let work = || {
            until("it is renewed", || is_enough(before).then_some(()));
            is_kept()
        };
        if !lease.renew_while(ttl, work) {
            return false;
        }
        let result = catch_unwind(AssertUnwindSafe(|| lease.renew_while(ttl, || panic!("it fails"))));
        assert!(result.is_err());
        if lease.is_lost() || !lease.release().unwrap() {
            return false;
        }

        smol::block_on(async {
            let tasks = patient().lease(&server.url()).unwrap();
            let mut lease = tasks.acquire(&key, ttl).await.unwrap().expect("it is free");
            let before = renewals();
            let work = async {
                while !is_enough(before) {
                    smol::Timer::after(SECOND / 100).await;
                }
                is_kept()
            };
            lease.renew_while(ttl, work).await == Some(true) && lease.release().await.unwrap()
        })
    };
    assert!([1, 5, 25].into_iter().any(round), "it is kept");
}

#[test]
fn work_whose_lease_is_lost_is_dropped_or_its_lease_tells_so() {
    let server = Server::start();
    let leases = leases(&server);
    let mut lease = leases.acquire("k", TTL).unwrap().expect("it is free");
    forget_lease(&server);
    lease.renew_while(SECOND, || until("it is lost", || (server.calls("evalsha") >= 2).then_some(())));
    assert!(lease.is_lost());

    smol::block_on(async {
        let leases = patient().lease(&server.url()).unwrap();
        let mut lease = leases.acquire("k", TTL).await.unwrap().expect("it is free");
        forget_lease(&server);
        assert_eq!(lease.renew_while(SECOND, pending::<()>()).await, None);
        assert!(lease.is_lost());
        let mut lease = leases.acquire("k", TTL).await.unwrap().expect("it is free");
        assert_eq!(lease.renew_while(TTL, async { 7 }).await, Some(7), "the work comes first");
    });
}

/// Another may have it by then.
#[test]
fn work_goes_on_no_longer_than_its_lease_though_the_server_hangs() {
    let server = Server::start();
    let proxy = server.proxy();
    smol::block_on(async {
        let leases = patient().lease(&proxy.url()).unwrap();
        let mut lease = leases.acquire("k", SECOND).await.unwrap().expect("it is free");
        let begun = Instant::now();
        proxy.set(Mode::Hang);
        assert_eq!(lease.renew_while(SECOND, pending::<()>()).await, None);
        assert!(lease.is_lost() && begun.elapsed() < SECOND * 20, "{:?}", begun.elapsed());
    });
}

/// Case K1, also with a value that comes in between.
#[test]
fn who_has_lost_it_takes_nothing_from_the_next() {
    let server = Server::start();
    let leases = leases(&server);
    for stores in [false, true] {
        let lost = leases.acquire("k", TTL).unwrap().expect("it is free");
        forget_lease(&server);
        let mut next = leases.acquire("k", TTL).unwrap().expect("it is free");
        if stores {
            assert_eq!(next.store(b"next", TTL).unwrap(), Publication::Stored);
            next = leases.acquire("k", TTL).unwrap().expect("it is free");
        }
        assert!(!lost.release().unwrap());
        assert!(leases.acquire("k", TTL).unwrap().is_none(), "it is the next one's");
        assert!(next.renew(TTL).unwrap());
        assert_eq!(leases.get("k").unwrap().as_deref(), stores.then_some(b"next".as_slice()));
        assert!(next.release().unwrap());
    }
    smol::block_on(async {
        let leases = patient().lease(&server.url()).unwrap();
        let lost = leases.acquire("k", TTL).await.unwrap().expect("it is free");
        forget_lease(&server);
        let next = leases.acquire("k", TTL).await.unwrap().expect("it is free");
        assert_eq!(next.store(b"last", TTL).await.unwrap(), Publication::Stored);
        let mut next = leases.acquire("k", TTL).await.unwrap().expect("it is free");
        assert!(!lost.release().await.unwrap());
        assert!(leases.acquire("k", TTL).await.unwrap().is_none(), "it is the next one's");
        assert!(next.renew(TTL).await.unwrap());
        assert_eq!(leases.get("k").await.unwrap().unwrap(), b"last");
    });
}

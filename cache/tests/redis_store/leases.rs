//! Every return of every step of a lease.

use crate::bench::{Bench, KEY, LEASE, SECOND, entry, known, now};
use oneflight_cache::Entry;
use oneflight_cache::lease::{Acquired, BlockingLease, Claim, Publication};
use redis::Commands;
use std::time::Duration;

#[test]
fn a_free_lease_is_the_first_ones() {
    let mut bench = Bench::new();
    let epoch = bench.lead(1);
    assert_eq!(bench.there::<String>('l'), format!("{:032x}", 1));
    assert_eq!(bench.there::<String>('g'), format!("{epoch:032x}"));
    assert!((90_000..=100_000).contains(&bench.left('l')));
    assert!((900_000..=1_000_000).contains(&bench.left('g')));
}

#[test]
fn the_same_token_acquires_again_in_the_same_epoch() {
    let mut bench = Bench::new();
    let epoch = bench.lead(1);
    let (lease, life) = (LEASE * 2, SECOND * 5_000);
    let again = bench.store.acquire(KEY, Claim { token: 1, lease, epoch_life: life, seen: None }, now()).unwrap();
    assert_eq!(again, Acquired::<String>::Leader { epoch });
    assert!(bench.left('l') > 100_000 && bench.left('g') > 1_000_000);
    let shorter = Claim { token: 1, lease: SECOND * 5, epoch_life: SECOND * 5, seen: None };
    assert_eq!(bench.store.acquire(KEY, shorter, now()).unwrap(), Acquired::<String>::Leader { epoch });
    assert!(bench.left('l') <= 5_000, "as long as it was asked for last");
    assert!(bench.left('g') > 1_000_000, "as long as it was asked for once");
}

#[test]
fn another_token_is_told_who_has_it_and_for_how_long() {
    let mut bench = Bench::new();
    bench.lead(u128::MAX);
    match bench.acquire(2, None) {
        Acquired::Held { left, holder } => {
            assert_eq!(holder, u128::MAX);
            assert!((LEASE - SECOND * 10..=LEASE).contains(&left), "{left:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lease_that_has_run_out_is_the_next_ones_in_the_same_epoch() {
    let mut bench = Bench::new();
    let epoch = bench.lead(1);
    bench.delete('l');
    assert_eq!(bench.lead(2), epoch);
}

#[test]
fn a_value_is_returned_unless_it_was_seen() {
    let mut bench = Bench::new();
    bench.put("value", 7);
    for seen in [None, Some(6)] {
        let Acquired::Filled(found) = bench.acquire(1, seen) else { panic!("there is a value") };
        assert_eq!(known(Some(found)), Some(("value".to_owned(), 7)));
        assert!(!bench.is_there('l') && !bench.is_there('g'));
    }
    assert!(matches!(bench.acquire(1, Some(7)), Acquired::Leader { .. }));
    assert!(matches!(bench.acquire(2, Some(7)), Acquired::Held { holder: 1, .. }));
    assert!(matches!(bench.acquire(2, None), Acquired::Filled(_)), "a value comes before a lease");
}

#[test]
fn a_value_that_is_gone_is_not_replaced() {
    let mut bench = Bench::new();
    assert_eq!(bench.acquire(1, Some(7)), Acquired::Gone);
    assert!(!bench.is_there('l') && !bench.is_there('g'));
}

/// Case I6.
#[test]
fn what_cannot_be_read_is_claimed_by_its_version() {
    let mut bench = Bench::new();
    let samples: [(&[u8], u32); 6] = [
        (b"", 0),
        (b"12345678", 0),
        (b"12345678\x01", 1),
        (b"12345678\x01\x02\x03", 0x0003_0201),
        (b"garbage that is long enough to have a version, and longer than a header", u32::from_le_bytes(*b"that")),
        (b"\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff", u32::MAX),
    ];
    for (token, (bytes, version)) in (1..).zip(samples) {
        let before = bench.store.unreadable();
        bench.set('v', bytes);
        assert_eq!(bench.acquire(token, None), Acquired::Unreadable { version }, "{bytes:?}");
        assert_eq!(bench.store.unreadable(), before + 1);
        assert_eq!(bench.acquire(token, Some(version ^ 1)), Acquired::Unreadable { version });
        let Acquired::Leader { epoch } = bench.acquire(token, Some(version)) else { panic!("{bytes:?}") };
        assert_eq!(bench.publish(token, epoch, "good"), Publication::Stored);
        assert_eq!(bench.get().unwrap(), "good");
    }
}

#[test]
fn a_lease_is_renewed_by_its_holder_alone() {
    let mut bench = Bench::new();
    assert!(!bench.renew(1, LEASE));
    bench.lead(1);
    assert!(!bench.renew(2, LEASE * 5));
    assert!(bench.left('l') <= 100_000);
    assert!(bench.renew(1, LEASE * 5));
    assert!(bench.left('l') > 100_000 && bench.left('g') <= 1_000_000);
    assert!(bench.renew(1, Duration::from_millis(5_500)));
    assert!(bench.left('l') <= 5_500);
    bench.delete('l');
    assert!(!bench.renew(1, LEASE));
    assert!(!bench.is_there('l'));
}

#[test]
fn what_the_holder_publishes_is_stored_and_all_else_is_removed() {
    let mut bench = Bench::new();
    let epoch = bench.lead(1);
    assert_eq!(bench.publish(1, epoch, "value"), Publication::Stored);
    assert_eq!(known(bench.entry()), known(Some(entry("value", 7))));
    assert!(!bench.is_there('l') && !bench.is_there('g'));
    assert!((80_000..=90_000).contains(&bench.left('v')));
    assert_eq!(bench.publish(1, epoch, "again"), Publication::Superseded, "there is a value and no epoch");
    assert_eq!(bench.get().unwrap(), "value");
}

#[test]
fn who_has_lost_the_lease_stores_only_where_nothing_is() {
    let mut bench = Bench::new();
    let epoch = bench.lead(1);
    bench.delete('l');
    assert_eq!(bench.lead(2), epoch);
    assert_eq!(bench.publish(1, epoch, "late"), Publication::Late);
    assert!(bench.is_there('l') && bench.is_there('g'), "they are the other's");
    assert_eq!(bench.get().unwrap(), "late");
    assert_eq!(bench.publish(1, epoch, "later"), Publication::Superseded, "in the same epoch");
    assert_eq!(bench.get().unwrap(), "late");
    assert_eq!(bench.publish(2, epoch, "newer"), Publication::Stored, "the holder comes after it");
    assert_eq!(bench.get().unwrap(), "newer");
}

/// Cases I2 and I1.
#[test]
fn what_was_acquired_before_a_write_is_never_published() {
    let mut bench = Bench::new();
    let epoch = bench.lead(1);
    bench.remove();
    assert!(!bench.is_there('l') && !bench.is_there('g'));
    assert_eq!(bench.publish(1, epoch, "old"), Publication::Invalidated);
    assert_eq!(bench.get(), None);

    let epoch = bench.lead(1);
    bench.put("put", 3);
    assert!(!bench.is_there('l') && !bench.is_there('g'));
    assert_eq!(bench.publish(1, epoch, "old"), Publication::Superseded);
    assert_eq!(bench.get().unwrap(), "put");
}

/// The key is removed and acquired anew between the two steps of the first.
#[test]
fn another_epoch_is_not_taken_for_the_first() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    bench.remove();
    let second = bench.lead(2);
    assert_ne!(first, second);
    assert_eq!(bench.publish(1, first, "old"), Publication::Invalidated);
    assert_eq!(bench.publish(2, second, "new"), Publication::Stored);
    assert_eq!(bench.publish(1, first, "old"), Publication::Superseded);
    bench.remove();
    // The same token too.
    let third = bench.lead(1);
    assert_eq!(bench.publish(1, first, "old"), Publication::Invalidated);
    assert_eq!(bench.publish(1, third, "newer"), Publication::Stored);
    assert_eq!(bench.get().unwrap(), "newer");
}

#[test]
fn what_was_acquired_before_the_server_forgot_is_never_published() {
    let mut bench = Bench::new();
    let epoch = bench.lead(1);
    bench.delete('g');
    assert_eq!(bench.publish(1, epoch, "old"), Publication::Invalidated);
    let epoch = bench.lead(1);
    bench.server.flush_all();
    assert_eq!(bench.publish(1, epoch, "old"), Publication::Invalidated);
    let epoch = bench.lead(1);
    bench.server.flush_all();
    let next = bench.lead(1);
    assert_eq!(bench.publish(1, epoch, "old"), Publication::Invalidated);
    assert_eq!(bench.publish(1, next, "new"), Publication::Stored);
}

/// Case K1.
#[test]
fn what_another_holds_is_not_released() {
    let mut bench = Bench::new();
    bench.lead(1);
    bench.delete('l');
    bench.lead(2);
    bench.release(1);
    assert!(matches!(bench.acquire(3, None), Acquired::Held { holder: 2, .. }));
    bench.release(2);
    assert!(!bench.is_there('l'));
    assert!(bench.is_there('g'), "who has lost the lease may still store");
    bench.release(2);
    bench.lead(3);
}

/// Case K2.
#[test]
fn a_paused_holder_does_not_replace_what_is_newer() {
    let mut bench = Bench::new();
    let first = bench.lead(1);
    bench.delete('l');
    let second = bench.lead(2);
    assert_eq!(bench.publish(2, second, "newer"), Publication::Stored);
    assert_eq!(bench.publish(1, first, "older"), Publication::Superseded);
    assert_eq!(bench.get().unwrap(), "newer");
}

#[test]
fn a_refresh_replaces_the_old_value() {
    let mut bench = Bench::new();
    bench.put("old", 7);
    let Acquired::Leader { epoch } = bench.acquire(1, Some(7)) else { panic!("it is free") };
    assert_eq!(bench.get().unwrap(), "old");
    assert_eq!(bench.publish(1, epoch, "new"), Publication::Stored);
    assert_eq!(bench.get().unwrap(), "new");
}

#[test]
fn strings_that_others_have_put_there_are_got_over() {
    let mut bench = Bench::new();
    let lease = bench.name('l');
    let _: () = bench.raw.pset_ex(&lease, "worker 7", 60_000).unwrap();
    match bench.acquire(1, None) {
        Acquired::Held { left, holder } => {
            assert!((SECOND * 50..=SECOND * 60).contains(&left), "{left:?}");
            assert_ne!(holder, 1);
        }
        other => panic!("{other:?}"),
    }
    bench.delete('l');
    for others in [b"epoch".as_slice(), &[b'?'; 32], &[b'A'; 32], &[0; 32]] {
        bench.set('g', others);
        let epoch = bench.lead(1);
        assert_eq!(bench.publish(1, epoch, "value"), Publication::Stored);
        bench.remove();
    }
}

/// None of ours is, so nobody renews it or gives it up.
#[test]
fn a_lease_that_does_not_end_is_nobodys() {
    let mut bench = Bench::new();
    bench.set('l', b"worker 7");
    let epoch = bench.lead(1);
    assert!((90_000..=100_000).contains(&bench.left('l')));
    // That of a holder who lives, if somebody has made it last: what that one loads is not lost either.
    let lease = bench.name('l');
    assert!(bench.raw.persist::<_, bool>(&lease).unwrap());
    assert_eq!(bench.lead(2), epoch);
    assert_eq!(bench.publish(1, epoch, "late"), Publication::Late);
    assert_eq!(bench.publish(2, epoch, "newer"), Publication::Stored);
    assert_eq!(bench.get().unwrap(), "newer");
}

#[test]
fn leases_are_never_too_short_or_too_long_for_the_server() {
    let mut bench = Bench::new();
    for time in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(u64::MAX), Duration::MAX] {
        let claim = Claim { token: 1, lease: time, epoch_life: time, seen: None };
        let acquired = bench.store.acquire(KEY, claim, now()).unwrap();
        assert!(matches!(acquired, Acquired::<String>::Leader { .. }), "{time:?}");
        bench.check();
    }
    assert!(bench.left('l') > 1_000_000_000 && bench.left('g') > 1_000_000_000);
    assert!(bench.renew(1, Duration::MAX));
    let _ = bench.renew(1, Duration::ZERO);
}

/// A value that is of no use at once counts as stored, and is not there.
#[test]
fn what_is_published_without_a_life_is_not_kept() {
    let mut bench = Bench::new();
    let none = |value: &str| Entry::new(value.to_owned(), 7, now(), now(), now(), Duration::ZERO);
    let epoch = bench.lead(1);
    assert_eq!(bench.store.publish(KEY, 1, epoch, none("x"), now()).unwrap(), Publication::Stored);
    assert!(!bench.is_there('v') && !bench.is_there('l') && !bench.is_there('g'));

    bench.put("old", 7);
    let Acquired::Leader { epoch } = bench.acquire(1, Some(7)) else { panic!("it is free") };
    assert_eq!(bench.store.publish(KEY, 1, epoch, none("x"), now()).unwrap(), Publication::Stored);
    assert!(!bench.is_there('v'), "it replaces the old value");
}

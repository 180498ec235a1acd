//! Acquiring: every answer, and when which.

use crate::bench::{Bench, HOUR, MILLI, SHORT, epoch_of, version};
use oneflight_cache::BlockingStore;
use oneflight_cache::lease::{Acquired, Claim, Publication};
use std::sync::Barrier;
use std::time::Duration;

pub(crate) fn without_a_value_the_first_leads_and_the_others_are_told_who_does<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.lead();
    match second.acquire(second.claim()) {
        Acquired::Held { left, holder } => {
            assert_eq!(holder, first.token);
            assert!(left <= HOUR && left > HOUR - Duration::from_secs(600), "{left:?} are left");
        }
        other => panic!("it is {other:?}"),
    }
    assert!(second.is_kept_out(), "to ask changes nothing");
    assert!(first.renew(HOUR), "it still has the lease");
}

pub(crate) fn the_same_token_again_leads_in_the_same_epoch_for_longer<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead_for(SHORT);
    assert_eq!(first.lead_for(HOUR), epoch);
    bench.pass(SHORT * 2);
    assert!(second.is_kept_out());
    assert_eq!(first.publish(epoch, b"a"), Publication::Stored);
}

pub(crate) fn a_value_fills_whoever_has_not_seen_it<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.put(b"a");
    for seen in [None, Some(version(b"b"))] {
        match second.acquire(Claim { seen, ..second.claim() }) {
            Acquired::Filled(entry) => {
                assert_eq!((entry.value().as_slice(), entry.version()), (b"a".as_slice(), version(b"a")));
                assert_eq!(entry.cost(), MILLI * 5);
                assert!(entry.fresh_until() > bench.now());
            }
            other => panic!("it is {other:?}"),
        }
    }
    assert!(!second.renew(HOUR), "it has not taken the lease");
}

pub(crate) fn a_value_that_was_seen_is_to_be_replaced<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.put(b"a");
    let epoch = first.lead_over(b"a");
    let held = second.acquire(Claim { seen: Some(version(b"a")), ..second.claim() });
    assert!(matches!(held, Acquired::Held { holder, .. } if holder == first.token), "{held:?}");
    let filled = second.acquire(second.claim());
    assert!(matches!(filled, Acquired::Filled(_)), "who has not seen it gets it, though another leads: {filled:?}");
    assert_eq!(second.get(), Some(b"a".to_vec()), "it is there until then");
    assert_eq!(first.publish(epoch, b"b"), Publication::Stored);
    assert_eq!(second.get(), Some(b"b".to_vec()));
}

pub(crate) fn a_value_that_was_seen_and_is_gone_is_not_loaded<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let claim = Claim { seen: Some(version(b"a")), ..first.claim() };
    assert_eq!(first.acquire(claim), Acquired::Gone);
    first.put(b"a");
    first.remove();
    assert_eq!(first.acquire(claim), Acquired::Gone);
    second.lead();
    assert_eq!(first.acquire(claim), Acquired::Gone, "also when another loads");
    assert!(second.renew(HOUR));
}

pub(crate) fn a_value_that_has_ended_is_absent<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    first.store.put(&first.key, first.entry_for(b"a", SHORT), bench.now()).map(drop).unwrap();
    bench.pass(SHORT * 2);
    assert_eq!(second.get(), None);
    assert_eq!(second.acquire(Claim { seen: Some(version(b"a")), ..second.claim() }), Acquired::Gone);
    second.lead();
}

pub(crate) fn what_cannot_be_read_is_told_and_then_replaced<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    bench.set_unreadable();
    let version = match first.acquire(first.claim()) {
        Acquired::Unreadable { version } => version,
        other => panic!("it is {other:?}"),
    };
    let other = Claim { seen: Some(version ^ 1), ..second.claim() };
    assert_eq!(second.acquire(other), Acquired::Unreadable { version }, "it is not the one that was seen");
    let epoch = epoch_of(first.acquire(Claim { seen: Some(version), ..first.claim() }));
    let held = second.acquire(Claim { seen: Some(version), ..second.claim() });
    assert!(matches!(held, Acquired::Held { .. }), "{held:?}");
    assert_eq!(first.publish(epoch, b"a"), Publication::Stored);
    assert_eq!(second.get(), Some(b"a".to_vec()));
}

pub(crate) fn a_lease_that_has_run_out_is_free_and_its_epoch_goes_on<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    assert_eq!(second.lead(), epoch);
    assert!(first.is_kept_out());
}

pub(crate) fn an_epoch_that_has_ended_does_not_come_back<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let claim = first.claim();
    let epoch = epoch_of(first.acquire(Claim { lease: SHORT, epoch_life: SHORT, ..claim }));
    bench.pass(SHORT * 2);
    assert_eq!(first.publish(epoch, b"a"), Publication::Invalidated, "there is none");
    assert_ne!(second.lead(), epoch);
    assert_eq!(first.publish(epoch, b"a"), Publication::Invalidated, "there is another");
    assert_eq!(second.get(), None);
}

pub(crate) fn an_epoch_lasts_as_long_as_any_has_asked<B: Bench>(bench: &B) {
    let [first, second] = [bench.caller(), bench.caller()];
    let epoch = first.lead_for(SHORT);
    bench.pass(SHORT * 2);
    let short = Claim { lease: SHORT, epoch_life: SHORT, ..second.claim() };
    assert_eq!(epoch_of(second.acquire(short)), epoch);
    bench.pass(SHORT * 2);
    assert_eq!(first.publish(epoch, b"a"), Publication::Late, "the second has asked for less");
    first.remove();

    let epoch = loop {
        let begun = bench.now();
        let epoch = epoch_of(second.acquire(short));
        let same = epoch_of(second.acquire(second.claim()));
        // Otherwise the epoch may have ended in between.
        if bench.now().since(begun) < SHORT {
            assert_eq!(same, epoch);
            break epoch;
        }
        second.remove();
    };
    bench.pass(SHORT * 2);
    assert_eq!(second.publish(epoch, b"b"), Publication::Stored, "it has asked for more");
}

pub(crate) fn of_many_at_once_exactly_one_leads<B: Bench>(bench: &B) {
    for _ in 0..20 {
        exactly_one_leads(bench);
        bench.flush();
    }
}

pub(crate) fn of_many_at_once_exactly_one_takes_over<B: Bench>(bench: &B) {
    let dead = bench.caller();
    for _ in 0..5 {
        let epoch = dead.lead_for(SHORT);
        bench.pass(SHORT * 2);
        assert_eq!(exactly_one_leads(bench), epoch);
        dead.remove();
    }
}

fn exactly_one_leads<B: Bench>(bench: &B) -> u128 {
    let callers: [_; 6] = std::array::from_fn(|_| bench.caller());
    let start = Barrier::new(callers.len());
    let run = |caller: crate::bench::Caller<'_, B>| {
        start.wait();
        (caller.acquire(caller.claim()), caller.token)
    };
    let acquired: Vec<_> = std::thread::scope(|threads| {
        let threads = callers.map(|caller| threads.spawn(|| run(caller)));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let leaders: Vec<_> = acquired
        .iter()
        .filter_map(|(acquired, token)| match acquired {
            Acquired::Leader { epoch } => Some((*epoch, *token)),
            _ => None,
        })
        .collect();
    let [(epoch, token)] = leaders[..] else { panic!("{} lead", leaders.len()) };
    for (acquired, asked) in &acquired {
        assert!(
            *asked == token || matches!(acquired, Acquired::Held { holder, .. } if *holder == token),
            "{acquired:?}"
        );
    }
    epoch
}

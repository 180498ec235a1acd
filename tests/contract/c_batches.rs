//! C7 and C8 for calls with several keys: what is the user's is dropped when none of the keys is led any more, so its destructors may
//! call any of them. What only tasks can do is in `tests/tasks/many_destructors.rs`.

use crate::support::callers::{Blown, blow};
use crate::support::limits::{until, within_limit};
use crate::support::things::{Hook, Hooked, Sites};
use core::mem::ManuallyDrop;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU32, Ordering};
use oneflight::{AsyncGroup, SyncGroup};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::thread;

/// Batches, and single calls by threads, which would wait for ever for a key that this thread leads.
trait Way: Send + Sync + 'static {
    fn make(share_if: fn(&Hooked) -> bool, max_attempts: u32) -> Self;
    fn many(&self, keys: &[Hooked], load: impl FnMut(Vec<&Hooked>) -> Vec<Hooked>) -> Vec<Hooked>;
    fn one(&self, key: &Hooked, work: impl FnOnce() -> Hooked) -> Hooked;
    fn waiters(&self, key: &Hooked) -> usize;
    /// Abandons the flight of the key once somebody waits.
    fn leave(&self, key: &Hooked);
    fn in_flight(&self) -> usize;
}

macro_rules! way {
    ($name:ident($group:ident), $one:ident, |$this:ident, $keys:ident, $load:ident| $many:expr) => {
        struct $name($group<Hooked, Hooked>);

        impl Way for $name {
            fn make(share_if: fn(&Hooked) -> bool, max_attempts: u32) -> Self {
                Self($group::builder().shards(1).share_if(share_if).max_attempts(max_attempts).build())
            }
            #[allow(unused_mut)]
            fn many(&self, $keys: &[Hooked], mut $load: impl FnMut(Vec<&Hooked>) -> Vec<Hooked>) -> Vec<Hooked> {
                let $this = &self.0;
                $many
            }
            fn one(&self, key: &Hooked, work: impl FnOnce() -> Hooked) -> Hooked {
                self.0.$one(key, work)
            }
            fn waiters(&self, key: &Hooked) -> usize {
                self.0.waiters(key)
            }
            fn leave(&self, key: &Hooked) {
                let lead = self.0.try_lead(key).expect("no flight is on");
                until("somebody waits", || self.0.waiters(key) == 1);
                drop(lead);
            }
            fn in_flight(&self) -> usize {
                self.0.in_flight()
            }
        }
    };
}

way!(DoMany(SyncGroup), do_call, |group, keys, load| group.do_many(keys, load));
way!(DoManyBlocking(AsyncGroup), do_call_blocking, |group, keys, load| group.do_many_blocking(keys, load));
way!(DoManyOfTasks(AsyncGroup), do_call_blocking, |group, keys, load| {
    let load = |keys| core::future::ready(load(keys));
    smol::block_on(group.do_many(keys, load))
});

macro_rules! in_every_way {
    ($($way:ident $module:ident)+, $cases:tt) => {
        $(mod $module { in_every_way! { $way $cases } })+
    };
    ($way:ident { $($case:ident)+ }) => {
        $(#[test] fn $case() { super::within_limit(super::$case::<super::$way>); })+
    };
}

in_every_way! {
    DoMany do_many
    DoManyBlocking do_many_blocking
    DoManyOfTasks do_many_of_tasks,
    {
        c8_keys_of_a_batch_that_lands_may_call_its_keys_when_they_are_dropped
        c8_keys_of_a_batch_whose_work_panics_may_call_its_keys_when_they_are_dropped
        c8_keys_of_a_batch_that_panics_while_it_enters_may_call_its_keys_when_they_are_dropped
        c8_keys_of_a_batch_that_is_refused_may_call_its_keys_when_they_are_dropped
        c8_keys_of_a_batch_whose_predicate_panics_may_call_its_keys_when_they_are_dropped
        c8_values_of_the_wrong_number_may_call_the_batchs_keys_when_they_are_dropped
        c8_values_of_the_wrong_number_for_a_key_that_was_abandoned_may_call_it_when_they_are_dropped
    }
}

const KEY: Sites = ["clone of a key", "drop of a key"];
const VALUE: Sites = ["clone of a value", "drop of a value"];

/// A group, and things of which one calls a key at one site, once.
struct Case<W> {
    group: Arc<W>,
    plain: Hook,
    calling: Hook,
    calls: Arc<AtomicU32>,
}

impl<W: Way> Case<W> {
    fn new(calls: u32, at: &'static str) -> Self {
        Self::with(W::make(|_| true, u32::MAX), calls, at)
    }

    fn with(group: W, called: u32, at: &'static str) -> Self {
        let (group, plain, calling, calls) = (Arc::new(group), Hook::new(), Hook::new(), Arc::new(AtomicU32::new(0)));
        calling.set({
            let (group, calls, plain) = (Arc::clone(&group), Arc::clone(&calls), plain.clone());
            move |site| {
                if site == at && calls.fetch_add(1, Ordering::SeqCst) == 0 {
                    let value = || plain.thing(VALUE, called);
                    assert_eq!(group.one(&plain.thing(KEY, called), value).number, called);
                    calls.fetch_add(10, Ordering::SeqCst);
                }
            }
        });
        Self { group, plain, calling, calls }
    }

    /// Keys, of which the group's own copy of `of` calls. These themselves never do.
    fn keys(&self, of: u32, numbers: impl IntoIterator<Item = u32>) -> ManuallyDrop<Vec<Hooked>> {
        let key = |number| if number == of { &self.calling } else { &self.plain }.thing(KEY, number);
        ManuallyDrop::new(numbers.into_iter().map(key).collect())
    }

    fn many(&self, keys: &[Hooked], load: impl FnMut(Vec<&Hooked>) -> Vec<Hooked>) -> thread::Result<Vec<u32>> {
        let called = catch_unwind(AssertUnwindSafe(|| self.group.many(keys, load)));
        called.map(|values| values.into_iter().map(|value| value.number).collect())
    }

    fn loads(&self) -> impl Fn(Vec<&Hooked>) -> Vec<Hooked> {
        |keys| keys.into_iter().map(|key| self.plain.thing(VALUE, 10 * key.number)).collect()
    }

    #[track_caller]
    fn assert_called(&self) {
        assert!(self.calls.load(Ordering::SeqCst) >= 10, "it has not called, or the call has failed");
        assert_eq!(self.group.in_flight(), 0);
    }
}

const PAIRS: [[u32; 2]; 4] = [[1, 2], [2, 1], [1, 1], [2, 2]];

fn c8_keys_of_a_batch_that_lands_may_call_its_keys_when_they_are_dropped<W: Way>() {
    for [of, calls] in PAIRS {
        let case = Case::<W>::new(calls, KEY[1]);
        let values = case.many(&case.keys(of, 1..=2), case.loads());
        assert_eq!(values.expect("nothing panics"), [10, 20]);
        case.assert_called();
    }
}

/// C7 as well: the thread is panicking.
fn c8_keys_of_a_batch_whose_work_panics_may_call_its_keys_when_they_are_dropped<W: Way>() {
    for [of, calls] in PAIRS {
        let case = Case::<W>::new(calls, KEY[1]);
        let called = case.many(&case.keys(of, 1..=2), |_| blow(Blown));
        assert!(called.is_err_and(|payload| payload.is::<Blown>()));
        case.assert_called();
    }
}

fn c8_keys_of_a_batch_that_panics_while_it_enters_may_call_its_keys_when_they_are_dropped<W: Way>() {
    for [of, calls] in PAIRS {
        let case = Case::<W>::new(calls, KEY[1]);
        let panics = Hook::new();
        panics.set(|_| blow(Blown));
        let mut keys = case.keys(of, 1..=2);
        keys.push(panics.thing(KEY, 3));
        let called = case.many(&keys, |_| unreachable!("no work is reached"));
        assert!(called.is_err_and(|payload| payload.is::<Blown>()));
        case.assert_called();
    }
}

fn c8_keys_of_a_batch_that_is_refused_may_call_its_keys_when_they_are_dropped<W: Way>() {
    for [of, calls] in PAIRS {
        let case = Case::<W>::new(calls, KEY[1]);
        let keys = case.keys(of, 1..=3);
        case.group.one(&keys[2], || {
            let called = case.many(&keys, |_| unreachable!("no work is reached"));
            assert!(called.is_err(), "it is inside the work of key 3");
            case.plain.thing(VALUE, 30)
        });
        case.assert_called();
    }
}

fn c8_keys_of_a_batch_whose_predicate_panics_may_call_its_keys_when_they_are_dropped<W: Way>() {
    for [of, panics, calls] in [[1, 2, 2], [2, 1, 1], [2, 1, 2], [1, 2, 1]] {
        let share_if = |value: &Hooked| if value.number == 7 { blow(Blown) } else { true };
        let case = Case::<W>::with(W::make(share_if, u32::MAX), calls, KEY[1]);
        let mut follower = None;
        let called = case.many(&case.keys(of, 1..=2), |keys| {
            let value = |key: &Hooked| if key.number == panics { 7 } else { 10 * key.number };
            let (group, plain) = (Arc::clone(&case.group), case.plain.clone());
            let follows = move || group.one(&plain.thing(KEY, panics), || plain.thing(VALUE, panics)).number;
            follower = Some(thread::spawn(follows));
            until("the follower waits", || case.group.waiters(&case.plain.thing(KEY, panics)) == 1);
            keys.into_iter().map(|key| case.plain.thing(VALUE, value(key))).collect()
        });
        assert!(called.is_err_and(|payload| payload.is::<Blown>()));
        follower.expect("the work has run").join().expect("it takes over, or follows who has");
        case.assert_called();
    }
}

#[track_caller]
fn assert_wrong_number(called: thread::Result<Vec<u32>>) {
    let payload = called.expect_err("the number of values is wrong");
    let message = payload.downcast_ref::<String>().expect("it is the group's own");
    assert!(message.contains("values: it must return one for each"), "{message}");
}

fn c8_values_of_the_wrong_number_may_call_the_batchs_keys_when_they_are_dropped<W: Way>() {
    for calls in [1, 2] {
        for number in [1, 3] {
            let case = Case::<W>::new(calls, VALUE[1]);
            let values = |_: Vec<&Hooked>| (0..number).map(|number| case.calling.thing(VALUE, number)).collect();
            assert_wrong_number(case.many(&case.keys(0, 1..=2), values));
            case.assert_called();
        }
    }
}

/// It begins a flight of its own after that.
fn c8_values_of_the_wrong_number_for_a_key_that_was_abandoned_may_call_it_when_they_are_dropped<W: Way>() {
    let case = Case::<W>::with(W::make(|_| true, 1), 1, VALUE[1]);
    let key = case.keys(0, [1]);
    thread::scope(|scope| {
        let leader = scope.spawn(|| case.group.leave(&case.keys(0, [1])[0]));
        until("the key is led", || case.group.in_flight() == 1);
        let values = |_: Vec<&Hooked>| (0..2).map(|number| case.calling.thing(VALUE, number)).collect();
        assert_wrong_number(case.many(&key, values));
        leader.join().expect("it does not panic");
    });
    case.assert_called();
}

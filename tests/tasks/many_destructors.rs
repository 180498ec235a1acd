//! Calls with several keys of which one, or a value of one, calls another key when it is dropped or cloned: by a call that blocks, so
//! all flights must have been left by then. What threads can do as well is in `tests/contract/c_batches.rs`.

use crate::by_hand::{Gate, Group, Task, message, within_a_minute};
use oneflight::AsyncGroup;
use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Poll, Wake, Waker, ready};

/// What the group's key of this number does when it is dropped, once.
type Act = (u32, Box<dyn FnOnce()>);

thread_local! {
    static ACT: RefCell<Option<Act>> = const { RefCell::new(None) };
}

fn has_acted() -> bool {
    ACT.with_borrow(Option::is_none)
}

/// The clones of it are those of the group.
struct Key {
    number: u32,
    is_owned: bool,
}

static KEYS: [Key; 2] = [Key { number: 1, is_owned: false }, Key { number: 2, is_owned: false }];

impl Clone for Key {
    fn clone(&self) -> Self {
        Self { number: self.number, is_owned: true }
    }
}
impl Drop for Key {
    fn drop(&mut self) {
        let act = || ACT.with_borrow_mut(|act| act.take_if(|(of, _)| *of == self.number));
        if let Some((_, act)) = self.is_owned.then(act).flatten() {
            act();
        }
    }
}
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Key {}
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

type Keyed = AsyncGroup<Key, u32>;

/// Makes the group's key `of` call the key `calls` when it is dropped.
fn key_calls(group: &Arc<Keyed>, of: u32, calls: u32) {
    let group = Arc::clone(group);
    let act = move || assert_eq!(group.do_call_blocking(&KEYS[calls as usize - 1], || 5), 5);
    ACT.set(Some((of, Box::new(act))));
}

const PAIRS: [[u32; 2]; 4] = [[1, 2], [2, 1], [1, 1], [2, 2]];

#[test]
fn c8_keys_of_a_batch_that_is_dropped_midway_may_call_its_keys() {
    for [of, calls] in PAIRS {
        within_a_minute(move || {
            let group = Arc::new(Keyed::new());
            key_calls(&group, of, calls);
            drop(Task::waiting(group.do_many(&KEYS, |_| pending())));
            assert!(has_acted(), "key {of}");
            assert_eq!(group.in_flight(), 0);
        });
    }
}

/// Key 2 is taken over, and the closure panics when it is called for it.
#[test]
fn c8_keys_of_a_batch_whose_closure_panics_may_call_what_it_leads_for_another_run() {
    for [of, calls] in PAIRS {
        within_a_minute(move || {
            let group = Arc::new(Keyed::new());
            let lead = group.try_lead(&KEYS[1]).expect("no flight is on");
            let mut runs = 0;
            let load = |_| {
                runs += 1;
                assert!(runs == 1, "a closure");
                pending()
            };
            let mut batch = Task::waiting(group.do_many(&KEYS, load));
            drop(lead);
            key_calls(&group, of, calls);
            let payload = catch_unwind(AssertUnwindSafe(|| batch.poll().is_ready())).expect_err("it panics");
            assert_eq!(message(payload), "a closure");
            assert!(has_acted(), "key {of}");
            assert_eq!(group.in_flight(), 0);
        });
    }
}

/// Work that never ends, and that calls a key when it is dropped.
fn work_that_calls(group: &Arc<Group>, calls: u32) -> impl Future<Output = u32> + Send + use<> {
    struct Calls(Arc<Group>, u32);
    impl Drop for Calls {
        fn drop(&mut self) {
            assert_eq!(self.0.do_call_blocking(&self.1, || 5), 5);
        }
    }
    let calls = Calls(Arc::clone(group), calls);
    async move {
        let _calls = calls;
        pending().await
    }
}

#[test]
fn c8_works_that_a_batch_alone_drives_may_call_each_others_keys_when_it_is_dropped() {
    for calls in [[2, 1], [1, 2]] {
        within_a_minute(move || {
            let group = Arc::new(Group::new());
            let [one, two] = calls.map(|calls| work_that_calls(&group, calls));
            let makers = (Task::waiting(group.do_call(&1, || one)), Task::waiting(group.do_call(&2, || two)));
            let mut batch = Task::waiting(group.do_many(&[1, 2], |_| pending()));
            drop(makers);
            assert!(batch.poll().is_pending());
            drop(batch);
            assert_eq!((group.stats().flights, group.in_flight()), (4, 0));
        });
    }
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a wake-up");
    }
}

/// Two runs, the first of which calls the key of the second; a follower of the first has a waker that panics.
#[test]
fn c8_a_batch_leaves_all_its_flights_before_a_run_is_dropped_though_a_waker_panics() {
    within_a_minute(|| {
        let group = Arc::new(Group::new());
        let lead = group.try_lead(&2).expect("no flight is on");
        let load = |keys: Vec<&u32>| {
            let run = (*keys[0] == 1).then(|| work_that_calls(&group, 2));
            async move {
                match run {
                    Some(run) => vec![run.await],
                    None => pending().await,
                }
            }
        };
        let mut batch = Task::waiting(group.do_many(&[1, 2], load));
        drop(lead);
        assert!(batch.poll().is_pending());
        let mut follower = Task::new(group.do_call(&1, || async { 7 }));
        assert!(follower.poll_with(&Waker::from(Arc::new(Panics))).is_pending());
        let payload = catch_unwind(AssertUnwindSafe(|| drop(batch))).expect_err("it panics");
        assert_eq!(message(payload), "a wake-up");
        assert_eq!(follower.ready(), 7);
        assert_eq!(group.in_flight(), 0);
    });
}

/// A value that acts when it is cloned, or dropped.
struct Value(fn());

impl Clone for Value {
    fn clone(&self) -> Self {
        (self.0)();
        Self(|| ())
    }
}

type Valued = AsyncGroup<u32, Value>;

/// A landed value is cloned while a follower that is not polled has yet to collect it.
fn follower<'a>(group: &'a Valued, key: &'a u32) -> Task<'a, Value> {
    Task::waiting(group.do_call(key, || async { unreachable!("it follows") }))
}

#[test]
fn c8_a_value_that_a_thread_lands_with_may_call_other_keys_of_the_batch_when_it_is_cloned() {
    static GROUP: LazyLock<Valued> = LazyLock::new(Valued::new);
    static CALLS: AtomicU32 = AtomicU32::new(0);
    within_a_minute(|| {
        let act = || {
            GROUP.do_call_blocking(&2, || Value(|| ()));
            CALLS.fetch_add(1, Ordering::SeqCst);
        };
        GROUP.do_many_blocking(&[1, 2], |keys| {
            // On another thread: on this one it would be told that it is inside the work.
            std::thread::spawn(|| follower(&GROUP, &1).leak()).join().expect("it does not panic");
            keys.into_iter().map(|key| if *key == 1 { Value(act) } else { Value(|| ()) }).collect()
        });
        assert_eq!(CALLS.load(Ordering::SeqCst), 1);
        assert_eq!(GROUP.in_flight(), 0);
    });
}

/// The batch alone drives the works of keys 2 and 3, each of which calls the other's.
#[test]
fn c8_a_batch_leaves_all_its_flights_before_any_work_is_dropped_when_the_clone_of_a_value_panics() {
    static GROUP: LazyLock<Valued> = LazyLock::new(Valued::new);
    struct Calls(u32);
    impl Drop for Calls {
        fn drop(&mut self) {
            GROUP.do_call_blocking(&self.0, || Value(|| ()));
        }
    }
    fn work(calls: u32) -> impl Future<Output = Value> + Send {
        let calls = Calls(calls);
        async move {
            let _calls = calls;
            pending().await
        }
    }
    within_a_minute(|| {
        let lead = GROUP.try_lead(&1).expect("no flight is on");
        let makers = (Task::waiting(GROUP.do_call(&2, || work(3))), Task::waiting(GROUP.do_call(&3, || work(2))));
        let mut batch = Task::waiting(GROUP.do_many(&[1, 2, 3], |_| pending()));
        drop(makers);
        assert!(batch.poll().is_pending());
        let followers = follower(&GROUP, &1);
        let landed = catch_unwind(AssertUnwindSafe(|| lead.land(Value(|| panic!("a clone"))).shared));
        assert_eq!(message(landed.expect_err("there are followers")), "a clone");
        let payload = catch_unwind(AssertUnwindSafe(|| batch.poll().is_ready())).expect_err("it panics");
        assert_eq!(message(payload), "a clone");
        drop(followers);
        assert_eq!(GROUP.in_flight(), 0);
    });
}

/// A value that calls a key when it is dropped.
#[derive(Clone)]
struct Calling(Arc<AsyncGroup<u32, Calling>>, Option<u32>);

impl Drop for Calling {
    fn drop(&mut self) {
        if let Some(key) = self.1 {
            let called = self.0.do_call_blocking(&key, || Self(Arc::clone(&self.0), None));
            assert_eq!(called.1, None);
        }
    }
}

/// Keys 1 and 2 have a run each. That of key 1 returns too few values or too many, and these call the key of the other.
#[test]
fn c8_values_of_the_wrong_number_may_call_what_the_batch_leads_for_another_run() {
    within_a_minute(|| {
        let (group, gate) = (Arc::new(AsyncGroup::new()), Gate::default());
        let lead = group.try_lead(&2).expect("no flight is on");
        let load = |_| {
            let (group, mut gate) = (Arc::clone(&group), gate.clone());
            poll_fn(move |cx| {
                ready!(Pin::new(&mut gate).poll(cx));
                Poll::Ready([1, 2].map(|_| Calling(Arc::clone(&group), Some(2))).into())
            })
        };
        let mut batch = Task::waiting(group.do_many(&[1, 2], load));
        drop(lead);
        assert!(batch.poll().is_pending());
        gate.open();
        let payload = catch_unwind(AssertUnwindSafe(|| batch.poll().is_ready())).expect_err("it panics");
        assert!(message(payload).contains("must return one for each"));
        assert_eq!(group.in_flight(), 0);
    });
}

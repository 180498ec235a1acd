//! What only calls with several keys can meet. With one key they are in the matrices, like every other way to call.

use crate::support::callers::{Blown, blow};
use crate::support::gate::Gate;
use crate::support::limits::{until, within_limit};
use crate::support::way::{Key, Value};
use core::hash::{Hash, Hasher};
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use oneflight::{AsyncGroup, SyncGroup};
use std::future::{Future, poll_fn};
use std::panic::catch_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;
use std::thread;

/// Groups of threads and of tasks, called by threads that block. One shard: a lock that were still held would be met.
trait Batches<K: Key, V: Value>: Send + Sync + 'static {
    fn make() -> Self;
    fn many(&self, keys: &[K], load: impl FnMut(Vec<&K>) -> Vec<V>) -> Vec<V>;
    fn one(&self, key: &K, work: impl FnOnce() -> V) -> V;
    fn waiters(&self, key: &K) -> usize;
    fn in_flight(&self) -> usize;
}

impl<K: Key, V: Value> Batches<K, V> for SyncGroup<K, V> {
    fn make() -> Self {
        Self::builder().shards(1).build()
    }
    fn many(&self, keys: &[K], load: impl FnMut(Vec<&K>) -> Vec<V>) -> Vec<V> {
        self.do_many(keys, load)
    }
    fn one(&self, key: &K, work: impl FnOnce() -> V) -> V {
        self.do_call(key, work)
    }
    fn waiters(&self, key: &K) -> usize {
        self.waiters(key)
    }
    fn in_flight(&self) -> usize {
        self.in_flight()
    }
}

impl<K: Key, V: Value> Batches<K, V> for AsyncGroup<K, V> {
    fn make() -> Self {
        Self::builder().shards(1).build()
    }
    fn many(&self, keys: &[K], mut load: impl FnMut(Vec<&K>) -> Vec<V>) -> Vec<V> {
        let load = |keys| {
            let values = load(keys);
            async {
                smol::future::yield_now().await;
                values
            }
        };
        smol::block_on(self.do_many(keys, load))
    }
    fn one(&self, key: &K, work: impl FnOnce() -> V) -> V {
        self.do_call_blocking(key, work)
    }
    fn waiters(&self, key: &K) -> usize {
        self.waiters(key)
    }
    fn in_flight(&self) -> usize {
        self.in_flight()
    }
}

/// Makes a test of threads and one of tasks of each case.
macro_rules! of_both {
    ($($case:ident)+) => {
        mod threads {
            $(#[test] fn $case() { super::within_limit(super::$case::<oneflight::SyncGroup<_, _>>); })+
        }
        mod tasks {
            $(#[test] fn $case() { super::within_limit(super::$case::<oneflight::AsyncGroup<_, _>>); })+
        }
    };
}

of_both! {
    c1_a_panic_of_the_work_reaches_its_caller_alone_and_every_key_is_taken_over
    c5_a_panic_in_clone_of_one_value_is_that_batchs_alone_and_leaves_no_waiter_at_the_other_key
    c6_a_panic_in_hash_eq_or_to_owned_midway_frees_the_keys_that_the_batch_leads_already
    d1_a_batch_some_of_whose_keys_were_forgotten_touches_no_newer_flight
    rules_1_and_6_hold_for_batches_that_overlap
}

fn ten_times(keys: Vec<&u32>) -> Vec<u32> {
    keys.into_iter().map(|key| key * 10).collect()
}

/// Starts a call of one key, and returns when it waits.
fn follower<K: Key, V: Value, G: Batches<K, V>>(group: &Arc<G>, key: K, value: V) -> thread::JoinHandle<V> {
    let before = group.waiters(&key);
    let thread = thread::spawn({
        let (group, key) = (Arc::clone(group), key.clone());
        move || group.one(&key, || value)
    });
    until("the follower waits", || group.waiters(&key) > before);
    thread
}

/// C1.
fn c1_a_panic_of_the_work_reaches_its_caller_alone_and_every_key_is_taken_over<G: Batches<u32, u32>>() {
    #[derive(Debug, PartialEq)]
    struct Payload(&'static str, u32);

    let group = Arc::new(G::make());
    let (begun, end) = (Gate::new(), Gate::new());
    let batch = thread::spawn({
        let (group, begun, end) = (Arc::clone(&group), begun.clone(), end.clone());
        move || {
            group.many(&[1, 2], |keys| {
                assert_eq!(keys, [&1, &2]);
                begun.open();
                end.wait();
                blow(Payload("of any type", 7))
            })
        }
    });
    begun.wait();
    let followers: Vec<_> = [1, 2, 1, 2].into_iter().map(|key| follower(&group, key, 10 * key)).collect();
    let other = thread::spawn({
        let group = Arc::clone(&group);
        move || group.many(&[3, 2, 1], ten_times)
    });
    until("the other batch waits", || group.waiters(&1) == 3 && group.waiters(&2) == 3);
    end.open();
    let payload = batch.join().expect_err("its work panicked");
    assert_eq!(payload.downcast_ref(), Some(&Payload("of any type", 7)));
    let values: Vec<u32> = followers.into_iter().map(|thread| thread.join().expect("no panic of its own")).collect();
    assert_eq!(values, [10, 20, 10, 20]);
    assert_eq!(other.join().expect("no panic of its own"), [30, 20, 10]);
    assert_eq!(group.in_flight(), 0);
}

/// A value whose clone panics.
struct Fragile(u32);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        if self.0 == 1 {
            blow(Blown);
        }
        Self(self.0)
    }
}

/// C5.
fn c5_a_panic_in_clone_of_one_value_is_that_batchs_alone_and_leaves_no_waiter_at_the_other_key<
    G: Batches<u32, Fragile>,
>() {
    let group = Arc::new(G::make());
    let ends = [1, 2].map(|_| Gate::new());
    let leaders = [1, 2].map(|key| {
        let begun = Gate::new();
        let leader = thread::spawn({
            let (group, begun, end) = (Arc::clone(&group), begun.clone(), ends[key as usize - 1].clone());
            move || {
                let work = || {
                    begun.open();
                    end.wait();
                    Fragile(key)
                };
                group.one(&key, work).0
            }
        });
        begun.wait();
        leader
    });
    let batch = |key: [u32; 2]| {
        let group = Arc::clone(&group);
        thread::spawn(move || group.many(&key, |_| unreachable!("both are in flight")).len())
    };
    let batches = [batch([1, 2]), batch([2, 1])];
    until("both batches wait", || group.waiters(&1) == 2 && group.waiters(&2) == 2);
    // Of a leader and two followers, one at most gets the value without a clone.
    let [first, second] = leaders;
    ends[0].open();
    until("the first key has landed", || group.in_flight() == 1);
    ends[1].open();
    let first = first.join().is_err();
    let panicked = batches.map(|batch| batch.join().is_err()).into_iter().chain([first]).filter(|panicked| *panicked);
    assert!(panicked.count() >= 2);
    assert_eq!(second.join().expect("its own value does not panic"), 2);
    assert_eq!((group.waiters(&1), group.waiters(&2), group.in_flight()), (0, 0, 0));
}

/// A key that does something when it is made owned, or panics somewhere. Its number alone tells it apart.
struct Eventful {
    number: u32,
    on_clone: Option<Arc<dyn Fn() + Send + Sync>>,
    panics_in: Option<(Site, Arc<AtomicBool>)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Site {
    Hash,
    Eq,
    Clone,
}

impl Eventful {
    fn calm(number: u32) -> Self {
        Self { number, on_clone: None, panics_in: None }
    }

    fn at(&self, here: Site) {
        if self.panics_in.as_ref().is_some_and(|(site, armed)| *site == here && armed.load(Ordering::SeqCst)) {
            blow(Blown);
        }
    }
}

impl Clone for Eventful {
    fn clone(&self) -> Self {
        self.at(Site::Clone);
        self.on_clone.iter().for_each(|act| act());
        Self::calm(self.number)
    }
}

impl Hash for Eventful {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.at(Site::Hash);
        self.number.hash(state);
    }
}

impl PartialEq for Eventful {
    fn eq(&self, other: &Self) -> bool {
        self.at(Site::Eq);
        other.at(Site::Eq);
        self.number == other.number
    }
}
impl Eq for Eventful {}

/// C6. The batch leads 1 and 2 when the panic comes; somebody follows 1 already, since 2 has started it on its way in.
fn c6_a_panic_in_hash_eq_or_to_owned_midway_frees_the_keys_that_the_batch_leads_already<G: Batches<Eventful, u32>>() {
    for site in [Site::Hash, Site::Eq, Site::Clone] {
        let group = Arc::new(G::make());
        // All keys are hashed before the first one is entered: there is nobody who could follow by then.
        let armed = Arc::new(AtomicBool::new(site == Site::Hash));
        let started = Arc::new(Mutex::new(None));
        let on_clone: Arc<dyn Fn() + Send + Sync> = Arc::new({
            let (group, armed, started) = (Arc::clone(&group), Arc::clone(&armed), Arc::clone(&started));
            move || {
                let waiting = follower(&group, Eventful::calm(1), 100);
                *started.lock().unwrap_or_else(PoisonError::into_inner) = Some(waiting);
                armed.store(true, Ordering::SeqCst);
            }
        });
        // Whom the third key is compared with.
        let (begun, end) = (Gate::new(), Gate::new());
        let elsewhere = (site == Site::Eq).then(|| {
            let (group, begun, end) = (Arc::clone(&group), begun.clone(), end.clone());
            thread::spawn(move || {
                let work = || {
                    begun.open();
                    end.wait();
                    300
                };
                group.one(&Eventful::calm(3), work)
            })
        });
        if elsewhere.is_some() {
            begun.wait();
        }

        let second = Eventful { on_clone: Some(on_clone), ..Eventful::calm(2) };
        let third = Eventful { panics_in: Some((site, armed)), ..Eventful::calm(3) };
        let keys = [Eventful::calm(1), second, third];
        let called = catch_unwind(AssertUnwindSafe(|| group.many(&keys, |_| unreachable!("no work is reached"))));
        assert!(called.is_err_and(|payload| payload.is::<Blown>()), "{site:?}");

        let follower = started.lock().unwrap_or_else(PoisonError::into_inner).take();
        assert_eq!(follower.is_some(), site != Site::Hash, "{site:?}");
        assert!(follower.is_none_or(|thread| thread.join().is_ok_and(|value| value == 100)), "{site:?}: it took over");
        assert_eq!(group.in_flight(), usize::from(elsewhere.is_some()), "{site:?}: the other flight goes on");
        end.open();
        assert!(elsewhere.is_none_or(|thread| thread.join().is_ok_and(|value| value == 300)), "{site:?}");
        let again = [1, 2, 3].map(Eventful::calm);
        let numbers = |keys: Vec<&Eventful>| keys.into_iter().map(|key| key.number).collect();
        assert_eq!(group.many(&again, numbers), [1, 2, 3], "{site:?}: all are free");
        assert_eq!(group.in_flight(), 0);
    }
}

/// Forgets a key in whichever group it is.
trait Forgets {
    fn forgets(&self, key: &u32) -> bool;
}

impl Forgets for SyncGroup<u32, u32> {
    fn forgets(&self, key: &u32) -> bool {
        self.forget(key)
    }
}

impl Forgets for AsyncGroup<u32, u32> {
    fn forgets(&self, key: &u32) -> bool {
        self.forget(key)
    }
}

/// D1, D2: the work of the batch forgets one of its keys, a newer flight of it begins, and the batch lands or panics.
fn d1_a_batch_some_of_whose_keys_were_forgotten_touches_no_newer_flight<G: Batches<u32, u32> + Forgets>() {
    for panics in [false, true] {
        let group = Arc::new(G::make());
        let (forgotten, end, newer_begun, newer_end) = (Gate::new(), Gate::new(), Gate::new(), Gate::new());
        let batch = thread::spawn({
            let (group, forgotten, end) = (Arc::clone(&group), forgotten.clone(), end.clone());
            move || {
                group.many(&[1, 2], |keys| {
                    assert!(group.forgets(&1));
                    forgotten.open();
                    end.wait();
                    if panics { blow(Blown) } else { ten_times(keys) }
                })
            }
        });
        forgotten.wait();
        let newer = thread::spawn({
            let (group, newer_begun, newer_end) = (Arc::clone(&group), newer_begun.clone(), newer_end.clone());
            move || {
                let work = || {
                    newer_begun.open();
                    newer_end.wait();
                    11
                };
                group.one(&1, work)
            }
        });
        newer_begun.wait();
        let with_newer = follower(&group, 1, 12);
        end.open();
        match batch.join() {
            Ok(values) => assert_eq!((panics, values), (false, vec![10, 20])),
            Err(payload) => assert!(panics && payload.is::<Blown>()),
        }
        assert_eq!((group.in_flight(), group.waiters(&1)), (1, 1), "the newer flight is as it was");
        let late = follower(&group, 1, 13);
        newer_end.open();
        let values = [newer, with_newer, late].map(|thread| thread.join().expect("it does not panic"));
        assert_eq!(values, [11; 3]);
        assert_eq!(group.in_flight(), 0);
    }
}

/// Rules 1 and 6: no two works of one key at once, and what the one whose value it is wrote without any ordering is there.
fn rules_1_and_6_hold_for_batches_that_overlap<G: Batches<u32, u32>>() {
    const KEYS: u32 = 4;
    /// Of each key: whether a work of it runs, and what the last one wrote.
    type Seen = Vec<(AtomicBool, AtomicU32)>;

    fn load(seen: &Seen, keys: Vec<&u32>, panics: bool) -> Vec<u32> {
        for key in &keys {
            assert!(!seen[**key as usize].0.swap(true, Ordering::Relaxed), "two works at once");
        }
        thread::yield_now();
        let written = keys.iter().map(|key| {
            let (running, written) = &seen[**key as usize];
            // Not at once: another work's would be lost between the two.
            let next = written.load(Ordering::Relaxed) + 1;
            written.store(next, Ordering::Relaxed);
            running.store(false, Ordering::Relaxed);
            next
        });
        let written = written.collect();
        if panics { blow(Blown) } else { written }
    }

    let group = Arc::new(G::make());
    let seen: Arc<Seen> = Arc::new((0..KEYS).map(|_| Default::default()).collect());
    let threads: Vec<_> = (0..6_u32)
        .map(|seed| {
            let (group, seen) = (Arc::clone(&group), Arc::clone(&seen));
            thread::spawn(move || {
                let mut number = seed + 1;
                let mut below = |limit: u32| {
                    number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (number >> 16) % limit
                };
                for _ in 0..150 {
                    let first = below(KEYS);
                    let keys: Vec<u32> = (0..1 + below(3)).map(|index| (first + index) % KEYS).collect();
                    let panics = below(5) == 0;
                    let called = catch_unwind(AssertUnwindSafe(|| match keys[..] {
                        [key] => vec![group.one(&key, || load(&seen, vec![&key], panics)[0])],
                        _ => group.many(&keys, |keys| load(&seen, keys, panics)),
                    }));
                    match called {
                        Ok(values) => {
                            for (key, value) in keys.iter().zip(values) {
                                assert!(seen[*key as usize].1.load(Ordering::Relaxed) >= value, "not visible");
                            }
                        }
                        Err(payload) => assert!(panics && payload.is::<Blown>(), "another's panic"),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("both rules hold");
    }
    assert_eq!(group.in_flight(), 0);
}

/// Counts its wakes, and panics at each if it is to.
#[derive(Default)]
struct Wakes(AtomicUsize, bool);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        if self.1 {
            blow(Blown);
        }
    }
}

type Polled<'a> = Pin<Box<dyn Future<Output = u32> + 'a>>;

fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// F3.
#[test]
fn f3_when_the_wake_of_a_follower_of_one_key_panics_those_of_all_keys_are_woken_all_the_same() {
    let group: &AsyncGroup<u32, u32> = &AsyncGroup::new();
    let open = AtomicBool::new(false);
    let load = |keys: Vec<&u32>| {
        let mut values = ten_times(keys);
        let open = &open;
        poll_fn(move |_| match open.load(Ordering::SeqCst) {
            true => Poll::Ready(core::mem::take(&mut values)),
            false => Poll::Pending,
        })
    };
    let mut batch = Box::pin(group.do_many(&[1, 2], load));
    assert!(poll_with(&mut batch, Waker::noop()).is_pending());
    let mut followers: Vec<(u32, Arc<Wakes>, Polled<'_>)> = Vec::new();
    for (index, key) in [1, 1, 1, 2, 2, 2].into_iter().enumerate() {
        let wakes = Arc::new(Wakes(AtomicUsize::new(0), [1, 4].contains(&index)));
        let key: &'static u32 = if key == 1 { &1 } else { &2 };
        // A single call, and a batch that waits.
        let mut call: Polled<'_> = match index % 3 {
            2 => Box::pin(async move { group.do_many([key], async |_| vec![0]).await[0] }),
            _ => Box::pin(group.do_call(key, || async { 0 })),
        };
        assert!(poll_with(&mut call, &Waker::from(Arc::clone(&wakes))).is_pending());
        followers.push((*key, wakes, call));
    }
    open.store(true, Ordering::SeqCst);
    let polled = catch_unwind(AssertUnwindSafe(|| poll_with(&mut batch, Waker::noop()).is_ready()));
    assert!(polled.is_err_and(|payload| payload.is::<Blown>()), "the panic is not swallowed");
    for (key, wakes, mut call) in followers {
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        assert_eq!(poll_with(&mut call, Waker::noop()), Poll::Ready(key * 10), "nobody has lost the value");
    }
    assert_eq!(group.in_flight(), 0);
    assert_eq!(smol::block_on(group.do_many(&[1, 2], async |keys| ten_times(keys))), [10, 20]);
}

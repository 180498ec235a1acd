//! Calls with several keys.

use crate::by_hand::{Gate, Group, Runs, Task, Way, Yield, message, work};
use oneflight::{OnAbandon, SyncGroup};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Notes which keys were asked for, waits at `gate`, and returns ten times each.
pub(crate) async fn load(asked: &RefCell<Vec<Vec<u32>>>, gate: Gate, keys: Vec<&u32>) -> Vec<u32> {
    let keys: Vec<u32> = keys.into_iter().copied().collect();
    asked.borrow_mut().push(keys.clone());
    gate.await;
    keys.iter().map(|key| key * 10).collect()
}

#[test]
fn each_key_is_loaded_once_and_values_come_in_the_order_of_the_keys() {
    let (group, asked, gate) = (Group::new(), RefCell::default(), Gate::default());
    gate.open();
    let mut task = Task::new(group.do_many(&[3, 1, 3, 2], |keys| load(&asked, gate.clone(), keys)));
    assert_eq!(task.ready(), [30, 10, 30, 20]);
    assert_eq!(*asked.borrow(), [vec![3, 1, 2]]);
    assert!(Task::new(group.do_many(&[], |keys| load(&asked, gate.clone(), keys))).ready().is_empty());
    assert_eq!(asked.borrow().len(), 1, "nothing was missing");
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn a_batch_hashes_each_of_its_keys_once() {
    thread_local!(static HASHED: Cell<u32> = const { Cell::new(0) });
    #[derive(Clone, PartialEq, Eq)]
    struct Key(u32);
    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            HASHED.set(HASHED.get() + 1);
            self.0.hash(state);
        }
    }
    let keys = [1, 2, 3].map(Key);
    let group: oneflight::AsyncGroup<Key, u32> = oneflight::AsyncGroup::new();
    let load = async |keys: Vec<&Key>| keys.into_iter().map(|key| key.0 * 10).collect::<Vec<_>>();
    assert_eq!(Task::new(group.do_many(&keys, load)).ready(), [10, 20, 30]);
    assert_eq!(HASHED.take(), 3);
    let group: SyncGroup<Key, u32> = SyncGroup::new();
    assert_eq!(group.do_many(&keys, |keys| keys.into_iter().map(|key| key.0 * 10).collect()), [10, 20, 30]);
    assert_eq!(HASHED.take(), 3);
}

#[test]
fn keys_in_flight_are_joined_and_only_the_others_are_loaded() {
    let (group, asked, runs, gate) = (Group::new(), RefCell::default(), Runs::default(), Gate::default());
    let mut single = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let other = Gate::default();
    let mut many = Task::waiting(group.do_many(&[1, 2], |keys| load(&asked, other.clone(), keys)));
    assert_eq!(*asked.borrow(), [vec![2]]);
    let mut joins = Task::waiting(group.do_call(&2, work(&runs, &gate, 9)));
    other.open();
    assert!(many.poll().is_pending(), "its own key has landed, the other has not");
    assert_eq!(joins.ready(), 20);
    gate.open();
    assert_eq!(many.ready(), [7, 20]);
    assert_eq!(single.ready(), 7);
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

#[test]
fn batches_that_overlap_in_opposite_orders_do_not_wait_in_a_circle() {
    let (group, asked, gate) = (Group::new(), RefCell::default(), Gate::default());
    let mut first = Task::waiting(group.do_many(&[1, 2], |keys| load(&asked, gate.clone(), keys)));
    let mut second = Task::waiting(group.do_many(&[3, 2, 1], |keys| load(&asked, gate.clone(), keys)));
    let mut third = Task::waiting(group.do_many(&[1, 3, 4], |keys| load(&asked, gate.clone(), keys)));
    assert_eq!(*asked.borrow(), [vec![1, 2], vec![3], vec![4]]);
    gate.open();
    assert!(third.poll().is_pending());
    assert!(second.poll().is_pending());
    assert_eq!(first.ready(), [10, 20]);
    assert_eq!(second.ready(), [30, 20, 10]);
    assert_eq!(third.ready(), [10, 30, 40]);
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn a_batch_that_is_parked_holds_up_no_work_that_a_flight_owns() {
    let (group, asked, runs, gate) = (Group::new(), RefCell::default(), Runs::default(), Gate::default());
    let single = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let mut many = Task::waiting(group.do_many(&[1, 2], |keys| load(&asked, Gate::default(), keys)));
    drop(single);
    gate.open();
    assert!(many.poll().is_pending(), "it has driven key 1 to its end while key 2 is still loading");
    assert_eq!((runs.dropped(), group.in_flight()), (1, 1));
}

#[test]
fn a_dropped_batch_releases_exactly_its_keys() {
    let (group, asked, runs, gate) = (Group::new(), RefCell::default(), Runs::default(), Gate::default());
    let mut single = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
    let many = Task::waiting(group.do_many(&[1, 2, 3], |keys| load(&asked, gate.clone(), keys)));
    let mut follower = Task::waiting(group.do_call(&2, work(&runs, &gate, 9)));
    drop(many);
    gate.open();
    assert_eq!((single.ready(), follower.ready()), (7, 9));
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn keys_that_are_taken_over_are_asked_for_again() {
    let (group, asked, runs, gate) = (Group::new(), RefCell::default(), Runs::default(), Gate::default());
    let leaders =
        [1_u32, 2].map(|key| Task::waiting(group.do_call_inline(Box::leak(Box::new(key)), work(&runs, &gate, 7))));
    let mut many = Task::waiting(group.do_many(&[1, 2, 3], |keys| load(&asked, gate.clone(), keys)));
    drop(leaders);
    assert!(many.wakes() > 0);
    gate.open();
    assert_eq!(many.ready(), [10, 20, 30]);
    assert_eq!(*asked.borrow(), [vec![3], vec![1, 2]]);
    assert_eq!(group.in_flight(), 0);
}

/// However many rounds a poll of the batch takes.
#[test]
fn f8_what_a_batch_runs_and_drives_is_polled_once_a_poll_of_the_batch() {
    /// Wakes itself, and counts.
    async fn count(polls: &AtomicU32) {
        for _ in 0..10 {
            polls.fetch_add(1, Ordering::Relaxed);
            Yield(1).await;
        }
    }
    let group = Group::new();
    let (drives, loads): (Arc<AtomicU32>, _) = (Arc::default(), [const { AtomicU32::new(0) }; 4]);
    let counted = Arc::clone(&drives);
    let owned = async move || {
        count(&counted).await;
        30
    };
    let _owner = Task::waiting(group.do_call(&3, owned));
    let guard = group.try_lead(&1).expect("it is free");
    let mut many = Task::waiting(group.do_many(&[1, 2, 3], async |keys: Vec<&u32>| {
        count(&loads[*keys[0] as usize]).await;
        keys.into_iter().map(|key| key * 10).collect()
    }));
    let polls = || [&loads[1], &loads[2], &drives].map(|polls| polls.load(Ordering::Relaxed));
    assert_eq!(polls(), [0, 1, 2], "the owner has driven its own once");
    drop(guard);
    for (poll, now) in [[1, 2, 3], [2, 3, 4], [3, 4, 5]].into_iter().enumerate() {
        assert!(many.poll().is_pending());
        assert_eq!(polls(), now, "poll {poll}: the key that it took over, its own, and that of another");
    }
    while many.poll().is_pending() {}
    assert_eq!((polls(), group.in_flight()), ([10; 3], 0));
}

/// Where a flight that is abandoned has ended: a key is led anew, or joined if another was faster.
#[test]
fn keys_whose_flights_have_failed_are_entered_again() {
    let group: Group = Group::builder().on_abandon(OnAbandon::Fail).build();
    let (asked, gate) = (RefCell::default(), Gate::default());
    let leads = [1, 2].map(|key| group.try_lead(&key).expect("it is free"));
    let mut many = Task::waiting(group.do_many(&[1, 2, 3], |keys| load(&asked, gate.clone(), keys)));
    drop(leads);
    let faster = group.try_lead(&2).expect("it is free again");
    assert!(many.poll().is_pending());
    assert_eq!(*asked.borrow(), [vec![3], vec![1]]);
    assert_eq!((group.in_flight(), group.waiters(&2)), (3, 1));
    gate.open();
    assert!(many.poll().is_pending());
    let wakes = many.wakes();
    assert_eq!(faster.land(7).value, 7);
    assert!(many.wakes() > wakes);
    assert_eq!(many.ready(), [10, 7, 30]);
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn a_panic_and_a_wrong_number_of_values_release_the_keys_with_a_clear_message() {
    let group = Group::new();
    for short in [false, true] {
        let mut many = Task::new(group.do_many(&[1, 2], |_| async move {
            assert!(short, "could not load");
            vec![1]
        }));
        let payload = catch_unwind(AssertUnwindSafe(|| many.poll().is_ready())).expect_err("it panics");
        let text = message(payload);
        let wanted = if short { "was asked for 2 keys and returned 1 values" } else { "could not load" };
        assert!(text.contains(wanted), "{text}");
        assert_eq!(group.in_flight(), 0);
    }
}

/// What goes wrong as one key lands, here in code of its value, is no concern of the others.
#[test]
fn a_panic_as_one_key_lands_keeps_no_value_from_the_followers_of_another() {
    let (group, asked, runs, gate) = (
        Group::builder().share_if(|value| if *value == 10 { panic!("the first value") } else { *value != 20 }).build(),
        RefCell::default(),
        Runs::default(),
        Gate::default(),
    );
    let mut many = Task::waiting(group.do_many(&[1, 2, 3], |keys| load(&asked, gate.clone(), keys)));
    let mut followers = [1, 2, 3].map(|key: u32| {
        let key: &u32 = Box::leak(Box::new(key));
        Task::waiting(group.do_call(key, work(&runs, &gate, 7)))
    });
    gate.open();
    let payload = catch_unwind(AssertUnwindSafe(|| many.poll().is_ready())).expect_err("it panics");
    assert_eq!(message(payload), "the first value");
    assert_eq!(followers.each_mut().map(|follower| follower.ready()), [7, 7, 30]);
    assert_eq!((runs.started(), group.in_flight()), (2, 0));

    let group: SyncGroup<u32, u32> = SyncGroup::builder().share_if(|value| *value != 10 || panic!("likewise")).build();
    let panicked = std::thread::scope(|scope| {
        let mut follower = None;
        let load = |keys: Vec<&u32>| {
            let calls = [1, 2].map(|key| {
                scope.spawn({
                    let group = &group;
                    move || group.do_call(&key, || 7)
                })
            });
            while group.waiters(&1) + group.waiters(&2) < 2 {
                std::thread::yield_now();
            }
            follower = Some(calls);
            keys.into_iter().map(|key| key * 10).collect()
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| group.do_many(&[1, 2], load)));
        let values = follower.expect("it has loaded").map(|call| call.join().expect("it does not panic"));
        assert_eq!(values, [7, 20]);
        panicked
    });
    assert_eq!(message(panicked.expect_err("it panics")), "likewise");
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn threads_batch_as_tasks_do() {
    let group: SyncGroup<u32, u32> = SyncGroup::new();
    let asked = RefCell::new(Vec::new());
    let load = |keys: Vec<&u32>| {
        asked.borrow_mut().push(keys.iter().map(|key| **key).collect::<Vec<_>>());
        keys.iter().map(|key| **key * 10).collect()
    };
    assert_eq!(group.do_many(&[3, 1, 3, 2], load), [30, 10, 30, 20]);
    assert_eq!(*asked.borrow(), [vec![3, 1, 2]]);
    let short = catch_unwind(AssertUnwindSafe(|| group.do_many(&[1, 2], |_| vec![1])));
    assert!(message(short.expect_err("it panics")).contains("was asked for 2 keys and returned 1 values"));
    let inside = catch_unwind(AssertUnwindSafe(|| group.do_call(&1, || group.do_many(&[2, 1], |_| vec![1])[0])));
    assert!(message(inside.expect_err("it panics")).contains("inside the work of the same flight"));
    assert_eq!(group.in_flight(), 0);
}

#[test]
fn threads_that_batch_join_what_is_in_flight_and_take_over() {
    let group: SyncGroup<u32, u32> = SyncGroup::new();
    let (lands, leaves) = (group.try_lead(&1).expect("free"), group.try_lead(&2).expect("free"));
    std::thread::scope(|scope| {
        let many = scope.spawn(|| group.do_many(&[1, 2, 3], |keys| keys.iter().map(|key| **key * 10).collect()));
        while group.waiters(&1) + group.waiters(&2) < 2 || group.flight_info(&3).is_some() {
            std::thread::yield_now();
        }
        drop(leaves);
        lands.land(7);
        assert_eq!(many.join().expect("it does not panic"), [7, 20, 30]);
    });
    assert_eq!((group.in_flight(), group.stats().take_overs), (0, 1));
}

/// E5: a stack of 256 KiB holds calls within calls, as deep as anybody nests them.
#[test]
fn e5_ten_calls_within_calls_fit_a_small_stack() {
    type Nested = std::pin::Pin<Box<dyn Future<Output = u32> + Send>>;
    fn nest(way: Way, group: &'static Group, depth: u32) -> Nested {
        let key: &'static u32 = Box::leak(Box::new(depth));
        way.call(group, key, move || async move { if depth == 0 { 0 } else { nest(way, group, depth - 1).await + 1 } })
    }
    for way in Way::ALL {
        let small = std::thread::Builder::new().stack_size(256 * 1024);
        let nested = small.spawn(move || {
            let group: &'static Group = Box::leak(Box::new(Group::new()));
            Task::new(nest(way, group, 10)).ready()
        });
        assert_eq!(nested.expect("a thread").join().expect("no panic"), 10);
    }
}

/// E5: the frames of a batch are the largest.
#[test]
fn e5_1_000_batches_of_threads_within_batches_fit_into_2_mib_of_stack() {
    fn nest(group: &SyncGroup<u32, u32>, depth: u32) -> u32 {
        group.do_many(&[depth], |_| vec![if depth == 0 { 0 } else { nest(group, depth - 1) + 1 }])[0]
    }
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let deepest = thread.spawn(|| nest(&SyncGroup::new(), 1_000)).expect("a thread");
    assert_eq!(deepest.join().expect("no panic"), 1_000);
}

//! Calls with several keys.

use crate::by_hand::{Gate, Group, PollsInWake, Runs, Task, Yield, message, work};
use oneflight::{CallError, SyncGroup};
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

/// Notes which keys were asked for, waits at `gate`, and returns ten times each.
async fn load(asked: &RefCell<Vec<Vec<u32>>>, gate: Gate, keys: Vec<&u32>) -> Vec<u32> {
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

#[test]
fn a_batch_inside_the_work_of_one_of_its_keys_is_told_so() {
    let group: &'static Group = Box::leak(Box::new(Group::new()));
    let mut task = Task::new(group.do_call(&1, || async {
        group.do_many(&[2, 1], |keys| std::future::ready(keys.into_iter().copied().collect())).await[0]
    }));
    let payload = catch_unwind(AssertUnwindSafe(|| task.poll().is_ready())).expect_err("it panics");
    assert!(message(payload).contains("inside the work of the same flight"));
    assert_eq!(group.in_flight(), 0, "key 2 is free as well");
}

#[test]
fn a_batch_that_takes_a_key_over_is_not_taken_for_the_work_that_it_drives() {
    let group: &'static Group = Box::leak(Box::new(Group::new()));
    let (asked, gate) = (RefCell::default(), Gate::default());
    let lead = group.try_lead(&1).expect("free");
    let opens = gate.clone();
    let mut two = Task::waiting(group.do_call(&2, || async move {
        opens.await;
        group.do_call(&1, || async { 11 }).await + 1
    }));
    let mut many = Task::waiting(group.do_many(&[1, 2], |keys| load(&asked, gate.clone(), keys)));
    drop(lead);
    gate.open();
    let mut value = many.poll();
    for _ in 0..4 {
        if value.is_pending() {
            value = many.poll();
        }
    }
    assert_eq!(value, std::task::Poll::Ready(vec![10, 11]));
    assert_eq!(two.ready(), 11);
    assert_eq!(group.in_flight(), 0);
}

/// E1, however often the batch has been polled, and on whichever thread; a call from elsewhere just waits.
#[test]
fn e1_a_call_of_one_of_its_own_keys_inside_a_batch_is_told_on_every_thread() {
    let group: &'static Group = Box::leak(Box::new(Group::new()));
    let load = |keys: Vec<&'static u32>| async move {
        for _ in 0..4 {
            for key in [1, 2] {
                let called = group.call(&key).run_inline(|| async { 0 }).await;
                assert_eq!(called.map(|outcome| outcome.value), Err(CallError::Reentrant));
            }
            // What is inside a call of another key is inside here as well.
            let nested = group.run_many(&[3, 4], |_| async {
                Yield(1).await;
                let called = group.run_many(&[5, 2], async |_| vec![0; 2]).await;
                assert_eq!(called, Err(CallError::Reentrant));
                vec![0; 2]
            });
            assert_eq!(nested.await, Ok(vec![0; 2]));
            Yield(1).await;
        }
        keys.into_iter().map(|key| key * 10).collect::<Vec<_>>()
    };
    let mut many = Box::pin(group.run_many(&[1, 2], load));
    let mut follower = None;
    loop {
        let polled = std::thread::scope(|scope| {
            let poll = || many.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            scope.spawn(poll).join().expect("it does not panic")
        });
        if let Poll::Ready(values) = polled {
            assert_eq!(values, Ok(vec![10, 20]));
            break;
        }
        // From the very thread that has polled it, too.
        let follower = follower.get_or_insert_with(|| Task::waiting(group.do_call(&2, || async { 0 })));
        assert!(
            follower.poll().is_pending() && many.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
        );
        assert!(follower.poll().is_pending());
    }
    assert_eq!(follower.expect("it has been polled").ready(), 20);
    assert_eq!(group.in_flight(), 0);
}

/// Whoever is woken on the spot when the first key lands is not inside the work, though the second has not landed yet.
#[test]
fn a_follower_that_is_polled_while_a_batch_lands_is_not_taken_for_its_work() {
    let group: &'static Group = Box::leak(Box::new(Group::new()));
    let (asked, gate): (&'static RefCell<Vec<Vec<u32>>>, _) = (Box::leak(Box::default()), Gate::default());
    let mut many = Task::waiting(group.run_many(&[1, 2], |keys| load(asked, gate.clone(), keys)));
    let follower = PollsInWake::spawn(async {
        assert_eq!(group.do_call(&1, || async { 0 }).await, 10);
        assert_eq!(group.do_call(&2, || async { 0 }).await, 20);
    });
    gate.open();
    assert_eq!(many.ready(), Ok(vec![10, 20]));
    assert!(follower.has_ended());
    assert_eq!((asked.borrow().len(), group.in_flight()), (1, 0));
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

/// E1: the predicate belongs to the work.
#[test]
fn e1_a_call_of_its_own_key_where_a_batch_asks_whether_to_share_is_told() {
    static GROUP: OnceLock<Group> = OnceLock::new();
    let told = |_: &u32| {
        let group = GROUP.get().expect("it has been made");
        let called = Task::new(group.call(&1).run_inline(|| async { 0 })).ready();
        called.map(|outcome| outcome.value) == Err(CallError::Reentrant)
    };
    let group = GROUP.get_or_init(|| Group::builder().share_if(told).build());
    let (asked, gate) = (RefCell::default(), Gate::default());
    let mut many = Task::waiting(group.do_many(&[1, 2], |keys| load(&asked, gate.clone(), keys)));
    let mut follower = Task::waiting(group.do_call(&1, || async { 0 }));
    gate.open();
    assert_eq!(many.ready(), [10, 20]);
    assert_eq!(follower.ready(), 10);
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
    fn nest(group: &'static Group, depth: u32) -> std::pin::Pin<Box<dyn Future<Output = u32> + Send>> {
        let key: &'static u32 = Box::leak(Box::new(depth));
        Box::pin(
            group.do_call(key, move || async move { if depth == 0 { 0 } else { nest(group, depth - 1).await + 1 } }),
        )
    }
    let small = std::thread::Builder::new().stack_size(256 * 1024);
    let nested = small.spawn(|| {
        let group: &'static Group = Box::leak(Box::new(Group::new()));
        Task::new(nest(group, 10)).ready()
    });
    assert_eq!(nested.expect("a thread").join().expect("no panic"), 10);
}

/// E1 for several keys: an error in place of a panic.
#[test]
fn a_batch_with_the_key_of_the_work_around_it_is_told() {
    let (group, asked) = (std::rc::Rc::new(Group::new()), RefCell::default());
    let asked: &'static RefCell<Vec<Vec<u32>>> = Box::leak(Box::new(asked));
    let inner = std::rc::Rc::clone(&group);
    let mut task = Task::new(group.do_call_inline(&1, || async {
        for keys in [[1, 2], [2, 1]] {
            let called = inner.run_many(&keys, |keys| load(asked, Gate::default(), keys)).await;
            assert_eq!(called, Err(CallError::Reentrant));
            assert_eq!(inner.in_flight(), 1, "the other key is free");
        }
        7
    }));
    assert_eq!(task.ready(), 7);
    assert!(asked.borrow().is_empty());
    assert_eq!(group.in_flight(), 0);
}

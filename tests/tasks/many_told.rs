//! Calls inside the work of a batch, and batches inside the work of others: who is told that it would wait for itself.

use crate::by_hand::{Gate, Group, PollsInWake, Task, Yield, message};
use crate::many::load;
use oneflight::CallError;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

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

/// It takes the key over; or it begins anew, where no more attempts are allowed.
#[test]
fn e1_a_call_of_a_key_that_a_batch_leads_later_on_is_told_as_well() {
    for max_attempts in [2, 1] {
        let group: &'static Group = Box::leak(Box::new(Group::builder().max_attempts(max_attempts).build()));
        let load = |keys: Vec<&'static u32>| async move {
            let called = group.call(&1).run_inline(|| async { 0 }).await;
            assert_eq!(called.map(|outcome| outcome.value), Err(CallError::Reentrant));
            keys.into_iter().map(|key| key * 10).collect::<Vec<_>>()
        };
        let lead = group.try_lead(&1).expect("no flight is on");
        let mut many = Task::waiting(group.run_many(&[1], load));
        drop(lead);
        assert_eq!(many.ready(), Ok(vec![10]));
    }
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

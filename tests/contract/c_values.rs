//! C8: a destructor that panics costs its caller the value, which is dropped then. What is being returned from a function when
//! a destructor panics at its end would leak.

use crate::support::callers::{Blown, blow};
use crate::support::limits::{until, within_limit};
use crate::support::things::{Census, Counted};
use core::cell::Cell;
use core::future::poll_fn;
use core::panic::AssertUnwindSafe;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use oneflight::{AsyncGroup, OnAbandon, SyncGroup};
use std::panic::catch_unwind;
use std::sync::{Arc, mpsc};
use std::thread;

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !thread::panicking() {
            blow(Blown);
        }
    }
}

/// Checks that a call ends with the panic of a [`Bomb`], and that nothing counted is left of it.
fn assert_no_value_is_left<T>(case: &'static str, call: impl FnOnce(&Census) -> T + Send + 'static) {
    within_limit(move || {
        let census = Census::new();
        let called = catch_unwind(AssertUnwindSafe(|| drop(call(&census))));
        assert!(called.is_err_and(|payload| payload.is::<Blown>()), "{case}");
        assert_eq!(census.alive(), 0, "{case}");
    });
}

#[test]
fn c8_a_lone_thread_whose_predicates_drop_panics_leaks_no_value() {
    assert_no_value_is_left("alone", |census| {
        let group: SyncGroup<u32, Counted> = SyncGroup::new();
        let bomb = Bomb;
        let share_if = move |_: &Counted| core::ptr::from_ref(&bomb).is_aligned();
        group.call(&1).share_if(share_if).run(|| census.thing(1))
    });
}

#[test]
fn c8_a_following_thread_leaks_no_value_when_the_drop_of_what_it_did_not_need_panics() {
    for in_work in [true, false] {
        assert_no_value_is_left("a follower", move |census| {
            let group: SyncGroup<u32, Counted> = SyncGroup::new();
            let lead = group.try_lead(&1).expect("no flight is on");
            thread::scope(|threads| {
                let follower = threads.spawn(|| {
                    let (in_work, in_share_if) = if in_work { (Some(Bomb), None) } else { (None, Some(Bomb)) };
                    let share_if = move |_: &Counted| in_share_if.is_none();
                    let work = move || census.thing(if in_work.is_none() { 2 } else { 3 });
                    group.call(&1).share_if(share_if).run(work)
                });
                until("the follower waits", || group.waiters(&1) == 1);
                drop(lead.land(census.thing(1)));
                follower.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
            })
        });
    }
}

/// Nothing of a call that is refused is lost either: its work goes with the panic.
#[test]
fn c8_a_call_that_is_refused_leaks_no_work_when_the_drop_of_its_predicate_panics() {
    for is_inside in [true, false] {
        assert_no_value_is_left("refused", move |census| {
            let group: SyncGroup<u32, Counted> = SyncGroup::new();
            let lead = group.try_lead(&1).expect("no flight is on");
            let call = |key: u32| {
                let (bomb, unused) = (Bomb, census.thing(1));
                let share_if = move |_: &Counted| core::ptr::from_ref(&bomb).is_aligned();
                group.call(&key).wait_timeout(Duration::ZERO).share_if(share_if).run(move || unused).is_ok()
            };
            let was_served = if is_inside {
                group.do_call(&2, || census.thing(u32::from(call(2))))
            } else {
                census.thing(u32::from(call(1)))
            };
            drop(lead);
            was_served
        });
    }
}

#[test]
fn c8_a_predicate_in_place_of_one_whose_drop_panics_is_not_leaked() {
    assert_no_value_is_left("a predicate", |census| {
        let group: SyncGroup<u32, Counted> = SyncGroup::new();
        let (bomb, kept) = (Bomb, census.thing(1));
        let call = group.call(&1).share_if(move |_| core::ptr::from_ref(&bomb).is_aligned());
        let call = call.share_if(move |_| core::ptr::from_ref(&kept).is_aligned());
        call.run(|| census.thing(2))
    });
}

#[test]
fn c8_the_last_allowed_attempt_whose_predicates_drop_panics_leaks_no_value() {
    assert_no_value_is_left("the last attempt", |census| {
        let group: SyncGroup<u32, Counted> = SyncGroup::new();
        thread::scope(|threads| {
            let bomb = Bomb;
            let share_if = move |_: &Counted| core::ptr::from_ref(&bomb).is_aligned();
            let work = || {
                threads.spawn(|| group.do_call(&1, || census.thing(2)));
                until("somebody follows", || group.waiters(&1) == 1);
                census.thing(1)
            };
            group.call(&1).share_if(share_if).max_attempts(1).run(work)
        })
    });
}

#[test]
fn c8_a_batch_whose_works_drop_panics_leaks_no_value() {
    assert_no_value_is_left("threads", |census| {
        let group: SyncGroup<u32, Counted> = SyncGroup::new();
        let bomb = Bomb;
        group.do_many(&[1, 2, 1], move |missing| {
            let _held = &bomb;
            missing.into_iter().map(|number| census.thing(*number)).collect()
        })
    });
    assert_no_value_is_left("tasks", |census| {
        let group: AsyncGroup<u32, Counted> = AsyncGroup::new();
        let bomb = Bomb;
        let work = move |missing: Vec<&u32>| {
            let _held = &bomb;
            let things = missing.into_iter().map(|number| census.thing(*number)).collect();
            core::future::ready(things)
        };
        smol::block_on(group.do_many(&[1, 2, 1], work))
    });
}

/// The work is ready at its first poll, and so never leaves the call.
#[test]
fn c8_a_task_that_takes_over_leaks_no_value_when_the_drop_of_its_work_panics() {
    struct Work {
        census: Census,
        _bomb: Bomb,
    }

    impl Future for Work {
        type Output = Arc<Counted>;

        fn poll(self: core::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            Poll::Ready(Arc::new(self.census.thing(1)))
        }
    }

    assert_no_value_is_left("a task", |census| {
        let group: AsyncGroup<u32, Arc<Counted>> = AsyncGroup::new();
        let mut lead = group.try_lead(&1);
        let work = Work { census: census.clone(), _bomb: Bomb };
        let mut call = Box::pin(group.do_call(&1, || work));
        smol::block_on(poll_fn(|cx| {
            let polled = call.as_mut().poll(cx);
            drop(lead.take());
            polled
        }))
    });
}

std::thread_local! {
    /// What the next clone in this thread does.
    static ON_CLONE: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
}

/// A value whose clones are tame, while it panics itself when it is dropped.
struct Wild {
    _counted: Counted,
    bomb: Option<Bomb>,
}

impl Clone for Wild {
    fn clone(&self) -> Self {
        let clone = Self { _counted: self._counted.clone(), bomb: None };
        ON_CLONE.take().into_iter().for_each(|hook| hook());
        clone
    }
}

/// The others leave while one makes its clone, so that it has the last hold on the value itself.
#[test]
fn c8_a_clone_is_not_leaked_when_the_drop_of_the_value_itself_panics() {
    for by_leader in [true, false] {
        assert_no_value_is_left("a clone", move |census| {
            let group: &'static AsyncGroup<u32, Wild> = Box::leak(Box::new(AsyncGroup::new()));
            let lead = group.try_lead(&1).expect("no flight is on");
            let follower = || {
                let mut call = Box::pin(group.call(&1).run(|| async { unreachable!("the guard leads") }));
                let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending());
                call
            };
            let (first, second) = (follower(), follower());
            let value = Wild { _counted: census.thing(1), bomb: Some(Bomb) };
            if by_leader {
                ON_CLONE.set(Some(Box::new(|| drop((first, second)))));
                lead.land(value)
            } else {
                let outcome = lead.land(value);
                assert!(outcome.value.bomb.is_none());
                ON_CLONE.set(Some(Box::new(|| drop(second))));
                smol::block_on(first).expect("it has landed")
            }
        });
    }
}

/// A thread that does not take over looks at the flight itself, and may be the last that holds it.
#[test]
fn c8_a_thread_that_does_not_take_over_leaks_no_clone_when_the_drop_of_the_value_itself_panics() {
    assert_no_value_is_left("a thread", |census| {
        let group: &'static AsyncGroup<u32, Wild> = Box::leak(Box::new(AsyncGroup::new()));
        let lead = group.try_lead(&1).expect("no flight is on");
        let mut other = Box::pin(group.call(&1).run(|| async { unreachable!("the guard leads") }));
        assert!(other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let (landed, has_landed) = mpsc::channel();
        let follower = thread::spawn(move || {
            ON_CLONE.set(Some(Box::new(move || {
                has_landed.recv().expect("the leader tells");
                drop(other);
            })));
            let call = group.call(&1).on_abandon(OnAbandon::Fail);
            call.run_blocking(|| unreachable!("the guard leads")).expect("it has landed")
        });
        until("both wait", || group.waiters(&1) == 2);
        let outcome = lead.land(Wild { _counted: census.thing(1), bomb: Some(Bomb) });
        landed.send(()).expect("the follower listens");
        drop(outcome);
        follower.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    });
}

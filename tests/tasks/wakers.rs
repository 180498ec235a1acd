//! Wakers are the user's code: they may poll, panic, or call the group.

use crate::by_hand::{Gate, Group, PollsInWake, Runs, Task, work};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Wake, Waker};
use std::time::Duration;

/// Fails rather than hangs.
fn within_a_minute(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match ended.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => thread.join().expect("the test itself"),
    }
}

#[test]
fn f1_an_executor_that_polls_inside_wake_sees_everybody_finish() {
    for inline in [false, true] {
        within_a_minute(move || {
            let group: Arc<Group> = Arc::new(oneflight::AsyncGroup::builder().shards(1).build());
            let (runs, gate) = (Runs::default(), Gate::default());
            let values = Arc::new(Mutex::new(Vec::new()));
            let tasks: Vec<_> = (0..4)
                .map(|_| {
                    let (group, values) = (Arc::clone(&group), Arc::clone(&values));
                    let make = work(&runs, &gate, 7);
                    PollsInWake::spawn(async move {
                        let value = match inline {
                            false => group.do_call(&1, make).await,
                            true => group.do_call_inline(&1, make).await,
                        };
                        values.lock().unwrap().push(value);
                    })
                })
                .collect();
            assert_eq!(group.waiters(&1), 3);
            gate.open();
            assert!(tasks.iter().all(|task| task.has_ended()));
            assert_eq!(*values.lock().unwrap(), [7; 4]);
            assert_eq!((runs.started(), group.in_flight()), (1, 0));
        });
    }
}

#[test]
fn f1_also_when_the_leader_is_dropped() {
    within_a_minute(|| {
        let group: Arc<Group> = Arc::new(oneflight::AsyncGroup::builder().shards(1).build());
        let (runs, gate) = (Runs::default(), Gate::default());
        let leader_group = Arc::clone(&group);
        let leader = Task::waiting(leader_group.do_call(&1, work(&runs, &gate, 7)));
        let ended = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let (group, ended, make) = (Arc::clone(&group), Arc::clone(&ended), work(&runs, &gate, 9));
                PollsInWake::spawn(async move {
                    assert_eq!(group.do_call(&1, make).await, 7);
                    ended.fetch_add(1, Ordering::SeqCst);
                })
            })
            .collect();
        drop(leader);
        gate.open();
        assert_eq!(ended.load(Ordering::SeqCst), 3);
        assert!(tasks.iter().all(|task| task.has_ended()));
    });
}

/// Calls the group when it is dropped, woken or cloned (the `Arc` cannot tell us of clones, but of the last drop).
struct CallsTheGroup {
    group: Arc<Group>,
    woken: AtomicBool,
}

impl Wake for CallsTheGroup {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        let _ = (self.group.waiters(&1), self.group.stats(), self.group.forget(&2));
    }
}

impl Drop for CallsTheGroup {
    fn drop(&mut self) {
        let _ = (self.group.waiters(&1), self.group.stats());
        assert_eq!(Task::new(self.group.do_call(&3, || async { 3 })).ready(), 3);
    }
}

#[test]
fn f2_a_waker_whose_drop_calls_the_group_is_replaced_and_the_new_one_is_woken() {
    within_a_minute(|| {
        // One shard: any lock that is held would be met.
        let group: Arc<Group> = Arc::new(oneflight::AsyncGroup::builder().shards(1).build());
        let waker = || Arc::new(CallsTheGroup { group: Arc::clone(&group), woken: AtomicBool::new(false) });
        let (runs, gate) = (Runs::default(), Gate::default());
        let mut leader = Task::waiting(group.do_call(&1, work(&runs, &gate, 7)));
        let mut follower = Task::new(group.do_call(&1, work(&runs, &gate, 9)));
        let (first, second) = (waker(), waker());
        assert!(follower.poll_with(&Waker::from(first)).is_pending());
        assert!(follower.poll_with(&Waker::from(Arc::clone(&second))).is_pending());
        assert!(leader.poll_with(&Waker::from(waker())).is_pending());
        gate.open();
        assert!(second.woken.load(Ordering::SeqCst));
        drop(second);
        assert_eq!(leader.ready(), 7);
        assert_eq!(follower.ready(), 7);
        assert_eq!(group.in_flight(), 0);
    });
}

#[test]
fn f2_also_when_callers_with_such_wakers_are_dropped() {
    within_a_minute(|| {
        let group: Arc<Group> = Arc::new(oneflight::AsyncGroup::builder().shards(1).build());
        let (runs, gate) = (Runs::default(), Gate::default());
        let waker =
            || Waker::from(Arc::new(CallsTheGroup { group: Arc::clone(&group), woken: AtomicBool::new(false) }));
        for inline in [false, true] {
            let mut tasks: Vec<Task<'_, u32>> = (0..4)
                .map(|_| match inline {
                    false => Task::new(group.do_call(&1, work(&runs, &gate, 7))),
                    true => Task::new(group.do_call_inline(&1, work(&runs, &gate, 7))),
                })
                .collect();
            assert!(tasks.iter_mut().all(|task| task.poll_with(&waker()).is_pending()));
            while !tasks.is_empty() {
                drop(tasks.remove(tasks.len() / 2));
            }
            assert_eq!(group.in_flight(), 0);
        }
    });
}

struct Panics(AtomicUsize);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a waker that panics");
    }
}

#[test]
fn f3_when_a_wakers_wake_panics_the_others_are_woken_all_the_same() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let mut leader = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 7)));
    let panics = Arc::new(Panics(AtomicUsize::new(0)));
    let mut followers: Vec<_> = (0..5).map(|_| Task::new(group.do_call(&1, work(&runs, &gate, 9)))).collect();
    for (index, follower) in followers.iter_mut().enumerate() {
        let pending = match index {
            1 | 3 => follower.poll_with(&Waker::from(Arc::clone(&panics))).is_pending(),
            _ => follower.poll().is_pending(),
        };
        assert!(pending);
    }
    gate.open();
    assert!(catch_unwind(AssertUnwindSafe(|| leader.poll().is_ready())).is_err(), "the panic is not swallowed");
    assert_eq!(panics.0.load(Ordering::SeqCst), 2);
    assert!([0, 2, 4].iter().all(|&index| followers[index].wakes() == 1));
    assert!(followers.iter_mut().all(|follower| follower.ready() == 7), "nobody has lost the value");
    assert_eq!(Task::new(group.do_call(&1, || async { 8 })).ready(), 8);
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
}

#[test]
fn f3_a_panicking_waker_does_not_abort_a_panic_under_way() {
    let (group, gate) = (Group::new(), Gate::default());
    let opens = gate.clone();
    let mut leader = Task::waiting(group.do_call(&1, || async move {
        opens.await;
        panic!("the work")
    }));
    let panics = Arc::new(Panics(AtomicUsize::new(0)));
    let mut follower = Task::new(group.do_call(&1, || async { 9 }));
    assert!(follower.poll_with(&Waker::from(Arc::clone(&panics))).is_pending());
    // As the standby; the leader is woken all the same.
    assert!(catch_unwind(AssertUnwindSafe(|| gate.open())).is_err());
    assert!(leader.wakes() > 0);
    let mut other = Task::new(group.do_call_inline(&1, || async { 8 }));
    assert!(other.poll().is_ready(), "it drove the work into its panic, and went on with its own");
    assert_eq!(follower.ready(), 8);
    assert!(catch_unwind(AssertUnwindSafe(|| leader.poll().is_ready())).is_err());
    assert_eq!(group.in_flight(), 0);
}

//! Wakers are the user's code: they may poll, panic, or call the group.

use crate::by_hand::{Gate, Group, PollsInWake, Runs, Task, within_a_minute, work};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

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

struct PanicsWhenDropped(Arc<AtomicBool>);

impl Wake for PanicsWhenDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        if self.0.swap(false, Ordering::SeqCst) {
            panic!("a waker that panics when it is dropped");
        }
    }
}

/// A waker that panics when its last clone is dropped, once this is set.
fn panics_when_dropped() -> (Waker, Arc<AtomicBool>) {
    let armed = Arc::new(AtomicBool::new(false));
    (Waker::from(Arc::new(PanicsWhenDropped(Arc::clone(&armed)))), armed)
}

#[test]
fn f3_a_waker_that_panics_when_its_task_takes_over_costs_nobody_else_the_flight() {
    for inline in [false, true] {
        let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
        let leader = Task::waiting(group.do_call_inline(&1, work(&runs, &gate, 7)));
        let mut others: Vec<_> = (0..2).map(|_| Task::waiting(group.do_call(&1, work(&runs, &gate, 8)))).collect();
        let mut takes_over = match inline {
            false => Task::new(group.do_call(&1, work(&runs, &gate, 9))),
            true => Task::new(group.do_call_inline(&1, work(&runs, &gate, 9))),
        };
        let (waker, armed) = panics_when_dropped();
        assert!(takes_over.poll_with(&waker).is_pending());
        drop(waker);
        // Two are told, and the third is polled by chance.
        drop(leader);
        armed.store(true, Ordering::SeqCst);
        assert!(catch_unwind(AssertUnwindSafe(|| takes_over.poll().is_ready())).is_err(), "the panic is its own");
        gate.open();
        assert_eq!(others[1].ready(), 8, "inline: {inline}");
        assert_eq!(others[0].ready(), 8);
        assert_eq!((runs.started(), group.in_flight()), (2, 0));
    }
}

#[test]
fn f3_a_waker_that_panics_when_the_last_caller_leaves_does_not_keep_its_work_from_going_on() {
    let spawned = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&spawned);
    let group: Group = oneflight::AsyncGroup::builder().spawner(move |work| keeps.lock().unwrap().push(work)).build();
    let (runs, gate) = (Runs::default(), Gate::default());
    let mut caller = Task::new(group.call(&1).detach().run(work(&runs, &gate, 7)));
    let (waker, armed) = panics_when_dropped();
    assert!(caller.poll_with(&waker).is_pending());
    drop(waker);
    armed.store(true, Ordering::SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(caller))).is_err());
    gate.open();
    let driver = spawned.lock().unwrap().pop().expect("the work goes on");
    Task::new(driver).ready();
    assert_eq!((runs.started(), runs.dropped(), group.in_flight()), (1, 1, 0));
}

/// Wakers that do what they like when they are cloned and when each clone is dropped, which no safe waker can.
#[expect(unsafe_code, reason = "a waker's own functions can only be set that way")]
mod hooked {
    use std::cell::Cell;
    use std::task::{RawWaker, RawWakerVTable, Waker};

    type Hook = Cell<Option<Box<dyn FnOnce()>>>;

    std::thread_local! {
        /// What the next clone in this thread does.
        pub(super) static ON_CLONE: Hook = const { Cell::new(None) };
        /// What the next drop does.
        pub(super) static ON_DROP: Hook = const { Cell::new(None) };
    }

    pub(super) fn waker() -> Waker {
        const VTABLE: RawWakerVTable = RawWakerVTable::new(clone, ignore, ignore, drop);
        fn clone(_: *const ()) -> RawWaker {
            ON_CLONE.take().into_iter().for_each(|hook| hook());
            RawWaker::new(std::ptr::null(), &VTABLE)
        }
        fn drop(_: *const ()) {
            ON_DROP.take().into_iter().for_each(|hook| hook());
        }
        const fn ignore(_: *const ()) {}
        // SAFETY: its functions look at no data, from any thread.
        unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) }
    }
}

/// The clone is made between two looks at the flight, and is of no use after the second.
#[test]
fn f2_a_waker_is_dropped_outside_the_lock_when_the_flight_lands_while_it_is_cloned() {
    for panics in [false, true] {
        within_a_minute(move || {
            let group: &'static Group = Box::leak(Box::new(oneflight::AsyncGroup::builder().shards(1).build()));
            let guard = group.try_lead(&1).expect("no flight is on");
            let other = Task::waiting(group.do_call(&1, || async { 8 }));
            hooked::ON_CLONE.set(Some(Box::new(move || {
                guard.land(7);
                hooked::ON_DROP.set(Some(Box::new(move || {
                    drop(other);
                    assert!(!panics, "a waker that panics when it is dropped");
                })));
            })));
            let waker = std::mem::ManuallyDrop::new(hooked::waker());
            let mut follower = Task::new(group.do_call(&1, || async { 9 }));
            let polled = catch_unwind(AssertUnwindSafe(|| follower.poll_with(&waker)));
            assert_eq!(polled.ok(), (!panics).then_some(std::task::Poll::Ready(7)));
            drop(follower);
            assert_eq!(group.in_flight(), 0);
        });
    }
}

/// As above, but the flight is left without a leader, and this task is to take it over: it must not be led by nobody.
#[test]
fn f3_a_waker_that_panics_when_it_is_of_no_use_does_not_keep_a_lead_that_its_task_was_to_take_over() {
    for inline in [false, true] {
        let group: &'static Group = Box::leak(Box::new(Group::new()));
        let guard = group.try_lead(&1).expect("no flight is on");
        hooked::ON_CLONE.set(Some(Box::new(move || {
            drop(guard);
            hooked::ON_DROP.set(Some(Box::new(|| panic!("a waker that panics when it is dropped"))));
        })));
        let waker = std::mem::ManuallyDrop::new(hooked::waker());
        let mut heir = match inline {
            false => Task::new(group.do_call(&1, || async { 9 })),
            true => Task::new(group.do_call_inline(&1, || async { 9 })),
        };
        assert!(catch_unwind(AssertUnwindSafe(|| heir.poll_with(&waker))).is_err(), "the panic is its own");
        assert_eq!(Task::new(group.do_call(&1, || async { 8 })).ready(), 8, "inline: {inline}");
        drop(heir);
        assert_eq!(group.in_flight(), 0);
    }
}

#[test]
fn f3_a_waker_that_panics_when_it_is_cloned_costs_nobody_else_the_flight() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let panics = std::mem::ManuallyDrop::new(hooked::waker());
    let panic = || -> Option<Box<dyn FnOnce()>> { Some(Box::new(|| panic!("a waker that panics when it is cloned"))) };
    let mut leader = Task::new(group.do_call(&1, work(&runs, &gate, 7)));
    hooked::ON_CLONE.set(panic());
    assert!(catch_unwind(AssertUnwindSafe(|| leader.poll_with(&panics))).is_err());
    let mut follower = Task::waiting(group.do_call(&1, work(&runs, &gate, 9)));
    let mut panicking = Task::new(group.do_call(&1, work(&runs, &gate, 9)));
    hooked::ON_CLONE.set(panic());
    assert!(catch_unwind(AssertUnwindSafe(|| panicking.poll_with(&panics))).is_err());
    gate.open();
    assert_eq!(follower.wakes(), 1);
    assert_eq!((follower.ready(), panicking.ready()), (7, 7));
    assert_eq!((runs.started(), group.in_flight()), (1, 0));
    drop(leader);
}

/// Work that keeps its waker here for ever, and ends when it is polled again.
struct Hoarder<V>(Arc<Mutex<Vec<Waker>>>, Option<V>);

impl<V: Clone + Unpin> std::future::Future for Hoarder<V> {
    type Output = V;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<V> {
        let mut hoard = self.0.lock().unwrap();
        hoard.push(cx.waker().clone());
        let polls = hoard.len();
        drop(hoard);
        if polls > 1 {
            std::task::Poll::Ready(self.1.take().expect("polled to its end once"))
        } else {
            std::task::Poll::Pending
        }
    }
}

#[test]
fn a_waker_that_outlives_its_flight_keeps_nothing_of_the_users() {
    for (followed, collected) in [(false, false), (true, false), (true, true)] {
        let group: oneflight::AsyncGroup<u32, Arc<u32>> = oneflight::AsyncGroup::new();
        let hoard = Arc::new(Mutex::new(Vec::new()));
        let value = Arc::new(7);
        let (keeps, result) = (Arc::clone(&hoard), Arc::clone(&value));
        let mut leader = Task::waiting(group.do_call(&1, move || Hoarder(keeps, Some(result))));
        let mut follower = Task::new(group.do_call(&1, || async { Arc::new(9) }));
        assert!(!followed || follower.poll().is_pending());
        // Woken twice, so that the driver's waker is there again when it ends.
        let waker = Arc::new(CountsNothing);
        assert!(!followed || leader.wakes() == 0);
        hoard.lock().unwrap()[0].wake_by_ref();
        assert!(leader.poll_with(&Waker::from(Arc::clone(&waker))).is_ready());
        assert!(!collected || follower.ready() == value);
        drop(follower);
        assert_eq!(hoard.lock().unwrap().len(), 2);
        assert_eq!(Arc::strong_count(&value), 1, "followed: {followed}, collected: {collected}");
        assert_eq!(Arc::strong_count(&waker), 1);
        assert_eq!(leader.holders(), 1);
    }
}

struct CountsNothing;

impl Wake for CountsNothing {
    fn wake(self: Arc<Self>) {}
}

/// A payload whose destructor panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a payload that panics when it is dropped");
    }
}

struct PanicsWithABomb;

impl Wake for PanicsWithABomb {
    fn wake(self: Arc<Self>) {
        std::panic::panic_any(Bomb);
    }
}

#[test]
fn f3_payloads_that_panic_when_they_are_dropped_keep_nobody_asleep() {
    let (group, runs, gate) = (Group::new(), Runs::default(), Gate::default());
    let guard = group.try_lead(&1).expect("no flight is on");
    let bombs = Waker::from(Arc::new(PanicsWithABomb));
    let mut tasks: Vec<_> = (0..5).map(|_| Task::new(group.do_call(&1, work(&runs, &gate, 9)))).collect();
    for (index, task) in tasks.iter_mut().enumerate() {
        let pending = if index < 3 { task.poll_with(&bombs) } else { task.poll() };
        assert!(pending.is_pending());
    }
    let payload = catch_unwind(AssertUnwindSafe(|| guard.land(7))).expect_err("the first of them goes on");
    std::mem::forget(payload);
    assert!(tasks[3..].iter().all(|task| task.wakes() == 1));
    assert!(tasks.iter_mut().all(|task| task.ready() == 7));
    // And where nobody is left whose panic it is.
    let leader = Task::waiting(group.do_call(&2, {
        let gate = gate.clone();
        || async move {
            gate.await;
            std::panic::panic_any(Bomb)
        }
    }));
    let mut follower = Task::waiting(group.do_call(&2, || async { 8 }));
    drop(leader);
    gate.open();
    assert_eq!(follower.ready(), 8);
    assert_eq!((runs.started(), group.in_flight()), (0, 0));
}

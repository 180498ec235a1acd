//! The value of a flight that has landed: who clones it, who takes it, and until when it is kept.

use crate::by_hand::{Gate, Task};
use oneflight::{AsyncGroup, CallError, OnAbandon};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

/// A value that counts its clones, and can be asked how many of it there are.
struct Counted {
    clones: Arc<AtomicUsize>,
    _alive: Arc<()>,
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::SeqCst);
        Self { clones: Arc::clone(&self.clones), _alive: Arc::clone(&self._alive) }
    }
}

/// One flight whose work leaves a clone of its waker behind, as a timer keeps one.
#[derive(Default)]
struct Stale {
    group: AsyncGroup<u32, Counted>,
    gate: Gate,
    kept: Arc<Mutex<Vec<Waker>>>,
    clones: Arc<AtomicUsize>,
    alive: Arc<Mutex<Weak<()>>>,
}

impl Stale {
    fn call(&self, on_abandon: OnAbandon) -> Task<'_, Result<Counted, CallError>> {
        let (gate, kept) = (self.gate.clone(), Arc::clone(&self.kept));
        let (clones, alive) = (Arc::clone(&self.clones), Arc::clone(&self.alive));
        let work = move || async move {
            let mut polled = false;
            // The second waker is the flight's own.
            poll_fn(|cx| {
                kept.lock().unwrap().push(cx.waker().clone());
                if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            gate.await;
            let value = Arc::new(());
            *alive.lock().unwrap() = Arc::downgrade(&value);
            Counted { clones, _alive: value }
        };
        let call = self.group.call(&1).on_abandon(on_abandon).run(work);
        Task::waiting(async { call.await.map(|outcome| outcome.value) })
    }

    /// Has the work polled with the flight's own waker.
    fn wake(&self, leader: &mut Task<'_, Result<Counted, CallError>>) {
        self.kept.lock().unwrap()[0].wake_by_ref();
        assert!(leader.poll().is_pending());
        assert_eq!(self.kept.lock().unwrap().len(), 2);
    }

    /// How many values there are.
    fn values(&self) -> usize {
        self.alive.lock().unwrap().strong_count()
    }

    fn clones(&self) -> usize {
        self.clones.load(Ordering::SeqCst)
    }
}

#[test]
fn a_waker_that_is_kept_does_not_keep_the_value_once_all_have_collected() {
    let stale = Stale::default();
    let mut leader = stale.call(OnAbandon::TakeOver);
    stale.wake(&mut leader);
    let mut followers: Vec<_> = (0..3).map(|_| stale.call(OnAbandon::TakeOver)).collect();
    stale.gate.open();
    drop(leader.ready());
    for follower in &mut followers {
        assert!(stale.values() > 0);
        drop(follower.ready());
    }
    assert_eq!((stale.values(), stale.clones()), (0, 3));
}

#[test]
fn a_waker_that_is_kept_does_not_keep_the_value_if_nobody_collects() {
    let stale = Stale::default();
    let mut leader = stale.call(OnAbandon::TakeOver);
    stale.wake(&mut leader);
    let followers: Vec<_> = (0..3).map(|_| stale.call(OnAbandon::TakeOver)).collect();
    stale.gate.open();
    drop(leader.ready());
    assert_eq!(stale.values(), 1);
    drop(followers);
    assert_eq!((stale.values(), stale.group.in_flight()), (0, 0));
}

/// One that waited for an attempt that was abandoned does not get the value of the next, however late it is polled.
#[test]
fn those_who_will_not_collect_keep_no_value() {
    let (clones, alive) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
    let group: AsyncGroup<u32, Counted> = AsyncGroup::new();
    let fails = || {
        let call = group.call(&1).on_abandon(OnAbandon::Fail).run(|| async { unreachable!("it does not lead") });
        Task::waiting(async { call.await.map(|outcome| outcome.value) })
    };
    let first = group.try_lead(&1).expect("no flight is on");
    let mut outdated = fails();
    drop(first);
    let second = group.try_lead(&1).expect("it is vacant");
    let follower = fails();
    second.land(Counted { clones, _alive: Arc::clone(&alive) });
    assert_eq!(Arc::strong_count(&alive), 2, "for the follower");
    drop(follower);
    assert_eq!(Arc::strong_count(&alive), 1);
    assert!(matches!(outdated.ready(), Err(CallError::Abandoned)));
}

#[test]
fn the_last_follower_takes_the_value_whoever_has_left() {
    let stale = Stale::default();
    let mut leader = stale.call(OnAbandon::TakeOver);
    stale.wake(&mut leader);
    let (mut one, other) = (stale.call(OnAbandon::TakeOver), stale.call(OnAbandon::TakeOver));
    stale.gate.open();
    let kept = leader.ready();
    drop(other);
    assert_eq!(stale.clones(), 1, "the leader's");
    let taken = one.ready();
    assert_eq!((stale.values(), stale.clones()), (2, 1), "the leader's, and the value itself");
    drop((kept, taken));
    assert_eq!(stale.values(), 0);
}

/// Those that do not take over, and the maker of work that another drove, collect in another way than the rest.
#[test]
fn followers_of_every_kind_get_the_value_and_n_callers_cost_n_minus_one_clones() {
    for last in 0..4 {
        let stale = Stale::default();
        let mut maker = stale.call(OnAbandon::TakeOver);
        stale.wake(&mut maker);
        let mut driver = stale.call(OnAbandon::TakeOver);
        let mut others: Vec<_> =
            [OnAbandon::TakeOver, OnAbandon::Fail, OnAbandon::TakeOver].map(|kind| stale.call(kind)).into();
        stale.gate.open();
        assert!(driver.ready().is_ok());
        others.insert(0, maker);
        let last = others.remove(last);
        others.push(last);
        for other in &mut others {
            assert!(other.ready().is_ok());
        }
        assert_eq!((stale.values(), stale.clones(), stale.group.in_flight()), (0, 4, 0));
    }
}

#[test]
fn followers_of_every_kind_that_leave_leave_no_value_behind() {
    let stale = Stale::default();
    let mut maker = stale.call(OnAbandon::TakeOver);
    stale.wake(&mut maker);
    let mut driver = stale.call(OnAbandon::TakeOver);
    let others = [OnAbandon::TakeOver, OnAbandon::Fail, OnAbandon::TakeOver].map(|kind| stale.call(kind));
    stale.gate.open();
    assert!(driver.ready().is_ok());
    for other in others {
        assert_eq!(stale.values(), 1);
        drop(other);
    }
    assert_eq!(stale.values(), 1);
    drop(maker);
    assert_eq!((stale.values(), stale.group.in_flight()), (0, 0));
}

/// Work with the value `.0`, which waits for the gate if there is one, and panics when it is dropped.
struct PanicsWhenDropped(Arc<()>, Option<Gate>);

impl Future for PanicsWhenDropped {
    type Output = Arc<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Arc<()>> {
        let gate = self.1.as_mut().map_or(Poll::Ready(()), |gate| Pin::new(gate).poll(cx));
        gate.map(|()| Arc::clone(&self.0))
    }
}

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("work that panics when it is dropped");
    }
}

/// Whatever else becomes of the call: the value is dropped, not leaked.
#[test]
fn c8_a_value_whose_work_panics_when_it_is_dropped_is_not_leaked() {
    let value = Arc::new(());
    for waits in [false, true] {
        for followers in 0..2 {
            let group = oneflight::AsyncGroup::<u32, Arc<()>>::new();
            let gate = Gate::default();
            let work = || PanicsWhenDropped(Arc::clone(&value), waits.then(|| gate.clone()));
            let mut call = Task::new(group.do_call(&1, work));
            if waits {
                assert!(call.poll().is_pending());
            }
            let follow = || Task::waiting(group.do_call(&1, || async { unreachable!("a flight is on") }));
            let mut others: Vec<_> = (0..if waits { followers } else { 0 }).map(|_| follow()).collect();
            gate.open();
            assert!(catch_unwind(AssertUnwindSafe(|| call.poll().is_ready())).is_err());
            others.iter_mut().for_each(|other| drop(other.ready()));
            drop((call, others));
            assert_eq!(Arc::strong_count(&value), 1, "waits: {waits}, followers: {followers}");
        }
    }
}

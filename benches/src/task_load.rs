//! What contenders that coalesce tasks are made to do, and how long it took.

use crate::contender::Key;
use crate::contender::tasks::Coalesces;
use crate::executor::{BlockOn, Counting, Executor};
use crate::load::Work;
use crate::machine;
use crate::task_work::{Clock, Gate};
use crate::workload::{Measured, undisturbed};
use alloc::sync::Arc;
use core::borrow::Borrow as _;
use core::cell::Cell;
use core::future::{Future as _, poll_fn};
use core::hint::black_box;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::time::Instant;

/// One task calls, one key after the other, round and round; its work never waits. Nanoseconds a call.
#[must_use]
pub fn alone<Q>(on: &impl BlockOn, contender: &impl Coalesces<Q>, keys: &[Q::Owned], calls: usize) -> f64
where
    Q: Key + ?Sized,
{
    undisturbed(|| {
        on.block_on(call_all(contender, keys, calls / 8));
        let measured = Measured::from(|| on.block_on(call_all(contender, keys, calls)));
        (measured.nanos_a_call(calls), measured.disturbed)
    })
}

async fn call_all<Q>(contender: &impl Coalesces<Q>, keys: &[Q::Owned], calls: usize)
where
    Q: Key + ?Sized,
{
    for (number, key) in (0..calls as u64).zip(keys.iter().cycle()) {
        let work = || async move { Work::TRIVIAL.run(black_box(number)) };
        black_box(contender.call(black_box(key.borrow()), work).await);
    }
}

/// Each of these sequences of keys is asked for by a task of its own. Nanoseconds from the first start to the last end, for each call
/// of *one* of two threads; and how many works were run for each call, if they are to be counted: trivial work would not hide that.
#[must_use]
pub fn mix<Q, C>(
    executor: &impl Executor,
    contender: &Arc<C>,
    asked: &[Arc<[Q::Owned]>],
    work: Work,
    counts: bool,
) -> [f64; 2]
where
    Q: Key + ?Sized,
    C: Coalesces<Q>,
{
    let (done, left) = (Arc::new(Gate::default()), Arc::new(AtomicUsize::new(asked.len())));
    let calls: usize = asked.iter().map(|keys| keys.len()).sum();
    let works: Vec<_> = asked.iter().map(|_| counts.then(|| Arc::new(CachePadded::new(AtomicU64::new(0))))).collect();
    let main = async {
        for (keys, works) in asked.iter().zip(&works) {
            let works = works.clone();
            let (contender, keys, done, left) =
                (Arc::clone(contender), Arc::clone(keys), Arc::clone(&done), Arc::clone(&left));
            executor.spawn(async move {
                for (number, key) in (0..).zip(&*keys) {
                    let works = works.clone();
                    let work = || async move {
                        if let Some(works) = works {
                            works.fetch_add(1, Ordering::Relaxed);
                        }
                        work.run(black_box(number))
                    };
                    black_box(contender.call(black_box(key.borrow()), work).await);
                }
                if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                    done.open();
                }
            });
        }
        done.passed().await;
    };
    let start = Instant::now();
    executor.block_on(main);
    let nanos = start.elapsed().as_secs_f64() * 1e9 / calls as f64 * 2.0;
    let works: u64 = works.iter().flatten().map(|works| works.load(Ordering::Relaxed)).sum();
    [nanos, works as f64 / calls as f64]
}

/// Whether a call that begins when the work has ended gets its value all the same, as long as somebody has not fetched it yet.
pub fn serves_the_late(contender: &impl Coalesces<u64>, on: &impl BlockOn) -> bool {
    const POLLS: usize = 8;
    let gate = Arc::new(Gate::default());
    let opens = Arc::clone(&gate);
    let mut first = pin!(contender.call(&1, || async move {
        opens.passed().await;
        1
    }));
    let mut slow = pin!(contender.call(&1, || async { 2 }));
    let mut late = pin!(contender.call(&1, || async { 3 }));
    // On its executor, as some need one.
    on.block_on(async {
        let cx = &mut Context::from_waker(Waker::noop());
        let is_on = first.as_mut().poll(cx).is_pending() && slow.as_mut().poll(cx).is_pending();
        gate.open();
        let has_landed = is_on && (0..POLLS).any(|_| first.as_mut().poll(cx).is_ready());
        let end_of_late = |_| match late.as_mut().poll(cx) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        };
        has_landed && (0..POLLS).find_map(end_of_late) == Some(1)
    })
}

/// What the tasks of a fan-out tell each other.
#[derive(Default)]
struct Scene {
    led: Arc<Gate>,
    landing: Arc<Gate>,
    all_wait: Arc<Gate>,
    all_served: Arc<Gate>,
    waiting: AtomicUsize,
    served: AtomicUsize,
    /// Followers whose own work was run.
    worked: AtomicU64,
    /// The end of the work, and the moment when the last follower had its value.
    moments: [Mutex<Option<Moment>>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    time: Instant,
    /// How often the thread had lost its core by then.
    preemptions: u64,
}

impl Scene {
    fn note_end_of_work(&self) {
        let preemptions = machine::preemptions();
        *self.moments[0].lock() = Some(Moment { time: Instant::now(), preemptions });
    }

    fn note_last_one(&self) {
        let time = Instant::now();
        *self.moments[1].lock() = Some(Moment { time, preemptions: machine::preemptions() });
    }
}

/// One task leads, and lands when `followers` tasks wait. Nanoseconds for each of them, from the end of the work until the
/// last one has its value; and how many of them had to work.
#[must_use]
pub fn fan_out<Q, C>(executor: &impl Executor, contender: &Arc<C>, followers: usize) -> [f64; 2]
where
    Q: Key + ?Sized,
    C: Coalesces<Q>,
{
    let worked = Cell::new(0);
    let nanos = undisturbed(|| {
        let (nanos, disturbed, had_to_work) = fan_out_once(executor, contender, followers);
        worked.set(worked.get().max(had_to_work));
        (nanos, disturbed)
    });
    [nanos, worked.get() as f64]
}

fn fan_out_once<Q, C>(executor: &impl Executor, contender: &Arc<C>, followers: usize) -> (f64, bool, u64)
where
    Q: Key + ?Sized,
    C: Coalesces<Q>,
{
    let scene = Arc::new(Scene::default());
    let main = async {
        executor.spawn(lead::<Q, C>(Arc::clone(contender), Arc::clone(&scene)));
        scene.led.passed().await;
        for _ in 0..followers {
            executor.spawn(follow::<Q, C>(Arc::clone(contender), Arc::clone(&scene), followers));
        }
        scene.all_wait.passed().await;
        scene.landing.open();
        scene.all_served.passed().await;
    };
    executor.block_on(main);
    let [landed, served] = [0, 1].map(|moment| scene.moments[moment].lock().expect("it was noted"));
    let nanos = (served.time - landed.time).as_secs_f64() * 1e9 / followers as f64;
    // A large one takes so long that it is never undisturbed.
    let may_be_undisturbed = executor.runs_on_this_thread() && followers <= 10_000;
    let disturbed = may_be_undisturbed && served.preemptions != landed.preemptions;
    (nanos, disturbed, scene.worked.load(Ordering::SeqCst))
}

async fn lead<Q: Key + ?Sized, C: Coalesces<Q>>(contender: Arc<C>, scene: Arc<Scene>) {
    let work = || {
        let scene = Arc::clone(&scene);
        async move {
            scene.led.open();
            scene.landing.passed().await;
            scene.note_end_of_work();
            1
        }
    };
    black_box(contender.call(Q::ONE, work).await);
}

async fn follow<Q: Key + ?Sized, C: Coalesces<Q>>(contender: Arc<C>, scene: Arc<Scene>, followers: usize) {
    let value = {
        let mut call = pin!(contender.call(Q::ONE, || async { 0 }));
        let mut is_first = true;
        // Said after the poll: whoever has said it waits.
        let polls = poll_fn(|cx| {
            let polled = call.as_mut().poll(cx);
            if core::mem::take(&mut is_first) && scene.waiting.fetch_add(1, Ordering::SeqCst) + 1 == followers {
                scene.all_wait.open();
            }
            polled
        });
        polls.await
    };
    // A leader's value is 1.
    scene.worked.fetch_add(1 - value, Ordering::Relaxed);
    if scene.served.fetch_add(1, Ordering::SeqCst) + 1 == followers {
        scene.note_last_one();
        scene.all_served.open();
    }
}

/// What became of a crowd whose work waits again and again.
#[derive(Clone, Copy, Debug)]
pub struct Woken {
    /// From waking the work until every task that this woke has been polled.
    pub nanos_a_wake: f64,
    /// From the last wake until all are served.
    pub nanos_a_follower: f64,
    /// Polls a follower, on average.
    pub polls: f64,
    /// Polls of the follower that was polled most.
    pub most_polls: f64,
}

/// One task leads work that is woken `wakes` times while `followers` tasks wait, on a hand-written executor that costs next
/// to nothing.
///
/// # Panics
///
/// If somebody is not served.
#[must_use]
pub fn woken(contender: &impl Coalesces<u64>, followers: usize, wakes: u32) -> Woken {
    let clock = Clock::default();
    let mut tasks = Counting::default();
    let leader = tasks.add(contender.call(u64::ONE, || clock.steps(wakes + 1)));
    tasks.run();
    for _ in 0..followers {
        tasks.add(contender.call(u64::ONE, || clock.steps(0)));
    }
    tasks.run();
    let start = Instant::now();
    for _ in 0..wakes {
        clock.tick();
        tasks.run();
    }
    let landing = Instant::now();
    clock.tick();
    tasks.run();
    let end = Instant::now();
    assert_eq!(tasks.unfinished(), 0, "somebody is not served");
    let polls: alloc::vec::Vec<u32> = tasks.polls().enumerate().filter(|&(n, _)| n != leader).map(|(_, p)| p).collect();
    Woken {
        nanos_a_wake: (landing - start).as_secs_f64() * 1e9 / f64::from(wakes.max(1)),
        nanos_a_follower: (end - landing).as_secs_f64() * 1e9 / followers.max(1) as f64,
        polls: f64::from(polls.iter().sum::<u32>()) / polls.len().max(1) as f64,
        most_polls: f64::from(polls.iter().copied().max().unwrap_or(0)),
    }
}

/// One task leads, `followers` wait, and the leader is dropped. Microseconds until the last one is served, and how many
/// executions that took, the dropped one included.
///
/// # Panics
///
/// If somebody is not served.
#[must_use]
pub fn leader_dropped(contender: &impl Coalesces<u64>, followers: usize) -> [f64; 2] {
    let gate = Arc::new(Gate::default());
    let executions = Arc::new(AtomicUsize::new(0));
    let mut tasks = Counting::default();
    let mut call = || {
        let work = || {
            let (passed, executions) = (gate.passed(), Arc::clone(&executions));
            // Counted when it is polled: some make work that they never start.
            async move {
                executions.fetch_add(1, Ordering::Relaxed);
                passed.await;
                1
            }
        };
        let number = tasks.add(contender.call(u64::ONE, work));
        tasks.run();
        number
    };
    let leader = call();
    for _ in 0..followers {
        call();
    }
    let start = Instant::now();
    tasks.cancel(leader);
    gate.open();
    tasks.run();
    let micros = start.elapsed().as_secs_f64() * 1e6;
    assert_eq!(tasks.unfinished(), 0, "somebody is not served");
    drop(tasks);
    [micros, executions.load(Ordering::Relaxed) as f64]
}

//! What contenders that coalesce tasks are made to do, and how long it took.

use crate::contender::tasks::Coalesces;
use crate::executor::{Counting, Executor};
use crate::load::Work;
use crate::machine;
use crate::task_work::{Clock, Gate};
use crate::workload::{Measured, undisturbed};
use alloc::sync::Arc;
use core::future::{Future as _, poll_fn};
use core::hint::black_box;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use parking_lot::Mutex;
use std::time::Instant;

const KEY: u64 = 7;

/// One task calls, one key after the other, round and round; its work never waits. Nanoseconds a call.
#[must_use]
pub fn alone(contender: &impl Coalesces, keys: &[u64], work: Work, calls: usize) -> f64 {
    undisturbed(|| {
        call_all(contender, keys, work, calls / 8);
        let measured = Measured::from(|| call_all(contender, keys, work, calls));
        (measured.nanos_a_call(calls), measured.disturbed)
    })
}

#[inline(never)]
fn call_all(contender: &impl Coalesces, keys: &[u64], work: Work, calls: usize) {
    let mut cx = Context::from_waker(Waker::noop());
    for (number, key) in (0..calls as u64).zip(keys.iter().cycle()) {
        let mut call = pin!(contender.call(black_box(key), || async move { work.run(black_box(number)) }));
        let value = loop {
            if let Poll::Ready(value) = call.as_mut().poll(&mut cx) {
                break value;
            }
        };
        black_box(value);
    }
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
    sum: AtomicU64,
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
/// last one has its value.
///
/// # Panics
///
/// If a follower had to work.
#[must_use]
pub fn fan_out<C: Coalesces>(executor: &impl Executor, contender: &Arc<C>, followers: usize) -> f64 {
    undisturbed(|| fan_out_once(executor, contender, followers))
}

fn fan_out_once<C: Coalesces>(executor: &impl Executor, contender: &Arc<C>, followers: usize) -> (f64, bool) {
    let scene = Arc::new(Scene::default());
    let main = async {
        executor.spawn(lead(Arc::clone(contender), Arc::clone(&scene)));
        scene.led.passed().await;
        for _ in 0..followers {
            executor.spawn(follow(Arc::clone(contender), Arc::clone(&scene), followers));
        }
        scene.all_wait.passed().await;
        scene.landing.open();
        scene.all_served.passed().await;
    };
    executor.block_on(main);
    assert_eq!(scene.sum.load(Ordering::SeqCst), followers as u64, "a follower had to work");
    let [landed, served] = [0, 1].map(|moment| scene.moments[moment].lock().expect("it was noted"));
    let nanos = (served.time - landed.time).as_secs_f64() * 1e9 / followers as f64;
    // A large one takes so long that it is never undisturbed.
    let may_be_undisturbed = executor.runs_on_this_thread() && followers <= 10_000;
    (nanos, may_be_undisturbed && served.preemptions != landed.preemptions)
}

async fn lead<C: Coalesces>(contender: Arc<C>, scene: Arc<Scene>) {
    let work = || {
        let scene = Arc::clone(&scene);
        async move {
            scene.led.open();
            scene.landing.passed().await;
            scene.note_end_of_work();
            1
        }
    };
    black_box(contender.call(&KEY, work).await);
}

async fn follow<C: Coalesces>(contender: Arc<C>, scene: Arc<Scene>, followers: usize) {
    let value = {
        let mut call = pin!(contender.call(&KEY, || async { 0 }));
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
    scene.sum.fetch_add(value, Ordering::Relaxed);
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
pub fn woken(contender: &impl Coalesces, followers: usize, wakes: u32) -> Woken {
    let clock = Clock::default();
    let mut tasks = Counting::default();
    let leader = tasks.add(contender.call(&KEY, || clock.steps(wakes + 1)));
    tasks.run();
    for _ in 0..followers {
        tasks.add(contender.call(&KEY, || clock.steps(0)));
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
pub fn leader_dropped(contender: &impl Coalesces, followers: usize) -> [f64; 2] {
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
        let number = tasks.add(contender.call(&KEY, work));
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

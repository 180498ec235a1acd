//! What the models have in common. Nothing at all without `--cfg loom`.

#![cfg(loom)]
#![forbid(unsafe_code)]
#![deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc, clippy::alloc_instead_of_core)]

extern crate alloc;

pub mod tasks;

use core::any::type_name;
use core::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use oneflight::{CallError, DefaultHashBuilder, Lead, Outcome, Role, SyncGroup};

/// The group of most models.
pub type Group = SyncGroup<u32, u32>;

/// The lead of one of its flights.
pub type GroupLead<'g> = Lead<'g, u32, u32, DefaultHashBuilder>;

/// The key that everybody asks for.
pub const KEY: u32 = 7;

/// How many times a thread that could go on may be interrupted by another, unless `LOOM_MAX_PREEMPTIONS` says otherwise.
const PREEMPTIONS: usize = 2;

/// Runs `model` in every interleaving of its threads with so many preemptions, and prints how many those were.
///
/// # Panics
///
/// If the model does in one of them, or ends there with something of loom's left over.
pub fn check<F: Fn() + Send + Sync + 'static>(model: F) {
    let mut builder = loom::model::Builder::new();
    let preemptions = *builder.preemption_bound.get_or_insert(PREEMPTIONS);
    let iterations = alloc::sync::Arc::new(AtomicUsize::new(0));
    let counted = alloc::sync::Arc::clone(&iterations);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    // A closure is named after the function that it stands in: `file::model::{{closure}}`.
    let name = type_name::<F>().trim_end_matches("::{{closure}}");
    println!("model {name}: {} iterations, {preemptions} preemptions", iterations.load(Ordering::Relaxed));
}

/// A group with the defaults.
#[must_use]
pub fn new_group() -> Arc<Group> {
    Arc::new(SyncGroup::new())
}

/// Begins a flight of [`KEY`], so that whoever calls afterwards finds it.
///
/// # Panics
///
/// If there is one.
pub fn lead(group: &Group) -> GroupLead<'_> {
    group.try_lead(&KEY).expect("nobody leads")
}

/// Runs `call` in a thread of its own.
pub fn spawn<G, T>(group: &Arc<G>, call: impl FnOnce(&G) -> T + 'static) -> JoinHandle<T>
where
    G: 'static,
    T: 'static,
{
    let group = Arc::clone(group);
    thread::spawn(move || call(&group))
}

/// What `thread` returned.
///
/// # Panics
///
/// If it panicked.
pub fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("a thread of the model panicked")
}

/// What each of `threads` returned.
///
/// # Panics
///
/// If one panicked.
pub fn join_all<T, const N: usize>(threads: [JoinHandle<T>; N]) -> [T; N] {
    threads.map(join)
}

/// Lets the others run until `count` of them wait for [`KEY`]: asleep, or anywhere on their way there. Saves the preemptions
/// that it would take to get them there.
pub fn until_waiting<V>(group: &SyncGroup<u32, V>, count: usize) {
    while group.waiters(&KEY) < count {
        thread::yield_now();
    }
}

/// Checks that no flight is left, and that the next call of [`KEY`] leads one.
///
/// # Panics
///
/// If it is not so.
#[track_caller]
pub fn assert_nothing_left(group: &Group) {
    assert_eq!(group.in_flight(), 0, "an entry is left behind");
    assert_eq!(group.waiters(&KEY), 0);
    let next = group.call(&KEY).run(|| 99).expect("nobody is there to wait for");
    assert_eq!((next.value, next.role, next.shared), (99, Role::Led, false));
    assert_eq!(group.in_flight(), 0);
}

/// Checks that a caller whose own work makes `own` led with that, or followed with another's value.
///
/// # Panics
///
/// If it is not so.
#[track_caller]
pub fn assert_served(result: Result<Outcome<u32>, CallError>, own: u32) -> Outcome<u32> {
    let outcome = result.expect("whoever can take over sees no error");
    assert_eq!(outcome.role == Role::Followed, outcome.value != own, "{outcome:?}, own value {own}");
    outcome
}

/// Work of which never two may run at the same time.
#[derive(Debug)]
pub struct Works {
    running: loom::sync::atomic::AtomicUsize,
    /// Loom need not know of this one: it is read after everybody has ended.
    runs: AtomicUsize,
}

impl Works {
    /// None runs yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { running: loom::sync::atomic::AtomicUsize::new(0), runs: AtomicUsize::new(0) })
    }

    /// The work of one caller, which makes `value`.
    ///
    /// # Panics
    ///
    /// If another runs.
    pub fn run(&self, value: u32) -> u32 {
        assert_eq!(self.running.fetch_add(1, Ordering::Relaxed), 0, "two works of one key run at the same time");
        self.runs.fetch_add(1, Ordering::Relaxed);
        // Work takes its time: whoever can go on meanwhile does, without a preemption.
        thread::yield_now();
        self.running.fetch_sub(1, Ordering::Relaxed);
        value
    }

    /// How many have run.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

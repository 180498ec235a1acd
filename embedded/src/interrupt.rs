//! The second context: two interrupts, which stop whatever thread mode is doing.
//!
//! PendSV runs what it is asked to, at once, and polls the tasks that live in interrupts. SysTick is the clock.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::task::{Context, Poll, Waker};
use cortex_m::peripheral::scb::VectActive;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{SCB, SYST};
use cortex_m_rt::exception;
use critical_section::Mutex;

/// The board runs at 25 MHz. A tick each 100 us is often enough to meet thread mode anywhere.
const CYCLES_PER_TICK: u32 = 2_500;

/// So that the lists of jobs and tasks never grow, and the heap looks after a scenario as it did before.
const CAPACITY: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

static SOON: Mutex<RefCell<VecDeque<Job>>> = Mutex::new(RefCell::new(VecDeque::new()));
static LATER: Mutex<RefCell<Vec<(u32, Job)>>> = Mutex::new(RefCell::new(Vec::new()));
static SLEEPERS: Mutex<RefCell<Vec<Waker>>> = Mutex::new(RefCell::new(Vec::new()));
static TASKS: Mutex<RefCell<Vec<Task>>> = Mutex::new(RefCell::new(Vec::new()));
static TICKS: AtomicU32 = AtomicU32::new(0);

/// Starts the clock.
pub(crate) fn start(syst: &mut SYST) {
    critical_section::with(|section| {
        SOON.borrow_ref_mut(section).reserve(CAPACITY);
        LATER.borrow_ref_mut(section).reserve(CAPACITY);
        TASKS.borrow_ref_mut(section).reserve(CAPACITY);
    });
    syst.set_clock_source(SystClkSource::Core);
    syst.set_reload(CYCLES_PER_TICK - 1);
    syst.clear_current();
    syst.enable_counter();
    syst.enable_interrupt();
}

/// Whether the caller runs in an interrupt.
pub(crate) fn is_here() -> bool {
    SCB::vect_active() != VectActive::ThreadMode
}

/// Runs `job` in an interrupt, now: when this returns to thread mode, it has run.
pub(crate) fn now(job: impl FnOnce() + Send + 'static) {
    let done = Arc::new(AtomicBool::new(false));
    let sign = Arc::clone(&done);
    critical_section::with(|section| {
        SOON.borrow_ref_mut(section).push_back(Box::new(move || {
            assert!(is_here());
            job();
            sign.store(true, Ordering::Release);
        }));
    });
    pend();
    assert!(done.load(Ordering::Acquire) || is_here(), "the interrupt has stopped its caller");
}

/// Runs `job` in the interrupt of the clock, `ticks` from now.
pub(crate) fn after(ticks: u32, job: impl FnOnce() + Send + 'static) {
    critical_section::with(|section| LATER.borrow_ref_mut(section).push((ticks.max(1), Box::new(job))));
}

/// Ends at the next tick.
pub(crate) async fn tick() {
    let start = TICKS.load(Ordering::Acquire);
    poll_fn(|cx| {
        // The clone is made outside: a waker is no code to run with interrupts masked.
        let waker = cx.waker().clone();
        critical_section::with(|section| {
            if TICKS.load(Ordering::Acquire) != start {
                return Poll::Ready(());
            }
            SLEEPERS.borrow_ref_mut(section).push(waker);
            Poll::Pending
        })
    })
    .await;
}

/// A task that is polled in an interrupt and nowhere else.
struct Task {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    flag: Arc<Flag>,
}

/// Wakes such a task: PendSV will look at it.
#[derive(Debug)]
struct Flag {
    woken: AtomicBool,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        pend();
    }
}

/// What a task in an interrupt came to.
#[derive(Debug)]
pub(crate) struct Handle<T>(Arc<Mutex<RefCell<Option<T>>>>);

impl<T> Handle<T> {
    /// What the task ended with. `None` if it has not ended, or was asked before.
    pub(crate) fn take(&self) -> Option<T> {
        critical_section::with(|section| self.0.borrow_ref_mut(section).take())
    }
}

/// Adds a task that is polled in an interrupt, for the first time before this returns to thread mode.
pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Handle<T> {
    let output = Arc::new(Mutex::new(RefCell::new(None)));
    let handle = Handle(Arc::clone(&output));
    let future = Box::pin(async move {
        let value = future.await;
        critical_section::with(|section| *output.borrow_ref_mut(section) = Some(value));
    });
    let flag = Arc::new(Flag { woken: AtomicBool::new(true) });
    critical_section::with(|section| TASKS.borrow_ref_mut(section).push(Task { future, flag }));
    pend();
    handle
}

/// How many tasks in interrupts have not ended.
pub(crate) fn tasks() -> usize {
    critical_section::with(|section| TASKS.borrow_ref(section).len())
}

fn pend() {
    SCB::set_pendsv();
    // From here on it has been taken, unless interrupts are masked or this is one.
    cortex_m::asm::dsb();
    cortex_m::asm::isb();
}

#[exception]
fn PendSV() {
    while let Some(job) = critical_section::with(|section| SOON.borrow_ref_mut(section).pop_front()) {
        job();
    }
    while let Some(mut task) = critical_section::with(|section| next_woken(&mut TASKS.borrow_ref_mut(section))) {
        let waker = Waker::from(Arc::clone(&task.flag));
        if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            critical_section::with(|section| TASKS.borrow_ref_mut(section).push(task));
        }
    }
}

fn next_woken(tasks: &mut Vec<Task>) -> Option<Task> {
    let index = tasks.iter().position(|task| task.flag.woken.swap(false, Ordering::AcqRel))?;
    Some(tasks.remove(index))
}

#[exception]
fn SysTick() {
    TICKS.fetch_add(1, Ordering::AcqRel);
    critical_section::with(|section| LATER.borrow_ref_mut(section).iter_mut().for_each(|(ticks, _)| *ticks -= 1));
    while let Some(job) = critical_section::with(|section| next_due(&mut LATER.borrow_ref_mut(section))) {
        job();
    }
    // The whole list, so that it takes no memory while nobody sleeps; who is woken may sleep again at once.
    for waker in critical_section::with(|section| SLEEPERS.take(section)) {
        waker.wake();
    }
}

fn next_due(later: &mut Vec<(u32, Job)>) -> Option<Job> {
    let index = later.iter().position(|(ticks, _)| *ticks == 0)?;
    Some(later.remove(index).1)
}

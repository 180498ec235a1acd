//! A peripheral that answers by an interrupt, and the work that reads it.

use crate::interrupt;
use alloc::sync::Arc;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll, Waker};
use critical_section::Mutex;

/// A sensor, seen from the tasks that read it and from the interrupt that has its samples.
#[derive(Clone, Debug)]
pub(crate) struct Sensor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    line: Mutex<RefCell<Line>>,
    reads: AtomicU32,
    running: AtomicU32,
    polls: AtomicU32,
    polls_in_interrupts: AtomicU32,
}

#[derive(Debug, Default)]
struct Line {
    sample: Option<u32>,
    waker: Option<Waker>,
    /// How often a sample was asked for.
    asked: u32,
    /// How often one was brought.
    brought: u32,
}

impl Sensor {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            line: Mutex::new(RefCell::new(Line::default())),
            reads: AtomicU32::new(0),
            running: AtomicU32::new(0),
            polls: AtomicU32::new(0),
            polls_in_interrupts: AtomicU32::new(0),
        }))
    }

    /// Work: reads one sample.
    pub(crate) fn read(&self) -> impl Future<Output = u32> + Send + use<> {
        let sensor = self.begin();
        async move { sensor.sample().await }
    }

    /// Work: reads two samples, one after the other, and adds them.
    pub(crate) fn read_sum(&self) -> impl Future<Output = u32> + Send + use<> {
        let sensor = self.begin();
        async move { sensor.sample().await + sensor.sample().await }
    }

    /// Work: reads one sample. In its first poll an interrupt comes, and does this.
    pub(crate) fn read_interrupted<I: FnOnce() + Send + 'static>(
        &self,
        interrupt: I,
    ) -> impl Future<Output = u32> + Send + use<I> {
        let sensor = self.begin();
        let mut interrupt = Some(interrupt);
        async move {
            let mut sample = sensor.sample();
            core::future::poll_fn(|cx| {
                let polled = Pin::new(&mut sample).poll(cx);
                if let Some(interrupt) = interrupt.take() {
                    interrupt::now(interrupt);
                }
                polled
            })
            .await
        }
    }

    fn begin(&self) -> Running {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        self.0.running.fetch_add(1, Ordering::Relaxed);
        Running(self.clone())
    }

    /// The interrupt's side: the sample is there.
    pub(crate) fn finish(&self, sample: u32) {
        assert!(interrupt::is_here());
        let waker = critical_section::with(|section| {
            let mut line = self.0.line.borrow_ref_mut(section);
            line.brought += 1;
            assert!(line.brought <= line.asked, "a scenario brings no sample that nobody has asked for");
            line.sample = Some(sample);
            line.waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Lets an interrupt bring the sample now.
    pub(crate) fn finish_now(&self, sample: u32) {
        let sensor = self.clone();
        interrupt::now(move || sensor.finish(sample));
    }

    /// Lets the clock's interrupt bring the sample.
    pub(crate) fn finish_after(&self, ticks: u32, sample: u32) {
        let sensor = self.clone();
        interrupt::after(ticks, move || sensor.finish(sample));
    }

    /// How many pieces of work were made.
    pub(crate) fn reads(&self) -> u32 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// How many pieces of work exist.
    pub(crate) fn running(&self) -> u32 {
        self.0.running.load(Ordering::Relaxed)
    }

    /// How often samples were asked for: work that starts over asks again.
    pub(crate) fn asked(&self) -> u32 {
        critical_section::with(|section| self.0.line.borrow_ref(section).asked)
    }

    /// How often pieces of work were polled.
    pub(crate) fn polls(&self) -> u32 {
        self.0.polls.load(Ordering::Relaxed)
    }

    /// How often of these in an interrupt.
    pub(crate) fn polls_in_interrupts(&self) -> u32 {
        self.0.polls_in_interrupts.load(Ordering::Relaxed)
    }
}

/// Counts the work out when it is dropped.
struct Running(Sensor);

impl Running {
    fn sample(&self) -> Sample<'_> {
        Sample { sensor: &self.0.0, asked: false }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits for the interrupt.
struct Sample<'a> {
    sensor: &'a Inner,
    asked: bool,
}

impl Future for Sample<'_> {
    type Output = u32;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
        self.sensor.polls.fetch_add(1, Ordering::Relaxed);
        if interrupt::is_here() {
            self.sensor.polls_in_interrupts.fetch_add(1, Ordering::Relaxed);
        }
        // Cloned and dropped outside the critical section: the waker is the flight's.
        let mut waker = Some(cx.waker().clone());
        let first = !core::mem::replace(&mut self.asked, true);
        critical_section::with(|section| {
            let mut line = self.sensor.line.borrow_ref_mut(section);
            if first {
                line.asked += 1;
                line.sample = None;
            }
            match line.sample.take() {
                Some(sample) => Poll::Ready(sample),
                None => {
                    core::mem::swap(&mut line.waker, &mut waker);
                    Poll::Pending
                }
            }
        })
    }
}

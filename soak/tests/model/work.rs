//! Works that end when they are told to.

use crate::operation::End;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// All executions of a test, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gates(Arc<Mutex<Vec<Gate>>>);

#[derive(Debug)]
struct Gate {
    maker: usize,
    end: Option<End>,
    alive: bool,
    restless: bool,
    waker: Option<Waker>,
}

/// What a work panics with: its number.
#[derive(Debug)]
pub(crate) struct Blown(pub(crate) u32);

/// A work.
#[derive(Debug)]
pub(crate) struct Work {
    gates: Gates,
    number: usize,
}

impl Gates {
    fn lock(&self) -> MutexGuard<'_, Vec<Gate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller's closure is called.
    pub(crate) fn start(&self, maker: usize, instant: bool, restless: bool) -> Work {
        let mut gates = self.lock();
        let end = instant.then_some(End::Value);
        gates.push(Gate { maker, end, alive: true, restless, waker: None });
        Work { gates: self.clone(), number: gates.len() - 1 }
    }

    /// One of the works that have not been told to end.
    pub(crate) fn nth_pending(&self, number: u8) -> Option<usize> {
        let gates = self.lock();
        let pending = gates.iter().enumerate().filter(|(_, gate)| gate.alive && gate.end.is_none());
        let all: Vec<usize> = pending.map(|(at, _)| at).collect();
        (!all.is_empty()).then(|| all[usize::from(number) % all.len()])
    }

    pub(crate) fn end(&self, work: usize, end: End) {
        self.lock()[work].end = Some(end);
        self.wake(work);
    }

    pub(crate) fn wake(&self, work: usize) {
        let waker = self.lock()[work].waker.take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// For each execution whose it is, and whether its work is still there.
    pub(crate) fn all(&self) -> Vec<(usize, bool)> {
        self.lock().iter().map(|gate| (gate.maker, gate.alive)).collect()
    }
}

impl Future for Work {
    type Output = u32;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
        let waker = cx.waker().clone();
        let value = u32::try_from(self.number).expect("few executions");
        let (end, restless, former) = {
            let mut gates = self.gates.lock();
            let gate = &mut gates[self.number];
            (gate.end, gate.restless, gate.waker.replace(waker))
        };
        drop(former);
        match end {
            None => {
                if restless {
                    self.gates.wake(self.number);
                }
                Poll::Pending
            }
            Some(End::Value) => Poll::Ready(value),
            Some(End::Panic) => resume_unwind(Box::new(Blown(value))),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let waker = {
            let mut gates = self.gates.lock();
            let gate = &mut gates[self.number];
            gate.alive = false;
            gate.waker.take()
        };
        drop(waker);
    }
}

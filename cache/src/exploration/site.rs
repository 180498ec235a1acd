//! A database with one row, read by loaders that wait until they are let go.

use super::rules::Outcome;
use crate::time::BoxFuture;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// What is read, and cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// How often the row had been written when this was read.
    pub(super) made: u8,
    /// No other page has it.
    pub(super) serial: u8,
    pub(super) is_kept: bool,
}

/// The error of a loader.
#[derive(Debug)]
pub(super) struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the row cannot be read")
    }
}

/// What a loader panics with. Without the panic hook, which would print it each time.
pub(super) struct Blown;

/// What a loader has come to, as it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Called {
        loader: usize,
    },
    Ended {
        loader: usize,
        outcome: Outcome,
        page: Page,
    },
    /// It was dropped, and had not ended.
    Dropped {
        loader: usize,
    },
}

#[derive(Default)]
struct State {
    made: u8,
    serials: u8,
    loaders: Vec<Gate>,
    events: Vec<Event>,
    spawned: Vec<BoxFuture>,
}

#[derive(Default)]
struct Gate {
    is_on: bool,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

#[derive(Default)]
pub(super) struct Site {
    state: Mutex<State>,
    /// A loader is to end.
    ends: Condvar,
}

impl Site {
    /// The row is written.
    pub(super) fn write(&self) -> Page {
        let mut state = self.state.lock();
        state.made += 1;
        state.page()
    }

    pub(super) fn page(&self) -> Page {
        self.state.lock().page()
    }

    /// A new loader, for tasks.
    pub(super) fn loader(self: &Arc<Self>) -> impl FnOnce() -> Loading + Send + 'static {
        let (site, loader) = (Arc::clone(self), self.state.lock().add());
        move || {
            let page = site.state.lock().call(loader);
            Loading { site, loader, page }
        }
    }

    /// A new loader, for threads.
    pub(super) fn blocking_loader(self: &Arc<Self>) -> impl FnOnce() -> Result<Page, Refused> + Send + 'static {
        let (site, loader) = (Arc::clone(self), self.state.lock().add());
        move || {
            let mut state = site.state.lock();
            let page = state.call(loader);
            let outcome = loop {
                match state.loaders[loader].outcome {
                    Some(outcome) => break outcome,
                    None => site.ends.wait(&mut state),
                }
            };
            let page = state.end(loader, outcome, page);
            drop(state);
            comes_to(outcome, page)
        }
    }

    pub(super) fn spawn(&self, refresh: BoxFuture) {
        self.state.lock().spawned.push(refresh);
    }

    pub(super) fn take_spawned(&self) -> Vec<BoxFuture> {
        std::mem::take(&mut self.state.lock().spawned)
    }

    pub(super) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.state.lock().events)
    }

    pub(super) fn has_events(&self) -> bool {
        !self.state.lock().events.is_empty()
    }

    /// Those that have been called, and are neither over nor told how to end.
    pub(super) fn waiting(&self) -> Vec<usize> {
        let state = self.state.lock();
        let is_waiting = |loader: &usize| state.loaders[*loader].is_waiting();
        (0..state.loaders.len()).filter(is_waiting).collect()
    }

    pub(super) fn is_waiting(&self, loader: usize) -> bool {
        self.state.lock().loaders[loader].is_waiting()
    }

    pub(super) fn end(&self, loader: usize, outcome: Outcome) {
        let mut state = self.state.lock();
        let gate = &mut state.loaders[loader];
        gate.outcome = Some(outcome);
        let waker = gate.waker.take();
        drop(state);
        self.ends.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl State {
    fn add(&mut self) -> usize {
        self.loaders.push(Gate::default());
        self.loaders.len() - 1
    }

    /// A loader is called, and reads the row.
    fn call(&mut self, loader: usize) -> Page {
        self.events.push(Event::Called { loader });
        self.loaders[loader].is_on = true;
        self.page()
    }

    fn end(&mut self, loader: usize, outcome: Outcome, page: Page) -> Page {
        self.loaders[loader].is_on = false;
        let page = Page { is_kept: outcome != Outcome::Fleeting, ..page };
        self.events.push(Event::Ended { loader, outcome, page });
        page
    }

    fn page(&mut self) -> Page {
        self.serials += 1;
        Page { made: self.made, serial: self.serials, is_kept: true }
    }
}

impl Gate {
    fn is_waiting(&self) -> bool {
        self.is_on && self.outcome.is_none()
    }
}

/// A loader that has read the row already, and waits all the same.
pub(super) struct Loading {
    site: Arc<Site>,
    loader: usize,
    page: Page,
}

impl Future for Loading {
    type Output = Result<Page, Refused>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let loader = self.loader;
        let mut state = self.site.state.lock();
        let gate = &mut state.loaders[loader];
        let Some(outcome) = gate.outcome else {
            let former = gate.waker.replace(cx.waker().clone());
            drop(state);
            drop(former);
            return Poll::Pending;
        };
        let page = state.end(loader, outcome, self.page);
        drop(state);
        Poll::Ready(comes_to(outcome, page))
    }
}

fn comes_to(outcome: Outcome, page: Page) -> Result<Page, Refused> {
    match outcome {
        Outcome::Value | Outcome::Fleeting => Ok(page),
        Outcome::Failure => Err(Refused),
        Outcome::Panic => std::panic::resume_unwind(Box::new(Blown)),
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        let mut state = self.site.state.lock();
        let gate = &mut state.loaders[self.loader];
        if gate.is_on {
            gate.is_on = false;
            state.events.push(Event::Dropped { loader: self.loader });
        }
    }
}

/// Whether a task has been woken since it was last polled.
#[derive(Debug, Default)]
pub(super) struct Flag(AtomicBool);

impl Flag {
    pub(super) fn is_up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, up: bool) {
        self.0.store(up, Ordering::Relaxed);
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.set(true);
    }
}

//! The threads in which a blocking cache refreshes.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// So many threads at most, started when there is work for them. They end when this is dropped or closed.
pub(crate) struct Helpers {
    max: usize,
    pool: Arc<Pool>,
}

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    /// There is work, or there will be none.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Helpers {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, pool: Arc::default() }
    }

    /// Whether there are to be any threads at all.
    pub(crate) fn is_none(&self) -> bool {
        self.max == 0
    }

    /// Has a thread do it. It is dropped if this is closed, or if there is no thread and none can be started.
    pub(crate) fn run(&self, job: Job) {
        let mut state = self.pool.state.lock();
        if state.closed {
            drop(state);
            return drop(job);
        }
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.threads == self.max {
            drop(state);
            self.pool.work.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let pool = Arc::clone(&self.pool);
        let builder = thread::Builder::new().name("oneflight-cache".to_owned());
        if builder.spawn(move || pool.help()).is_err() {
            let mut state = self.pool.state.lock();
            state.threads -= 1;
            let undone = if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
            drop(state);
            drop(undone);
        }
    }

    /// Begins nothing more, and waits for what is being done until `deadline`. Whether all has ended.
    pub(crate) fn close(&self, deadline: Option<Instant>) -> bool {
        let mut state = self.pool.state.lock();
        state.closed = true;
        let undone = std::mem::take(&mut state.jobs);
        self.pool.work.notify_all();
        while state.threads > 0 {
            match deadline {
                None => self.pool.ended.wait(&mut state),
                Some(deadline) if self.pool.ended.wait_until(&mut state, deadline).timed_out() => break,
                Some(_) => {}
            }
        }
        let ended = state.threads == 0;
        drop(state);
        drop(undone);
        ended
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        // Waits for nobody.
        self.close(Some(Instant::now()));
    }
}

impl Pool {
    fn help(&self) {
        loop {
            let mut state = self.state.lock();
            let job = loop {
                if let Some(job) = state.jobs.pop_front() {
                    break job;
                }
                if state.closed {
                    state.threads -= 1;
                    self.ended.notify_all();
                    return;
                }
                state.idle += 1;
                self.work.wait(&mut state);
                state.idle -= 1;
            };
            drop(state);
            // Refreshes catch the panics of their loaders; what else may panic is the `Drop` of a value.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
        }
    }
}

/// The moment so much later, or none if there is no such moment.
pub(crate) fn deadline(after: Duration) -> Option<Instant> {
    Instant::now().checked_add(after)
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helpers").field("max", &self.max).finish_non_exhaustive()
    }
}

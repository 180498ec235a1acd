//! The threads in which a blocking cache refreshes.

use crate::time::{AnyClock, Time};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

/// So many threads at most, started when there is work for them. They end when this is dropped or closed.
///
/// One whose job takes longer than `limit` counts as stuck, and is replaced as soon as it is missed: otherwise a few loaders that hang
/// would stop all refreshes. It ends when its job does. How many are stuck is bounded by how many refreshes may be on at once.
pub(crate) struct Helpers {
    max: usize,
    pool: Arc<Pool>,
    start: fn(Job) -> io::Result<()>,
}

struct Pool {
    state: Mutex<State>,
    /// There is work, or there will be none.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
    clock: AnyClock,
    limit: Option<Duration>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Threads that have not been replaced.
    threads: usize,
    idle: usize,
    /// What those are doing that are not idle: a number for each job, and since when. In the order in which they began.
    busy: VecDeque<(u64, Time)>,
    next: u64,
    /// Threads that have been replaced.
    stuck: usize,
    closed: bool,
}

impl State {
    fn begin(&mut self, now: Time) -> u64 {
        self.next += 1;
        self.busy.push_back((self.next, now));
        self.next
    }

    /// Whether the thread that did this is still wanted.
    fn end(&mut self, job: u64) -> bool {
        let place = self.busy.iter().position(|&(busy, _)| busy == job);
        match place {
            Some(place) => _ = self.busy.remove(place),
            None => self.stuck -= 1,
        }
        place.is_some()
    }

    /// Lets go of those that have been busy since before that time.
    fn replace(&mut self, before: Time) {
        while self.busy.front().is_some_and(|&(_, since)| since < before) {
            self.busy.pop_front();
            self.threads -= 1;
            self.stuck += 1;
        }
    }
}

impl Helpers {
    pub(crate) fn new(max: usize, clock: AnyClock, limit: Option<Duration>) -> Self {
        let (state, work, ended) = Default::default();
        Self { max, pool: Arc::new(Pool { state, work, ended, clock, limit }), start: start_thread }
    }

    /// Whether there are to be any threads at all.
    pub(crate) fn is_none(&self) -> bool {
        self.max == 0
    }

    /// Has a thread do it. It is dropped if this is closed, or if there is no thread and none can be started.
    pub(crate) fn run(&self, job: Job) {
        let now = self.pool.clock.now();
        let mut state = self.pool.state.lock();
        if state.closed {
            drop(state);
            return drop(job);
        }
        state.jobs.push_back(job);
        if state.threads == self.max
            && state.idle == 0
            && let Some(limit) = self.pool.limit
        {
            state.replace(now.before(limit));
        }
        if state.idle >= state.jobs.len() || state.threads == self.max {
            drop(state);
            self.pool.work.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let pool = Arc::clone(&self.pool);
        if (self.start)(Box::new(move || pool.help())).is_err() {
            let mut state = self.pool.state.lock();
            state.threads -= 1;
            let undone = if state.threads == 0 { std::mem::take(&mut state.jobs) } else { VecDeque::new() };
            // Whoever closes this waits for that thread as well.
            self.pool.ended.notify_all();
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
        while state.threads + state.stuck > 0 {
            match deadline {
                None => self.pool.ended.wait(&mut state),
                Some(deadline) if self.pool.ended.wait_until(&mut state, deadline).timed_out() => break,
                Some(_) => {}
            }
        }
        let ended = state.threads + state.stuck == 0;
        drop(state);
        drop(undone);
        ended
    }
}

fn start_thread(job: Job) -> io::Result<()> {
    thread::Builder::new().name("oneflight-cache".to_owned()).spawn(job).map(drop)
}

impl Drop for Helpers {
    fn drop(&mut self) {
        // Waits for nobody.
        self.close(Some(Instant::now()));
    }
}

impl Pool {
    fn help(&self) {
        let mut state = self.state.lock();
        loop {
            let Some(job) = state.jobs.pop_front() else {
                if state.closed {
                    state.threads -= 1;
                    break;
                }
                state.idle += 1;
                self.work.wait(&mut state);
                state.idle -= 1;
                continue;
            };
            drop(state);
            // The clock may be the user's.
            let Ok(now) = catch_unwind(AssertUnwindSafe(|| self.clock.now())) else {
                _ = catch_unwind(AssertUnwindSafe(|| drop(job)));
                state = self.state.lock();
                continue;
            };
            let number = self.state.lock().begin(now);
            // Refreshes catch the panics of their loaders; what else may panic is the `Drop` of a value.
            _ = catch_unwind(AssertUnwindSafe(job));
            state = self.state.lock();
            if !state.end(number) {
                break;
            }
        }
        self.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Clock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::channel;

    struct Seconds(Arc<AtomicU64>);

    impl Clock for Seconds {
        fn now(&self) -> Time {
            Time::from_start(Duration::from_secs(self.0.load(Ordering::SeqCst)))
        }
    }

    #[test]
    fn a_clock_that_panics_costs_a_refresh_and_no_thread() {
        struct Faulty(AtomicU64);
        impl Clock for Faulty {
            fn now(&self) -> Time {
                // The second time: the first one is the caller's.
                assert!(self.0.fetch_add(1, Ordering::SeqCst) != 1, "a clock's panic");
                Time::START
            }
        }
        let helpers = Helpers::new(1, AnyClock::Other(Arc::new(Faulty(AtomicU64::new(0)))), None);
        let (done, is_done) = channel();
        let job = |number: u32| {
            let done = done.clone();
            Box::new(move || done.send(number).unwrap())
        };
        helpers.run(job(1));
        while Arc::strong_count(&helpers.pool) < 2 || helpers.pool.state.lock().idle == 0 {
            thread::yield_now();
        }
        helpers.run(job(2));
        assert_eq!(is_done.recv(), Ok(2));
        assert!(helpers.close(None));
    }

    #[test]
    fn whoever_closes_waits_for_no_thread_that_could_not_be_started() {
        static POOL: Mutex<Option<Arc<Pool>>> = Mutex::new(None);
        let mut helpers = Helpers::new(1, AnyClock::Other(Arc::new(Seconds(Arc::default()))), None);
        *POOL.lock() = Some(Arc::clone(&helpers.pool));
        helpers.start = |_| {
            let pool = POOL.lock().take().expect("one is started");
            while !pool.state.lock().closed {
                thread::yield_now();
            }
            Err(io::ErrorKind::OutOfMemory.into())
        };
        let helpers = Arc::new(helpers);
        let runs = thread::spawn({
            let helpers = Arc::clone(&helpers);
            move || helpers.run(Box::new(|| panic!("there is no thread")))
        });
        while helpers.pool.state.lock().threads == 0 {
            thread::yield_now();
        }
        assert!(helpers.close(None));
        runs.join().unwrap();
    }

    #[test]
    fn one_that_was_stuck_ends_and_its_successor_stays() {
        let seconds = Arc::new(AtomicU64::new(0));
        let clock = AnyClock::Other(Arc::new(Seconds(Arc::clone(&seconds))));
        let helpers = Helpers::new(1, clock, Some(Duration::from_secs(10)));
        let (done, is_done) = channel();
        let begin = |held: std::sync::mpsc::Receiver<()>| {
            let done = done.clone();
            helpers.run(Box::new(move || {
                done.send("begun").unwrap();
                let _ = held.recv();
                done.send("ended").unwrap();
            }));
        };
        let (let_go, held) = channel();
        begin(held);
        assert_eq!(is_done.recv(), Ok("begun"));
        seconds.store(10, Ordering::SeqCst);
        // It may take as long as that.
        begin(channel().1);
        assert_eq!(helpers.pool.state.lock().jobs.len(), 1);
        seconds.store(11, Ordering::SeqCst);
        begin(channel().1);
        for expected in ["begun", "ended", "begun", "ended"] {
            assert_eq!(is_done.recv(), Ok(expected));
        }
        assert_eq!(helpers.pool.state.lock().stuck, 1);
        drop(let_go);
        assert_eq!(is_done.recv(), Ok("ended"));
        let mut state = helpers.pool.state.lock();
        while state.stuck > 0 {
            helpers.pool.ended.wait(&mut state);
        }
        assert_eq!(state.threads, 1);
        drop(state);
        assert!(helpers.close(None));
    }
}

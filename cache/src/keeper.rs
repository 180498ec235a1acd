//! The threads of a blocking cache that renew leases while loaders run.

use crate::time_limit::deadline;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What is done when its time has come. Returns how long it is until the next time.
type Task = Box<dyn FnMut() -> Option<Duration> + Send>;

/// So many threads at most. What hangs on a server that does not answer holds up so many others.
const THREADS: usize = 8;

/// One thread, started with the first task, and more of them while tasks are due that nobody has the time for. The last one ends when
/// this is dropped and nothing is left that is due.
#[derive(Default)]
pub(crate) struct Keeper {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    due: BTreeMap<(Instant, u64), Task>,
    tasks: u64,
    threads: usize,
    /// Whether one of them has nothing to do.
    one_waits: bool,
    closed: bool,
}

/// A task is done again and again until this is dropped, which waits for nobody.
pub(crate) struct Kept {
    shared: Arc<Shared>,
    task: u64,
    over: Arc<AtomicBool>,
}

impl Keeper {
    /// Has `task` done after `first`, and again when it says so, until `over`, which is set when what this returns is dropped. If
    /// no thread can be started, it is not done.
    pub(crate) fn keep(&self, first: Duration, over: Arc<AtomicBool>, mut task: Task) -> Kept {
        let is_over = Arc::clone(&over);
        let task = self.add(first, Box::new(move || if is_over.load(Ordering::SeqCst) { None } else { task() }));
        Kept { shared: Arc::clone(&self.shared), task, over }
    }

    /// Has `task` done once, now.
    pub(crate) fn soon(&self, task: impl FnOnce() + Send + 'static) {
        let mut task = Some(task);
        self.add(
            Duration::ZERO,
            Box::new(move || {
                if let Some(task) = task.take() {
                    task();
                }
                None
            }),
        );
    }

    fn add(&self, first: Duration, task: Task) -> u64 {
        let mut state = self.shared.state.lock();
        let number = state.tasks;
        state.tasks += 1;
        let Some(at) = deadline(first) else { return number };
        state.due.insert((at, number), task);
        if state.threads == 0 || state.is_short(Instant::now()) {
            self.shared.start(state);
        } else {
            drop(state);
            self.shared.changed.notify_one();
        }
        number
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.changed.notify_one();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let mut state = self.shared.state.lock();
        let key = state.due.keys().find(|(_, task)| *task == self.task).copied();
        let task = key.and_then(|key| state.due.remove(&key));
        drop(state);
        drop(task);
    }
}

impl State {
    /// Whether something is due and there should be another thread for it.
    fn is_short(&self, now: Instant) -> bool {
        let is_due = self.due.first_key_value().is_some_and(|((at, _), _)| *at <= now);
        is_due && !self.one_waits && self.threads < THREADS
    }
}

impl Shared {
    /// Starts another thread. If that fails, others go on without it; if there are none, nothing is done.
    fn start(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(self);
        let builder = thread::Builder::new().name("oneflight-cache-leases".to_owned());
        if builder.spawn(move || shared.keep()).is_err() {
            let mut state = self.state.lock();
            state.threads -= 1;
            let undone = if state.threads == 0 { std::mem::take(&mut state.due) } else { BTreeMap::new() };
            drop(state);
            drop(undone);
        }
    }

    fn keep(self: &Arc<Self>) {
        let mut state = self.state.lock();
        loop {
            let now = Instant::now();
            match state.due.first_key_value().map(|(key, _)| *key) {
                Some(key @ (at, number)) if at <= now => {
                    let mut task = state.due.remove(&key).expect("it is the first");
                    if state.is_short(now) {
                        self.start(state);
                    } else {
                        drop(state);
                    }
                    // It calls the user's store.
                    let next = catch_unwind(AssertUnwindSafe(&mut task)).ok().flatten().and_then(deadline);
                    let Some(at) = next else {
                        // It holds a key, whose `Drop` may panic.
                        _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
                        state = self.state.lock();
                        continue;
                    };
                    state = self.state.lock();
                    state.due.insert((at, number), task);
                }
                next => {
                    if state.one_waits || (next.is_none() && state.closed) {
                        state.threads -= 1;
                        drop(state);
                        // What it has put back may be due before what the other waits for.
                        self.changed.notify_one();
                        return;
                    }
                    state.one_waits = true;
                    match next {
                        Some((at, _)) => _ = self.changed.wait_until(&mut state, at),
                        None => self.changed.wait(&mut state),
                    }
                    state.one_waits = false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const SOON: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_task_is_done_until_it_says_so_or_is_let_go() {
        let keeper = Keeper::default();
        let (done, dones) = mpsc::channel();
        let mut left = 3;
        let first = done.clone();
        let _three = keeper.keep(
            SOON,
            Arc::default(),
            Box::new(move || {
                first.send("three").unwrap();
                left -= 1;
                (left > 0).then_some(SOON)
            }),
        );
        assert_eq!([(); 3].map(|()| dones.recv().unwrap()), ["three"; 3]);
        let never = keeper.keep(LONG, Arc::default(), Box::new(move || done.send("never").map_or(None, |()| None)));
        drop(never);
        // Its sender was dropped with it, and the other task with its own.
        assert!(dones.recv().is_err());
    }

    #[test]
    fn a_panic_ends_its_own_task_alone_and_what_is_due_is_done_after_the_keeper_is_gone() {
        let keeper = Keeper::default();
        let (done, dones) = mpsc::channel();
        let _panics = keeper.keep(Duration::ZERO, Arc::default(), Box::new(|| panic!("by intention")));
        let later = done.clone();
        let _later = keeper.keep(SOON * 10, Arc::default(), Box::new(move || later.send(()).map_or(None, |()| None)));
        keeper.soon(move || done.send(()).unwrap());
        drop(keeper);
        assert!(dones.recv().is_ok() && dones.recv().is_ok());
    }

    #[test]
    fn a_task_whose_drop_panics_ends_no_other() {
        struct Key;
        impl Drop for Key {
            fn drop(&mut self) {
                panic!("by intention");
            }
        }
        let keeper = Keeper::default();
        let (done, dones) = mpsc::channel();
        let key = Key;
        keeper.add(Duration::ZERO, Box::new(move || Some(&key).and(None)));
        keeper.soon(move || done.send(()).unwrap());
        assert!(dones.recv_timeout(LONG / 60).is_ok());
    }

    #[test]
    fn a_time_that_never_comes_is_no_task() {
        let keeper = Keeper::default();
        drop(keeper.keep(Duration::MAX, Arc::default(), Box::new(|| None)));
        assert_eq!(keeper.shared.state.lock().threads, 0);
    }

    fn until(is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < LONG / 60);
            thread::yield_now();
        }
    }

    #[test]
    fn a_new_task_wakes_the_one_who_waits_and_the_thread_ends_with_the_keeper() {
        let keeper = Keeper::default();
        let is_done = Arc::new(AtomicBool::new(false));
        let later = {
            let is_done = Arc::clone(&is_done);
            keeper.keep(
                LONG,
                Arc::default(),
                Box::new(move || {
                    is_done.store(true, Ordering::SeqCst);
                    None
                }),
            )
        };
        until(|| keeper.shared.state.lock().one_waits);
        let (done, dones) = mpsc::channel();
        keeper.soon(move || done.send(()).unwrap());
        assert!(dones.recv_timeout(LONG / 60).is_ok());
        assert!(!is_done.load(Ordering::SeqCst), "its time has not come");
        drop(later);
        until(|| keeper.shared.state.lock().one_waits);
        let shared = Arc::downgrade(&keeper.shared);
        drop(keeper);
        until(|| shared.strong_count() == 0);
    }

    #[test]
    fn a_task_that_is_let_go_while_it_is_done_is_not_done_again() {
        let keeper = Keeper::default();
        let (begun, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let twice = move || {
            begun.send(()).unwrap();
            _ = ends.recv();
            Some(SOON)
        };
        let kept = keeper.keep(SOON, Arc::default(), Box::new(twice));
        assert!(begins.recv().is_ok());
        drop(kept);
        drop(end);
        assert!(begins.recv().is_err(), "it is dropped in place of that");
    }

    #[test]
    fn whoever_waits_is_told_of_what_is_due_sooner() {
        let keeper = Keeper::default();
        let _later = keeper.keep(LONG, Arc::default(), Box::new(|| None));
        let (end, hangs) = mpsc::channel();
        let (done, dones) = mpsc::channel();
        let again = done.clone();
        let hangs = move || hangs.recv().ok().and_then(|()| again.send("again").map_or(None, |()| Some(SOON)));
        let _again = keeper.keep(Duration::ZERO, Arc::default(), Box::new(hangs));
        keeper.soon(move || done.send("beside it").unwrap());
        assert_eq!(dones.recv(), Ok("beside it"));
        end.send(()).unwrap();
        end.send(()).unwrap();
        assert_eq!([(); 2].map(|()| dones.recv_timeout(LONG / 60)), [Ok("again"); 2]);
    }

    #[test]
    fn what_hangs_holds_up_no_others() {
        let keeper = Keeper::default();
        let (end, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(Mutex::new(hangs));
        let (done, dones) = mpsc::channel();
        for _ in 1..THREADS {
            let hangs = Arc::clone(&hangs);
            keeper.soon(move || _ = hangs.lock().recv());
        }
        for _ in 0..THREADS * 2 {
            let done = done.clone();
            keeper.soon(move || done.send(()).unwrap());
        }
        for _ in 0..THREADS * 2 {
            assert!(dones.recv_timeout(LONG / 60).is_ok());
        }
        assert!(keeper.shared.state.lock().threads <= THREADS);
        drop(end);
        // One is enough again.
        until(|| keeper.shared.state.lock().threads <= 1);
    }
}

//! The thread of a blocking cache that renews leases while loaders run.

use crate::time_limit::deadline;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What is done when its time has come. Returns how long it is until the next time.
type Task = Box<dyn FnMut() -> Option<Duration> + Send>;

/// One thread at most, started with the first task. It ends when this is dropped and nothing is left that is due.
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
    has_thread: bool,
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
        let start = !std::mem::replace(&mut state.has_thread, true);
        drop(state);
        self.shared.changed.notify_one();
        if start {
            let shared = Arc::clone(&self.shared);
            let builder = thread::Builder::new().name("oneflight-cache-leases".to_owned());
            if builder.spawn(move || shared.keep()).is_err() {
                let mut state = self.shared.state.lock();
                state.has_thread = false;
                let undone = std::mem::take(&mut state.due);
                drop(state);
                drop(undone);
            }
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

impl Shared {
    fn keep(&self) {
        let mut state = self.state.lock();
        loop {
            let now = Instant::now();
            match state.due.first_key_value().map(|(key, _)| *key) {
                None if state.closed => return,
                None => self.changed.wait(&mut state),
                Some((at, _)) if at > now => {
                    self.changed.wait_until(&mut state, at);
                }
                Some(key @ (_, number)) => {
                    let mut task = state.due.remove(&key).expect("it is the first");
                    drop(state);
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
        keeper.soon(move || done.send(()).unwrap());
        drop(keeper);
        assert!(dones.recv().is_ok());
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
        assert!(!keeper.shared.state.lock().has_thread);
    }
}

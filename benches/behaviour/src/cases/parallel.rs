//! Nothing goes wrong: callers of one key share, callers of several do not wait for each other.

use super::{Case, Found, KEY, found, runs};
use crate::clock::{self, value};
use crate::crowd::{Crowd, Tasks};
use std::thread;
use std::time::Duration;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "shared",
        row: "Two callers of one key, 50 times",
        right: "1 run each time",
        tasks: Some(shared),
        threads: Some(shared),
    },
    Case {
        id: "parallel",
        row: "Four keys at once",
        right: "all at once",
        tasks: Some(parallel),
        threads: Some(parallel),
    },
    Case { id: "mixed", row: "A task and a thread on one key", right: "1 run", tasks: Some(mixed), threads: None },
    Case { id: "methods", row: "Two methods on one key", right: "1 run", tasks: Some(methods), threads: Some(methods) },
];

const ROUNDS: u64 = 50;
const FAIR: Duration = Duration::from_millis(2);

fn shared<C: Crowd>(crowd: &mut C) -> Found {
    for round in 0..ROUNDS {
        // Not the same key again: a cache would have it.
        let key = KEY + round;
        for caller in 0..2 {
            crowd.enter(key, value(caller).after(1));
        }
        // parking_lot hands a lock to the one that waits for it if it has not done so for a millisecond, and otherwise it is
        // a matter of luck who gets it, which the answer of one crate hangs on.
        thread::sleep(FAIR);
        crowd.finish();
    }
    // How many more is a matter of luck.
    let is_right = clock::runs() == ROUNDS as usize;
    found(is_right, if is_right { "1 run" } else { "more runs" })
}

const KEYS: u64 = 4;

fn parallel<C: Crowd>(crowd: &mut C) -> Found {
    for key in 0..KEYS {
        crowd.enter(key, value(key).after(1));
    }
    crowd.settle();
    let at_once = clock::works_alive();
    let ticks = crowd.finish();
    let is_right = at_once == KEYS as usize && ticks == 1;
    found(is_right, if is_right { "all at once" } else { "one after another" })
}

fn mixed(tasks: &mut Tasks) -> Found {
    let (for_tasks, for_threads) = tasks.peer().for_both()?;
    for (key, task_is_first) in [(KEY, true), (KEY + 1, false)] {
        let mut threads = crate::crowd::Threads::new(for_threads);
        if task_is_first {
            tasks.join(for_tasks.call(key, value(1).after(1).task()));
            tasks.settle();
        }
        threads.enter(key, value(2).after(1));
        if !task_is_first {
            tasks.join(for_tasks.call(key, value(1).after(1).task()));
        }
        tasks.settle();
        tasks.finish();
        threads.finish();
    }
    let runs_in_all = clock::runs();
    found(runs_in_all == 2, if runs_in_all == 2 { "1 run".to_owned() } else { runs(runs_in_all - 1) })
}

fn methods<C: Crowd>(crowd: &mut C) -> Found {
    let work = crowd.work(value(2).after(1));
    let otherwise = crowd.peer().call_otherwise(KEY, work)?;
    crowd.enter(KEY, value(1).after(1));
    crowd.join(otherwise);
    crowd.finish();
    found(clock::runs() == 1, runs(clock::runs()))
}

//! Waiting in tests: for something to be so, never for luck, and never for ever.

use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// Longer than anything here takes on the busiest machine. Only a test that hangs gets near it.
const EVENT: Duration = Duration::from_secs(30);
const TEST: Duration = Duration::from_secs(120);

/// Runs a test in a thread of its own, and fails if it does not come to an end.
#[track_caller]
pub(crate) fn within_limit<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    let (end, ended) = mpsc::channel();
    thread::spawn(move || {
        // The receiver is gone if the limit was faster.
        let _ = end.send(catch_unwind(AssertUnwindSafe(test)));
    });
    match ended.recv_timeout(TEST) {
        Ok(Ok(value)) => value,
        Ok(Err(payload)) => resume_unwind(payload),
        Err(_) => panic!("the test hangs: not ended after {TEST:?}"),
    }
}

/// Lets others run until `reached`; fails if that never comes.
#[track_caller]
pub(crate) fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let begun = Instant::now();
    let mut looks = 0_u32;
    while !reached() {
        assert!(begun.elapsed() < EVENT, "waited {EVENT:?} in vain until {what}");
        looks += 1;
        if looks < 200 {
            thread::yield_now();
        } else {
            // Leaves the cores to those who are waited for.
            thread::sleep(Duration::from_micros(100));
        }
    }
}

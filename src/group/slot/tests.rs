use super::*;
use alloc::vec::Vec;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU32, Ordering};
use std::panic::catch_unwind;

#[derive(Default)]
struct Counts {
    wakes: AtomicU32,
    panics: bool,
}

impl alloc::task::Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "a waker");
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a value");
    }
}

/// All others have had the value by the time that the message is sent.
#[test]
fn a_value_that_goes_with_a_message_and_panics_keeps_no_task_from_being_woken() {
    for panics in [false, true] {
        let landing = Landing::new(Arc::new(Slot::new(None)));
        landing.deliver(Arc::new(Bomb));
        let counts = [(); 2].map(|()| Arc::new(Counts { panics, ..Counts::default() }));
        let [first, second] = counts.clone().map(|counts| Some(Waker::from(counts)));
        let tasks = Wakers { few: [first, second], many: Vec::new() };
        let wake = Wake { tasks, threads: Some((Arc::new(landing), Threads::All)) };
        let sent = catch_unwind(AssertUnwindSafe(|| wake.send()));
        let payload = sent.expect_err("the first panic goes on");
        let first = if panics { "a waker" } else { "a value" };
        assert_eq!(payload.downcast_ref(), Some(&first));
        assert!(counts.iter().all(|counts| counts.wakes.load(Ordering::Relaxed) == 1));
    }
}

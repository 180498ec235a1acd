//! Calls with several keys whose work fails for all of them.

use crate::by_hand::{Gate, Task, message, within_a_minute};
use oneflight::{AsyncGroup, SyncGroup};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Cannot be cloned.
#[derive(Debug, PartialEq)]
struct Away;

type Loaded = Result<u32, Arc<Away>>;

#[track_caller]
fn assert_one_error(loaded: &[&Loaded]) {
    let errors: Vec<_> = loaded.iter().map(|loaded| loaded.as_ref().expect_err("it has failed")).collect();
    assert!(errors.windows(2).all(|pair| Arc::ptr_eq(pair[0], pair[1])), "{errors:?}");
}

#[test]
fn one_error_is_that_of_all_keys_of_a_batch_of_tasks_and_of_those_who_follow() {
    let (group, gate, runs): (AsyncGroup<u32, Loaded>, _, _) = (AsyncGroup::new(), Gate::default(), Cell::new(0));
    let mut batch = Task::waiting(group.try_do_many(&[1, 2], |_| {
        runs.set(runs.get() + 1);
        let opens = gate.clone();
        async move {
            opens.await;
            Err(Away)
        }
    }));
    let mut single = Task::waiting(group.try_do_call(&2, || async { Ok(7) }));
    let mut other = Task::waiting(group.try_do_many(&[1, 3], |missing| {
        assert_eq!(missing, [&3]);
        async { Ok(vec![30]) }
    }));
    gate.open();
    let (batch, single, other) = (batch.ready(), single.ready(), other.ready());
    assert_one_error(&[&batch[0], &batch[1], &single, &other[0]]);
    assert_eq!((other[1].as_ref(), runs.get(), group.in_flight()), (Ok(&30), 1, 0));
}

#[test]
fn one_error_is_that_of_all_keys_of_a_batch_of_threads_and_of_those_who_follow() {
    within_a_minute(|| {
        let (group, runs): (SyncGroup<u32, Loaded>, _) = (SyncGroup::new(), AtomicUsize::new(0));
        thread::scope(|scope| {
            let followers = Cell::new(None);
            let batch = group.try_do_many(&[1, 2], |missing| {
                runs.fetch_add(1, Ordering::SeqCst);
                assert_eq!(missing, [&1, &2]);
                let follower = scope.spawn(|| group.try_do_call(&2, || Ok(7)));
                while group.waiters(&2) == 0 {
                    thread::yield_now();
                }
                followers.set(Some(follower));
                Err(Away)
            });
            let single = followers.take().expect("there is one").join().expect("it does not panic");
            assert_one_error(&[&batch[0], &batch[1], &single]);
        });
        assert_eq!((runs.into_inner(), group.in_flight()), (1, 0));
    });
}

#[test]
fn a_wrong_number_of_values_is_still_refused() {
    let group: AsyncGroup<u32, Loaded> = AsyncGroup::new();
    let mut batch = Task::new(group.try_do_many(&[1, 2], |_| async { Ok(vec![10]) }));
    let refused = catch_unwind(AssertUnwindSafe(|| batch.poll().is_ready())).expect_err("it is refused");
    assert!(message(refused).contains("2 keys and returned 1 values"));
    let group: SyncGroup<u32, Loaded> = SyncGroup::new();
    let refused = catch_unwind(AssertUnwindSafe(|| group.try_do_many(&[1, 2], |_| Ok(vec![10]))));
    assert!(message(refused.expect_err("it is refused")).contains("2 keys and returned 1 values"));
    assert_eq!(group.in_flight(), 0);
}

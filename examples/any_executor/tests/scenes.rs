//! The scenes come to what they claim: one lookup, whoever asks from wherever.

use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use any_executor::{Scene, executors, scenes};

/// Ends a test that hangs; decides nothing else.
const LIMIT: Duration = Duration::from_secs(120);

fn within_limit<T: Send + 'static>(scene: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(scene()));
    receiver.recv_timeout(LIMIT).expect("the scene ends, and does not panic")
}

#[track_caller]
fn assert_scene(scene: &Scene, callers: usize, prices: &[u32]) {
    assert_eq!((scene.callers, scene.prices.as_slice(), scene.lookups), (callers, prices, 1), "{scene}");
}

#[test]
fn tasks_of_any_one_executor_share_a_lookup() {
    for (name, run) in executors::ALL {
        assert_scene(&within_limit(move || scenes::one_executor(name, run)), 8, &[1_999; 8]);
    }
}

#[test]
fn tasks_of_all_executors_and_a_thread_share_a_lookup() {
    assert_scene(&within_limit(scenes::all_at_once), 11, &[1_999; 11]);
}

#[test]
fn a_follower_on_another_executor_goes_on_with_the_work_of_a_dropped_leader() {
    assert_scene(&within_limit(scenes::leader_dropped), 2, &[1_999 + 450]);
}

#[test]
fn inline_work_may_borrow() {
    assert_scene(&within_limit(scenes::borrowed_work), 3, &[6 * 1_999; 3]);
}

#[test]
fn detached_work_goes_on_without_callers_and_takes_in_new_ones() {
    assert_scene(&within_limit(scenes::detached_on_smol), 2, &[1_999 + 450]);
    assert_scene(&within_limit(scenes::detached_on_tokio), 2, &[1_999 + 450]);
}

#[test]
fn the_program_prints_a_line_for_each_scene() {
    let output = within_limit(|| Command::new(env!("CARGO_BIN_EXE_any_executor")).output().expect("the program runs"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 10, "{text}");
    assert!(text.lines().all(|line| line.ends_with("lookups: 1")), "{text}");
}

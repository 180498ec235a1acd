//! Mixed callers: threads and tasks meet in one flight, and each hears what it must, whoever leads.

#![cfg(loom)]

use loom::sync::Arc;
use loom::thread::JoinHandle;
use oneflight::Role;
use oneflight_loom_tests::tasks::{
    Group, Works, assert_gets, assert_nothing_left, block_on, join_and_go_on, new_group, parked, poll, until_waiting,
};
use oneflight_loom_tests::{KEY, assert_served, check, join, spawn};

/// A thread that calls [`KEY`] with work that makes `own`.
fn call_blocking(group: &Arc<Group>, works: &Works, own: u32) -> JoinHandle<u32> {
    let works = works.clone();
    spawn(group, move |group| group.do_call_blocking(&KEY, || works.run(own)))
}

/// A task drives the work of another and lands: it wakes the thread that waits, and the third task.
#[test]
fn landing_wakes_threads_and_tasks() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let tasks = [1, 2].map(|own| join_and_go_on(&group, &works, own));
        works.open();
        let value = group.do_call_blocking(&KEY, || works.run(3));
        assert!(matches!(value, 0 | 3));
        tasks.into_iter().for_each(|task| assert_gets(task, 0));
        drop(leader);
        assert_nothing_left(&group);
    });
}

/// The work wakes a leader and a standby that are parked, and not a third task. A thread arrives, which cannot drive.
#[test]
fn a_thread_wakes_a_third_task_to_drive() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let mut leader = parked(group.do_call(&KEY, works.make(0)));
        let mut standby = parked(group.do_call(&KEY, works.make(1)));
        let third = join_and_go_on(&group, &works, 2);
        works.open();
        let value = group.do_call_blocking(&KEY, || works.run(3));
        assert!(matches!(value, 0 | 3));
        assert_gets(third, 0);
        assert_eq!((poll(&mut leader), poll(&mut standby)), (Some(0), Some(0)));
        assert_nothing_left(&group);
    });
}

/// The last task leaves while a thread arrives and waits: the work is dropped, and the thread runs its own.
#[test]
fn the_last_task_leaves_a_thread_behind() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = parked(group.do_call(&KEY, works.make(0)));
        let thread = {
            let works = works.clone();
            spawn(&group, move |group| group.call(&KEY).run_blocking(|| works.run(1)))
        };
        drop(leader);
        assert_ne!(assert_served(join(thread), 1).role, Role::Followed);
        assert_eq!(works.counts(), (2, 0, 1));
        assert_nothing_left(&group);
    });
}

/// A guard is dropped while a thread and a task wait: one of them takes over, once.
#[test]
fn a_thread_or_a_task_takes_over() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        works.open();
        let leader = group.try_lead(&KEY).expect("nobody leads");
        let task = parked(group.do_call(&KEY, works.make(1)));
        let thread = call_blocking(&group, &works, 2);
        until_waiting(&group, 2);
        drop(leader);
        assert_eq!(block_on(task), join(thread));
        assert_eq!((works.counts().0, group.stats().take_overs), (1, 1));
        assert_nothing_left(&group);
    });
}

/// A guard is dropped while a thread waits, and a task that is not polled any more: the thread takes over.
#[test]
fn a_parked_task_does_not_keep_a_thread_from_taking_over() {
    check(|| {
        let (group, works) = (new_group(), Works::new());
        let leader = group.try_lead(&KEY).expect("nobody leads");
        let mut task = parked(group.do_call(&KEY, works.make(1)));
        let thread = call_blocking(&group, &works, 2);
        drop(leader);
        assert_gets(thread, 2);
        works.open();
        assert!(matches!(poll(&mut task), Some(1 | 2)));
        assert_nothing_left(&group);
    });
}

//! What a group takes from the heap here.

use crate::HEAP;
use crate::sensor::Sensor;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::Future;
use core::task::{Context, Waker};
use cortex_m_semihosting::hprintln;
use oneflight::AsyncGroup;

/// A group takes little, a lone flight little more, and so does each task that waits; all of it comes back.
pub(super) fn memory() {
    // With the leader one more than a list of 16 has room for: each of them at its dearest.
    const WAITING: usize = 16;
    let cx = &mut Context::from_waker(Waker::noop());
    let sensor = Sensor::new();
    let start = HEAP.used();
    let group: AsyncGroup<u32, u32> = AsyncGroup::new();
    let empty = HEAP.used() - start;
    // The first flight makes the group's table, which stays.
    group.try_lead(&1).expect("no flight is on").land(0);
    let idle = HEAP.used() - start;

    let mut calls: Vec<_> = (0..=WAITING).map(|_| Box::pin(group.do_call(&1, || sensor.read()))).collect();
    let before = HEAP.used();
    assert!(calls[0].as_mut().poll(cx).is_pending());
    let flight = HEAP.used() - before;
    for call in &mut calls[1..] {
        assert!(call.as_mut().poll(cx).is_pending());
    }
    let waiting = (HEAP.used() - before - flight) / WAITING;
    drop(calls);
    // The sensor still has the waker that the flight gave its work.
    sensor.finish_now(0);
    assert_eq!(HEAP.used() - start, idle);

    hprintln!(
        "heap: a new group {empty} bytes, once used {idle}; a flight and its work {flight}; a waiting task {waiting}"
    );
    assert!(empty <= 256 && idle <= 512 && flight <= 256 && waiting <= 72);
}

//! Refreshes before the end of a value's life.

use super::{Case, Found, KEY, found, is_value};
use crate::clock::{self, value};
use crate::crowd::{Crowd, End};
use crate::values::Got;
use std::thread;
use std::time::Duration;

pub(super) const CASES: &[Case] = &[Case {
    id: "refresh",
    row: "An early refresh is due, ten read",
    right: "1 refresh, 10 do not wait",
    tasks: Some(refresh),
    threads: Some(refresh),
}];

const OLD: u64 = 1;
const READERS: usize = 10;
/// How long the load takes in real time: what it costs is part of the formula.
const COST: Duration = Duration::from_millis(5);

fn refresh<C: Crowd>(crowd: &mut C) -> Found {
    let peer = crowd.peer().always_refreshing()?;
    let load = peer.call(KEY, crowd.work(value(OLD).after(1)));
    let first = crowd.join(load);
    thread::sleep(COST);
    crowd.finish();
    if !is_value(&crowd.end(first)) {
        return found(false, "no value");
    }
    let readers: Vec<usize> = (0..READERS)
        .map(|_| {
            let read = peer.call(KEY, crowd.work(value(OLD + 1).after(1)));
            crowd.join(read)
        })
        .collect();
    crowd.settle();
    let old = Some(End::Got(Got::Value(OLD)));
    let without_waiting = crowd.ends(readers).into_iter().filter(|end| *end == old).count();
    crowd.finish();
    clock::tick();
    crowd.settle();
    let refreshes = clock::runs() - 1;
    let plural = if refreshes == 1 { "" } else { "es" };
    found(
        refreshes == 1 && without_waiting == READERS,
        format!("{refreshes} refresh{plural}, {without_waiting} do not wait"),
    )
}

//! Works that call for what they are to make.

use super::{Case, Found, KEY, found};
use crate::crowd::{Crowd, End};
use crate::values::Got;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "own-key",
        row: "The work calls for its own key",
        right: "panic or error",
        tasks: Some(own_key),
        threads: Some(own_key),
    },
    Case {
        id: "circle",
        row: "Two works call for each other's key",
        right: "panic or error",
        tasks: Some(circle),
        threads: Some(circle),
    },
];

fn told(ends: &[Option<End>]) -> Found {
    let is_any = |end| ends.contains(&Some(end));
    let text = if is_any(End::Panicked) {
        "panic"
    } else if is_any(End::Got(Got::Failure)) || is_any(End::Got(Got::Refused)) {
        "error"
    } else {
        "runs again"
    };
    found(text != "runs again", text)
}

fn own_key<C: Crowd>(crowd: &mut C) -> Found {
    let call = crowd.peer().call(KEY, crowd.nested_work(KEY));
    told(&[crowd.complete(call)])
}

fn circle<C: Crowd>(crowd: &mut C) -> Found {
    let first = crowd.peer().call(KEY, crowd.nested_work(KEY + 1));
    let second = crowd.peer().call(KEY + 1, crowd.nested_work(KEY));
    let callers = [crowd.join(first), crowd.join(second)];
    crowd.finish();
    told(&crowd.ends(callers))
}

//! Writes to a cache during a load.

use super::{Case, Found, KEY, found};
use crate::clock::value;
use crate::crowd::{Crowd, End};
use crate::values::Got;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "put",
        row: "A value is put during a load: what stays",
        right: "what was put",
        tasks: Some(put),
        threads: Some(put),
    },
    Case {
        id: "invalidate",
        row: "The key is invalidated during a load: the next caller gets",
        right: "a new load",
        tasks: Some(invalidate),
        threads: Some(invalidate),
    },
];

const LOADED: u64 = 1;
const WRITTEN: u64 = 2;

fn read<C: Crowd>(crowd: &mut C) -> Option<Got> {
    let call = crowd.peer().get(KEY)?;
    match crowd.complete(call) {
        Some(End::Got(got)) => Some(got),
        _ => None,
    }
}

fn put<C: Crowd>(crowd: &mut C) -> Found {
    let put = crowd.peer().put(KEY, WRITTEN)?;
    crowd.enter(KEY, value(LOADED).after(1));
    crowd.join(put);
    crowd.finish();
    let text = match read(crowd)? {
        Got::Value(WRITTEN) => "what was put",
        Got::Value(_) => "what was loaded",
        Got::Failure | Got::Refused => "nothing",
    };
    found(text == "what was put", text)
}

fn invalidate<C: Crowd>(crowd: &mut C) -> Found {
    let invalidate = crowd.peer().invalidate(KEY)?;
    crowd.enter(KEY, value(LOADED).after(1));
    crowd.join(invalidate);
    crowd.settle();
    let next = crowd.enter(KEY, value(WRITTEN).after(1));
    crowd.finish();
    let is_right = crowd.end(next) == Some(End::Got(Got::Value(WRITTEN)));
    found(is_right, if is_right { "a new load" } else { "the old one" })
}

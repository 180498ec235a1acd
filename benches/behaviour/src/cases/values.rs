//! How often a value is cloned.

use super::{Case, FOLLOWERS, Found, KEY, found};
use crate::clock::value;
use crate::crowd::Crowd;
use crate::values::Value;

pub(super) const CASES: &[Case] = &[Case {
    id: "clones",
    row: "Clones of the value: alone, of four callers",
    right: "0, 3; a cache 1 more",
    tasks: Some(clones),
    threads: Some(clones),
}];

fn clones<C: Crowd>(crowd: &mut C) -> Found {
    if !crowd.peer().counts_values() {
        return None;
    }
    crowd.enter(KEY, value(0).after(1));
    crowd.finish();
    let alone = Value::clones();
    for caller in 0..FOLLOWERS {
        crowd.enter(KEY + 1, value(caller).after(1));
    }
    crowd.finish();
    let of_four = Value::clones();
    let kept = usize::from(crowd.peer().stores());
    found(alone <= kept && of_four <= 3 + kept, format!("{alone}, {of_four}"))
}

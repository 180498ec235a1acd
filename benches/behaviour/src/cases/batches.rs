//! Calls for several keys at once.

use super::{Case, Found, found};
use crate::clock::value;
use crate::crowd::Crowd;
use std::sync::Mutex;

pub(super) const CASES: &[Case] = &[Case {
    id: "batch",
    row: "A batch of two keys, one of which is in flight, fetches",
    right: "1 key",
    tasks: Some(batch),
    threads: Some(batch),
}];

static GIVEN: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());

fn batch<C: Crowd>(crowd: &mut C) -> Found {
    let batch = crowd.peer().many(vec![1, 2], crowd.many_work(&GIVEN))?;
    crowd.enter(1, value(1).after(1));
    crowd.join(batch);
    crowd.finish();
    let given = GIVEN.lock().ok()?.clone();
    let keys = given.iter().flatten().count();
    found(given == [[2]], format!("{keys} key{}", if keys == 1 { "" } else { "s" }))
}

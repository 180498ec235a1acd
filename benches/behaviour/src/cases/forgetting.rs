//! A key that is let go of while its work is on.

use super::{Case, Found, KEY, found, runs};
use crate::clock::{self, value};
use crate::crowd::Crowd;

pub(super) const CASES: &[Case] = &[Case {
    id: "forget",
    row: "Forgotten, a second work begins, the first ends, a third caller comes",
    right: "2 runs",
    tasks: Some(forget),
    threads: Some(forget),
}];

fn forget<C: Crowd>(crowd: &mut C) -> Found {
    crowd.enter(KEY, value(1).after(2));
    clock::tick();
    crowd.settle();
    crowd.peer().forget(KEY)?;
    crowd.enter(KEY, value(2).after(3));
    clock::tick();
    // The first work has ended now, the second has not.
    crowd.settle();
    crowd.enter(KEY, value(3).after(1));
    crowd.finish();
    found(clock::runs() == 2, runs(clock::runs()))
}

//! A call does nothing until it is run, and a guard that is dropped at once abandons: both are said.
#![deny(unused_must_use)]

use oneflight::SyncGroup;

fn main() {
    let group: SyncGroup<u32, u32> = SyncGroup::new();
    group.call(&1).max_attempts(2);
    group.try_lead(&1).unwrap();
    SyncGroup::<u32, u32>::builder();
}

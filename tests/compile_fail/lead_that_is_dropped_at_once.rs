//! A lead that nobody holds abandons its flight at once: that is said also where it may be `None`.
#![deny(unused_must_use)]

use oneflight::{AsyncGroup, SyncGroup};

fn main() {
    let threads: SyncGroup<u32, u32> = SyncGroup::new();
    threads.try_lead(&1);
    threads.try_lead_with(&1, || 1);
    let tasks: AsyncGroup<u32, u32> = AsyncGroup::new();
    tasks.try_lead(&1);
    tasks.try_lead_with(&1, || 1);
}

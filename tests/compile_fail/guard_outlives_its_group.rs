//! A guard refers to its group.

use oneflight::SyncGroup;

fn main() {
    let lead = {
        let group: SyncGroup<u32, u32> = SyncGroup::new();
        group.try_lead(&1)
    };
    drop(lead);
}

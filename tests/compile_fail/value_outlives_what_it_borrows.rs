//! What a group's values borrow must live as long as the group is used.
//!
//! The group keeps no value, but the compiler only sees that it could.

use oneflight::SyncGroup;

fn main() {
    let group: SyncGroup<u32, &str> = SyncGroup::new();
    {
        let text = String::from("text");
        group.do_call(&1, || text.as_str());
    }
    group.do_call(&1, || "other");
}

//! A control for `auto_traits.rs`, where it compiles that a group of `Rc` or of `Cell` cannot be shared: the same does not
//! compile for a group that can.
//!
//! Shared with other threads, an `Rc` would be counted by several at once, and a `Cell` changed.

use oneflight::SyncGroup;

trait IfItHas<A> {
    fn ambiguous() {}
}
impl<T: ?Sized> IfItHas<()> for T {}
struct Has;
impl<T: Sync + ?Sized> IfItHas<Has> for T {}

fn main() {
    let _ = <SyncGroup<u32, u32> as IfItHas<_>>::ambiguous;
}

//! How much memory the tables of keys keep that are needed for a moment.

/// To how many keys' room a table shrinks that has `len` keys and room for `capacity`, once most of it is unused. What a few keys
/// need is kept, and the room left is twice what is used, so a steady load does not pay for it.
#[inline]
pub(crate) fn after_burst(len: usize, capacity: usize) -> Option<usize> {
    const ALWAYS_KEPT: usize = 14;
    (capacity > ALWAYS_KEPT && len < capacity / 8).then(|| (len * 2).max(ALWAYS_KEPT))
}

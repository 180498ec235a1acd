//! What the tests have in common.

use core::fmt::Debug;

/// Tells a story, and again if it `is_spoilt`, up to five times: it is told in real time, and the machine may be busy with others.
#[track_caller]
pub(crate) fn story<T: Debug>(mut tell: impl FnMut() -> T, is_spoilt: impl Fn(&T) -> bool) -> T {
    for _ in 1..5 {
        let told = tell();
        if !is_spoilt(&told) {
            return told;
        }
        eprintln!("told again: {told:?}");
    }
    let told = tell();
    assert!(!is_spoilt(&told), "told five times, and never as it should be: {told:#?}");
    told
}

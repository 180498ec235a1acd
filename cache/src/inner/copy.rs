//! The copy of a loaded value that goes into the store. Its `Clone` may panic: then the value is there all the same, and is not
//! lost to those who wait for it.

use parking_lot::Mutex;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// A panic for the caller whose load it was. Clones are of the same one.
#[derive(Clone)]
pub(crate) struct Panicked(Arc<Mutex<Option<Box<dyn Any + Send>>>>);

/// A copy for the store, or the panic of `Clone`.
pub(crate) fn copy<V: Clone>(value: &V) -> Result<V, Panicked> {
    catch_unwind(AssertUnwindSafe(|| value.clone())).map_err(|payload| Panicked(Arc::new(Mutex::new(Some(payload)))))
}

impl Panicked {
    /// Goes on with the panic, unless somebody has done so before.
    pub(crate) fn resume(&self) {
        let payload = self.0.lock().take();
        if let Some(payload) = payload {
            resume_unwind(payload);
        }
    }
}

impl fmt::Debug for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Panicked").finish_non_exhaustive()
    }
}

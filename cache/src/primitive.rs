//! The locks that loom must see. Under `--cfg loom` the same names mean loom's own, so that its models run the code that ships.

#[cfg(all(loom, not(feature = "loom")))]
compile_error!("`--cfg loom` needs oneflight-cache's feature `loom` as well: its locks must be loom's too");

#[cfg(not(loom))]
pub(crate) use parking_lot::Mutex;

/// A lock that tasks can wait for: held while the store is written to, which may take as long as a server does.
#[cfg(not(loom))]
pub(crate) struct WriteLock(async_lock::Mutex<()>);

/// Holds a [`WriteLock`] until it is dropped.
#[cfg(not(loom))]
pub(crate) type Writing<'l> = async_lock::MutexGuard<'l, ()>;

#[cfg(not(loom))]
impl WriteLock {
    pub(crate) fn new() -> Self {
        Self(async_lock::Mutex::new(()))
    }

    pub(crate) async fn lock(&self) -> Writing<'_> {
        self.0.lock().await
    }
}

#[cfg(loom)]
pub(crate) use with_loom::{Mutex, WriteLock, Writing};

#[cfg(loom)]
mod with_loom {
    use loom::sync::{Condvar, MutexGuard};
    use std::sync::PoisonError;

    /// Loom's lock, which follows std's, with the methods of parking_lot's.
    #[derive(Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Threads block for it: loom knows no executor. Its guard may be sent, as tasks want it.
    pub(crate) struct WriteLock {
        taken: Mutex<bool>,
        free: Condvar,
    }

    pub(crate) struct Writing<'l>(&'l WriteLock);

    impl WriteLock {
        pub(crate) fn new() -> Self {
            Self { taken: Mutex::new(false), free: Condvar::new() }
        }

        pub(crate) async fn lock(&self) -> Writing<'_> {
            let mut taken = self.taken.lock();
            while *taken {
                taken = self.free.wait(taken).unwrap_or_else(PoisonError::into_inner);
            }
            *taken = true;
            Writing(self)
        }
    }

    impl Drop for Writing<'_> {
        fn drop(&mut self) {
            *self.0.taken.lock() = false;
            self.0.free.notify_one();
        }
    }
}

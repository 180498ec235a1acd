//! Every lock, condition variable, thread-local and clock that this crate uses.
//!
//! Only here, and in the modules below, are `parking_lot`, `std::sync`, `critical-section` and `loom` named. Under
//! `--cfg loom` the same names mean loom's own types, so that the models in `loom-tests` run the code that ships.

#[cfg(all(loom, not(feature = "loom")))]
compile_error!("`--cfg loom` needs oneflight's feature `loom` as well: its locks must be loom's too");

mod first_waker;
#[cfg(not(feature = "std"))]
mod no_threads;
#[cfg(feature = "std")]
mod thread_number;
#[cfg(feature = "std")]
mod threads;

pub(crate) use first_waker::{FirstWaker, Lent};
#[cfg(not(feature = "std"))]
pub(crate) use no_threads::{AgeClock, GoingBy, ThreadNumber, WaitQueue};
#[cfg(feature = "std")]
pub(crate) use thread_number::{GoingBy, ThreadNumber};
#[cfg(feature = "std")]
pub(crate) use threads::{AgeClock, WaitQueue, count_cores, spin_until};

#[cfg(not(loom))]
pub(crate) use alloc::sync::Arc;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::AtomicUsize;
#[cfg(loom)]
pub(crate) use loom::sync::{Arc, atomic::AtomicUsize};

use alloc::boxed::Box;
use core::any::Any;
use core::task::Waker;

/// A lock that can only be held for the length of a closure, so that nobody can keep it by accident and a lock that has
/// no guard (a critical section) can take its place.
///
/// A panic inside the closure unlocks and does not poison.
#[derive(Debug)]
pub(crate) struct Mutex<T>(Raw<T>);

#[cfg(loom)]
type Raw<T> = loom::sync::Mutex<T>;
#[cfg(all(feature = "std", not(loom)))]
type Raw<T> = parking_lot::Mutex<T>;
#[cfg(not(feature = "std"))]
type Raw<T> = critical_section::Mutex<core::cell::RefCell<T>>;

impl<T> Mutex<T> {
    #[cfg(all(feature = "std", not(loom)))]
    pub(crate) const fn new(value: T) -> Self {
        Self(Raw::new(value))
    }

    #[cfg(loom)]
    pub(crate) fn new(value: T) -> Self {
        Self(Raw::new(value))
    }

    #[cfg(not(feature = "std"))]
    pub(crate) const fn new(value: T) -> Self {
        Self(Raw::new(core::cell::RefCell::new(value)))
    }

    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(not(loom))]
        let mut guard = self.0.lock();
        #[cfg(loom)]
        let mut guard = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        f(&mut guard)
    }

    #[cfg(not(feature = "std"))]
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        critical_section::with(|section| f(&mut self.0.borrow_ref_mut(section)))
    }
}

/// A place for something that is put there once: to be read without a lock where there is a way to.
pub(crate) struct Once<T>(RawOnce<T>);

#[cfg(all(feature = "std", not(loom)))]
type RawOnce<T> = std::sync::OnceLock<T>;
#[cfg(any(not(feature = "std"), loom))]
type RawOnce<T> = Mutex<Option<T>>;

#[cfg(all(feature = "std", not(loom)))]
impl<T: Clone> Once<T> {
    pub(crate) const fn new() -> Self {
        Self(RawOnce::new())
    }

    pub(crate) fn set(&self, value: T) {
        assert!(self.0.set(value).is_ok(), "it is put there once");
    }

    /// What `f` makes of it, if it is there. No lock is held meanwhile.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.get().map(f)
    }

    pub(crate) fn into_inner(self) -> Option<T> {
        self.0.into_inner()
    }
}

#[cfg(any(not(feature = "std"), loom))]
impl<T: Clone> Once<T> {
    pub(crate) fn new() -> Self {
        Self(RawOnce::new(None))
    }

    pub(crate) fn set(&self, value: T) {
        self.0.with(|place| *place = Some(value));
    }

    /// What `f` makes of it, if it is there. No lock is held meanwhile.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.with(|place| place.clone()).map(|value| f(&value))
    }

    pub(crate) fn into_inner(self) -> Option<T> {
        self.0.with(Option::take)
    }
}

/// Calls `f`, and stops a panic in it where there is a way to.
#[cfg(feature = "std")]
pub(crate) fn catch_panic<R>(f: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    std::panic::catch_unwind(core::panic::AssertUnwindSafe(f))
}

/// Calls `f`, and stops a panic in it where there is a way to.
#[cfg(not(feature = "std"))]
pub(crate) fn catch_panic<R>(f: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    Ok(f())
}

/// Goes on with a panic that was caught.
pub(crate) fn resume_panic(payload: Box<dyn Any + Send>) -> ! {
    #[cfg(feature = "std")]
    std::panic::resume_unwind(payload);
    #[cfg(not(feature = "std"))]
    unreachable!("no panic is caught without std: {payload:?}");
}

/// Drops the payload of a panic that nobody hears of. Its destructor is the user's code and may panic as well.
pub(crate) fn discard_panic(payload: Box<dyn Any + Send>) {
    if let Err(payload) = catch_panic(|| drop(payload)) {
        // There is an end to it: what that one panicked with is never dropped.
        core::mem::forget(payload);
    }
}

/// Wakes every one of `wakers`, whatever panics.
pub(crate) fn wake_all(wakers: impl Iterator<Item = Waker>) {
    for_all(wakers, Waker::wake);
}

/// Calls `f` with every one of `items`, whatever panics: the first panic goes on after the last of them has had its turn, unless
/// the thread is already panicking.
pub(crate) fn for_all<T>(mut items: impl Iterator<Item = T>, mut f: impl FnMut(T)) {
    let mut first_panic = None;
    // Caught once for as many as go without a panic.
    while let Err(payload) = catch_panic(|| items.by_ref().for_each(&mut f)) {
        match first_panic {
            None => first_panic = Some(payload),
            Some(_) => discard_panic(payload),
        }
    }
    match first_panic {
        None => {}
        Some(payload) if is_panicking() => discard_panic(payload),
        Some(payload) => resume_panic(payload),
    }
}

fn is_panicking() -> bool {
    #[cfg(feature = "std")]
    return std::thread::panicking();
    #[cfg(not(feature = "std"))]
    return false;
}

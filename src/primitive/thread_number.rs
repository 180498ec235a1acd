//! Numbers of threads, and of works that go from thread to thread.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};

/// Tells who runs a work, in four bytes: the thread, or the work itself.
///
/// Threads have the numbers below 2^31. A work that is polled again and again, by any thread, has one above, which stands with
/// its key, or with all keys of its batch, for as long as it lasts: a thread [goes by](Self::go_by) it while it polls the work. To
/// write the thread's own number down with each key at each poll would cost more than many a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadNumber(NonZeroU32);

const FIRST_OF_WORKS: u32 = 1 << 31;

#[cfg(not(loom))]
std::thread_local! {
    static OWN: Cell<u32> = const { Cell::new(0) };
    /// The work that this thread is polling, the innermost one.
    static WORK: Cell<Option<ThreadNumber>> = const { Cell::new(None) };
    /// Those that it is polled inside of.
    static OUTER: RefCell<Vec<ThreadNumber>> = const { RefCell::new(Vec::new()) };
}
#[cfg(loom)]
loom::thread_local! {
    static OWN: Cell<u32> = Cell::new(0);
    static WORK: Cell<Option<ThreadNumber>> = Cell::new(None);
    static OUTER: RefCell<Vec<ThreadNumber>> = RefCell::new(Vec::new());
}

impl ThreadNumber {
    /// The number of this thread. `None` for the threads after the first 2^31 - 1 of a process: what is known by thread
    /// is then not reported, and nothing is reported wrongly.
    #[inline]
    pub(crate) fn current() -> Option<Self> {
        // `try_with`: the group may be called from a destructor of another thread-local.
        let number = OWN.try_with(|cell| match cell.get() {
            0 => first_use(cell),
            number => number,
        });
        NonZeroU32::new(number.unwrap_or(0)).map(Self)
    }

    /// A number for a work.
    ///
    /// The same one comes round after 2^31 of them. It would do harm only to a work that calls the key of another that has been
    /// on since then; and that call would wait for what seems not to end.
    pub(crate) fn of_work() -> Option<Self> {
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        let number = FIRST_OF_WORKS | BEGUN.fetch_add(1, Ordering::Relaxed);
        NonZeroU32::new(number).map(Self)
    }

    /// Whether it is this thread's own, or that of a work that this thread is polling.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        if self.is_of_work() { self.is_gone_by() } else { Self::current() == Some(self) }
    }

    #[cold]
    fn is_gone_by(self) -> bool {
        // While a thread ends it goes by none.
        let is_innermost = WORK.try_with(|work| work.get() == Some(self)).unwrap_or(false);
        is_innermost || OUTER.try_with(|outer| outer.borrow().contains(&self)).unwrap_or(false)
    }

    /// Makes this thread go by `number` until what it returns is dropped, if it is that of a work.
    #[inline]
    pub(crate) fn go_by(number: Option<Self>) -> GoingBy {
        let enter = |number| WORK.try_with(|work| work.replace(Some(number)));
        let entered = number.filter(|number| number.is_of_work()).and_then(|number| enter(number).ok());
        if let Some(Some(outer)) = entered {
            let _ = OUTER.try_with(|works| works.borrow_mut().push(outer));
        }
        GoingBy { entered, not_send: PhantomData }
    }

    #[inline]
    pub(crate) fn is_of_work(self) -> bool {
        self.0.get() >= FIRST_OF_WORKS
    }

    #[cfg(all(feature = "deadlock-detection", not(loom)))]
    pub(crate) fn from_bits(bits: u32) -> Option<Self> {
        NonZeroU32::new(bits).map(Self)
    }

    #[cfg(all(feature = "deadlock-detection", not(loom)))]
    pub(crate) fn bits(number: Option<Self>) -> u32 {
        number.map_or(0, |number| number.0.get())
    }
}

/// The innermost of the numbers that a thread goes by.
#[derive(Debug)]
#[must_use = "the thread goes by the number until this is dropped"]
pub(crate) struct GoingBy {
    /// If it goes by a number, the one that it went by before.
    entered: Option<Option<ThreadNumber>>,
    /// It stays on its thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for GoingBy {
    #[inline]
    fn drop(&mut self) {
        let Some(outer) = self.entered else { return };
        let _ = WORK.try_with(|work| work.set(outer));
        if outer.is_some() {
            let _ = OUTER.try_with(|works| works.borrow_mut().pop());
        }
    }
}

#[cold]
fn first_use(cell: &Cell<u32>) -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let next = |last: u32| last.checked_add(1).filter(|next| *next < FIRST_OF_WORKS);
    let number = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_or(0, |last| last + 1);
    cell.set(number);
    number
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use core::panic::AssertUnwindSafe;
    use std::panic::{catch_unwind, resume_unwind};

    fn elsewhere<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(f).join().expect("it does not panic")
    }

    #[test]
    fn threads_have_numbers_of_their_own() {
        let here = ThreadNumber::current().expect("one of the first");
        assert_eq!(Some(here), ThreadNumber::current());
        assert_ne!(Some(here), elsewhere(ThreadNumber::current));
        assert!(here.is_here());
        assert!(!elsewhere(move || here.is_here()));
    }

    #[test]
    fn a_thread_goes_by_the_numbers_of_the_works_that_it_polls_and_no_other_does() {
        let [outer, inner] = [(); 2].map(|()| ThreadNumber::of_work().expect("they do not run out"));
        let are_here = move || [outer.is_here(), inner.is_here()];
        assert_ne!(outer, inner);
        assert_eq!(are_here(), [false, false]);
        let poll_outer = ThreadNumber::go_by(Some(outer));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _poll_inner = ThreadNumber::go_by(Some(inner));
            assert_eq!(are_here(), [true, true]);
            assert_eq!(elsewhere(are_here), [false, false]);
            resume_unwind(Box::new(()))
        }));
        assert!(panicked.is_err());
        assert_eq!(are_here(), [true, false]);
        drop(ThreadNumber::go_by(None));
        assert_eq!(are_here(), [true, false]);
        drop(poll_outer);
        assert_eq!(are_here(), [false, false]);
    }
}

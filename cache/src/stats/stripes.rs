//! Counters that cost next to nothing to count with: a thread has a stripe of each cache to itself, so it counts without a lock,
//! in cache lines that nobody else writes to.
//!
//! A thread gets a number when it first counts, and gives it back when it ends. Numbers are not a cache's: whoever has the
//! number 7 owns that stripe of every cache. Threads that find no number free share stripes.

use crossbeam_utils::CachePadded;
use std::cell::{Cell, OnceCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// So many threads at once own a stripe.
const OWNED: usize = 256;
/// So many stripes are for all others.
const SHARED: usize = 16;
const WORD: usize = u64::BITS as usize;

/// Cells to be counted in. Each stripe is made when somebody first counts in it.
pub(super) struct Stripes<const CELLS: usize>(Box<[OnceLock<Stripe<CELLS>>; OWNED + SHARED]>);

struct Stripe<const CELLS: usize>(Box<CachePadded<[AtomicU64; CELLS]>>);

impl<const CELLS: usize> Stripes<CELLS> {
    pub(super) fn new() -> Self {
        Self(Box::new([const { OnceLock::new() }; OWNED + SHARED]))
    }

    #[inline]
    pub(super) fn add(&self, cell: usize) {
        let number = NUMBER.get();
        if number < OWNED
            && let Some(stripe) = self.0[number].get()
        {
            stripe.add_as_owner(cell);
        } else {
            self.add_slowly(cell);
        }
    }

    #[cold]
    fn add_slowly(&self, cell: usize) {
        let number = number();
        let stripe = self.0[number].get_or_init(Stripe::new);
        if number < OWNED {
            stripe.add_as_owner(cell);
        } else {
            stripe.0[cell].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn sum(&self, cell: usize) -> u64 {
        self.0.iter().filter_map(OnceLock::get).map(|stripe| stripe.0[cell].load(Ordering::Relaxed)).sum()
    }
}

impl<const CELLS: usize> Stripe<CELLS> {
    fn new() -> Self {
        Self(Box::new(CachePadded::new([const { AtomicU64::new(0) }; CELLS])))
    }

    /// By the only thread that writes here.
    #[inline]
    fn add_as_owner(&self, cell: usize) {
        let count = self.0[cell].load(Ordering::Relaxed);
        self.0[cell].store(count.wrapping_add(1), Ordering::Relaxed);
    }
}

/// Which numbers are taken, a bit each.
static TAKEN: [AtomicU64; OWNED / WORD] = [const { AtomicU64::new(0) }; OWNED / WORD];

std::thread_local! {
    /// [`UNKNOWN`] until this thread first counts. Apart from what gives it back, as this can be read at a glance, and until the
    /// very end of the thread.
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static OWN: OnceCell<Number> = const { OnceCell::new() };
}

const UNKNOWN: usize = usize::MAX;

/// The number of this thread's stripes.
fn number() -> usize {
    if NUMBER.get() == UNKNOWN {
        // In the destructor of another thread-local there may be nothing left that gives it back: then none is taken.
        let own = OWN.try_with(|own| Number::take().map(|number| own.get_or_init(|| number).0));
        NUMBER.set(own.ok().flatten().unwrap_or_else(shared));
    }
    NUMBER.get()
}

/// The number of a stripe that is nobody's: they come by turns.
fn shared() -> usize {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    OWNED + TURN.fetch_add(1, Ordering::Relaxed) % SHARED
}

/// The number of one thread, until it is dropped.
struct Number(usize);

impl Number {
    /// The lowest that is free, so that stripes which are there already are used again.
    fn take() -> Option<Self> {
        TAKEN.iter().enumerate().find_map(|(index, word)| {
            let with_lowest = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
            // After all that its former owner has counted: see `drop`.
            let taken = word.fetch_update(Ordering::Acquire, Ordering::Relaxed, with_lowest).ok()?;
            Some(Self(index * WORD + taken.trailing_ones() as usize))
        })
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // Other destructors of this thread may count after this one.
        NUMBER.set(shared());
        // Its next owner goes on from what was counted before this: see `take`.
        TAKEN[self.0 / WORD].fetch_and(!(1 << (self.0 % WORD)), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::cell::RefCell;
    use std::collections::HashSet;
    use std::sync::{Arc, Barrier};
    use std::thread;

    /// Held by each test, as there are only so many numbers in a process.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Runs `f` in so many threads at once, each of which has a number before any of them goes on.
    fn at_once<T: Send>(threads: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let all = Barrier::new(threads);
        thread::scope(|scope| {
            let run = || {
                let number = number();
                all.wait();
                f(number)
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn threads_that_are_there_at_once_own_different_stripes() {
        let _alone = ALONE.lock();
        let numbers: HashSet<usize> = at_once(50, |first| {
            assert_eq!(number(), first);
            first
        })
        .into_iter()
        .collect();
        assert_eq!(numbers.len(), 50);
        assert!(numbers.iter().all(|&number| number < OWNED));
    }

    #[test]
    fn a_thread_that_ends_makes_room_for_another() {
        let _alone = ALONE.lock();
        for _ in 0..2 * OWNED {
            assert!(at_once(1, |number| number)[0] < OWNED);
        }
    }

    #[test]
    fn nothing_is_lost_however_many_threads_come_and_go() {
        let _alone = ALONE.lock();
        let stripes = Stripes::<2>::new();
        // More than can own a stripe.
        let (threads, rounds, each) = (OWNED + SHARED, 10, 1_000);
        for _ in 0..rounds {
            let shared = at_once(threads, |number| {
                (0..each).for_each(|_| stripes.add(1));
                number >= OWNED
            });
            assert!(shared.iter().filter(|&&shared| shared).count() >= SHARED);
        }
        assert_eq!((stripes.sum(0), stripes.sum(1)), (0, rounds * each * threads as u64));
    }

    /// Counts at the very end of its thread, when the number has been given back if there was one.
    struct Late {
        stripes: Arc<Stripes<1>>,
        had_number: bool,
    }

    impl Drop for Late {
        fn drop(&mut self) {
            assert_eq!(OWN.try_with(|_| ()).is_err(), self.had_number);
            assert!(NUMBER.get() >= OWNED, "it owns no stripe any more");
            self.stripes.add(0);
        }
    }

    std::thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }

    #[test]
    fn the_end_of_a_thread_counts_as_well() {
        let _alone = ALONE.lock();
        let stripes = Arc::new(Stripes::<1>::new());
        for counts_before in [true, false] {
            let stripes = Arc::clone(&stripes);
            let thread = thread::spawn(move || {
                // Thread-locals are dropped in the opposite order.
                let late = Late { stripes: Arc::clone(&stripes), had_number: counts_before };
                LATE.with(|empty| *empty.borrow_mut() = Some(late));
                if counts_before {
                    stripes.add(0);
                    assert!(NUMBER.get() < OWNED);
                }
            });
            thread.join().unwrap();
        }
        assert_eq!(stripes.sum(0), 3);
    }
}

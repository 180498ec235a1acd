//! Panics on demand, in the code that the library calls: armed for one call, on the thread that runs it right now.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::thread;

/// Where a panic comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    Hash,
    Eq,
    ToOwned,
    Clone,
    Drop,
}

impl Spot {
    pub(crate) const ALL: [Self; 5] = [Self::Hash, Self::Eq, Self::ToOwned, Self::Clone, Self::Drop];
}

/// What they panic with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blast {
    /// The work of this call.
    Work { call: u64 },
    /// Code of a key or a value, armed for this call.
    Bomb { call: u64, spot: Spot },
    /// A waker: whoever woke.
    Wake,
}

impl Blast {
    /// Panics with it, without a message.
    pub(crate) fn go(self) -> ! {
        resume_unwind(Box::new(self))
    }
}

/// A bomb: for which call, where, and the how-many-th time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bomb {
    pub(crate) call: u64,
    pub(crate) spot: Spot,
    pub(crate) count: u32,
}

thread_local! {
    static ARMED: Cell<Option<Bomb>> = const { Cell::new(None) };
}

/// The code of a key or a value passes by: panics if it is the one that is to.
pub(crate) fn pass(spot: Spot) {
    // Values are dropped while threads end, too.
    let armed = ARMED.try_with(Cell::get).unwrap_or(None);
    let Some(bomb) = armed.filter(|bomb| bomb.spot == spot) else { return };
    // A second panic while the first one unwinds would end the process.
    if thread::panicking() {
        return;
    }
    let rest = bomb.count - 1;
    ARMED.set((rest > 0).then_some(Bomb { count: rest, ..bomb }));
    if rest == 0 {
        Blast::Bomb { call: bomb.call, spot }.go();
    }
}

/// A call's bomb, between the polls of the call.
#[derive(Debug)]
pub(crate) struct Fuse(pub(crate) Option<Bomb>);

/// As long as it lives, what is armed on this thread is the fuse's bomb, or nothing.
pub(crate) struct Armed<'f> {
    fuse: Option<&'f mut Fuse>,
    before: Option<Bomb>,
}

impl Fuse {
    pub(crate) fn arm(&mut self) -> Armed<'_> {
        let before = ARMED.replace(self.0.take());
        Armed { fuse: Some(self), before }
    }
}

impl Armed<'_> {
    /// Nothing is armed: for work, whose caller's bomb is not meant for it.
    pub(crate) fn not() -> Self {
        Self { fuse: None, before: ARMED.replace(None) }
    }
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        let rest = ARMED.replace(self.before);
        if let Some(fuse) = &mut self.fuse {
            fuse.0 = rest;
        }
    }
}

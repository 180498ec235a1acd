//! Keys and values that count, collide or misbehave.

use super::callers::{Blown, blow};
use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Counts how many things are alive, and how many clones were made.
#[derive(Clone, Default)]
pub(crate) struct Census(Arc<(AtomicI64, AtomicU32)>);

/// A thing that is counted. As a key it is told apart by its number.
pub(crate) struct Counted {
    pub(crate) number: u32,
    census: Census,
}

impl Census {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn thing(&self, number: u32) -> Counted {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        Counted { number, census: self.clone() }
    }

    pub(crate) fn alive(&self) -> i64 {
        self.0.0.load(Ordering::Relaxed)
    }

    pub(crate) fn clones(&self) -> u32 {
        self.0.1.load(Ordering::Relaxed)
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.census.0.1.fetch_add(1, Ordering::Relaxed);
        self.census.thing(self.number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.census.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl core::fmt::Debug for Counted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Counted").field(&self.number).finish()
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// A key whose hash is that of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colliding(pub(crate) u32);

impl Hash for Colliding {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A key that panics in one of its traits. Its number alone tells it apart.
#[derive(Debug)]
pub(crate) struct Moody {
    pub(crate) number: u32,
    pub(crate) panics_in: Mood,
    /// Gives it a destructor, as keys with a heap have.
    _heap: Box<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Calm,
    Hash,
    Eq,
    Clone,
}

impl Moody {
    pub(crate) fn new(number: u32, panics_in: Mood) -> Self {
        Self { number, panics_in, _heap: Box::new(number) }
    }
}

impl Clone for Moody {
    fn clone(&self) -> Self {
        if self.panics_in == Mood::Clone {
            blow(Blown);
        }
        Self::new(self.number, self.panics_in)
    }
}

impl Hash for Moody {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.panics_in == Mood::Hash {
            blow(Blown);
        }
        self.number.hash(state);
    }
}

impl PartialEq for Moody {
    fn eq(&self, other: &Self) -> bool {
        if [self.panics_in, other.panics_in].contains(&Mood::Eq) {
            blow(Blown);
        }
        self.number == other.number
    }
}
impl Eq for Moody {}

/// Something to be done in a destructor or another trait of a key or a value; it is decided after they are made, since
/// it needs the group.
#[derive(Clone, Default)]
pub(crate) struct Hook(Arc<OnceLock<Box<Act>>>);

type Act = dyn Fn(&'static str) + Send + Sync;

std::thread_local! {
    /// What is done in a hook makes and drops keys and values: their hooks rest meanwhile.
    static IN_HOOK: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

impl Hook {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn set(&self, act: impl Fn(&'static str) + Send + Sync + 'static) {
        assert!(self.0.set(Box::new(act)).is_ok(), "a hook is set once");
    }

    /// Does it, and says where.
    pub(crate) fn act(&self, site: &'static str) {
        /// Also if it panics.
        struct Ended;
        impl Drop for Ended {
            fn drop(&mut self) {
                IN_HOOK.set(false);
            }
        }
        if let Some(act) = self.0.get().filter(|_| !IN_HOOK.replace(true)) {
            let _ended = Ended;
            act(site);
        }
    }

    pub(crate) fn thing(&self, kind: Sites, number: u32) -> Hooked {
        Hooked { number, kind, hook: self.clone() }
    }
}

/// What [`Hooked`] says of its clone and of its drop.
pub(crate) type Sites = [&'static str; 2];

/// A key, a value or what a closure holds, with a hook in `Clone` and in `Drop`.
pub(crate) struct Hooked {
    pub(crate) number: u32,
    kind: Sites,
    hook: Hook,
}

impl Clone for Hooked {
    fn clone(&self) -> Self {
        self.hook.act(self.kind[0]);
        self.hook.thing(self.kind, self.number)
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        self.hook.act(self.kind[1]);
    }
}

impl core::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Hooked").field(&self.number).finish()
    }
}

impl PartialEq for Hooked {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Hooked {}

impl Hash for Hooked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

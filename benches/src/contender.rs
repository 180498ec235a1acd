//! Everything that is measured, behind one small trait; what tasks call is in [`tasks`].
//!
//! | contender | as it is used | hasher |
//! |---|---|---|
//! | oneflight | `SyncGroup::do_call` | hashbrown's default, foldhash, seeded for each group |
//! | quick_cache | `get_or_insert_with`, then `remove` by whoever ran the work; large enough never to evict | foldhash, seeded for each cache |
//! | singleflight | `Group::work`; `String` keys only, and it holds its only lock while the work runs | hashbrown 0.14's default, aHash |
//! | [`Uncoalesced`] | every caller runs its own work | none |
//! | [`Floor`](floor::Floor) | what any of them must at least do, written by hand | as oneflight |

pub mod floor;
pub mod tasks;

use alloc::borrow::ToOwned;
use core::cell::Cell;
use core::convert::Infallible;
use core::fmt::Debug;
use core::hash::Hash;
use oneflight::{Equivalent, SyncGroup};

/// A way to coalesce the calls of threads.
pub trait Blocking<Q: ?Sized, V>: Sync {
    /// The value of `key`: the result of `work`, or of the work of another caller that is at it.
    fn call(&self, key: &Q, work: impl Fn() -> V) -> V;
}

/// No coalescing at all: what is left is the work, and the loop around the calls.
#[derive(Clone, Copy, Debug)]
pub struct Uncoalesced;

impl<Q: ?Sized, V> Blocking<Q, V> for Uncoalesced {
    #[inline]
    fn call(&self, _key: &Q, work: impl Fn() -> V) -> V {
        work()
    }
}

impl<Q, K, V> Blocking<Q, V> for SyncGroup<K, V>
where
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    K: Send,
    V: Clone + Send + Sync,
{
    #[inline]
    fn call(&self, key: &Q, work: impl Fn() -> V) -> V {
        self.do_call(key, work)
    }
}

impl<Q, K, V> Blocking<Q, V> for quick_cache::sync::Cache<K, V>
where
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
    K: Eq + Hash + Send + Sync,
    V: Clone + Send + Sync,
{
    #[inline]
    fn call(&self, key: &Q, work: impl Fn() -> V) -> V {
        let led = Cell::new(false);
        let value: Result<V, Infallible> = self.get_or_insert_with(key, || {
            led.set(true);
            Ok(work())
        });
        if led.get() {
            self.remove(key);
        }
        match value {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }
}

impl<V: Clone + Debug + Send> Blocking<str, V> for singleflight::Group<V> {
    #[inline]
    fn call(&self, key: &str, work: impl Fn() -> V) -> V {
        self.work(key, work)
    }
}

/// A quick_cache that never has to evict anything here. To be made on a thread that is not pinned: it counts the cores.
#[must_use]
pub fn quick_cache<K: Eq + Hash, V: Clone>() -> quick_cache::sync::Cache<K, V> {
    quick_cache::sync::Cache::new(ROOM)
}

/// Far more than are in it at once in any workload: two threads hold two keys.
const ROOM: usize = 4_096;

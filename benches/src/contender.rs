//! Everything that is measured, behind one small trait for threads, [`Blocking`], and one for tasks, [`tasks::Coalesces`].
//! Each is shown to a visitor, one contender after the other. A contender that cannot do a workload is left out of it by its
//! type: it does not implement the trait for that key, or is among [`tasks::on_tokio_only`] or [`tasks::text_on_tokio_only`].
//!
//! | contender of threads | as it is used | hasher |
//! |---|---|---|
//! | oneflight | `SyncGroup::do_call` | hashbrown's default, foldhash, seeded for each group |
//! | quick_cache | `get_or_insert_with`, then `remove` by whoever ran the work; large enough never to evict | foldhash, seeded for each cache |
//! | moka | `sync::Cache::get_with`, then `invalidate` by whoever ran the work; large enough never to evict | std's default, SipHash, seeded |
//! | singleflight | `Group::work`; `String` keys only, and it holds its only lock while the work runs | hashbrown 0.14's default, aHash |
//! | [`Uncoalesced`] | every caller runs its own work | none |
//! | [`Floor`](floor::Floor) | what any of them must at least do, written by hand | as oneflight |

pub mod amalgam;
pub mod crates;
pub mod floor;
pub mod foyer;
pub mod tasks;

use crate::load;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cell::Cell;
use core::convert::Infallible;
use core::fmt::Debug;
use core::future::Future;
use core::hash::Hash;
use floor::Floor;
use oneflight::{Equivalent, SyncGroup};
use tasks::Coalesces;

/// What a contender is, which decides what it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What this repository publishes.
    Ours,
    /// A crate that users would pick instead.
    Crate,
    /// What nobody publishes: hand-written, or a part of what the others do.
    Floor,
}

/// What is asked for: a `u64`, or a text of 16 bytes.
pub trait Key:
    Hash + Eq + ToOwned<Owned: Borrow<Self> + Hash + Eq + Clone + Send + Sync + 'static> + Send + Sync + 'static
{
    /// The key of those workloads that have only one.
    const ONE: &'static Self;

    /// This many different random keys.
    fn many(count: usize, seed: u64) -> Vec<Self::Owned>;
}

impl Key for u64 {
    const ONE: &'static Self = &7;

    fn many(count: usize, seed: u64) -> Vec<Self> {
        load::numbers(count, seed)
    }
}

impl Key for str {
    const ONE: &'static Self = "0000000000000007";

    fn many(count: usize, seed: u64) -> Vec<String> {
        load::strings(count, seed)
    }
}

/// A way to coalesce the calls of threads.
pub trait Blocking<Q: ?Sized, V>: Sync {
    /// The value of `key`: the result of `work`, or of the work of another caller that is at it.
    fn call(&self, key: &Q, work: impl Fn() -> V) -> V;
}

/// Looks at one contender of threads after the other.
pub trait Visitor<Q: Key + ?Sized> {
    /// Looks at one. To be called on a thread that is not pinned: some that are made count the cores that they may use.
    fn visit<C: Blocking<Q, u64> + Send + 'static>(&mut self, name: &'static str, kind: Kind, make: fn() -> C);
}

/// Shows all contenders of threads but those of [`text_only`].
pub fn everybody<Q: Key + ?Sized>(visitor: &mut impl Visitor<Q>) {
    visitor.visit("oneflight", Kind::Ours, SyncGroup::<Q::Owned, u64>::new);
    visitor.visit("quick_cache", Kind::Crate, quick_cache::<Q::Owned, u64>);
    visitor.visit("moka", Kind::Crate, moka::<Q::Owned>);
    visitor.visit("floor", Kind::Floor, Floor::<Q::Owned>::new);
    visitor.visit("no coalescing", Kind::Floor, || Uncoalesced);
}

/// Shows the contenders of threads whose keys are `String`s.
pub fn text_only(visitor: &mut impl Visitor<str>) {
    visitor.visit("singleflight", Kind::Crate, singleflight::Group::new);
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

impl<Q: Key + ?Sized> Coalesces<Q> for Uncoalesced {
    #[inline]
    fn call<'a, W, F>(&'a self, _key: &'a Q, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
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

impl<Q: Key + ?Sized> Blocking<Q, u64> for moka::sync::Cache<Q::Owned, u64> {
    #[inline]
    fn call(&self, key: &Q, work: impl Fn() -> u64) -> u64 {
        let led = Cell::new(false);
        let value = self.get_with_by_ref(key, || {
            led.set(true);
            work()
        });
        if led.get() {
            self.invalidate(key);
        }
        value
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

/// A moka that never has to evict anything here.
fn moka<K: Eq + Hash + Send + Sync + 'static>() -> moka::sync::Cache<K, u64> {
    moka::sync::Cache::new(1 << 20)
}

/// Far more than are in it at once in any workload: two threads hold two keys.
const ROOM: usize = 4_096;

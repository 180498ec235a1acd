//! What coalesces the calls of tasks, behind one small trait. Values are `u64`; how the crates are used is in
//! [`crates`](super::crates), [`foyer`](super::foyer) and [`amalgam`](super::amalgam).
//!
//! | contender | as it is used |
//! |---|---|
//! | oneflight | `AsyncGroup::do_call` |
//! | oneflight, inline | `AsyncGroup::do_call_inline` |
//! | [`SharedMap`] | what one writes by hand: a `Shared` of `futures` in a map |
//! | [`Floor`], [`Boxed`] | what any of them must at least do, written by hand |

use super::amalgam::Amalgam;
use super::floor::{Boxed, Floor};
use super::foyer::Foyer;
use super::{Key, Kind, crates};
use alloc::boxed::Box;
use core::convert::Infallible;
use core::fmt;
use core::future::Future;
use core::hash::Hash;
use core::pin::Pin;
use futures_util::future::{FutureExt as _, Shared};
use hashbrown::HashMap;
use oneflight::AsyncGroup;
use parking_lot::Mutex;

/// A way to coalesce the calls of tasks.
pub trait Coalesces<Q: Key + ?Sized>: Send + Sync + 'static {
    /// The value of `key`: the result of `work`, or of the work of another caller that is at it.
    fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static;
}

/// Looks at one contender of tasks after the other.
pub trait Visitor<Q: Key + ?Sized> {
    /// Looks at one. To be called on a thread that is not pinned: some that are made count the cores that they may use.
    fn visit<C: Coalesces<Q>>(&mut self, name: &'static str, kind: Kind, make: fn() -> C);
}

/// Shows all contenders of tasks that coalesce, but those of [`on_tokio_only`] and [`text_on_tokio_only`].
pub fn everybody<Q: Key + ?Sized>(visitor: &mut impl Visitor<Q>) {
    visitor.visit("oneflight", Kind::Ours, AsyncGroup::<Q::Owned, u64>::new);
    visitor.visit("oneflight, inline", Kind::Ours, Inline::<Q::Owned>::default);
    visitor.visit("quick_cache", Kind::Crate, super::quick_cache::<Q::Owned, u64>);
    visitor.visit("singleflight-async", Kind::Crate, singleflight_async::SingleFlight::<Q::Owned, u64>::new);
    visitor.visit("async_singleflight", Kind::Crate, async_singleflight::Group::<Q::Owned, u64, Infallible>::new);
    visitor.visit("uniflight", Kind::Crate, uniflight::Merger::<Q::Owned, u64>::new);
    visitor.visit("rs-singleflight", Kind::Crate, rs_singleflight::Group::<Q::Owned, u64, Infallible>::new);
    visitor.visit("mea", Kind::Crate, mea::singleflight::Group::<Q::Owned, u64>::new);
    visitor.visit("moka", Kind::Crate, crates::moka::<Q::Owned>);
    visitor.visit("a map of Shared", Kind::Floor, SharedMap::<Q::Owned>::default);
}

/// Shows the contender of tasks that must run on tokio.
pub fn on_tokio_only<Q: Key + ?Sized>(visitor: &mut impl Visitor<Q>) {
    visitor.visit("foyer", Kind::Crate, Foyer::<Q::Owned>::default);
}

/// Shows the contender of tasks that must run on tokio, and whose keys are text.
pub fn text_on_tokio_only(visitor: &mut impl Visitor<str>) {
    visitor.visit("amalgam-cache", Kind::Crate, Amalgam::default);
}

/// Shows the hand-written ones behind which nobody can wait.
pub fn floors<Q: Key + ?Sized>(visitor: &mut impl Visitor<Q>) {
    visitor.visit("floor, inline", Kind::Floor, Floor::<Q::Owned>::new);
    visitor.visit("floor, boxed", Kind::Floor, Boxed::<Q::Owned>::default);
}

impl<Q: Key + ?Sized> Coalesces<Q> for AsyncGroup<Q::Owned, u64> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.do_call(key, work)
    }
}

/// An `AsyncGroup` whose callers run their work inside their own future.
#[derive(Debug)]
pub struct Inline<K>(pub AsyncGroup<K, u64>);

impl<K> Default for Inline<K> {
    fn default() -> Self {
        Self(AsyncGroup::new())
    }
}

impl<Q: Key + ?Sized> Coalesces<Q> for Inline<Q::Owned> {
    #[inline]
    fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> impl Future<Output = u64> + Send
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        self.0.do_call_inline(key, work)
    }
}

/// One `Shared` for each key, under one lock; removed by whoever put it there. If that one is dropped, it stays for ever.
pub struct SharedMap<K>(Mutex<HashMap<K, Shared<BoxedWork>>>);

type BoxedWork = Pin<Box<dyn Future<Output = u64> + Send>>;

impl<Q: Key + ?Sized> Coalesces<Q> for SharedMap<Q::Owned> {
    #[inline]
    async fn call<'a, W, F>(&'a self, key: &'a Q, work: W) -> u64
    where
        W: FnOnce() -> F + Send + 'a,
        F: Future<Output = u64> + Send + 'static,
    {
        let mut led = false;
        let shared = {
            let mut map = self.0.lock();
            let make = || {
                led = true;
                let work: BoxedWork = Box::pin(work());
                work.shared()
            };
            map.entry(key.to_owned()).or_insert_with(make).clone()
        };
        let value = shared.await;
        if led {
            let removed = self.0.lock().remove(key);
            drop(removed);
        }
        value
    }
}

impl<K: Hash + Eq> Default for SharedMap<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> fmt::Debug for SharedMap<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMap").finish_non_exhaustive()
    }
}

//! The settings of an `AsyncGroup`.

use super::AsyncGroup;
use super::detached::{Detacher, NO_SPAWNER, Spawner, detach};
use crate::primitive::Arc;
use crate::settings::{Settings, common_settings};
use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::hash::BuildHasher;
use core::marker::PhantomData;
use core::pin::Pin;
use hashbrown::DefaultHashBuilder;

/// Builds an [`AsyncGroup`] with other settings than [`AsyncGroup::new`] has.
///
/// | setting | default |
/// |---|---|
/// | [`shards`](Self::shards) | 256, or 1 without `std` |
/// | [`hasher`](Self::hasher) | hashbrown's default, seeded for each group |
#[cfg_attr(feature = "std", doc = "| [`max_flight_age`](Self::max_flight_age) | none, and no clock is read |")]
/// | [`max_attempts`](Self::max_attempts) | no limit |
/// | [`on_abandon`](Self::on_abandon) | [`OnAbandon::TakeOver`](crate::OnAbandon::TakeOver) |
/// | [`share_if`](Self::share_if) | every value is shared |
/// | [`spawner`](Self::spawner) | none: `detach` is refused |
/// | [`detach`](Self::detach) | the work is dropped when its last caller leaves |
///
/// # Examples
///
/// ```
/// use oneflight::AsyncGroup;
///
/// let group: AsyncGroup<String, u32> = AsyncGroup::builder().shards(64).max_attempts(3).build();
/// # let _ = group;
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct AsyncGroupBuilder<K, V, S = DefaultHashBuilder> {
    settings: Settings<V, S>,
    spawner: Option<alloc::sync::Arc<Spawner>>,
    detacher: Option<Detacher<K, V, S>>,
    key: PhantomData<fn() -> K>,
}

impl<K, V> AsyncGroupBuilder<K, V> {
    pub(super) fn new() -> Self {
        Self { settings: Settings::new(), spawner: None, detacher: None, key: PhantomData }
    }
}

impl<K, V, S> AsyncGroupBuilder<K, V, S> {
    common_settings!("AsyncGroup");

    /// How keys are hashed. A call hashes its key once. Default: hashbrown's, seeded for each group.
    ///
    /// # Panics
    ///
    /// After [`detach`](Self::detach), which is about a group with the hasher that it has by then.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    /// use std::hash::RandomState;
    ///
    /// let group: AsyncGroup<String, u32, RandomState> = AsyncGroup::builder().hasher(RandomState::new()).build();
    /// assert_eq!(smol::block_on(group.do_call("k", || async { 7 })), 7);
    /// ```
    #[track_caller]
    pub fn hasher<H: BuildHasher>(self, hasher: H) -> AsyncGroupBuilder<K, V, H> {
        let Self { settings, spawner, detacher, key } = self;
        assert!(detacher.is_none(), "oneflight: hasher() must come before detach()");
        AsyncGroupBuilder { settings: settings.with_hasher(hasher), spawner, detacher: None, key }
    }

    /// Where detached work goes on after its last caller has left: any function that takes a boxed future and has it polled
    /// to its end. Without one, [`Call::detach`](crate::Call::detach) panics.
    ///
    /// The spawner is called outside all locks, by the caller that leaves last (in its `Drop`). If it panics, or drops the
    /// future, the work is dropped, and the flight is over like after any last caller.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    ///
    /// let group: AsyncGroup<String, u32> =
    ///     AsyncGroup::builder().spawner(|work| smol::spawn(work).detach()).build();
    /// # let _ = group;
    /// ```
    pub fn spawner(
        mut self,
        spawner: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync + 'static,
    ) -> Self {
        self.spawner = Some(alloc::sync::Arc::new(spawner));
        self
    }

    /// The default of [`Call::detach`](crate::Call::detach): the work of every call but inline ones, batches and blocking ones
    /// goes on after its last caller has left, that of [`do_call`](AsyncGroup::do_call) and
    /// [`try_do_call`](AsyncGroup::try_do_call) too. It needs a [`spawner`](Self::spawner), and comes after
    /// [`hasher`](Self::hasher). Default: it is dropped then.
    ///
    /// Work that is ready when it is first polled costs nothing more; other work costs an allocation more, or two.
    ///
    /// A call that is to be without it: [`Call::attach`](crate::Call::attach).
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    ///
    /// let group: AsyncGroup<String, u32> =
    ///     AsyncGroup::builder().spawner(|work| smol::spawn(work).detach()).detach().build();
    /// assert_eq!(smol::block_on(group.do_call("k", || async { 7 })), 7);
    /// ```
    pub fn detach(mut self) -> Self
    where
        K: Send + 'static,
        V: Clone + Send + Sync + 'static,
        S: Send + Sync + 'static,
    {
        self.detacher = Some(detach);
        self
    }

    /// The group.
    ///
    /// # Panics
    ///
    /// If it is to [`detach`](Self::detach) and has no [`spawner`](Self::spawner).
    ///
    /// # Examples
    ///
    /// ```
    /// let group: oneflight::AsyncGroup<String, u32> = oneflight::AsyncGroup::builder().build();
    /// assert_eq!(group.in_flight(), 0);
    /// ```
    #[track_caller]
    pub fn build(self) -> AsyncGroup<K, V, S> {
        let Self { settings, spawner, detacher, key: _ } = self;
        assert!(detacher.is_none() || spawner.is_some(), "{NO_SPAWNER}");
        AsyncGroup { group: Arc::new(settings.into_group()), spawner, detacher }
    }
}

impl<K, V, S> fmt::Debug for AsyncGroupBuilder<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncGroupBuilder")
            .field("settings", &self.settings)
            .field("spawner", &self.spawner.is_some())
            .field("detach", &self.detacher.is_some())
            .finish_non_exhaustive()
    }
}

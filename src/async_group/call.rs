//! A call of an `AsyncGroup` with options of its own.

use super::AsyncGroup;
use super::detached::{NO_SPAWNER, detach};
use super::inline::InlineCall;
use super::owned::OwnedCall;
use crate::call::Call;
use crate::error::CallError;
use crate::outcome::Outcome;
use core::future::{Future, poll_fn};
use core::hash::{BuildHasher, Hash};
use hashbrown::Equivalent;

impl<'a, K, V, S, Q, M, P> Call<'a, AsyncGroup<K, V, S>, V, Q, M, P>
where
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
    M: FnOnce() -> K,
{
    /// Lets the work go on after the last caller has left, on the group's
    /// [`spawner`](super::AsyncGroupBuilder::spawner). Callers that come while it goes on join it. Its value is then dropped
    /// if nobody is there: a group stores nothing. To a caller that joins it the spawned task is another caller: it counts for
    /// [`waiters`](AsyncGroup::waiters), for [`forget_unshared`](AsyncGroup::forget_unshared) and for
    /// [`Outcome::shared`].
    ///
    /// A panic of work that no caller is left to hear of goes on in the spawned task.
    ///
    /// It concerns the work that this call makes: one that follows work made by a call without it does not keep that alive.
    /// Inline work and that of [`run_blocking`](Self::run_blocking) stays with its caller, with it or without. For all calls of
    /// a group: [`AsyncGroupBuilder::detach`](super::AsyncGroupBuilder::detach).
    ///
    /// # Panics
    ///
    /// If the group has no spawner.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    ///
    /// # smol::block_on(async {
    /// let group: AsyncGroup<String, u32> = AsyncGroup::builder().spawner(|work| smol::spawn(work).detach()).build();
    /// let out = group.call("k").detach().run(|| async { 7 }).await?;
    /// assert_eq!(out.value, 7);
    /// # Ok::<(), oneflight::CallError>(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn detach(mut self) -> Self
    where
        K: Send + 'static,
        V: Clone + Send + Sync + 'static,
        S: Send + Sync + 'static,
    {
        let spawner = self.group.spawner.as_ref();
        let spawner = spawner.expect(NO_SPAWNER);
        self.detach = Some(detach(&self.group.group, spawner));
        self
    }

    /// Drops the work when the last caller leaves, also where the group [detaches](super::AsyncGroupBuilder::detach) by default.
    /// Of this and [`detach`](Self::detach) the later one counts.
    ///
    /// It concerns the work that this call makes: one that follows work that is to go on does not change that.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    ///
    /// let group: AsyncGroup<String, u32> =
    ///     AsyncGroup::builder().spawner(|work| smol::spawn(work).detach()).detach().build();
    /// let mut call = Box::pin(group.call("k").attach().run(std::future::pending));
    /// assert!(smol::block_on(smol::future::poll_once(&mut call)).is_none());
    /// drop(call);
    /// assert_eq!(group.in_flight(), 0);
    /// ```
    pub fn attach(mut self) -> Self {
        self.options.attached = true;
        self.detach = None;
        self
    }

    /// Runs the work that `work` makes, or waits for the flight that is on and shares its value. The flight owns the work:
    /// see [`AsyncGroup::do_call`].
    ///
    /// `share_if` travels with the work. A value that it does not approve of goes to the caller whose closure made the work,
    /// or if that one has left, to the one that drove it to its end.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. Nobody else is affected.
    ///
    /// # Errors
    ///
    /// - [`Reentrant`](CallError::Reentrant): awaited inside the work of the same flight (with `std`).
    /// - [`Abandoned`](CallError::Abandoned): the leader left without a value, and this caller was not to take over or no
    ///   further attempt was allowed.
    ///
    /// # Panics
    ///
    /// If this caller's own work or `share_if` panics, with that panic; if code of the key or the value does; if it is
    /// polled again after it has ended.
    ///
    /// # Memory
    ///
    /// What the work wrote before it ended is visible to every caller that gets its value.
    ///
    /// # Examples
    ///
    /// ```
    /// use oneflight::AsyncGroup;
    ///
    /// # smol::block_on(async {
    /// let group: AsyncGroup<String, Result<u32, String>> = AsyncGroup::new();
    /// let out = group.call("k").share_ok().run(|| async { Ok(7) }).await?;
    /// assert_eq!((out.value, out.shared), (Ok(7), false));
    /// # Ok::<(), oneflight::CallError>(())
    /// # }).unwrap();
    /// ```
    pub fn run<W, F>(
        self,
        work: W,
    ) -> impl Future<Output = Result<Outcome<V>, CallError>> + use<'a, K, V, S, Q, M, P, W, F>
    where
        V: Clone + Send + Sync + 'static,
        P: FnOnce(&V) -> bool + Send + 'static,
        W: FnOnce() -> F,
        F: Future<Output = V> + Send + 'static,
    {
        let Self { group, key, make_key, options, default_share_if, detach } = self;
        let options = options.with_default(default_share_if);
        let mut call = OwnedCall::new(group, key, make_key, options, detach, work);
        poll_fn(move |cx| call.poll(cx))
    }

    /// Like [`run`](Self::run), but a caller that leads runs its work inside its own future: see
    /// [`AsyncGroup::do_call_inline`], also for its hazard. [`detach`](Self::detach) does not apply.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. If it led, its work is lost, and a follower takes over with its own.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// # Memory
    ///
    /// What the work wrote before it ended is visible to every caller that gets its value.
    ///
    /// # Examples
    ///
    /// ```
    /// # smol::block_on(async {
    /// let group: oneflight::AsyncGroup<String, usize> = oneflight::AsyncGroup::new();
    /// let borrowed = vec![1, 2, 3];
    /// let out = group.call("k").run_inline(|| async { borrowed.len() }).await?;
    /// assert_eq!(out.value, 3);
    /// # Ok::<(), oneflight::CallError>(())
    /// # }).unwrap();
    /// ```
    pub fn run_inline<W, F>(
        self,
        work: W,
    ) -> impl Future<Output = Result<Outcome<V>, CallError>> + use<'a, K, V, S, Q, M, P, W, F>
    where
        V: Clone,
        P: FnOnce(&V) -> bool,
        W: FnOnce() -> F,
        F: Future<Output = V>,
    {
        let Self { group, key, make_key, options, default_share_if, detach: _ } = self;
        let options = options.with_default(default_share_if);
        InlineCall::new(&*group.group, key, make_key, options, work)
    }
}

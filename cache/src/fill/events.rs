//! What a fill asks for, what may come of it, and how it ends.

use core::fmt;
use core::time::Duration;

/// A moment, as the time since a fixed one; monotonic.
pub type Time = Duration;

/// Whose a lease is. The driver draws it, for each flight of the process and not for each thread or client: so a local caller
/// that takes over from a leader that has been dropped goes on with the lease.
pub type Token = u128;

/// What a key has while anybody may publish: a random number, which each write removes.
pub type Epoch = u128;

/// Which value it is: a random number that is stored with it. For one that cannot be read, any number that tells its bytes
/// from others.
pub type Version = u32;

/// What the driver must do next.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::fill::{Action, Config, Event, Fill};
/// # use std::time::Duration;
/// # let now = Duration::ZERO;
/// let mut fill = Fill::read(Config::default(), 7, now);
/// let action = fill.step(Event::Hit, now)?;
/// assert!(matches!(action, Action::Done(_)));
/// # Ok::<(), oneflight_cache::fill::Refused>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a fill goes on only when its action has been done"]
pub enum Action {
    /// Read the value and how long it lives. A driver that knows the store to be down need not ask: it says
    /// [`StoreError`](Event::StoreError) at once.
    ///
    /// May come of it: [`Hit`](Event::Hit), [`Stale`](Event::Stale), [`Miss`](Event::Miss), `StoreError`.
    Read,
    /// In one step that nothing comes between: look at the value, and take the lease for [`Config::lease`].
    ///
    /// | the value is | `seen: None` | `seen: Some(version)` |
    /// |---|---|---|
    /// | absent | take the lease | [`Miss`](Event::Miss) with `unreadable: None` |
    /// | of the version `seen` | | take the lease |
    /// | another | [`Filled`](Event::Filled) | [`Filled`](Event::Filled) |
    ///
    /// Take the lease: if it is free or this token's already, it is this token's now, the key gets a new epoch if it has none,
    /// which is to last for [`Config::epoch_life`] at least, and the event is [`Acquired`](Event::Acquired). Otherwise it is
    /// [`Held`](Event::Held). A value that the driver was given here and cannot read is [`Miss`](Event::Miss) with its version,
    /// not `Filled`.
    ///
    /// After a [`Wait`](Self::Wait) the driver asks only once it listens for pushes again, or what is pushed between the
    /// answer and the next sleep is lost; one that cannot listen says so by [`Event::Held::listening`].
    ///
    /// A lost answer is [`StoreError`](Event::StoreError) with `ambiguous: true`. The driver must not ask again by itself.
    ///
    /// [`Config::lease`]: super::Config::lease
    /// [`Config::epoch_life`]: super::Config::epoch_life
    Acquire {
        /// The value that is to be replaced: one to be refreshed, a stale one, or one that cannot be read.
        seen: Option<Version>,
    },
    /// Run the loader, and meanwhile renew the lease whenever [`Fill::renewal`](super::Fill::renewal) says so.
    ///
    /// May come of it: [`LoadOk`](Event::LoadOk), [`LoadFailed`](Event::LoadFailed).
    Load {
        /// There is no lease, as the store is down or others take too long: each process loads, so the driver bounds how many
        /// of these run at once.
        uncached: bool,
    },
    /// In one step that nothing comes between:
    ///
    /// 1. the key's epoch is not `epoch`: [`Superseded`](Event::Superseded) if it has a value and no epoch, otherwise
    ///    [`Invalidated`](Event::Invalidated);
    /// 2. the lease is this token's, or nobody's and the value is not to be kept: store, remove the lease and the epoch, tell those who
    ///    wait: [`Stored`](Event::Stored);
    /// 3. there is no value: store, leave the lease and the epoch, tell those who wait: [`Late`](Event::Late);
    /// 4. otherwise [`Superseded`](Event::Superseded).
    ///
    /// For a value that is not to be kept, "store" is to remove what is there. Then nothing that was loaded before comes after it.
    ///
    /// Or [`StoreError`](Event::StoreError), also when the store is out of memory. After all but `Stored` and `Late` the lease
    /// is given up by a [`Release`](Self::Release), as it may still be this token's.
    Publish {
        /// The epoch in which the lease was acquired.
        epoch: Epoch,
    },
    /// Give the lease up if it is this token's, and tell those who wait. It works with a store that is out of memory, so it
    /// must be sent to one.
    ///
    /// May come of it: [`Released`](Event::Released), [`StoreError`](Event::StoreError).
    Release,
    /// Sleep. First of all a driver that does not listen for pushes yet starts to, and as soon as it does, it says
    /// [`Woken`](Event::Woken): the lease may have been given up before that, and nobody will say so again. So each sleep that
    /// relies on a push is one after an `Acquire` that was asked while listening ([`Event::Held::listening`]).
    ///
    /// May come of it: `Woken`, [`Tick`](Event::Tick). Both too early and too often are harmless.
    Wait {
        /// The moment to say `Tick` if nothing has been pushed.
        until: Time,
    },
    /// It has ended. The lease is given up, has been lost, or runs out by itself.
    Done(Outcome),
}

/// What came of an action.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::fill::{Action, Config, Event, Fill};
/// # use std::time::Duration;
/// # let now = Duration::ZERO;
/// let mut fill = Fill::read(Config::default(), 7, now);
/// fill.step(Event::Miss { unreadable: None }, now)?;
/// let held = Event::Held { left: Duration::from_secs(5), holder: 8, listening: true };
/// assert!(matches!(fill.step(held, now)?, Action::Wait { .. }));
/// # Ok::<(), oneflight_cache::fill::Refused>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// There is a fresh value. Whether it is to be refreshed early is for the driver to ask its policy.
    Hit,
    /// There is a value that is no longer fresh, and may still be used. The driver keeps it.
    Stale {
        /// Which one.
        version: Version,
    },
    /// There is no value that can be used.
    Miss {
        /// The one that is there and cannot be read.
        unreadable: Option<Version>,
    },
    /// The lease is this token's.
    Acquired {
        /// The key's epoch from that moment on.
        epoch: Epoch,
    },
    /// There is a value by now, other than the one that was seen. The driver has it.
    Filled,
    /// The lease is another's.
    Held {
        /// How long it lasts if it is not renewed; [`Duration::MAX`] if it never ends.
        left: Duration,
        /// Whose it is. Only compared with what `Held` said before.
        holder: Token,
        /// The driver was listening for pushes before it asked, so whatever happens to the lease from now on is pushed.
        listening: bool,
    },
    /// The store failed.
    StoreError {
        /// It may have done what it was asked to do: the answer was lost. If in doubt, true.
        ambiguous: bool,
    },
    /// The loader has a value, or a marker to be stored in place of an error or of a value that is not to be stored.
    LoadOk {
        /// It is to be published, also if it is not to be kept. False: the lease is given up and nothing is published.
        store: bool,
    },
    /// The loader has none. Not for a leader that is dropped or panics while other callers of the process wait: one of these
    /// goes on, with a fill of its own, and may do so with the same token.
    LoadFailed,
    /// Published, with the lease still this token's.
    Stored,
    /// Published, though the lease had been lost.
    Late,
    /// Not published: there is another value.
    Superseded,
    /// Not published: the key has another epoch, or none and no value.
    Invalidated,
    /// The lease is not this token's, whether it was before or not.
    Released,
    /// Somebody has published or given up, or may have.
    Woken,
    /// Time has passed.
    Tick,
}

/// What came of renewing a lease: of setting it to last [`Config::lease`](super::Config::lease) from now, if it is this
/// token's.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::fill::{Action, Config, Event, Fill};
/// # use std::time::Duration;
/// # let now = Duration::ZERO;
/// use oneflight_cache::fill::Renewal;
///
/// let mut fill = Fill::read(Config::default(), 7, now);
/// fill.step(Event::Miss { unreadable: None }, now)?;
/// fill.step(Event::Acquired { epoch: 9 }, now)?;
/// let later = Duration::from_secs(2);
/// fill.renewed(Renewal::Renewed, later);
/// assert_eq!(fill.renewal(), Some(later + Config::default().lease / 3));
/// # Ok::<(), oneflight_cache::fill::Refused>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Renewal {
    /// It was.
    Renewed,
    /// It was not.
    Lost,
    /// The store failed.
    Failed,
}

/// What became of a value that was loaded.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::fill::{Action, Config, Event, Fill};
/// # use std::time::Duration;
/// # let now = Duration::ZERO;
/// use oneflight_cache::fill::{Outcome, Published};
///
/// let mut fill = Fill::read(Config::default(), 7, now);
/// fill.step(Event::Miss { unreadable: None }, now)?;
/// fill.step(Event::Acquired { epoch: 9 }, now)?;
/// fill.step(Event::LoadOk { store: true }, now)?;
/// let ended = fill.step(Event::Stored, now)?;
/// assert_eq!(ended, Action::Done(Outcome::Loaded(Published::Stored)));
/// # Ok::<(), oneflight_cache::fill::Refused>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Published {
    /// It is in the store.
    Stored,
    /// It is in the store, though the lease had been lost.
    Late,
    /// Another value is in the store: the lease had been lost, or that was put while this one was loaded.
    Superseded,
    /// There was a write while it was loaded, or the store has lost the epoch, so it is not in the store.
    Invalidated,
    /// It was acquired so long ago that its epoch may have ended, so it is not in the store.
    Outdated,
    /// The loader did not let it be stored.
    NotWanted,
    /// The store refused it.
    Failed,
    /// The store's answer was lost.
    Unknown,
    /// It was loaded without the store.
    Uncached,
}

/// How a fill ended.
///
/// # Examples
///
/// ```
/// # use oneflight_cache::fill::{Action, Config, Event, Fill};
/// # use std::time::Duration;
/// # let now = Duration::ZERO;
/// use oneflight_cache::fill::Outcome;
///
/// let mut fill = Fill::refresh(Config::default(), 7, 1, now);
/// // Another has refreshed it already.
/// assert_eq!(fill.step(Event::Filled, now)?, Action::Done(Outcome::Ducked));
/// # Ok::<(), oneflight_cache::fill::Refused>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// With the value that was read first.
    Hit,
    /// With the value that was stale when it was read.
    Stale {
        /// The driver should start a refresh. False if others are at it, or the loader or the store has just failed.
        refresh: bool,
    },
    /// With another's value.
    Filled,
    /// With the value that was loaded here.
    Loaded(Published),
    /// The loader failed.
    LoadFailed,
    /// Others take too long.
    TimedOut,
    /// The store failed.
    StoreFailed,
    /// A refresh that another does or has done already, or of a value that is gone.
    Ducked,
}

/// An event that cannot have come of the action under way: a mistake of the driver.
///
/// # Examples
///
/// ```
/// use oneflight_cache::fill::{Action, Config, Event, Fill, Refused};
/// use std::time::Duration;
///
/// let mut fill = Fill::read(Config::default(), 7, Duration::ZERO);
/// let refused = fill.step(Event::Tick, Duration::ZERO);
/// assert_eq!(refused, Err(Refused { action: Action::Read, event: Event::Tick }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refused {
    /// The action under way.
    pub action: Action,
    /// The event.
    pub event: Event,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the event {:?} cannot come of the action {:?}", self.event, self.action)
    }
}

impl core::error::Error for Refused {}

//! What a caller that reads through the cache has to do next, so that one process loads while the others wait.
//!
//! [`Fill`] decides; a driver does what it says, and tells it what came of that. It is pure: it reads no clock, does no I/O
//! and never sees a key or a value. So one machine serves threads and tasks, and every order of events can be tried.
//!
//! It is for stores with leases. In a store of one process a flight is its own lease, so there is nothing to acquire, to wait for
//! or to release, and the cache loads and stores without it. That way is explored as well, by the cache itself: every sequence of a
//! few calls, ends of loaders, polls, writes and ticks of the clock, beside an oracle (`bash ci/explore.sh`).
//!
//! | state | action under way | what may come of it |
//! |---|---|---|
//! | reading | [`Read`](Action::Read) | [`Hit`](Event::Hit), [`Stale`](Event::Stale), [`Miss`](Event::Miss) |
//! | acquiring | [`Acquire`](Action::Acquire) | [`Acquired`](Event::Acquired), [`Filled`](Event::Filled), [`Held`](Event::Held), [`Miss`](Event::Miss) |
//! | waiting | [`Wait`](Action::Wait) | [`Woken`](Event::Woken), [`Tick`](Event::Tick): both acquire again |
//! | loading | [`Load`](Action::Load) | [`LoadOk`](Event::LoadOk), [`LoadFailed`](Event::LoadFailed); beside it the lease is renewed |
//! | publishing | [`Publish`](Action::Publish) | [`Stored`](Event::Stored), [`Late`](Event::Late), [`Superseded`](Event::Superseded), [`Invalidated`](Event::Invalidated) |
//! | releasing | [`Release`](Action::Release) | [`Released`](Event::Released) |
//! | done | [`Done`](Action::Done) | |
//!
//! Whatever asks the store for something may be answered by [`StoreError`](Event::StoreError) instead. Any other event is
//! [`Refused`], and changes nothing.
//!
//! Three rules together make it safe and live:
//!
//! 1. A leader renews its lease while it loads.
//! 2. A key has an epoch while anybody may publish: a random number. Whoever acquires the lease makes one if there is none.
//!    Each write removes it together with the lease. Nothing is published that was acquired in another epoch than the present
//!    one.
//! 3. A leader that has lost its lease still publishes, if the epoch is the same and there is no value.
//!
//! Without the second, what was read before a write is stored after it. Without the first or the third, a load that takes
//! longer than the lease is never stored. The lease makes loads fewer. It does not make them exclusive, so it protects
//! nothing outside the cache.
//!
//! A store may lose whatever it likes, at any time: a value, a lease, an epoch, or all that it has. An epoch that is lost is
//! never the present one again, so that costs loads and is never wrong. What a store must not do is to go back to a former
//! state, as a replica may that takes over before it has heard of a write: then what was acquired before the write may be
//! published after it.

mod config;
mod events;
#[cfg(test)]
mod exploration;
mod state;
#[cfg(test)]
mod tests;
mod times;

pub use config::{Config, Fallback, OnStale};
pub use events::{Action, Epoch, Event, Outcome, Published, Refused, Renewal, Time, Token, Version};
pub(crate) use state::Seen;

use core::time::Duration;
use state::{Lease, Next, State};
use times::sleep;

/// One flight's way to a value. At most one for a key is under way in a process; the other callers of the process wait for
/// its flight.
///
/// It may be dropped at any time. If [`may_hold`](Self::may_hold), then give the lease up by its token, unless another
/// caller goes on with the same token. The cache gives it up, and whoever goes on has a token of its own.
///
/// # Examples
///
/// A driver for a store that has a single key and is nobody else's:
///
/// ```
/// use oneflight_cache::fill::{Action, Config, Event, Fill, Outcome};
/// use std::time::Instant;
///
/// let begin = Instant::now();
/// let mut stored: Option<u32> = None;
/// let mut loads = 0;
///
/// for _ in 0..3 {
///     let mut loaded = None;
///     let mut fill = Fill::read(Config::default(), 7, begin.elapsed());
///     let outcome = loop {
///         let event = match fill.action() {
///             Action::Read if stored.is_some() => Event::Hit,
///             Action::Read => Event::Miss { unreadable: None },
///             Action::Acquire { .. } => Event::Acquired { epoch: 0 },
///             Action::Load { .. } => {
///                 loads += 1;
///                 loaded = Some(42);
///                 Event::LoadOk { store: true }
///             }
///             Action::Publish { .. } => {
///                 stored = loaded;
///                 Event::Stored
///             }
///             Action::Release => Event::Released,
///             Action::Wait { .. } => Event::Tick,
///             Action::Done(outcome) => break outcome,
///         };
///         fill.step(event, begin.elapsed())?;
///     };
///     assert!(matches!(outcome, Outcome::Hit | Outcome::Loaded(_)));
/// }
/// assert_eq!((stored, loads), (Some(42), 1));
/// # Ok::<(), oneflight_cache::fill::Refused>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fill {
    config: Config,
    token: Token,
    state: State,
    is_refresh: bool,
    seen: Option<Seen>,
    /// Until when it waits for others.
    deadline: Time,
    next_poll: Duration,
    /// Whose the lease was at the last look, and how often it had passed to another by then.
    holder: Option<Token>,
    take_overs: u8,
    reloaded: bool,
}

impl Fill {
    /// A read that begins at `now`. Polls are jittered by the token, so it should be random.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::fill::{Action, Config, Event, Fill};
    /// # use std::time::Duration;
    /// # let now = Duration::ZERO;
    /// let fill = Fill::read(Config::default(), 7, now);
    /// assert_eq!(fill.action(), Action::Read);
    /// # Ok::<(), oneflight_cache::fill::Refused>(())
    /// ```
    #[must_use]
    pub fn read(config: Config, token: Token, now: Time) -> Self {
        Self {
            config,
            token,
            state: State::Reading,
            is_refresh: false,
            seen: None,
            deadline: now.saturating_add(config.wait),
            next_poll: config.first_poll,
            holder: None,
            take_overs: 0,
            reloaded: false,
        }
    }

    /// A refresh of the value `seen`, that begins at `now`. It gives way to whoever else loads or has loaded
    /// ([`Outcome::Ducked`]), never waits, and loads nothing when the store fails. When it fails, the old value stays; the
    /// driver should not begin another at once.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::fill::{Action, Config, Event, Fill};
    /// # use std::time::Duration;
    /// # let now = Duration::ZERO;
    /// let fill = Fill::refresh(Config::default(), 7, 1, now);
    /// assert_eq!(fill.action(), Action::Acquire { seen: Some(1) });
    /// # Ok::<(), oneflight_cache::fill::Refused>(())
    /// ```
    #[must_use]
    pub fn refresh(config: Config, token: Token, seen: Version, now: Time) -> Self {
        Self {
            state: State::Acquiring { asked: now },
            is_refresh: true,
            seen: Some(Seen { version: seen, is_usable: false }),
            ..Self::read(config, token, now)
        }
    }

    /// Whose the lease is, if it is this fill's.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::fill::{Action, Config, Event, Fill};
    /// # use std::time::Duration;
    /// # let now = Duration::ZERO;
    /// assert_eq!(Fill::read(Config::default(), 7, now).token(), 7);
    /// # Ok::<(), oneflight_cache::fill::Refused>(())
    /// ```
    #[must_use]
    pub fn token(&self) -> Token {
        self.token
    }

    /// What to do now.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::fill::{Action, Config, Event, Fill};
    /// # use std::time::Duration;
    /// # let now = Duration::ZERO;
    /// let mut fill = Fill::read(Config::default(), 7, now);
    /// fill.step(Event::Miss { unreadable: None }, now)?;
    /// assert_eq!(fill.action(), Action::Acquire { seen: None });
    /// # Ok::<(), oneflight_cache::fill::Refused>(())
    /// ```
    pub fn action(&self) -> Action {
        self.state.action(self.seen)
    }

    /// What to do after `event`, which came of the last action.
    ///
    /// # Errors
    ///
    /// If the event cannot have come of that action. Nothing has changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::fill::{Action, Config, Event, Fill};
    /// # use std::time::Duration;
    /// # let now = Duration::ZERO;
    /// let mut fill = Fill::read(Config::default(), 7, now);
    /// assert!(fill.step(Event::Stored, now).is_err()); // nothing was published
    /// assert_eq!(fill.step(Event::Miss { unreadable: None }, now)?, Action::Acquire { seen: None });
    /// # Ok::<(), oneflight_cache::fill::Refused>(())
    /// ```
    pub fn step(&mut self, event: Event, now: Time) -> Result<Action, Refused> {
        match self.after(event, now) {
            Some(state) => {
                self.state = state;
                Ok(self.action())
            }
            None => Err(Refused { action: self.action(), event }),
        }
    }

    /// When the lease is to be renewed next, while the loader runs. `None`: not at all.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::fill::{Action, Config, Event, Fill};
    /// # use std::time::Duration;
    /// # let now = Duration::ZERO;
    /// let mut fill = Fill::read(Config::default(), 7, now);
    /// fill.step(Event::Miss { unreadable: None }, now)?;
    /// fill.step(Event::Acquired { epoch: 9 }, now)?;
    /// assert_eq!(fill.renewal(), Some(Config::default().lease / 3));
    /// # Ok::<(), oneflight_cache::fill::Refused>(())
    /// ```
    #[must_use]
    pub fn renewal(&self) -> Option<Time> {
        match self.state {
            State::Loading(Some(lease)) => lease.renewal,
            _ => None,
        }
    }

    /// Notes what came of a renewal. After one that failed there is another a third of a lease later. A lease that was lost
    /// is not renewed again, and the load goes on: what it comes to may be published late. Without effect when the load is
    /// over.
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
    /// fill.renewed(Renewal::Lost, now);
    /// assert_eq!(fill.renewal(), None);
    /// # Ok::<(), oneflight_cache::fill::Refused>(())
    /// ```
    pub fn renewed(&mut self, renewal: Renewal, now: Time) {
        let config = self.config;
        if let State::Loading(Some(lease)) = &mut self.state {
            lease.renewal = match renewal {
                Renewal::Renewed | Renewal::Failed if lease.renewal.is_some() => config.renewal(lease.since, now),
                _ => None,
            };
        }
    }

    /// Whether the lease may be this token's, as far as the fill knows: from [`Action::Acquire`] until it is given up.
    ///
    /// # Examples
    ///
    /// ```
    /// # use oneflight_cache::fill::{Action, Config, Event, Fill};
    /// # use std::time::Duration;
    /// # let now = Duration::ZERO;
    /// let mut fill = Fill::read(Config::default(), 7, now);
    /// assert!(!fill.may_hold());
    /// fill.step(Event::Miss { unreadable: None }, now)?;
    /// assert!(fill.may_hold()); // it asks for the lease
    /// # Ok::<(), oneflight_cache::fill::Refused>(())
    /// ```
    #[must_use]
    pub fn may_hold(&self) -> bool {
        match self.state {
            State::Acquiring { .. } | State::Publishing { .. } | State::Releasing(_) => true,
            State::Loading(lease) => lease.is_some(),
            State::Reading | State::Waiting { .. } | State::Done(_) => false,
        }
    }

    /// `None`, and nothing changed, if the event is impossible.
    fn after(&mut self, event: Event, now: Time) -> Option<State> {
        Some(match (self.state, event) {
            (State::Reading, Event::Hit) => State::Done(Outcome::Hit),
            (State::Reading, Event::Stale { version }) => match self.config.on_stale {
                OnStale::Serve => State::Done(Outcome::Stale { refresh: true }),
                OnStale::Replace => self.acquire(Some(Seen { version, is_usable: true }), now),
            },
            (State::Reading, Event::Miss { unreadable }) => self.acquire(unreadable.map(Seen::unreadable), now),
            (State::Reading, Event::StoreError { .. }) => self.fall_back(),

            (State::Acquiring { asked }, Event::Acquired { epoch }) => {
                State::Loading(Some(Lease { epoch, since: asked, renewal: self.config.renewal(asked, asked) }))
            }
            (State::Acquiring { .. }, Event::Filled | Event::Held { .. }) if self.is_refresh => {
                State::Done(Outcome::Ducked)
            }
            (State::Acquiring { .. }, Event::Miss { .. }) if self.is_refresh => State::Done(Outcome::Ducked),
            (State::Acquiring { .. }, Event::Filled) => State::Done(Outcome::Filled),
            // What was seen is gone, perhaps invalidated: it must not be served any more. Where nothing had been seen, an
            // absent value is no reason not to take the lease.
            (State::Acquiring { .. }, Event::Miss { unreadable }) if unreadable.is_some() || self.seen.is_some() => {
                self.acquire(unreadable.map(Seen::unreadable), now)
            }
            (State::Acquiring { .. }, Event::Held { left, holder, listening }) => {
                self.wait(left, holder, listening, now)
            }
            // The lease may be this token's, and nobody would renew it or give it up.
            (State::Acquiring { .. }, Event::StoreError { ambiguous: true }) => State::Releasing(Next::FallBack),
            (State::Acquiring { .. }, Event::StoreError { ambiguous: false }) => self.fall_back(),

            // Also when the time is up: only a look tells whether the value has come.
            (State::Waiting { .. }, Event::Woken | Event::Tick) => self.acquire(self.seen, now),

            (State::Loading(None), Event::LoadOk { .. }) => State::loaded(Published::Uncached),
            (State::Loading(None), Event::LoadFailed) => State::Done(self.load_failed()),
            (State::Loading(Some(_)), Event::LoadOk { store: false }) => State::unpublished(Published::NotWanted),
            (State::Loading(Some(lease)), Event::LoadOk { store: true }) => {
                if now.saturating_sub(lease.since) < self.config.epoch_life / 2 {
                    State::Publishing { epoch: lease.epoch }
                } else {
                    State::unpublished(Published::Outdated)
                }
            }
            (State::Loading(Some(_)), Event::LoadFailed) => State::Releasing(Next::Done(self.load_failed())),

            (State::Publishing { .. }, Event::Stored) => State::loaded(Published::Stored),
            (State::Publishing { .. }, Event::Late) => State::loaded(Published::Late),
            // The store may have lost the epoch alone: then the lease is still this token's, and others would wait for it.
            (State::Publishing { .. }, Event::Superseded) => State::unpublished(Published::Superseded),
            (State::Publishing { .. }, Event::Invalidated) if self.may_reload() => {
                self.reloaded = true;
                self.acquire(None, now)
            }
            (State::Publishing { .. }, Event::Invalidated) => State::unpublished(Published::Invalidated),
            // Also for a store that is out of memory: others would wait until the lease has run out.
            (State::Publishing { .. }, Event::StoreError { ambiguous: true }) => State::unpublished(Published::Unknown),
            (State::Publishing { .. }, Event::StoreError { ambiguous: false }) => State::unpublished(Published::Failed),

            // Nothing more can be done about a lease that cannot be given up: it runs out.
            (State::Releasing(Next::Done(outcome)), Event::Released | Event::StoreError { .. }) => State::Done(outcome),
            (State::Releasing(Next::FallBack), Event::Released | Event::StoreError { .. }) => self.fall_back(),

            _ => return None,
        })
    }

    fn acquire(&mut self, seen: Option<Seen>, now: Time) -> State {
        self.seen = seen;
        State::Acquiring { asked: now }
    }

    fn wait(&mut self, left: Duration, holder: Token, listening: bool, now: Time) -> State {
        if self.holder.is_some_and(|before| before != holder) {
            self.take_overs = self.take_overs.saturating_add(1);
        }
        self.holder = Some(holder);
        if now >= self.deadline || self.take_overs > self.config.max_take_overs {
            return self.without(self.config.on_deadline, Outcome::TimedOut);
        }
        let poll = if listening {
            self.config.listening_poll
        } else {
            let poll = self.next_poll;
            self.next_poll = (poll.saturating_mul(8) / 5).min(self.config.longest_poll);
            poll
        };
        let sleep = sleep(poll, left, self.token, now);
        State::Waiting { until: now.saturating_add(sleep).min(self.deadline) }
    }

    fn fall_back(&self) -> State {
        // Nobody waits for a refresh, and the old value is still there.
        let how = if self.is_refresh { Fallback::Fail } else { self.config.on_store_error };
        self.without(how, Outcome::StoreFailed)
    }

    fn without(&self, how: Fallback, failure: Outcome) -> State {
        match how {
            Fallback::Fail => State::Done(failure),
            Fallback::ServeStale if self.has_stale() => State::Done(Outcome::Stale { refresh: false }),
            Fallback::ServeStale | Fallback::LoadUncached => State::Loading(None),
        }
    }

    fn load_failed(&self) -> Outcome {
        if self.config.stale_if_load_fails && self.has_stale() {
            Outcome::Stale { refresh: false }
        } else {
            Outcome::LoadFailed
        }
    }

    fn has_stale(&self) -> bool {
        self.seen.is_some_and(|seen| seen.is_usable)
    }

    fn may_reload(&self) -> bool {
        self.config.reload_invalidated && !self.reloaded && !self.is_refresh
    }
}

//! The life of a flight: one computation in progress for one key. No locks, no waiting, no map.
//!
//! | state | meaning | who may leave it |
//! |---|---|---|
//! | `Led` | a leader is running the work | the leader: [`land`](Flight::land), [`abandon`](Flight::abandon) |
//! | `Vacant` | the leader left without a value, waiters remain, and one has been told | a waiter: [`take_over`](Flight::take_over); a newcomer: [`join`](Flight::join), [`try_lead`](Flight::try_lead); the last waiter: [`leave`](Flight::leave) |
//! | `Landed` | the value is published | nobody; it never changes |
//! | `Gone` | it ended without a value; no one may join, who is still inside can only leave | nobody |
//!
//! Beside the state stands one flag, [`Admission`]: a forgotten flight takes no new caller; those inside are untouched.
//! It lives in the table's entry, because a flight that nobody has joined is nothing but an entry.
//!
//! Only the named transitions write the state. Each returns what the caller must do next; whoever changes a flight does so
//! under its lock, and wakes others after the lock is released.
//!
//! 1. At most one caller leads: only `Vacant` gives the lead away, and giving it makes the flight `Led`.
//! 2. `Vacant` implies waiters, one of whom was told; a waiter that leaves it tells another.
//! 3. When `Landed` or `Gone` is entered, the entry must go, in the same critical section.

use crate::call::OnAbandon;
use core::num::NonZeroU32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Led,
    Vacant,
    Landed,
    Gone,
}

/// The state of one flight that has been joined at least once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    state: State,
    /// Callers that joined and have not left, taken over or collected yet.
    waiters: u32,
    /// Those of them that leave when the flight is abandoned.
    failing: u32,
    /// Those of these that waited for an attempt that is over: they have only to leave, and get no value.
    outdated: u32,
    /// Starts of a closure, the first one included.
    attempts: u32,
}

/// A caller's place among the waiters of a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a waiter is counted until it leaves, takes over or collects"]
pub(crate) struct Seat {
    on_abandon: OnAbandon,
    /// The attempt that was on when the caller joined: the one whose end it waits for, if it does not take over.
    attempt: u32,
}

#[cfg(feature = "std")]
impl Seat {
    pub(crate) fn takes_over(self) -> bool {
        self.on_abandon == OnAbandon::TakeOver
    }
}

/// Whether newcomers may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Admission {
    /// When the flight began, in ticks of the group's clock (any constant without one), which go from 1 to 2^32 - 1 and round
    /// again; `None` once forgotten.
    since: Option<NonZeroU32>,
}

/// What [`Flight::join`] made of a newcomer.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Join {
    /// It waits.
    Wait(Seat),
    /// It leads from now on, and must run this attempt.
    Lead { attempt: u32 },
    /// The flight has ended.
    Refused,
}

/// What the leader must do after [`Flight::land`]. The entry must go in either case.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Land {
    /// Keep the value: nobody is there to share it.
    Alone,
    /// Publish the value and wake the first waiters, each of which wakes the next.
    Publish,
}

/// What the leader must do after [`Flight::abandon`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Abandon {
    /// Nobody is inside: remove the entry.
    Remove,
    /// Wake one waiter, which takes over or passes the message on.
    WakeOne,
    /// Wake all: some leave, one takes over.
    WakeAll,
    /// It was the last attempt: remove the entry and wake all, and all of them leave.
    RemoveAndWakeAll,
}

/// What [`Flight::look`] shows a waiter.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Look {
    Wait,
    TakeOver,
    Collect,
    Abandoned,
}

/// What a waiter must do after [`Flight::leave`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Leave {
    Nothing,
    /// It may have held the only message to take over: wake another waiter.
    WakeOne,
    /// It was the last one of a vacant flight: remove the entry.
    Remove,
}

/// How a waiter gets the published value. In either case it wakes the next waiters.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Collect {
    /// Others are still to come: leave it where it is.
    Share,
    /// The last one takes it away.
    Take,
}

impl Flight {
    /// A flight in its first attempt, joined by nobody yet.
    pub(crate) const fn led() -> Self {
        Self { state: State::Led, waiters: 0, failing: 0, outdated: 0, attempts: 1 }
    }

    pub(crate) const fn waiters(&self) -> u32 {
        self.waiters
    }

    /// Whether the leader, if it landed now, would land for itself alone.
    pub(crate) const fn is_alone(&self) -> bool {
        self.waiters == self.outdated
    }

    pub(crate) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// A newcomer: waits for a leader that is there, takes over from one that is not.
    pub(crate) fn join(&mut self, on_abandon: OnAbandon) -> Join {
        match self.state {
            State::Led => Join::Wait(self.seat(on_abandon)),
            State::Vacant => Join::Lead { attempt: self.lead() },
            State::Landed | State::Gone => Join::Refused,
        }
    }

    /// A newcomer that leads or goes away: the number of its attempt if it leads.
    #[must_use]
    pub(crate) fn try_lead(&mut self) -> Option<u32> {
        (self.state == State::Vacant).then(|| self.lead())
    }

    /// The leader has a value that everybody inside shall get.
    pub(crate) fn land(&mut self) -> Land {
        debug_assert_eq!(self.state, State::Led, "only a leader lands");
        self.state = State::Landed;
        if self.is_alone() { Land::Alone } else { Land::Publish }
    }

    /// That many waiters that take over have the published value.
    pub(crate) fn deliver(&mut self, waiters: u32) {
        debug_assert_eq!(self.state, State::Landed, "there is no value to deliver");
        self.waiters -= waiters;
    }

    /// Whether no waiter leaves when the flight is abandoned.
    pub(crate) fn all_take_over(&self) -> bool {
        self.failing == 0
    }

    /// How many waiters take over when the flight is abandoned.
    pub(crate) fn takers(&self) -> u32 {
        self.waiters - self.failing
    }

    pub(crate) fn has_landed(&self) -> bool {
        self.state == State::Landed
    }

    /// The leader leaves without a value for the others. No one takes over from the `last` attempt.
    pub(crate) fn abandon(&mut self, last: bool) -> Abandon {
        debug_assert_eq!(self.state, State::Led, "only a leader abandons");
        self.outdated = self.failing;
        if self.waiters == 0 {
            self.state = State::Gone;
            Abandon::Remove
        } else if last {
            self.state = State::Gone;
            Abandon::RemoveAndWakeAll
        } else {
            self.state = State::Vacant;
            if self.failing == 0 { Abandon::WakeOne } else { Abandon::WakeAll }
        }
    }

    /// The leader gives up its attempt and waits like the others, among whom it may be the one that takes over. No one takes
    /// over from the `last` attempt.
    pub(crate) fn step_down(&mut self, on_abandon: OnAbandon, last: bool) -> (Seat, Abandon) {
        let seat = self.seat(on_abandon);
        (seat, self.abandon(last))
    }

    /// The leader leaves, and a waiter goes on with the same work: no new attempt.
    pub(crate) fn hand_over(&mut self, heir: Seat) {
        debug_assert_eq!(self.state, State::Led, "only a leader has something to hand over");
        self.unseat(heir);
    }

    /// A waiter goes on with the same work in place of the leader, which gets a seat among the waiters.
    pub(crate) fn change_leader(&mut self, heir: Seat, on_abandon: OnAbandon) -> Seat {
        let seat = self.seat(on_abandon);
        self.hand_over(heir);
        seat
    }

    /// What a waiter finds. A waiter that does not take over answers for the attempt that it joined, so that its answer
    /// does not hang on whether it woke before or after somebody else took over.
    pub(crate) fn look(&self, seat: Seat) -> Look {
        match self.state {
            State::Gone => Look::Abandoned,
            _ if self.is_outdated(seat) => Look::Abandoned,
            State::Led => Look::Wait,
            State::Vacant => Look::TakeOver,
            State::Landed => Look::Collect,
        }
    }

    /// A waiter becomes the leader, told or not: the number of its attempt. `None` if somebody else was faster.
    #[must_use]
    pub(crate) fn take_over(&mut self, seat: Seat) -> Option<u32> {
        if self.state != State::Vacant {
            return None;
        }
        self.unseat(seat);
        Some(self.lead())
    }

    /// A waiter goes away without a value.
    pub(crate) fn leave(&mut self, seat: Seat) -> Leave {
        self.unseat(seat);
        match self.state {
            State::Vacant if self.waiters == 0 => {
                self.state = State::Gone;
                Leave::Remove
            }
            State::Vacant => Leave::WakeOne,
            // `Landed` owes no relay here: only waiters that fail leave it without collecting, and those were all woken when
            // the attempt that they had joined was abandoned.
            State::Led | State::Landed | State::Gone => Leave::Nothing,
        }
    }

    /// A waiter gets the value.
    pub(crate) fn collect(&mut self, seat: Seat) -> Collect {
        debug_assert_eq!(self.state, State::Landed, "there is no value to collect");
        self.unseat(seat);
        if self.is_alone() { Collect::Take } else { Collect::Share }
    }

    fn lead(&mut self) -> u32 {
        self.state = State::Led;
        self.attempts = self.attempts.saturating_add(1);
        self.attempts
    }

    fn seat(&mut self, on_abandon: OnAbandon) -> Seat {
        self.waiters += 1;
        self.failing += u32::from(on_abandon == OnAbandon::Fail);
        Seat { on_abandon, attempt: self.attempts }
    }

    fn is_outdated(&self, seat: Seat) -> bool {
        let attempt_is_over = matches!(self.state, State::Vacant | State::Gone) || self.attempts != seat.attempt;
        attempt_is_over && seat.on_abandon == OnAbandon::Fail
    }

    fn unseat(&mut self, seat: Seat) {
        self.waiters -= 1;
        self.outdated -= u32::from(self.is_outdated(seat));
        self.failing -= u32::from(seat.on_abandon == OnAbandon::Fail);
    }
}

impl Admission {
    /// A flight that begins `now`.
    pub(crate) fn open(now: NonZeroU32) -> Self {
        Self { since: Some(now) }
    }

    /// Shuts the flight to newcomers, for good.
    pub(crate) fn forget(&mut self) {
        self.since = None;
    }

    pub(crate) fn is_forgotten(self) -> bool {
        self.since.is_none()
    }

    /// The ticks since the flight began. `None` once it is forgotten.
    pub(crate) fn age(self, now: NonZeroU32) -> Option<u32> {
        let (now, since) = (now.get(), self.since?.get());
        Some(if now >= since { now - since } else { u32::MAX - (since - now) })
    }

    /// Whether a newcomer may join `now`; a flight of `limit` ticks or more is too old.
    pub(crate) fn admits(self, now: NonZeroU32, limit: Option<u32>) -> bool {
        self.age(now).is_some_and(|age| limit.is_none_or(|limit| age < limit))
    }
}

#[cfg(test)]
mod walk;

//! Walks every sequence of up to eight events of one key, breadth first over states, and checks the rules in each state.
//!
//! The world below does what a group does with the answers of the state machine: it keeps entries, tells waiters and removes
//! entries, and nothing else. Flights are known by their place in `flights`: their identity.

use super::{Abandon, Admission, Collect, Flight, Join, Land, Leave, Look, Seat, State};
use crate::call::OnAbandon;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use std::collections::HashSet;

const EVENTS: usize = 8;

/// One flight as the group sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    /// `None` until somebody joins.
    flight: Option<Flight>,
    admission: Admission,
    in_table: bool,
    leaders: u32,
    waiters: Vec<Waiter>,
    /// Whether the value is where waiters find it.
    published: bool,
    /// Whether its leader left under waiters in an attempt that was to be the last.
    last_failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiter {
    seat: Seat,
    /// It was woken and has not looked yet.
    told: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct World {
    flights: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Call(OnAbandon),
    TryLead,
    Forget,
    Land(usize),
    Abandon {
        flight: usize,
        last: bool,
    },
    /// The leader leaves, and a waiter goes on with its work.
    HandOver {
        flight: usize,
        heir: usize,
    },
    /// A waiter goes on with the leader's work, and the leader waits.
    ChangeLeader {
        flight: usize,
        heir: usize,
        on_abandon: OnAbandon,
    },
    /// The leader gives up its attempt, and waits.
    StepDown {
        flight: usize,
        last: bool,
        on_abandon: OnAbandon,
    },
    /// A told waiter looks and does what it sees.
    Look {
        flight: usize,
        waiter: usize,
    },
    /// A waiter's time is up, told or not.
    GiveUp {
        flight: usize,
        waiter: usize,
    },
}

impl Entry {
    fn new() -> Self {
        Self {
            flight: None,
            admission: Admission::open(NonZeroU32::MIN),
            in_table: true,
            leaders: 1,
            waiters: Vec::new(),
            published: false,
            last_failed: false,
        }
    }

    fn flight(&mut self) -> &mut Flight {
        self.flight.get_or_insert_with(Flight::led)
    }

    fn state(&self) -> State {
        self.flight.map_or(State::Led, |flight| flight.state)
    }

    /// Those waiters who may go on with the leader's work.
    fn heirs(&self) -> impl Iterator<Item = usize> {
        let waits = |waiter: &Waiter| self.flight.is_some_and(|flight| flight.look(waiter.seat) == Look::Wait);
        self.waiters.iter().enumerate().filter(move |(_, waiter)| waits(waiter)).map(|(index, _)| index)
    }

    fn has_ended(&self) -> bool {
        !self.in_table
    }

    fn tell_all(&mut self) {
        self.waiters.iter_mut().for_each(|waiter| waiter.told = true);
    }
}

impl World {
    fn events(&self) -> Vec<Event> {
        let mut events =
            Vec::from([Event::Call(OnAbandon::TakeOver), Event::Call(OnAbandon::Fail), Event::TryLead, Event::Forget]);
        for (index, entry) in self.flights.iter().enumerate() {
            if entry.leaders > 0 {
                events.push(Event::Land(index));
                events.extend([false, true].map(|last| Event::Abandon { flight: index, last }));
                for on_abandon in [OnAbandon::TakeOver, OnAbandon::Fail] {
                    events.extend([false, true].map(|last| Event::StepDown { flight: index, last, on_abandon }));
                    let heirs = entry.heirs();
                    events.extend(heirs.map(|heir| Event::ChangeLeader { flight: index, heir, on_abandon }));
                }
                events.extend(entry.heirs().map(|heir| Event::HandOver { flight: index, heir }));
            }
            for (waiter, _) in entry.waiters.iter().enumerate() {
                events.push(Event::GiveUp { flight: index, waiter });
                if entry.waiters[waiter].told {
                    events.push(Event::Look { flight: index, waiter });
                }
            }
        }
        events
    }

    /// The flight that `event` is about, if it is there already.
    fn subject(&self, event: Event) -> Option<usize> {
        match event {
            Event::Call(_) | Event::TryLead | Event::Forget => self.joinable(),
            Event::Land(flight)
            | Event::Abandon { flight, .. }
            | Event::HandOver { flight, .. }
            | Event::ChangeLeader { flight, .. }
            | Event::StepDown { flight, .. }
            | Event::Look { flight, .. }
            | Event::GiveUp { flight, .. } => Some(flight),
        }
    }

    /// The worlds that `event` may lead to: more than one where somebody must choose whom to wake.
    fn after(&self, event: Event) -> Vec<Self> {
        let subject = self.subject(event);
        let worlds = self.play(event);
        // Rule 5: an event changes the flight that it is about, and no other.
        for (index, entry) in self.flights.iter().enumerate().filter(|(index, _)| subject != Some(*index)) {
            let keeps = |next: &Self| next.flights[index] == *entry;
            assert!(worlds.iter().all(keeps), "{event:?} changed flight {index} of {self:?}");
        }
        worlds
    }

    fn play(&self, event: Event) -> Vec<Self> {
        let mut next = self.clone();
        match event {
            Event::Call(on_abandon) => {
                next.call(on_abandon);
            }
            Event::TryLead => next.try_lead(),
            Event::Forget => {
                if let Some(index) = next.joinable() {
                    next.flights[index].admission.forget();
                }
            }
            Event::Land(index) => {
                let entry = &mut next.flights[index];
                entry.leaders -= 1;
                entry.in_table = false;
                if entry.flight.is_some() && entry.flight().land() == Land::Publish {
                    entry.published = true;
                    return next.tell_one(index);
                }
            }
            Event::Abandon { flight, last } => {
                let entry = &mut next.flights[flight];
                entry.leaders -= 1;
                entry.last_failed = last && !entry.waiters.is_empty();
                let abandon = entry.flight.as_mut().map_or(Abandon::Remove, |flight| flight.abandon(last));
                return next.after_abandon(flight, &abandon);
            }
            Event::HandOver { flight, heir } => {
                let entry = &mut next.flights[flight];
                let seat = entry.waiters.remove(heir).seat;
                entry.flight().hand_over(seat);
            }
            Event::ChangeLeader { flight, heir, on_abandon } => {
                let entry = &mut next.flights[flight];
                let seat = entry.waiters.remove(heir).seat;
                let seat = entry.flight().change_leader(seat, on_abandon);
                entry.waiters.push(Waiter { seat, told: false });
            }
            Event::StepDown { flight, last, on_abandon } => {
                let entry = &mut next.flights[flight];
                entry.leaders -= 1;
                entry.last_failed = last;
                let (seat, abandon) = entry.flight().step_down(on_abandon, last);
                // It is awake and looks next, whoever else is told.
                entry.waiters.push(Waiter { seat, told: true });
                return next.after_abandon(flight, &abandon);
            }
            Event::Look { flight, waiter } => {
                let seat = next.flights[flight].waiters[waiter].seat;
                match next.flights[flight].flight().look(seat) {
                    Look::Wait => next.flights[flight].waiters[waiter].told = false,
                    Look::TakeOver => {
                        let entry = &mut next.flights[flight];
                        assert!(entry.flight().take_over(seat).is_some(), "a vacant flight is there to be taken");
                        entry.leaders += 1;
                        entry.waiters.remove(waiter);
                    }
                    Look::Collect => {
                        let entry = &mut next.flights[flight];
                        assert!(entry.published, "nobody collects what is not there");
                        if entry.flight().collect(seat) == Collect::Take {
                            entry.published = false;
                        }
                        entry.waiters.remove(waiter);
                        return next.tell_one(flight);
                    }
                    Look::Abandoned => {
                        // Rule 3.
                        let is_to_leave = seat.on_abandon == OnAbandon::Fail || next.flights[flight].last_failed;
                        assert!(is_to_leave, "told of an end that it was to go on from: {self:?}");
                        return next.leave(flight, waiter);
                    }
                }
            }
            Event::GiveUp { flight, waiter } => {
                let seat = next.flights[flight].waiters[waiter].seat;
                if next.flights[flight].flight().look(seat) == Look::Collect {
                    // The group returns the value after all.
                    return self.play(Event::Look { flight, waiter });
                }
                return next.leave(flight, waiter);
            }
        }
        Vec::from([next])
    }

    fn after_abandon(mut self, flight: usize, abandon: &Abandon) -> Vec<Self> {
        let entry = &mut self.flights[flight];
        match abandon {
            Abandon::Remove => entry.in_table = false,
            Abandon::RemoveAndWakeAll => {
                entry.in_table = false;
                entry.tell_all();
            }
            Abandon::WakeAll => entry.tell_all(),
            Abandon::WakeOne => return self.tell_one(flight),
        }
        Vec::from([self])
    }

    fn joinable(&self) -> Option<usize> {
        let mut found =
            self.flights.iter().enumerate().filter(|(_, e)| e.in_table && e.admission.admits(NonZeroU32::MIN, None));
        let first = found.next().map(|(index, _)| index);
        assert!(found.next().is_none(), "two flights of one key that newcomers could join");
        first
    }

    fn call(&mut self, on_abandon: OnAbandon) -> Option<usize> {
        let Some(index) = self.joinable() else {
            self.flights.push(Entry::new());
            return None;
        };
        let entry = &mut self.flights[index];
        match entry.flight().join(on_abandon) {
            Join::Wait(seat) => entry.waiters.push(Waiter { seat, told: false }),
            Join::Lead { .. } => entry.leaders += 1,
            Join::Refused => panic!("an ended flight is still in the table"),
        }
        Some(index)
    }

    fn try_lead(&mut self) {
        let Some(index) = self.joinable() else {
            self.flights.push(Entry::new());
            return;
        };
        let entry = &mut self.flights[index];
        if entry.flight.as_mut().and_then(Flight::try_lead).is_some() {
            entry.leaders += 1;
        }
    }

    fn leave(mut self, flight: usize, waiter: usize) -> Vec<Self> {
        let entry = &mut self.flights[flight];
        let seat = entry.waiters.remove(waiter).seat;
        match entry.flight().leave(seat) {
            Leave::Nothing => Vec::from([self]),
            Leave::Remove => {
                entry.in_table = false;
                Vec::from([self])
            }
            Leave::WakeOne => self.tell_one(flight),
        }
    }

    /// Wakes one of those that sleep, whichever it may be.
    fn tell_one(self, flight: usize) -> Vec<Self> {
        let asleep = |&waiter: &usize| !self.flights[flight].waiters[waiter].told;
        let tell = |waiter: usize| {
            let mut next = self.clone();
            next.flights[flight].waiters[waiter].told = true;
            next
        };
        let woken: Vec<Self> = (0..self.flights[flight].waiters.len()).filter(asleep).map(tell).collect();
        if woken.is_empty() { Vec::from([self]) } else { woken }
    }

    fn check(&self) {
        for entry in &self.flights {
            let waiters = entry.waiters.len();
            let failing = entry.waiters.iter().filter(|w| w.seat.on_abandon == OnAbandon::Fail).count();
            if let Some(flight) = entry.flight {
                assert_eq!((flight.waiters as usize, flight.failing as usize), (waiters, failing), "{self:?}");
                let collect = entry.waiters.iter().filter(|waiter| flight.look(waiter.seat) != Look::Abandoned).count();
                let gone = flight.state == State::Gone;
                assert!(gone || flight.is_alone() == (collect == 0), "whoever is alone shares nothing: {self:?}");
                assert!(!entry.published || collect > 0, "a value is left behind: {self:?}");
            }
            // Rule 1.
            let led = entry.state() == State::Led && entry.in_table;
            assert_eq!(entry.leaders, u32::from(led), "one leader while it is led, none otherwise: {self:?}");
            // Rules 2 and 3.
            let told = entry.waiters.iter().filter(|waiter| waiter.told).count();
            match entry.state() {
                State::Vacant => assert!(told > 0, "vacant, and nobody knows: {self:?}"),
                State::Landed => assert!(told > 0 || waiters == 0, "landed, and nobody wakes the rest: {self:?}"),
                State::Gone => assert_eq!(told, waiters, "gone, and somebody sleeps on: {self:?}"),
                State::Led => {}
            }
            // Rule 4.
            let ended = matches!(entry.state(), State::Landed | State::Gone);
            assert!(!ended || entry.has_ended(), "ended, and still in the table: {self:?}");
            assert!(entry.in_table || waiters == 0 || ended, "removed under its waiters: {self:?}");
        }
        self.joinable();
    }

    /// From any state: if the leaders end, in the way that `is_end` tells, and the told waiters look, everybody gets away and
    /// nothing stays behind.
    fn check_drains(mut self, is_end: fn(&Event) -> bool) {
        let mut steps = 0;
        let goes_on = |event: &Event| matches!(event, Event::Look { .. }) || is_end(event);
        while let Some(event) = self.events().into_iter().rev().find(goes_on) {
            self = self.after(event).pop().expect("draining always goes on");
            self.check();
            steps += 1;
            assert!(steps < 100, "somebody goes round in circles: {self:?}");
        }
        for entry in &self.flights {
            assert!(!entry.in_table, "left behind: {self:?}");
            assert!(entry.waiters.is_empty(), "left waiting: {self:?}");
        }
        assert_eq!(self.call(OnAbandon::TakeOver), None, "the next call does not start afresh");
    }
}

#[test]
fn every_sequence_of_eight_events_keeps_the_rules() {
    let mut seen = HashSet::from([World::default()]);
    let mut frontier = Vec::from([World::default()]);
    let ends: [fn(&Event) -> bool; 3] = [
        |event| matches!(event, Event::Land(_)),
        |event| matches!(event, Event::Abandon { last: true, .. }),
        |event| matches!(event, Event::Abandon { last: false, .. }),
    ];
    for _ in 0..EVENTS {
        let mut reached = Vec::new();
        for world in &frontier {
            for next in world.events().into_iter().flat_map(|event| world.after(event)) {
                if seen.insert(next.clone()) {
                    next.check();
                    ends.iter().for_each(|&is_end| next.clone().check_drains(is_end));
                    reached.push(next);
                }
            }
        }
        frontier = reached;
    }
    std::println!("{} states", seen.len());
    assert!(seen.len() > 10_000, "the walk has lost its way: {} states", seen.len());
}

#[test]
fn a_waiter_that_does_not_take_over_answers_for_the_attempt_that_it_joined() {
    let mut flight = Flight::led();
    let Join::Wait(fails) = flight.join(OnAbandon::Fail) else { panic!("a leader is there") };
    let Join::Wait(takes_over) = flight.join(OnAbandon::TakeOver) else { panic!("a leader is there") };
    assert_eq!(flight.abandon(false), Abandon::WakeAll);
    assert_eq!(flight.look(fails), Look::Abandoned);
    assert_eq!(flight.take_over(takes_over), Some(2));
    assert_eq!(flight.look(fails), Look::Abandoned, "also after somebody else took over");
    let Join::Wait(later) = flight.join(OnAbandon::Fail) else { panic!("a leader is there") };
    assert_eq!(flight.look(later), Look::Wait);
    assert_eq!(flight.land(), Land::Publish);
    assert_eq!(flight.look(fails), Look::Abandoned, "also after that one landed");
    assert_eq!(flight.look(later), Look::Collect);
}

#[test]
fn an_ended_flight_refuses_newcomers() {
    let mut landed = Flight::led();
    assert_eq!(landed.land(), Land::Alone);
    assert_eq!(landed.join(OnAbandon::TakeOver), Join::Refused);
    assert_eq!(landed.try_lead(), None);
    let mut gone = Flight::led();
    assert_eq!(gone.abandon(false), Abandon::Remove);
    assert_eq!(gone.join(OnAbandon::TakeOver), Join::Refused);
    assert_eq!(gone.try_lead(), None);
}

#[test]
fn attempts_are_counted_from_one() {
    let mut flight = Flight::led();
    assert_eq!(flight.attempts(), 1);
    let Join::Wait(_seat) = flight.join(OnAbandon::TakeOver) else { panic!("a leader is there") };
    assert_eq!(flight.abandon(false), Abandon::WakeOne);
    assert_eq!(flight.join(OnAbandon::TakeOver), Join::Lead { attempt: 2 });
    assert_eq!(flight.abandon(false), Abandon::WakeOne);
    assert_eq!(flight.try_lead(), Some(3));
    assert_eq!(flight.attempts(), 3);
}

#[test]
fn a_flight_takes_newcomers_until_it_is_forgotten_or_old() {
    let at = |tick| NonZeroU32::new(tick).expect("ticks begin with 1");
    let mut admission = Admission::open(at(10));
    assert!(admission.admits(at(10), None));
    assert!(admission.admits(at(u32::MAX), None));
    assert!(admission.admits(at(10), Some(5)));
    assert!(admission.admits(at(14), Some(5)));
    assert!(!admission.admits(at(15), Some(5)));
    assert!(!admission.admits(at(10), Some(0)));
    assert_eq!(admission.age(at(15)), Some(5));
    assert!(!admission.is_forgotten());
    admission.forget();
    assert!(admission.is_forgotten());
    assert!(!admission.admits(at(10), None));
    assert_eq!(admission.age(at(15)), None);
    // The clock goes round, leaving out zero.
    assert_eq!(Admission::open(at(u32::MAX)).age(at(1)), Some(1));
    assert!(Admission::open(at(u32::MAX)).admits(at(4), Some(5)));
    assert!(!Admission::open(at(u32::MAX)).admits(at(5), Some(5)));
    assert!(Admission::open(at(1)).admits(at(1), Some(1)));
}

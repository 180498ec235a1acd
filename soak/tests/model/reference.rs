//! What a group must do, without threads, wakers, locks or lists: who is inside which flight, and what everybody has to get.

mod batch;
mod view;

pub(crate) use batch::AllCome;

use crate::operation::{Call, End, Form, KEYS};
use batch::Batch;
use oneflight::Role;
use std::collections::BTreeMap;

/// What a poll comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comes {
    Pending,
    Value {
        value: u32,
        role: Role,
        shared: bool,
    },
    Panic(u32),
    Abandoned,
    /// A seat of a batch leads, and the batch has to begin the work.
    Leads,
}

/// Where a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Not polled yet.
    Outside,
    In(usize),
    /// It is to get this with its next poll.
    Has(Comes),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The flight owns the work: whoever is inside drives it.
    Owned(u32),
    /// The work is in the hands of this caller.
    Inline(usize, u32),
    Guard,
    Vacant,
}

#[derive(Clone, Debug)]
struct Flight {
    key: u8,
    is_open: bool,
    stage: Stage,
    /// All callers that may drive, take over or get the value.
    inside: Vec<usize>,
    /// Those who have only to hear that the flight was abandoned.
    leaving: Vec<usize>,
    attempts: u32,
}

#[derive(Clone, Copy, Debug)]
struct Execution {
    /// The caller whose closure it is.
    maker: usize,
    end: Option<End>,
    alive: bool,
    /// Whether it goes on without callers.
    detaches: bool,
}

#[derive(Clone, Copy, Debug)]
struct Caller {
    call: Call,
    at: At,
    is_driver: bool,
    /// Whether it is a seat of a batch.
    is_seat: bool,
}

/// The reference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    /// `None`: over.
    flights: Vec<Option<Flight>>,
    callers: Vec<Caller>,
    executions: Vec<Execution>,
    batches: BTreeMap<usize, Batch>,
    /// Closures started, for each key.
    pub(crate) started: u64,
}

impl Reference {
    pub(crate) fn call(&mut self, call: Call) -> usize {
        self.callers.push(Caller::new(call, At::Outside));
        self.callers.len() - 1
    }

    fn flight(&mut self, flight: usize) -> &mut Flight {
        self.flights[flight].as_mut().expect("the flight is on")
    }

    fn begin(&mut self, key: u8, stage: Stage) -> usize {
        let (inside, leaving) = (Vec::new(), Vec::new());
        self.flights.push(Some(Flight { key, is_open: true, stage, inside, leaving, attempts: 1 }));
        self.flights.len() - 1
    }

    /// A caller is polled.
    pub(crate) fn poll(&mut self, caller: usize) -> Comes {
        match self.callers[caller].at {
            At::Outside => self.enter(caller),
            At::Has(Comes::Abandoned) => {
                for flight in self.flights.iter_mut().flatten() {
                    flight.leaving.retain(|&other| other != caller);
                }
                self.close_if_empty();
                self.hears_of_the_end(caller)
            }
            At::Has(comes) => self.done(caller, comes),
            At::In(flight) => match self.flight(flight).stage {
                Stage::Vacant => self.take_over(caller, flight),
                Stage::Owned(_) => self.drive(caller, flight),
                Stage::Inline(leader, _) if leader == caller => self.drive(caller, flight),
                Stage::Inline(..) | Stage::Guard => Comes::Pending,
            },
            At::Done => unreachable!("polled after its end"),
        }
    }

    fn done(&mut self, caller: usize, comes: Comes) -> Comes {
        self.callers[caller].at = At::Done;
        comes
    }

    /// A call without `Result` goes on in a fresh flight.
    fn hears_of_the_end(&mut self, caller: usize) -> Comes {
        match self.callers[caller].call.form {
            Form::Plain => self.enter(caller),
            _ => self.done(caller, Comes::Abandoned),
        }
    }

    fn enter(&mut self, caller: usize) -> Comes {
        let key = self.callers[caller].call.key;
        let Some(flight) = self.open(key) else {
            let flight = self.begin(key, Stage::Vacant);
            self.flight(flight).inside.push(caller);
            return self.lead(caller, flight);
        };
        self.flight(flight).inside.push(caller);
        self.callers[caller].at = At::In(flight);
        // A batch looks at all of its seats when it has entered with all.
        let waits = self.callers[caller].is_seat && self.flight(flight).stage != Stage::Vacant;
        if waits { Comes::Pending } else { self.poll(caller) }
    }

    fn take_over(&mut self, caller: usize, flight: usize) -> Comes {
        self.flight(flight).attempts += 1;
        self.lead(caller, flight)
    }

    /// The caller's own work begins.
    fn lead(&mut self, caller: usize, flight: usize) -> Comes {
        let call = self.callers[caller].call;
        self.callers[caller].at = At::In(flight);
        if self.callers[caller].is_seat {
            return Comes::Leads;
        }
        let execution = u32::try_from(self.executions.len()).expect("few executions");
        let end = call.instant.then_some(End::Value);
        // Work that is ready at once does not get so far that it could go on elsewhere.
        self.executions.push(Execution { maker: caller, end, alive: true, detaches: call.form == Form::Detached });
        self.started += 1;
        self.flight(flight).stage =
            if call.form == Form::Inline { Stage::Inline(caller, execution) } else { Stage::Owned(execution) };
        self.drive(caller, flight)
    }

    fn role(&self, caller: usize, execution: u32, flight: usize) -> Role {
        let attempts = self.flights[flight].as_ref().map_or(0, |flight| flight.attempts);
        match (self.executions[execution as usize].maker == caller, attempts) {
            (false, _) => Role::Followed,
            (true, 1) => Role::Led,
            (true, _) => Role::TookOver,
        }
    }

    /// The work is polled by this caller.
    fn drive(&mut self, caller: usize, flight: usize) -> Comes {
        let (Stage::Owned(execution) | Stage::Inline(_, execution)) = self.flight(flight).stage else {
            unreachable!("there is work")
        };
        let Execution { maker, end, .. } = self.executions[execution as usize];
        let Some(end) = end else { return Comes::Pending };
        self.executions[execution as usize].alive = false;
        let call = self.callers[maker].call;
        let is_last = call.attempts.is_some_and(|most| self.flight(flight).attempts >= most);
        let is_maker = maker == caller || matches!(self.flight(flight).stage, Stage::Inline(..));
        let role = self.role(caller, execution, flight);
        let inside = self.flight(flight).inside.clone();
        // A value that is not to be shared: `share_if` is asked as long as somebody is there, be it only to leave.
        let is_asked = !is_last && !call.shares && !self.flight(flight).leaving.is_empty();
        let is_alone = inside == [caller] && !is_asked;
        let others: Vec<usize> = inside.iter().copied().filter(|&other| other != caller).collect();
        let own = Comes::Value { value: execution, role, shared: false };
        match end {
            End::Value if is_alone => {
                self.close(flight);
                self.done(caller, own)
            }
            End::Value if is_last || call.shares => {
                for other in others {
                    let role = self.role(other, execution, flight);
                    self.callers[other].at = At::Has(Comes::Value { value: execution, role, shared: true });
                }
                self.close(flight);
                self.done(caller, Comes::Value { value: execution, role, shared: true })
            }
            End::Value if is_maker || !inside.contains(&maker) => {
                self.flight(flight).inside = others;
                self.abandon(flight, false);
                self.done(caller, own)
            }
            End::Panic if is_maker => {
                self.flight(flight).inside = others;
                self.abandon(flight, is_last);
                self.done(caller, Comes::Panic(execution))
            }
            End::Value | End::Panic => {
                if inside.contains(&maker) {
                    let role = self.role(maker, execution, flight);
                    let unshared = Comes::Value { value: execution, role, shared: false };
                    self.callers[maker].at =
                        At::Has(if end == End::Value { unshared } else { Comes::Panic(execution) });
                    self.flight(flight).inside.retain(|&other| other != maker);
                } else if self.callers[caller].is_driver {
                    // There is nobody else to hear of it.
                    self.flight(flight).inside = others;
                    self.abandon(flight, is_last);
                    return self.done(caller, Comes::Panic(execution));
                }
                self.abandon(flight, is_last);
                // It looks again at once.
                self.poll(caller)
            }
        }
    }

    /// The leader is gone without a value for the others.
    fn abandon(&mut self, flight: usize, is_last: bool) {
        let all = std::mem::take(&mut self.flight(flight).inside);
        let (leaving, inside): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|&other| is_last || self.callers[other].call.fails);
        for &other in &leaving {
            self.callers[other].at = At::Has(Comes::Abandoned);
        }
        if is_last {
            self.close(flight);
            return;
        }
        let flight = self.flight(flight);
        (flight.stage, flight.inside) = (Stage::Vacant, inside);
        flight.leaving.extend(leaving);
        self.close_if_empty();
    }

    fn close(&mut self, flight: usize) {
        self.flights[flight] = None;
    }

    fn close_if_empty(&mut self) {
        for flight in &mut self.flights {
            let is_empty = flight.as_ref().is_some_and(|flight| {
                flight.stage == Stage::Vacant && flight.inside.is_empty() && flight.leaving.is_empty()
            });
            if is_empty {
                *flight = None;
            }
        }
    }

    /// A caller is dropped. Returns the driver that goes on in its place, if one does.
    pub(crate) fn drop(&mut self, caller: usize) -> Option<usize> {
        let at = std::mem::replace(&mut self.callers[caller].at, At::Done);
        let At::In(flight) = at else { return None };
        self.flight(flight).inside.retain(|&other| other != caller);
        let is_empty = self.flight(flight).inside.is_empty();
        match self.flight(flight).stage {
            Stage::Owned(execution) if is_empty => {
                if std::mem::take(&mut self.executions[execution as usize].detaches) {
                    let call = Call { fails: true, form: Form::Owned, ..self.callers[caller].call };
                    self.callers.push(Caller { is_driver: true, ..Caller::new(call, At::In(flight)) });
                    let driver = self.callers.len() - 1;
                    self.flight(flight).inside.push(driver);
                    return Some(driver);
                }
                self.executions[execution as usize].alive = false;
                self.close(flight);
            }
            Stage::Inline(leader, execution) if leader == caller => {
                self.executions[execution as usize].alive = false;
                let most = self.callers[caller].call.attempts;
                let is_last = most.is_some_and(|most| self.flight(flight).attempts >= most);
                self.abandon(flight, is_last);
            }
            _ => self.close_if_empty(),
        }
        None
    }

    /// A work can end.
    pub(crate) fn end(&mut self, execution: usize, end: End) {
        self.executions[execution].end.get_or_insert(end);
    }

    /// The flight that the guard leads, if there is one.
    pub(crate) fn try_lead(&mut self, key: u8) -> Option<usize> {
        let flight = match self.open(key) {
            None => self.begin(key, Stage::Guard),
            Some(flight) if self.flight(flight).stage == Stage::Vacant => {
                self.flight(flight).attempts += 1;
                self.flight(flight).stage = Stage::Guard;
                flight
            }
            Some(_) => return None,
        };
        self.started += 1;
        Some(flight)
    }

    /// The guard lands.
    pub(crate) fn land(&mut self, flight: usize, value: u32) -> Comes {
        let Flight { attempts, ref inside, .. } = *self.flight(flight);
        let inside = inside.clone();
        let role = if attempts == 1 { Role::Led } else { Role::TookOver };
        for &other in &inside {
            self.callers[other].at = At::Has(Comes::Value { value, role: Role::Followed, shared: true });
        }
        self.close(flight);
        Comes::Value { value, role, shared: !inside.is_empty() }
    }

    pub(crate) fn drop_lead(&mut self, flight: usize) {
        self.abandon(flight, false);
    }

    pub(crate) fn forget(&mut self, key: u8) -> bool {
        self.open(key).map(|flight| self.flight(flight).is_open = false).is_some()
    }

    pub(crate) fn forget_unshared(&mut self, key: u8) -> bool {
        let is_unshared = self.waiters(key) == 0;
        if is_unshared {
            self.forget(key);
        }
        is_unshared
    }

    pub(crate) fn forget_all(&mut self) {
        (0..KEYS).for_each(|key| _ = self.forget(key));
    }
}

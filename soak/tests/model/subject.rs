//! The group beside the reference: the same steps, and a comparison after each.

use crate::operation::{Call, Form, KEYS, Operation};
use crate::reference::{AllCome, Comes, Reference};
use crate::work::{Blown, Gates};
use oneflight::{AsyncGroup, CallError, Lead, OnAbandon, Outcome, Role};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

type Done = Result<(), TestCaseError>;
/// How a call ended.
type Ended = Result<Got, CallError>;

/// What a call has come to.
#[derive(Debug)]
enum Got {
    Outcome(Outcome<u32>),
    /// Of a call that tells no more.
    Value(u32),
    Many(Vec<u32>),
    /// Of a driver without a caller.
    Nothing,
}
type BoxCall<'g> = Pin<Box<dyn Future<Output = Ended> + 'g>>;
type Spawned = Arc<Mutex<Vec<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A call, or a driver without a caller; `None` once it is over.
struct Caller<'g> {
    call: Option<BoxCall<'g>>,
    woken: Arc<Flag>,
}

struct Subject<'g> {
    group: &'g AsyncGroup<u8, u32>,
    reference: Reference,
    gates: Gates,
    spawned: Spawned,
    callers: Vec<Caller<'g>>,
    /// Each with its flight in the reference.
    leads: Vec<(usize, Lead<'g, u8, u32, oneflight::DefaultHashBuilder>)>,
}

/// Values of guards begin here; those of works are the numbers of their executions.
const GUARDS: u32 = 1_000_000;
static IDS: [u8; KEYS as usize] = [0, 1];

/// Does the steps, and compares.
pub(crate) fn run(operations: &[Operation]) -> Done {
    let spawned = Spawned::default();
    let spawner = Arc::clone(&spawned);
    let group = AsyncGroup::builder().shards(1).spawner(move |work| spawner.lock().unwrap().push(work)).build();
    let mut subject = Subject {
        group: &group,
        reference: Reference::default(),
        gates: Gates::default(),
        spawned,
        callers: Vec::new(),
        leads: Vec::new(),
    };
    for operation in operations {
        subject.step(*operation)?;
        subject.take_spawned()?;
        subject.tell_the_leaving()?;
        subject.compare()?;
    }
    subject.finish()
}

impl<'g> Subject<'g> {
    fn step(&mut self, operation: Operation) -> Done {
        match operation {
            Operation::Call(call) => {
                let caller = self.reference.call(call);
                let future = self.begin(caller, call);
                self.add(future);
                self.poll(caller)?;
            }
            Operation::CallMany(is_reversed) => {
                let mut keys: Vec<u8> = (0..KEYS).collect();
                if is_reversed {
                    keys.reverse();
                }
                let batch = self.reference.call_many(&keys);
                let future = self.begin_many(batch, keys);
                self.add(future);
                // Its seats are callers for the reference, which are woken with it.
                let woken = Arc::clone(&self.callers[batch].woken);
                self.callers.extend((0..KEYS).map(|_| Caller { call: None, woken: Arc::clone(&woken) }));
                self.poll(batch)?;
            }
            Operation::Poll(number) => {
                if let Some(caller) = self.nth(number, |_| true) {
                    self.poll(caller)?;
                }
            }
            Operation::PollWoken(number) => {
                if let Some(caller) = self.nth(number, |caller| caller.woken.0.load(Ordering::Relaxed)) {
                    self.poll(caller)?;
                }
            }
            Operation::Drop(number) => {
                if let Some(caller) = self.nth(number, |_| true) {
                    self.drop(caller)?;
                }
            }
            Operation::End(number, end) => {
                if let Some(work) = self.gates.nth_pending(number) {
                    self.reference.end(work, end);
                    self.gates.end(work, end);
                }
            }
            Operation::Wake(number) => {
                if let Some(work) = self.gates.nth_pending(number) {
                    self.gates.wake(work);
                }
            }
            Operation::TryLead(key) => {
                let expected = self.reference.try_lead(key);
                let lead = self.group.try_lead(&key);
                prop_assert_eq!(lead.is_some(), expected.is_some(), "try_lead");
                self.leads.extend(expected.zip(lead));
            }
            Operation::Land(number) => {
                if let Some((flight, lead)) = self.take_lead(number) {
                    let value = GUARDS + u32::from(number);
                    let expected = self.reference.land(flight, value);
                    let Outcome { value, role, shared, .. } = lead.land(value);
                    prop_assert_eq!(Comes::Value { value, role, shared }, expected, "land");
                }
            }
            Operation::DropLead(number) => {
                if let Some((flight, lead)) = self.take_lead(number) {
                    self.reference.drop_lead(flight);
                    drop(lead);
                }
            }
            Operation::Forget(key) => prop_assert_eq!(self.group.forget(&key), self.reference.forget(key), "forget"),
            Operation::ForgetUnshared(key) => {
                let expected = self.reference.forget_unshared(key);
                prop_assert_eq!(self.group.forget_unshared(&key), expected, "forget_unshared");
            }
            Operation::ForgetAll => {
                self.reference.forget_all();
                self.group.forget_all();
            }
        }
        Ok(())
    }

    fn begin(&self, caller: usize, call: Call) -> BoxCall<'g> {
        let (group, gates) = (self.group, self.gates.clone());
        let key = &IDS[usize::from(call.key)];
        let work = move || gates.start(caller, call.instant, call.restless);
        if call.form == Form::Plain {
            return Box::pin(async move { Ok(Got::Value(group.do_call(key, work).await)) });
        }
        let mut options = group.call(key);
        if call.fails {
            options = options.on_abandon(OnAbandon::Fail);
        }
        if let Some(attempts) = call.attempts {
            options = options.max_attempts(attempts);
        }
        if call.form == Form::Detached {
            options = options.detach();
        }
        let options = options.share_if(move |_| call.shares);
        match call.form {
            Form::Inline => Box::pin(async move { options.run_inline(work).await.map(Got::Outcome) }),
            _ => Box::pin(async move { options.run(work).await.map(Got::Outcome) }),
        }
    }

    fn begin_many(&self, batch: usize, keys: Vec<u8>) -> BoxCall<'g> {
        let (group, gates) = (self.group, self.gates.clone());
        let work = move |missing: Vec<&u8>| {
            let (work, count) = (gates.start(batch, false, false), missing.len());
            async move { vec![work.await; count] }
        };
        let keys = keys.into_iter().map(|key| &IDS[usize::from(key)]);
        Box::pin(async move { group.run_many(keys, work).await.map(Got::Many) })
    }

    fn add(&mut self, call: BoxCall<'g>) {
        // Who spawns polls.
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        self.callers.push(Caller { call: Some(call), woken });
    }

    fn nth(&self, number: u8, is_meant: impl Fn(&Caller<'_>) -> bool) -> Option<usize> {
        let there = self.callers.iter().enumerate();
        let all: Vec<usize> = there.filter(|(_, one)| one.call.is_some() && is_meant(one)).map(|(at, _)| at).collect();
        (!all.is_empty()).then(|| all[usize::from(number) % all.len()])
    }

    fn take_lead(&mut self, number: u8) -> Option<(usize, Lead<'g, u8, u32, oneflight::DefaultHashBuilder>)> {
        let count = self.leads.len();
        (count > 0).then(|| self.leads.swap_remove(usize::from(number) % count))
    }

    fn poll(&mut self, number: usize) -> Done {
        let polled = |subject: &mut Self| {
            let caller = &mut subject.callers[number];
            caller.woken.0.store(false, Ordering::Relaxed);
            let waker = Waker::from(Arc::clone(&caller.woken));
            let call = caller.call.as_mut().expect("it is not over");
            let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(&mut Context::from_waker(&waker))));
            if !matches!(polled, Ok(Poll::Pending)) {
                caller.call = None;
            }
            polled
        };
        if self.reference.is_batch(number) {
            let expected = self.reference.poll_many(number);
            let got = match polled(self) {
                Ok(Poll::Pending) => AllCome::Pending,
                Ok(Poll::Ready(Ok(Got::Many(values)))) => AllCome::Values(values),
                Ok(Poll::Ready(other)) => return Err(TestCaseError::fail(format!("batch {number} got {other:?}"))),
                Err(payload) => AllCome::Panic(blown(payload)?),
            };
            prop_assert_eq!(got, expected, "batch {}", number);
            return Ok(());
        }
        let expected = self.reference.poll(number);
        let got = match polled(self) {
            Ok(Poll::Pending) => Comes::Pending,
            Ok(Poll::Ready(Ok(Got::Outcome(Outcome { value, role, shared, .. })))) => {
                Comes::Value { value, role, shared }
            }
            Ok(Poll::Ready(Ok(Got::Value(value)))) => match expected {
                // It is told no more than the value.
                Comes::Value { role, shared, .. } => Comes::Value { value, role, shared },
                _ => Comes::Value { value, role: Role::Followed, shared: false },
            },
            Ok(Poll::Ready(Ok(Got::Nothing))) => {
                let has_ended = matches!(expected, Comes::Value { .. } | Comes::Abandoned);
                prop_assert!(has_ended, "driver {} has ended; expected {:?}", number, expected);
                return Ok(());
            }
            Ok(Poll::Ready(Err(CallError::Abandoned))) => Comes::Abandoned,
            Ok(Poll::Ready(other)) => return Err(TestCaseError::fail(format!("caller {number} got {other:?}"))),
            Err(payload) => Comes::Panic(blown(payload)?),
        };
        prop_assert_eq!(got, expected, "caller {}", number);
        Ok(())
    }

    fn drop(&mut self, number: usize) -> Done {
        if self.reference.is_batch(number) {
            self.reference.drop_many(number);
        } else {
            self.reference.drop(number);
        }
        self.callers[number].call = None;
        Ok(())
    }

    /// Drivers that are to go on without a caller become callers.
    fn take_spawned(&mut self) -> Done {
        let spawned: Vec<_> = std::mem::take(&mut *self.spawned.lock().unwrap());
        for work in spawned {
            self.add(Box::pin(async move {
                work.await;
                Ok(Got::Nothing)
            }));
        }
        prop_assert_eq!(self.callers.len(), self.reference.count(), "callers, with drivers that were spawned");
        Ok(())
    }

    /// Callers that have only to hear that their flight was abandoned hear it at once: the reference need not know what they mean
    /// to the others.
    fn tell_the_leaving(&mut self) -> Done {
        while let Some(&caller) = self.reference.leaving().first() {
            prop_assert!(self.callers[caller].woken.0.load(Ordering::Relaxed), "caller {} hears of the end", caller);
            self.poll(caller)?;
        }
        Ok(())
    }

    fn compare(&self) -> Done {
        let (group, reference) = (self.group, &self.reference);
        prop_assert_eq!(group.in_flight(), reference.in_flight(), "in_flight");
        prop_assert_eq!(group.snapshot().len(), reference.in_flight(), "snapshot");
        for key in 0..KEYS {
            prop_assert_eq!(group.waiters(&key), reference.waiters(key), "waiters of {}", key);
            let attempts = group.flight_info(&key).map(|flight| flight.attempts);
            prop_assert_eq!(attempts, reference.attempts(key), "attempts of {}", key);
        }
        prop_assert_eq!(self.gates.all(), reference.executions(), "executions, and which works are there");
        let stats = group.stats();
        prop_assert_eq!(stats.flights + stats.take_overs, reference.started, "closures started");
        for (some, least) in reference.must_be_woken() {
            let woken = some.iter().filter(|&&caller| self.callers[caller].woken.0.load(Ordering::Relaxed)).count();
            prop_assert!(woken >= least, "{} of the callers {:?} are woken; expected {}", woken, some, least);
        }
        Ok(())
    }

    /// Everybody leaves, and nothing stays.
    fn finish(mut self) -> Done {
        while let Some((flight, lead)) = self.take_lead(0) {
            self.reference.drop_lead(flight);
            drop(lead);
            self.tell_the_leaving()?;
        }
        while let Some(caller) = self.nth(0, |_| true) {
            self.drop(caller)?;
            self.take_spawned()?;
            self.tell_the_leaving()?;
            self.compare()?;
        }
        prop_assert_eq!(self.group.in_flight(), 0, "what is left");
        Ok(())
    }
}

/// Which work has panicked.
fn blown(payload: Box<dyn std::any::Any + Send>) -> Result<u32, TestCaseError> {
    let blown = payload.downcast::<Blown>().map_err(|_| TestCaseError::fail("a panic that no work has made"))?;
    Ok(blown.0)
}

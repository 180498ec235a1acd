//! What executions there were, and which calls may have their values.

use super::call::Call;
use crate::breach::Breach;
use crate::things::{Product, product};
use oneflight::Role;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The executions of one group in one round.
#[derive(Debug)]
pub(crate) struct Ledger {
    pages: Vec<Mutex<Page>>,
    /// The time, in events.
    tick: AtomicU64,
    /// The limit to the age of flights.
    age: Option<Duration>,
    started: AtomicU64,
}

/// A key.
#[derive(Debug, Default)]
struct Page {
    executions: HashMap<u64, Execution>,
    /// Executions that do something right now.
    running: u32,
    /// The last one that began.
    latest: u64,
    /// How many `forget`s have begun: each can have let one more flight begin.
    forgets: u32,
    /// When the last `forget` began that has returned.
    floor: u64,
}

#[derive(Debug)]
struct Execution {
    call: u64,
    started: u64,
    started_at: Instant,
    has_produced: bool,
    /// When the first call returned with its value.
    returned: Option<u64>,
    receivers: u32,
    /// Whether `share_if` refused the value, or somebody was told that it alone has it.
    alone: bool,
}

/// An execution that is on.
#[derive(Debug)]
pub(crate) struct Running {
    ledger: Arc<Ledger>,
    key: u32,
    number: u64,
}

/// While it lives, the execution does something.
pub(crate) struct Step<'r>(&'r Running);

impl Ledger {
    pub(crate) fn new(keys: usize, age: Option<Duration>) -> Self {
        let pages = (0..keys).map(|_| Mutex::default()).collect();
        Self { pages, tick: AtomicU64::new(1), age, started: AtomicU64::new(0) }
    }

    fn page(&self, key: u32) -> MutexGuard<'_, Page> {
        self.pages[key as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time, which is another one after this.
    pub(crate) fn now(&self) -> u64 {
        self.tick.fetch_add(1, Ordering::SeqCst)
    }

    /// A number that nothing else has.
    pub(crate) fn number(&self) -> u64 {
        self.now()
    }

    /// How many executions have begun, guards included.
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::SeqCst)
    }

    /// An execution of `key` for `call` begins.
    pub(crate) fn start(self: &Arc<Self>, key: u32, call: u64) -> Running {
        let number = self.number();
        self.started.fetch_add(1, Ordering::SeqCst);
        let mut page = self.page(key);
        let execution = Execution {
            call,
            started: number,
            started_at: Instant::now(),
            has_produced: false,
            returned: None,
            receivers: 0,
            alone: false,
        };
        page.executions.insert(number, execution);
        page.latest = number;
        Running { ledger: Arc::clone(self), key, number }
    }

    /// `forget` of `key` begins. Returns when.
    pub(crate) fn forgetting(&self, key: u32) -> u64 {
        let mut page = self.page(key);
        page.forgets += 1;
        self.now()
    }

    /// `forget` of `key`, begun then, has returned.
    pub(crate) fn forgotten(&self, key: u32, begun: u64) {
        let mut page = self.page(key);
        page.floor = page.floor.max(begun);
    }

    /// When the last `forget` of `key` began that has returned.
    pub(crate) fn floor(&self, key: u32) -> u64 {
        self.page(key).floor
    }

    /// Whether all executions of `key` must have been those of one flight after the other.
    pub(crate) fn is_strict(&self, key: u32) -> bool {
        self.age.is_none() && self.page(key).forgets == 0
    }

    /// The value of this execution is not to be shared.
    pub(crate) fn keep_for_one(&self, key: u32, execution: u64) {
        if let Some(execution) = self.page(key).executions.get_mut(&execution) {
            execution.alone = true;
        }
    }

    /// `call` has returned with this answer for `key`. Returns whether it is somebody else's.
    pub(crate) fn receive(
        &self,
        call: &Call,
        key: u32,
        answer: &crate::things::Answer,
        told: Option<(Role, bool)>,
    ) -> bool {
        let Product { key: of, execution: number } = product(answer);
        let number = *number;
        if *of != key {
            Breach::ForeignKey { got: *of }.raise(key);
        }
        let now = self.now();
        let mut page = self.page(key);
        let Some(execution) = page.executions.get_mut(&number).filter(|execution| execution.has_produced) else {
            Breach::Invented { execution: number }.raise(key)
        };
        if execution.returned.is_some_and(|returned| returned < call.begun) {
            Breach::Late { execution: number }.raise(key);
        }
        if execution.started < call.floor(key) {
            Breach::Forgotten { execution: number }.raise(key);
        }
        // The age is measured to a 64th; the rest is for this measurement.
        let joined_at = execution.started_at + self.age.map_or(Duration::MAX / 4, |age| age + age / 32);
        if self.age.is_some() && call.begun_at > joined_at + Duration::from_millis(1) {
            Breach::TooOld { execution: number }.raise(key);
        }
        execution.returned.get_or_insert(now);
        execution.receivers += 1;
        let alone = told.is_some_and(|(_, shared)| !shared);
        if execution.receivers > 1 && (alone || execution.alone) {
            Breach::NotAlone { execution: number }.raise(key);
        }
        execution.alone |= alone;
        let followed = execution.call != call.number;
        if told.is_some_and(|(role, _)| followed != (role == Role::Followed)) {
            Breach::WrongRole { execution: number, followed: !followed }.raise(key);
        }
        followed
    }
}

impl Running {
    /// It does something, until the step is dropped.
    pub(crate) fn step(&self) -> Step<'_> {
        let mut page = self.ledger.page(self.key);
        page.running += 1;
        let flights = page.forgets + 1;
        let strict = self.ledger.age.is_none();
        if strict && page.running > flights {
            Breach::Overlap { running: page.running, flights }.raise(self.key);
        }
        if strict && page.forgets == 0 && page.latest != self.number {
            Breach::Outlived { execution: self.number, by: page.latest }.raise(self.key);
        }
        drop(page);
        Step(self)
    }

    /// What it has made.
    pub(crate) fn produce(&self) -> Product {
        if let Some(execution) = self.ledger.page(self.key).executions.get_mut(&self.number) {
            execution.has_produced = true;
        }
        Product::new(self.key, self.number)
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.0.ledger.page(self.0.key).running -= 1;
    }
}

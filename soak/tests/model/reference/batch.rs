//! Calls with several keys: a caller with a seat for each, whose work is for all keys that it leads.

use super::{At, Caller, Comes, Execution, Reference, Stage};
use crate::operation::{Call, End, Form};

/// What a poll of a batch comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AllCome {
    Pending,
    Values(Vec<u32>),
    Panic(u32),
}

/// A batch under way. Its seats are callers of their own.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    seats: Vec<usize>,
    values: Vec<Option<u32>>,
    has_entered: bool,
    /// Seats that lead, and whose work is still to begin.
    led: Vec<usize>,
    running: Vec<(u32, Vec<usize>)>,
    waits: Vec<usize>,
}

impl Reference {
    /// A batch: the numbers of its seats are the next ones.
    pub(crate) fn call_many(&mut self, keys: &[u8]) -> usize {
        let call = |key| Call {
            key,
            form: Form::Plain,
            fails: false,
            attempts: None,
            shares: true,
            instant: false,
            restless: false,
        };
        let batch = self.call(call(keys[0]));
        let seats: Vec<usize> = keys.iter().map(|&key| self.call(call(key))).collect();
        for &seat in &seats {
            self.callers[seat].is_seat = true;
        }
        let (led, running, waits) = (Vec::new(), Vec::new(), Vec::new());
        let values = vec![None; keys.len()];
        self.batches.insert(batch, Batch { seats, values, has_entered: false, led, running, waits });
        batch
    }

    pub(crate) fn is_batch(&self, caller: usize) -> bool {
        self.batches.contains_key(&caller)
    }

    /// A batch is polled.
    pub(crate) fn poll_many(&mut self, number: usize) -> AllCome {
        let mut batch = self.batches.remove(&number).expect("it is not over");
        if !batch.has_entered {
            batch.has_entered = true;
            for seat in batch.seats.clone() {
                let comes = self.enter(seat);
                self.sort(&mut batch, seat, comes);
            }
        }
        self.begin_work(number, &mut batch);
        let mut panicked = self.end_works(&mut batch, 0);
        if panicked.is_none() {
            for seat in std::mem::take(&mut batch.waits) {
                let comes = self.poll(seat);
                self.sort(&mut batch, seat, comes);
            }
            // That of what was taken over just now. The rest is not polled twice.
            let polled = batch.running.len();
            self.begin_work(number, &mut batch);
            panicked = self.end_works(&mut batch, polled);
        }
        if let Some(execution) = panicked {
            self.give_up(batch);
            return AllCome::Panic(execution);
        }
        if batch.running.is_empty() && batch.waits.is_empty() {
            return AllCome::Values(batch.values.into_iter().map(|value| value.expect("it is there")).collect());
        }
        self.batches.insert(number, batch);
        AllCome::Pending
    }

    fn sort(&mut self, batch: &mut Batch, seat: usize, comes: Comes) {
        match comes {
            Comes::Pending => batch.waits.push(seat),
            Comes::Leads => batch.led.push(seat),
            Comes::Value { value, .. } => batch.put(seat, value),
            Comes::Panic(_) | Comes::Abandoned => {
                unreachable!("seats have no work of their own, and go on in a fresh flight")
            }
        }
    }

    fn begin_work(&mut self, number: usize, batch: &mut Batch) {
        let led = std::mem::take(&mut batch.led);
        if led.is_empty() {
            return;
        }
        let execution = u32::try_from(self.executions.len()).expect("few executions");
        self.executions.push(Execution { maker: number, end: None, alive: true, detaches: false });
        self.started += led.len() as u64;
        for &seat in &led {
            if let At::In(flight) = self.callers[seat].at {
                self.flight(flight).stage = Stage::Inline(seat, execution);
            }
        }
        batch.running.push((execution, led));
    }

    /// Lands what can, of the works after so many. Returns the work that panics, if one does: what comes after it goes down with it.
    fn end_works(&mut self, batch: &mut Batch, after: usize) -> Option<u32> {
        for (execution, led) in batch.running.split_off(after) {
            match self.executions[execution as usize].end {
                None => batch.running.push((execution, led)),
                Some(End::Value) => {
                    for seat in led {
                        if let Comes::Value { value, .. } = self.poll(seat) {
                            batch.put(seat, value);
                        }
                    }
                }
                Some(End::Panic) => {
                    batch.running.push((execution, led));
                    return Some(execution);
                }
            }
        }
        None
    }

    /// Everything that it leads is abandoned, everything that it waits for left.
    fn give_up(&mut self, batch: Batch) -> Vec<usize> {
        batch.seats.iter().filter_map(|&seat| self.drop(seat)).collect()
    }

    /// A batch is dropped. Returns the drivers that go on.
    pub(crate) fn drop_many(&mut self, number: usize) -> Vec<usize> {
        let batch = self.batches.remove(&number).expect("it is not over");
        self.give_up(batch)
    }
}

impl Batch {
    fn put(&mut self, seat: usize, value: u32) {
        let at = self.seats.iter().position(|&other| other == seat).expect("it is one of its seats");
        self.values[at] = Some(value);
    }
}

impl Caller {
    pub(super) fn new(call: Call, at: At) -> Self {
        Self { call, at, is_driver: false, is_seat: false }
    }
}

//! oneflight: what is measured.

use super::{Call, Job, OnTasks, OnThreads, Peer, Side};
use crate::clock::{Labour, Work};
use crate::values::{Answer, Got, Key, Value};
use oneflight::{AsyncGroup, CallError, Outcome, SyncGroup};

pub(super) type Threads = SyncGroup<Key, Answer>;

/// Flights that own their work: `do_call`.
#[derive(Default)]
pub(super) struct Owned(AsyncGroup<Key, Answer>);

/// Works inside their callers: `do_call_inline`.
#[derive(Default)]
pub(super) struct Inline(AsyncGroup<Key, Answer>);

fn of_run(called: Result<Outcome<Answer>, CallError>) -> Got {
    called.map_or(Got::Refused, |outcome| outcome.value.into())
}

fn sum(answers: Vec<Answer>) -> Got {
    Got::Value(answers.into_iter().flatten().map(|value| value.0).sum())
}

fn numbers(keys: &[&Key]) -> Vec<u64> {
    keys.iter().map(|key| key.number()).collect()
}

fn answers(numbers: Vec<u64>) -> Vec<Answer> {
    numbers.into_iter().map(|number| Ok(Value(number))).collect()
}

fn many(group: &'static AsyncGroup<Key, Answer>, keys: Vec<u64>, work: <OnTasks as Side>::ManyWork) -> Call {
    Box::pin(async move {
        let keys: Vec<Key> = keys.into_iter().map(Key::new).collect();
        let work = |missing: Vec<&Key>| {
            let values = work(numbers(&missing));
            async move { answers(values.await) }
        };
        sum(group.do_many(&keys, work).await)
    })
}

impl Peer<OnTasks> for Owned {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move { self.0.do_call(&Key::new(key), work).await.into() })
    }

    fn call_otherwise(&'static self, key: u64, work: Work) -> Option<Call> {
        Some(Box::pin(async move { of_run(self.0.call(&Key::new(key)).run_inline(work).await) }))
    }

    fn forget(&'static self, key: u64) -> Option<()> {
        self.0.forget(&Key::new(key));
        Some(())
    }

    fn many(&'static self, keys: Vec<u64>, work: <OnTasks as Side>::ManyWork) -> Option<Call> {
        Some(many(&self.0, keys, work))
    }

    fn for_both(&'static self) -> Option<(&'static dyn Peer<OnTasks>, &'static dyn Peer<OnThreads>)> {
        Some((self, self))
    }
}

impl Peer<OnTasks> for Inline {
    fn call(&'static self, key: u64, work: Work) -> Call {
        Box::pin(async move { self.0.do_call_inline(&Key::new(key), work).await.into() })
    }

    fn call_otherwise(&'static self, key: u64, work: Work) -> Option<Call> {
        Some(Box::pin(async move { of_run(self.0.call(&Key::new(key)).run(work).await) }))
    }

    fn forget(&'static self, key: u64) -> Option<()> {
        self.0.forget(&Key::new(key));
        Some(())
    }

    fn many(&'static self, keys: Vec<u64>, work: <OnTasks as Side>::ManyWork) -> Option<Call> {
        Some(many(&self.0, keys, work))
    }

    fn for_both(&'static self) -> Option<(&'static dyn Peer<OnTasks>, &'static dyn Peer<OnThreads>)> {
        Some((self, self))
    }
}

impl Peer<OnThreads> for Owned {
    fn call(&'static self, key: u64, work: Labour) -> Job {
        Box::new(move || self.0.do_call_blocking(&Key::new(key), work).into())
    }
}

impl Peer<OnThreads> for Inline {
    fn call(&'static self, key: u64, work: Labour) -> Job {
        Box::new(move || self.0.do_call_blocking(&Key::new(key), work).into())
    }
}

impl Peer<OnThreads> for Threads {
    fn call(&'static self, key: u64, work: Labour) -> Job {
        Box::new(move || self.do_call(&Key::new(key), work).into())
    }

    fn call_otherwise(&'static self, key: u64, work: Labour) -> Option<Job> {
        Some(Box::new(move || of_run(SyncGroup::call(self, &Key::new(key)).run(work))))
    }

    fn forget(&'static self, key: u64) -> Option<()> {
        SyncGroup::forget(self, &Key::new(key));
        Some(())
    }

    fn many(&'static self, keys: Vec<u64>, work: <OnThreads as Side>::ManyWork) -> Option<Job> {
        Some(Box::new(move || {
            let keys: Vec<Key> = keys.into_iter().map(Key::new).collect();
            sum(self.do_many(&keys, |missing| answers(work(numbers(&missing)))))
        }))
    }
}

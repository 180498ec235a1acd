//! Callers in threads of their own, and loads that last until they are told to end.

use super::gate::Gate;
use super::limits::until;
use super::way::{Answer, AnyCache, AnyStore, Fail, Value};
use oneflight_cache::{Error, Fetched, Source};
use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Something that goes on in a thread of its own.
pub(crate) struct Running<T>(JoinHandle<T>);

pub(crate) fn run<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> Running<T> {
    Running(thread::spawn(what))
}

impl<T> Running<T> {
    /// What it comes to. A panic goes on here.
    pub(crate) fn end(self) -> T {
        self.0.join().unwrap_or_else(|payload| resume_unwind(payload))
    }

    /// What it comes to, or its panic.
    pub(crate) fn outcome(self) -> std::thread::Result<T> {
        self.0.join()
    }

    pub(crate) fn panic(self) -> Box<dyn Any + Send> {
        self.0.join().err().expect("it panics")
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_finished()
    }
}

/// A loader that has begun, and ends when it is told to.
pub(crate) struct Held<T> {
    end: Gate,
    pub(crate) caller: Running<T>,
}

impl<T> Held<T> {
    pub(crate) fn end(self) -> T {
        self.end.open();
        self.caller.end()
    }

    /// Lets the loader go on, and does not wait for it.
    pub(crate) fn let_go(self) -> Running<T> {
        self.end.open();
        self.caller
    }
}

/// Makes a call in a thread of its own, whose loader runs, and lasts until the call is told to end.
pub(crate) fn held<R: Send + 'static, T: Send + 'static>(
    comes_to: impl FnOnce() -> R + Send + 'static,
    call: impl FnOnce(Box<dyn FnOnce() -> R + Send>) -> T + Send + 'static,
) -> Held<T> {
    let (begun, end) = (Gate::new(), Gate::new());
    let loader = {
        let (begun, end) = (begun.clone(), end.clone());
        move || {
            begun.open();
            end.wait();
            comes_to()
        }
    };
    let caller = run(move || call(Box::new(loader)));
    begun.wait();
    Held { end, caller }
}

/// A `get_or_load` that loads, until it is told to end.
pub(crate) fn loading<V: Value, S: AnyStore<V>, C: AnyCache<V, S>>(
    cache: &C,
    key: &'static str,
    comes_to: impl FnOnce() -> Result<V, Fail> + Send + 'static,
) -> Held<Answer<V>> {
    let cache = cache.clone();
    held(comes_to, move |loader| cache.get_or_load(key, loader))
}

/// A `get_or_load` that waits for the load that is on. Its own loader would come to `comes_to`.
pub(crate) fn joining<V: Value, S: AnyStore<V>, C: AnyCache<V, S>>(
    cache: &C,
    key: &'static str,
    comes_to: impl FnOnce() -> Result<V, Fail> + Send + 'static,
) -> Running<Answer<V>> {
    let before = cache.waiters(key);
    let caller = run({
        let cache = cache.clone();
        move || cache.get_or_load(key, comes_to)
    });
    until("the caller waits", || cache.waiters(key) > before);
    caller
}

/// A refresh that goes on beside the read that has started it, until it is let go.
pub(crate) struct Refreshing(pub(crate) Gate);

/// Starts one by a read, whose answer is returned too.
pub(crate) fn refreshing<V: Value, S: AnyStore<V>, C: AnyCache<V, S>>(
    cache: &C,
    key: &'static str,
    comes_to: impl FnOnce() -> Result<V, Fail> + Send + 'static,
) -> (Refreshing, Answer<V>) {
    let (begun, end) = (Gate::new(), Gate::new());
    let loader = {
        let (begun, end) = (begun.clone(), end.clone());
        move || {
            begun.open();
            end.wait();
            comes_to()
        }
    };
    let answer = cache.get_or_load(key, loader);
    begun.wait();
    (Refreshing(end), answer)
}

/// For a loader that is not to be called.
pub(crate) fn uncalled<V>() -> impl FnOnce() -> Result<V, Fail> + Send + 'static {
    || panic!("this loader is not to be called")
}

/// Counts the runs of loaders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(Arc<AtomicUsize>);

impl Runs {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn returning<V: Send + 'static>(
        &self,
        result: Result<V, Fail>,
    ) -> impl FnOnce() -> Result<V, Fail> + Send + 'static {
        let runs = self.clone();
        move || {
            runs.add();
            result
        }
    }
}

/// The value and where it came from.
#[track_caller]
pub(crate) fn told<V>(answer: Answer<V>) -> (V, Source) {
    let Fetched { value, source, .. } = answer.expect("there is a value");
    (value, source)
}

/// The value, where it came from, and its age in seconds.
#[track_caller]
pub(crate) fn aged<V>(answer: Answer<V>) -> (V, Source, u64) {
    let Fetched { value, source, age, .. } = answer.expect("there is a value");
    (value, source, age.as_secs())
}

/// The number of the loader's failure.
#[track_caller]
pub(crate) fn failure<V: std::fmt::Debug>(answer: Result<V, Error<Fail>>) -> u32 {
    match answer {
        Err(Error::Load(error)) => error.0,
        other => panic!("not a loader's failure: {other:?}"),
    }
}

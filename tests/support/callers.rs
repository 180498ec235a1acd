//! Callers in threads of their own.

use super::gate::Gate;
use super::limits::until;
use super::way::{Answer, AnyGroup, Key, Options, Value};
use super::work::{IntoWork, Work};
use core::any::Any;
use core::fmt::Debug;
use core::sync::atomic::{AtomicU32, Ordering};
use oneflight::CallError;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

/// How a call ended: with an answer, an error or a panic.
pub(crate) type Ended<V> = thread::Result<Result<Answer<V>, CallError>>;

/// A call in a thread of its own.
pub(crate) struct Caller<V>(thread::JoinHandle<Result<Answer<V>, CallError>>);

/// A call whose work is on, and ends when it is told to.
pub(crate) struct Leader<V> {
    caller: Caller<V>,
    end: Gate,
}

/// Threads of callers have this name, those of leaders the one below, for values that tell them apart.
pub(crate) const CALLER: &str = "caller";
pub(crate) const LEADER: &str = "leader";

/// Groups whose callers are threads.
pub(crate) trait Callers<K: Key, V: Value>: AnyGroup<K, V> {
    /// Calls in a new thread.
    fn caller_with(&self, key: K, options: Options<V>, work: impl IntoWork<V>) -> Caller<V> {
        named_caller(CALLER, self.clone(), key, options, work.into_work())
    }

    /// Calls in a new thread, without options.
    fn caller(&self, key: K, work: impl IntoWork<V>) -> Caller<V> {
        self.caller_with(key, Options::none(), work)
    }

    /// Begins a flight in a new thread: returns when its work is on. `end` is how it ends, once it is told to.
    #[track_caller]
    fn leader_with(&self, key: K, options: Options<V>, end: impl IntoWork<V>) -> Leader<V> {
        let (begun, told) = (Gate::new(), Gate::new());
        let wait = {
            let (begun, told) = (begun.clone(), told.clone());
            move || {
                begun.open();
                told.wait();
            }
        };
        let caller = named_caller(LEADER, self.clone(), key, options, end.into_work().after(wait));
        begun.wait();
        Leader { caller, end: told }
    }

    /// Begins a flight without options.
    #[track_caller]
    fn leader(&self, key: K, end: impl IntoWork<V>) -> Leader<V> {
        self.leader_with(key, Options::none(), end)
    }

    /// Joins the flight of `key` that is on, in a new thread: returns when the caller waits.
    #[track_caller]
    fn follower_with(&self, key: K, options: Options<V>, work: impl IntoWork<V>) -> Caller<V> {
        let before = self.waiters(&key);
        let caller = self.caller_with(key.clone(), options, work);
        until("the follower waits", || self.waiters(&key) > before);
        caller
    }

    /// Joins the flight of `key` without options.
    #[track_caller]
    fn follower(&self, key: K, work: impl IntoWork<V>) -> Caller<V> {
        self.follower_with(key, Options::none(), work)
    }

    /// Joins the flight of `key` that is on, in `count` new threads: returns when all of them wait. `work` makes the work of
    /// each from its number.
    #[track_caller]
    fn followers<F>(&self, count: usize, key: K, work: impl FnMut(usize) -> F) -> Vec<Caller<V>>
    where
        F: IntoWork<V>,
    {
        let before = self.waiters(&key);
        let callers = (0..count).map(work).map(|work| self.caller(key.clone(), work)).collect();
        until("all followers wait", || self.waiters(&key) == before + count);
        callers
    }
}

impl<K: Key, V: Value, G: AnyGroup<K, V>> Callers<K, V> for G {}

fn named_caller<K: Key, V: Value>(
    name: &str,
    group: impl AnyGroup<K, V>,
    key: K,
    options: Options<V>,
    work: Work<V>,
) -> Caller<V> {
    // Far less than the default, for the tests with hundreds of threads.
    let builder = thread::Builder::new().name(name.to_owned()).stack_size(256 * 1024);
    Caller(builder.spawn(move || group.call_for(key, options, work)).expect("a thread can be started"))
}

impl<V: Debug> Caller<V> {
    /// How the call ended.
    pub(crate) fn ended(self) -> Ended<V> {
        self.0.join()
    }

    /// The call's answer; fails if it has none.
    #[track_caller]
    pub(crate) fn answer(self) -> Answer<V> {
        match self.ended() {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => panic!("the call was refused: {error}"),
            Err(payload) => panic!("the call panicked: {:?}", message(&*payload)),
        }
    }

    /// The call's value; fails if it has none.
    #[track_caller]
    pub(crate) fn value(self) -> V {
        self.answer().value
    }

    /// Why the call has no value; fails if it has one. Some ways tell by a panic.
    #[track_caller]
    pub(crate) fn error(self) -> CallError {
        let ended = self.ended();
        error_of(&ended).unwrap_or_else(|| panic!("the call was not refused: {ended:?}"))
    }

    /// The payload of the call's panic; fails if there was none, or another.
    #[track_caller]
    pub(crate) fn panic<P: 'static>(self) -> P {
        match self.ended() {
            Ok(ended) => panic!("the call did not panic: {ended:?}"),
            Err(payload) => *payload.downcast().expect("the panic has the payload that the work gave it"),
        }
    }
}

impl<V: Debug> Leader<V> {
    /// Tells the work to end. The caller is still to be asked how it did.
    pub(crate) fn release(self) -> Caller<V> {
        self.end.open();
        self.caller
    }

    /// Lets the work end, and returns the call's value.
    #[track_caller]
    pub(crate) fn value(self) -> V {
        self.release().value()
    }

    /// Lets the work end, and returns the call's answer.
    #[track_caller]
    pub(crate) fn answer(self) -> Answer<V> {
        self.release().answer()
    }

    /// Lets the work panic, and returns the payload.
    #[track_caller]
    pub(crate) fn panic<P: 'static>(self) -> P {
        self.release().panic()
    }
}

/// The error that a call ended with: as such, or, where there is no `Result`, by a panic that tells it.
pub(crate) fn error_of<V>(ended: &Ended<V>) -> Option<CallError> {
    match ended {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(*error),
        Err(payload) => {
            let told = message(&**payload)?;
            let all = [CallError::TimedOut, CallError::Reentrant, CallError::WouldDeadlock, CallError::Abandoned];
            all.into_iter().find(|error| told.contains(&error.to_string()))
        }
    }
}

/// The text of a panic, if it has one.
pub(crate) fn message(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied())
}

/// Panics with any payload, and without a message in the log.
pub(crate) fn blow(payload: impl Any + Send) -> ! {
    resume_unwind(Box::new(payload))
}

/// What the works of the suite panic with unless the payload is the subject.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Blown;

/// Counts executions of works.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<AtomicU32>);

impl Runs {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Work that is counted and returns `value`.
    pub(crate) fn returning<V: Send + 'static>(&self, value: V) -> impl FnOnce() -> V + Send + 'static + use<V> {
        let runs = self.clone();
        move || {
            runs.add();
            value
        }
    }

    /// Work that is counted and panics.
    pub(crate) fn panicking<V>(&self) -> impl FnOnce() -> V + Send + 'static + use<V> {
        let runs = self.clone();
        move || {
            runs.add();
            blow(Blown)
        }
    }

    /// Counts one, and returns its number, from 1 on.
    pub(crate) fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

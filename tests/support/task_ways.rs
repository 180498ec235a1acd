//! The entry points of `AsyncGroup`.
//!
//! Which one, and which executor drives the calls, is chosen at run time, for all groups of a test: so the cases are compiled
//! once for all of them. A caller is a thread here too: it has the executor drive its call, and blocks until that has ended.
//!
//! A call of a task has no time limit of its own. Where a case asks for one, the call is dropped when its time is up, as a
//! user's own deadline does; a work that it led is then somebody else's.

use super::acting::{Acting, own_name};
use super::executors::{BoxFuture, Executor};
use super::sync_ways::of_one_key;
use super::way::{Answer, AnyGroup, Key, Options, Setup, Value, Way, set_up};
use super::work::Work;
use core::cell::RefCell;
use core::convert::Infallible;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use oneflight::{AsyncGroup, Call, CallError, FlightInfo, Stats};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// By `do_call`: refusals are panics.
    DoCall,
    /// By `call(..).run(..)`.
    Call,
    /// By `call_with(..).run(..)`.
    CallWith,
    /// By `do_call_inline`: refusals are panics.
    DoCallInline,
    /// By `call(..).run_inline(..)`.
    CallInline,
    /// By `try_do_call`, with an error that there cannot be: refusals are panics.
    TryDoCall,
    /// By `try_lead`, and by `call(..).run(..)` where somebody else leads. Leading by a guard knows no options.
    TryLead,
    /// By `call(..)`, and by turns by `run`, `run_inline` and `run_blocking`.
    Mixed,
    /// By `do_many` and by `run_many` by turns, with one key: refusals are panics, or errors.
    Many,
    /// By `do_call_blocking`, in the calling thread: refusals are panics.
    DoCallBlocking,
    /// By `call(..).run_blocking(..)`, or `run_blocking_wait_timeout` if there is a limit, in the calling thread.
    CallBlocking,
    /// By `do_many_blocking` and by `run_many_blocking` by turns, with one key, in the calling thread: refusals are panics, or errors.
    ManyBlocking,
    /// By `do_call_blocking_wait_timeout`, in the calling thread, with a limit that is never reached unless another is asked for.
    BlockingWaitTimeout,
}

std::thread_local! {
    static CHOICE: RefCell<Option<(Entry, Executor)>> = const { RefCell::new(None) };
}

/// Chooses for the groups that are made in this thread.
pub(crate) fn choose(entry: Entry, executor: Executor) {
    CHOICE.set(Some((entry, executor)));
}

/// By the entry point and on the executor that were chosen.
pub(crate) struct Tasks;

impl Way for Tasks {
    type Group<K: Key, V: Value> = TasksGroup<K, V>;

    /// Far fewer than there are; but each entry point is to have its rounds on each executor.
    const TESTS_OF_A_CASE: u32 = 5;
}

#[derive(Clone)]
pub(crate) struct TasksGroup<K: Key, V: Value> {
    group: Group<K, V>,
    entry: Entry,
    executor: Executor,
    turns: Arc<AtomicUsize>,
}

/// `try_do_call` is for groups of results.
#[derive(Clone)]
enum Group<K: Key, V: Value> {
    Plain(Arc<AsyncGroup<K, V>>),
    Results(Arc<AsyncGroup<K, Result<V, Arc<Infallible>>>>),
}

/// What does not depend on what the values are.
macro_rules! of_either {
    ($this:ident.$method:ident($($argument:expr)?)) => {
        match &$this.group {
            Group::Plain(group) => group.$method($($argument)?),
            Group::Results(group) => group.$method($($argument)?),
        }
    };
}

impl<K: Key, V: Value> AnyGroup<K, V> for TasksGroup<K, V> {
    fn with(setup: Setup<V>) -> Self {
        let (entry, executor) = CHOICE.with_borrow(Clone::clone).expect("it has been chosen in this thread");
        let group = match (entry, setup.share_if.clone()) {
            (Entry::TryDoCall, None) => Group::Results(Arc::new(set_up!(&setup, AsyncGroup::builder()).build())),
            (Entry::TryDoCall, Some(share_if)) => {
                let share_if = move |value: &Result<V, _>| value.as_ref().is_ok_and(|value| share_if(value));
                Group::Results(Arc::new(set_up!(&setup, AsyncGroup::builder()).share_if(share_if).build()))
            }
            (_, None) => Group::Plain(Arc::new(set_up!(&setup, AsyncGroup::builder()).build())),
            (_, Some(share_if)) => {
                let share_if = move |value: &V| share_if(value);
                Group::Plain(Arc::new(set_up!(&setup, AsyncGroup::builder()).share_if(share_if).build()))
            }
        };
        Self { group, entry, executor, turns: Arc::default() }
    }

    fn call_for(&self, key: K, mut options: Options<V>, work: Work<V>) -> Result<Answer<V>, CallError> {
        let entry = match self.entry {
            Entry::Mixed => match self.turns.fetch_add(1, Ordering::Relaxed) % 3 {
                0 => Entry::CallBlocking,
                1 => Entry::CallInline,
                _ => Entry::Call,
            },
            entry => entry,
        };
        let group = match &self.group {
            Group::Plain(group) => Arc::clone(group),
            Group::Results(group) => {
                let limit = options.wait_timeout.take();
                options.assert_none();
                let group = Arc::clone(group);
                let call = async move {
                    match group.try_do_call(&key, || async { Ok(work.into_future().await) }).await {
                        Ok(value) => Ok(Answer::bare(value)),
                        Err(error) => match *error {},
                    }
                };
                return self.executor.run(limited(limit, Box::pin(call)));
            }
        };
        match entry {
            Entry::DoCallBlocking | Entry::CallBlocking | Entry::BlockingWaitTimeout => {
                call_blocking(&group, entry, &key, options, work)
            }
            Entry::ManyBlocking => {
                let _acting = Acting::on_the_spot(own_name());
                let limit = options.wait_timeout.take();
                options.assert_none();
                let tells = limit.is_some() || self.turns.fetch_add(1, Ordering::Relaxed) % 2 == 0;
                let (keys, work) = ([&key], of_one_key(work));
                let values = if tells {
                    group.run_many_blocking(keys, limit, work)
                } else {
                    Ok(group.do_many_blocking(keys, work))
                };
                values.map(|mut values| Answer::bare(values.remove(0)))
            }
            Entry::Many => {
                let limit = options.wait_timeout.take();
                options.assert_none();
                let tells = self.turns.fetch_add(1, Ordering::Relaxed) % 2 == 0;
                self.executor.run(limited(limit, Box::pin(many(group, tells, key, work))))
            }
            _ => {
                let limit = options.wait_timeout.take();
                self.executor.run(limited(limit, call(group, entry, key, options, work)))
            }
        }
    }

    fn forget(&self, key: &K) -> bool {
        of_either!(self.forget(key))
    }
    fn forget_unshared(&self, key: &K) -> bool {
        of_either!(self.forget_unshared(key))
    }

    fn forget_all(&self) {
        of_either!(self.forget_all());
    }
    fn waiters(&self, key: &K) -> usize {
        of_either!(self.waiters(key))
    }
    fn flight_info(&self, key: &K) -> Option<FlightInfo> {
        of_either!(self.flight_info(key))
    }
    fn in_flight(&self) -> usize {
        of_either!(self.in_flight())
    }
    fn stats(&self) -> Stats {
        of_either!(self.stats())
    }
    fn timeouts(&self) -> Option<u64> {
        let knows = matches!(self.entry, Entry::CallBlocking | Entry::ManyBlocking | Entry::BlockingWaitTimeout);
        knows.then(|| self.stats().timeouts)
    }
}

type Called<V> = Result<Answer<V>, CallError>;

/// Drops the call when its time is up.
fn limited<V: Value>(limit: Option<Duration>, call: BoxFuture<Called<V>>) -> BoxFuture<Called<V>> {
    let Some(limit) = limit else { return call };
    Box::pin(smol::future::or(call, async move {
        smol::Timer::after(limit).await;
        Err(CallError::TimedOut)
    }))
}

/// A call of a task.
fn call<K: Key, V: Value>(
    group: Arc<AsyncGroup<K, V>>,
    entry: Entry,
    key: K,
    options: Options<V>,
    work: Work<V>,
) -> BoxFuture<Called<V>> {
    if matches!(entry, Entry::DoCall | Entry::DoCallInline) {
        options.assert_none();
    }
    match entry {
        Entry::DoCall => Box::pin(async move { Ok(Answer::bare(group.do_call(&key, || work.into_future()).await)) }),
        Entry::DoCallInline => {
            Box::pin(async move { Ok(Answer::bare(group.do_call_inline(&key, || work.into_future()).await)) })
        }
        Entry::Call => Box::pin(async move { run(group.call(&key), options, work).await }),
        Entry::CallWith => Box::pin(async move { run(group.call_with(&key, || key.clone()), options, work).await }),
        Entry::CallInline => Box::pin(async move { run_inline(group.call(&key), options, work).await }),
        Entry::TryLead => Box::pin(async move {
            match group.try_lead(&key) {
                // A panic in the work drops the guard while unwinding.
                Some(lead) => {
                    let value = work.into_future().await;
                    Ok(lead.land(value).into())
                }
                None => run(group.call(&key), options, work).await,
            }
        }),
        _ => unreachable!("not a task's"),
    }
}

/// A call of a task with several keys, of which there is one.
async fn many<K: Key, V: Value>(group: Arc<AsyncGroup<K, V>>, tells: bool, key: K, work: Work<V>) -> Called<V> {
    let mut work = Some(work);
    let work = |keys: Vec<&K>| {
        assert_eq!(keys.len(), 1);
        let work = work.take().expect("there is one key, and who has failed to load it does not try again");
        async { vec![work.into_future().await] }
    };
    let mut values = if tells { group.run_many([&key], work).await? } else { group.do_many([&key], work).await };
    Ok(Answer::bare(values.remove(0)))
}

type CallOf<'a, K, V, M, P> = Call<'a, AsyncGroup<K, V>, V, K, M, P>;

/// Sets the options that were asked for.
fn with_options<'a, K: Key, V: Value, M: FnOnce() -> K, P>(
    mut call: CallOf<'a, K, V, M, P>,
    options: &Options<V>,
) -> CallOf<'a, K, V, M, P> {
    let Options { wait_timeout, max_attempts, on_abandon, share_if: _ } = options;
    assert!(wait_timeout.is_none(), "there is no such option for a task");
    if let Some(max) = max_attempts {
        call = call.max_attempts(*max);
    }
    if let Some(on_abandon) = on_abandon {
        call = call.on_abandon(*on_abandon);
    }
    call
}

async fn run<K, V, M, P>(call: CallOf<'_, K, V, M, P>, options: Options<V>, work: Work<V>) -> Called<V>
where
    K: Key,
    V: Value,
    M: FnOnce() -> K,
    P: FnOnce(&V) -> bool + Send + 'static,
{
    let call = with_options(call, &options);
    let outcome = match options.share_if {
        Some(share_if) => call.share_if(share_if).run(|| work.into_future()).await,
        None => call.run(|| work.into_future()).await,
    };
    outcome.map(Answer::from)
}

async fn run_inline<K, V, M, P>(call: CallOf<'_, K, V, M, P>, options: Options<V>, work: Work<V>) -> Called<V>
where
    K: Key,
    V: Value,
    M: FnOnce() -> K,
    P: FnOnce(&V) -> bool,
{
    let call = with_options(call, &options);
    let outcome = match options.share_if {
        Some(share_if) => call.share_if(share_if).run_inline(|| work.into_future()).await,
        None => call.run_inline(|| work.into_future()).await,
    };
    outcome.map(Answer::from)
}

/// A call of a thread.
fn call_blocking<K: Key, V: Value>(
    group: &AsyncGroup<K, V>,
    entry: Entry,
    key: &K,
    mut options: Options<V>,
    work: Work<V>,
) -> Called<V> {
    const NEVER_REACHED: Duration = Duration::from_secs(3_600);
    // What the work and the predicate call is called in this thread, whatever the entry point.
    let _acting = Acting::on_the_spot(own_name());
    let work = || work.run();
    match entry {
        Entry::CallBlocking => {
            let limit = options.wait_timeout.take();
            let call = with_options(group.call(key), &options);
            let outcome = match (options.share_if, limit) {
                (Some(share_if), None) => call.share_if(share_if).run_blocking(work),
                (Some(share_if), Some(limit)) => call.share_if(share_if).run_blocking_wait_timeout(limit, work),
                (None, None) => call.run_blocking(work),
                (None, Some(limit)) => call.run_blocking_wait_timeout(limit, work),
            };
            outcome.map(Answer::from)
        }
        Entry::BlockingWaitTimeout => {
            let timeout = options.wait_timeout.unwrap_or(NEVER_REACHED);
            Options { wait_timeout: None, ..options }.assert_none();
            group.do_call_blocking_wait_timeout(key, timeout, work).map(Answer::bare)
        }
        _ => {
            options.assert_none();
            Ok(Answer::bare(group.do_call_blocking(key, work)))
        }
    }
}

//! The entry points of `SyncGroup`.

use super::way::{Answer, AnyGroup, Key, Options, Setup, Value, Way, set_up};
use super::work::Work;
use core::convert::Infallible;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use oneflight::{Call, CallError, Equivalent, FlightInfo, Stats, SyncGroup};
use std::sync::Arc;

/// By `do_call`: refusals are panics.
pub(crate) struct DoCall;
/// By `call(..).run(..)`.
pub(crate) struct CallRun;
/// By `call_with(..).run(..)`.
pub(crate) struct CallWithRun;
/// By `do_call_wait_timeout`, with a limit that is never reached unless another is asked for.
pub(crate) struct DoCallWaitTimeout;
/// By `try_do_call`, with an error that there cannot be: refusals are panics.
pub(crate) struct TryDoCall;
/// By `try_lead`, and by `call(..).run(..)` where somebody else leads. Leading by a guard knows no options.
pub(crate) struct TryLead;
/// By `do_many`, with one key: refusals are panics.
pub(crate) struct DoMany;
/// By `run_many`, with one key.
pub(crate) struct RunMany;

const NEVER_REACHED: Duration = Duration::from_secs(3_600);

fn build<K, V: Value>(setup: Setup<V>) -> SyncGroup<K, V> {
    let builder = set_up!(&setup, SyncGroup::builder());
    match setup.share_if {
        None => builder.build(),
        Some(share_if) => builder.share_if(move |value| share_if(value)).build(),
    }
}

fn build_of_results<K, V: Value>(setup: Setup<V>) -> SyncGroup<K, Result<V, Arc<Infallible>>> {
    let builder = set_up!(&setup, SyncGroup::builder());
    match setup.share_if {
        None => builder.build(),
        Some(share_if) => {
            builder.share_if(move |value: &Result<V, _>| value.as_ref().is_ok_and(|value| share_if(value))).build()
        }
    }
}

/// Sets the options that were asked for, and runs.
fn run<K, V, S, Q, M, P>(
    mut call: Call<'_, SyncGroup<K, V, S>, V, Q, M, P>,
    options: Options<V>,
    work: Work<V>,
) -> Result<Answer<V>, CallError>
where
    V: Value,
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
    M: FnOnce() -> K,
    P: FnOnce(&V) -> bool,
{
    let Options { wait_timeout, max_attempts, on_abandon, share_if } = options;
    if let Some(timeout) = wait_timeout {
        call = call.wait_timeout(timeout);
    }
    if let Some(max) = max_attempts {
        call = call.max_attempts(max);
    }
    if let Some(on_abandon) = on_abandon {
        call = call.on_abandon(on_abandon);
    }
    let outcome = match share_if {
        Some(share_if) => call.share_if(share_if).run(|| work.run()),
        None => call.run(|| work.run()),
    };
    outcome.map(Answer::from)
}

/// A way whose groups are `$group` in an `Arc`, and how it calls them.
macro_rules! way {
    ($way:ident: $handle:ident of $group:ty, build $build:expr, call |$this:ident, $key:ident, $options:ident, $work:ident| $call:expr) => {
        impl Way for $way {
            type Group<K: Key, V: Value> = $handle<K, V>;
        }

        pub(crate) struct $handle<K: Key, V: Value>(Arc<$group>);

        impl<K: Key, V: Value> Clone for $handle<K, V> {
            fn clone(&self) -> Self {
                Self(Arc::clone(&self.0))
            }
        }

        impl<K: Key, V: Value> AnyGroup<K, V> for $handle<K, V> {
            fn with(setup: Setup<V>) -> Self {
                Self(Arc::new($build(setup)))
            }

            fn call_for(&self, key: K, $options: Options<V>, $work: Work<V>) -> Result<Answer<V>, CallError> {
                let ($this, $key) = (&*self.0, &key);
                $call
            }

            fn forget(&self, key: &K) -> bool {
                self.0.forget(key)
            }
            fn forget_unshared(&self, key: &K) -> bool {
                self.0.forget_unshared(key)
            }

            fn forget_all(&self) {
                self.0.forget_all();
            }
            fn waiters(&self, key: &K) -> usize {
                self.0.waiters(key)
            }
            fn flight_info(&self, key: &K) -> Option<FlightInfo> {
                self.0.flight_info(key)
            }
            fn in_flight(&self) -> usize {
                self.0.in_flight()
            }
            fn stats(&self) -> Stats {
                self.0.stats()
            }
            fn timeouts(&self) -> Option<u64> {
                Some(self.0.stats().timeouts)
            }
        }
    };
}

way!(DoCall: DoCallGroup of SyncGroup<K, V>, build build, call |group, key, options, work| {
    options.assert_none();
    Ok(Answer::bare(group.do_call(key, || work.run())))
});

way!(CallRun: CallRunGroup of SyncGroup<K, V>, build build, call |group, key, options, work| {
    run(group.call(key), options, work)
});

way!(CallWithRun: CallWithRunGroup of SyncGroup<K, V>, build build, call |group, key, options, work| {
    run(group.call_with(key, || key.clone()), options, work)
});

way!(DoCallWaitTimeout: DoCallWaitTimeoutGroup of SyncGroup<K, V>, build build, call |group, key, options, work| {
    let timeout = options.wait_timeout.unwrap_or(NEVER_REACHED);
    Options { wait_timeout: None, ..options }.assert_none();
    group.do_call_wait_timeout(key, timeout, || work.run()).map(Answer::bare)
});

way!(TryDoCall: TryDoCallGroup of SyncGroup<K, Result<V, Arc<Infallible>>>, build build_of_results, call |group, key, options, work| {
    options.assert_none();
    match group.try_do_call(key, || Ok(work.run())) {
        Ok(value) => Ok(Answer::bare(value)),
        Err(error) => match *error {},
    }
});

way!(TryLead: TryLeadGroup of SyncGroup<K, V>, build build, call |group, key, options, work| {
    match group.try_lead(key) {
        // A panic in the work drops the guard while unwinding.
        Some(lead) => {
            let value = work.run();
            Ok(lead.land(value).into())
        }
        None => run(group.call(key), options, work),
    }
});

/// The work of a batch of one key, which is made once at most.
pub(crate) fn of_one_key<V: Value, Q>(work: Work<V>) -> impl FnMut(Vec<Q>) -> Vec<V> {
    let mut work = Some(work);
    move |keys| {
        assert_eq!(keys.len(), 1);
        vec![work.take().expect("there is one key, and who has failed to load it does not try again").run()]
    }
}

way!(DoMany: DoManyGroup of SyncGroup<K, V>, build build, call |group, key, options, work| {
    options.assert_none();
    Ok(Answer::bare(group.do_many([key], of_one_key(work)).remove(0)))
});

way!(RunMany: RunManyGroup of SyncGroup<K, V>, build build, call |group, key, options, work| {
    let timeout = options.wait_timeout;
    Options { wait_timeout: None, ..options }.assert_none();
    group.run_many([key], timeout, of_one_key(work)).map(|mut values| Answer::bare(values.remove(0)))
});

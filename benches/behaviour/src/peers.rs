//! The peers, behind one trait, which tasks and threads have in common. What a peer cannot be asked at all is not implemented
//! for it: the default is `None`, which the table shows as `-`.

mod amalgam;
mod async_singleflight;
mod cacheflight;
mod foyer;
mod hydracache;
mod list;
mod mea;
mod moka;
mod once_map;
mod oneflight;
mod oneflight_cache;
mod quick_cache;
mod request_coalescer;
mod rs_singleflight;
mod singleflight;
mod singleflight_async;
mod tower_resilience;
mod uniflight;

use crate::clock::{Labour, Work};
use crate::values::Got;
use std::future::Future;
use std::pin::Pin;

pub(crate) use list::{Entry, Make, PEERS, Section};

/// Who calls: tasks or threads.
pub(crate) trait Side: 'static {
    /// What a caller has done.
    type Work;
    /// The work of a batch: given the keys that are missing, their values.
    type ManyWork;
    /// A call that has not begun.
    type Call;
}

pub(crate) enum OnTasks {}
pub(crate) enum OnThreads {}

/// A call by a task.
pub(crate) type Call = Pin<Box<dyn Future<Output = Got> + Send>>;
/// A call by a thread.
pub(crate) type Job = Box<dyn FnOnce() -> Got + Send>;

impl Side for OnTasks {
    type Work = Work;
    type ManyWork = Box<dyn Fn(Vec<u64>) -> Pin<Box<dyn Future<Output = Vec<u64>> + Send>> + Send + Sync>;
    type Call = Call;
}

impl Side for OnThreads {
    type Work = Labour;
    type ManyWork = Box<dyn Fn(Vec<u64>) -> Vec<u64> + Send + Sync>;
    type Call = Job;
}

/// One object that coalesces calls.
pub(crate) trait Peer<S: Side>: Send + Sync {
    /// The value of `key`: the result of `work`, or of the work of another caller that is at it.
    fn call(&'static self, key: u64, work: S::Work) -> S::Call;

    /// The same by another method.
    fn call_otherwise(&'static self, _key: u64, _work: S::Work) -> Option<S::Call> {
        None
    }

    /// Lets the next call of the key start afresh, whatever is in flight. Not what drops a cached value.
    fn forget(&'static self, _key: u64) -> Option<()> {
        None
    }

    /// Calls for several keys at once.
    fn many(&'static self, _keys: Vec<u64>, _work: S::ManyWork) -> Option<S::Call> {
        None
    }

    /// Stores a value.
    fn put(&'static self, _key: u64, _number: u64) -> Option<S::Call> {
        None
    }

    /// Drops a stored value.
    fn invalidate(&'static self, _key: u64) -> Option<S::Call> {
        None
    }

    /// The stored value; refused if there is none.
    fn get(&'static self, _key: u64) -> Option<S::Call> {
        None
    }

    /// A peer of the kind that has every read refresh the value early.
    fn always_refreshing(&'static self) -> Option<&'static dyn Peer<S>> {
        None
    }

    /// One object as tasks and as threads call it.
    fn for_both(&'static self) -> Option<(&'static dyn Peer<OnTasks>, &'static dyn Peer<OnThreads>)> {
        None
    }

    /// Whether its keys are the cases' own, which are counted, or text.
    fn counts_keys(&self) -> bool {
        true
    }

    /// Whether its values are the cases' own, whose clones are counted, or bytes.
    fn counts_values(&self) -> bool {
        true
    }

    /// Whether a value is kept for later calls.
    fn stores(&self) -> bool {
        false
    }
}

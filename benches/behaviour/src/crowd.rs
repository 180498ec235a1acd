//! Many callers of one peer, tasks or threads, as the cases see them.

mod asleep;
mod tasks;
mod threads;

use crate::clock::{Plan, tick};
use crate::peers::{Peer, Side};
use crate::values::Got;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use tasks::Tasks;
pub(crate) use threads::Threads;

/// More than all works of any case take, one after another.
const MOST_TICKS: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// How long a peer may take to notice what went wrong.
const LIMIT: Duration = Duration::from_secs(3);

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Got(Got),
    Panicked,
}

/// Lets the time go on until it is over, and says how many ticks that took. If it never is, the case ends here: it hangs.
pub(crate) fn pass_time_until(mut is_over: impl FnMut() -> bool) -> usize {
    let start = Instant::now();
    let mut ticks = 0;
    while !is_over() {
        if ticks > MOST_TICKS {
            // All works have long ended, and nobody has done anything since: what could still help is a timer of the peer's.
            thread::sleep(PAUSE);
            if start.elapsed() > LIMIT {
                crate::run::report_hang();
            }
        }
        tick();
        ticks += 1;
    }
    ticks
}

/// Callers of one peer, by number in the order in which they came.
pub(crate) trait Crowd {
    type Side: Side;

    fn peer(&self) -> &'static dyn Peer<Self::Side>;

    /// A work of the plan's.
    fn work(&self, plan: Plan) -> <Self::Side as Side>::Work;

    /// A work that waits for a tick, makes a call of its own to the same peer, and ends with what it gets.
    fn nested_work(&self, key: u64) -> <Self::Side as Side>::Work;

    /// The work of a batch, which takes a tick and gives each key its own number; it tells how many keys it was given.
    fn many_work(&self, given: &'static Mutex<Vec<Vec<u64>>>) -> <Self::Side as Side>::ManyWork;

    /// Adds a caller, and lets it come as far as it comes by itself at once.
    fn join(&mut self, call: <Self::Side as Side>::Call) -> usize;

    /// Lets everything happen that happens by itself.
    fn settle(&mut self);

    /// Whether all callers that matter have ended.
    fn is_over(&self) -> bool;

    /// What became of a caller; `None` if it is still in.
    fn end(&self, number: usize) -> Option<End>;

    /// A call with a plan.
    fn call(&self, key: u64, plan: Plan) -> <Self::Side as Side>::Call {
        self.peer().call(key, self.work(plan))
    }

    /// Adds a caller with a plan.
    fn enter(&mut self, key: u64, plan: Plan) -> usize {
        let call = self.call(key, plan);
        self.join(call)
    }

    /// Lets the time go on until all callers have ended, and says how many ticks that took.
    fn finish(&mut self) -> usize {
        pass_time_until(|| {
            self.settle();
            self.is_over()
        })
    }

    /// Lets one more call end, and all that are on.
    fn complete(&mut self, call: <Self::Side as Side>::Call) -> Option<End> {
        let number = self.join(call);
        self.finish();
        self.end(number)
    }

    /// What became of callers.
    fn ends(&self, numbers: impl IntoIterator<Item = usize>) -> Vec<Option<End>> {
        numbers.into_iter().map(|number| self.end(number)).collect()
    }
}

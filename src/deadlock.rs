//! Which thread waits for which flight, and whether one more wait would close a circle.
//!
//! Each waiting thread has one edge: to the flight that it waits for, and from there to the thread that leads it. A circle can
//! only come about by a new wait, since whoever takes a flight over has just stopped waiting; so looking once at the
//! beginning of each wait finds them all. Waits with a time limit are left out: they end by themselves.

use crate::primitive::{Arc, Mutex, ThreadNumber};
use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU32, Ordering};

/// All waits of the process that have no time limit.
static WAITS: Mutex<Waits> = Mutex::new(Waits { edges: BTreeMap::new(), polled: BTreeMap::new() });

struct Waits {
    /// For what each thread waits.
    edges: BTreeMap<ThreadNumber, Arc<LeaderCell>>,
    /// The thread that polls each work that has a number of its own.
    polled: BTreeMap<ThreadNumber, ThreadNumber>,
}

/// The thread or work that leads a flight, readable without the flight's locks.
#[derive(Debug)]
pub(crate) struct LeaderCell(AtomicU32);

impl LeaderCell {
    pub(crate) fn new(leader: Option<ThreadNumber>) -> Self {
        Self(AtomicU32::new(ThreadNumber::bits(leader)))
    }

    pub(crate) fn set(&self, leader: Option<ThreadNumber>) {
        self.0.store(ThreadNumber::bits(leader), Ordering::SeqCst);
    }

    fn get(&self) -> Option<ThreadNumber> {
        ThreadNumber::from_bits(self.0.load(Ordering::SeqCst))
    }
}

/// Waiting would close a circle.
#[derive(Debug)]
pub(crate) struct Cycle;

/// The mark that this thread waits; dropping it takes the mark back.
#[derive(Debug)]
#[must_use = "the wait is over when this is dropped"]
pub(crate) struct Edge(Option<ThreadNumber>);

/// Marks this thread as waiting for whoever leads by `leader`.
pub(crate) fn begin_wait(leader: &Arc<LeaderCell>, bounded: bool) -> Result<Edge, Cycle> {
    let Some(me) = ThreadNumber::current().filter(|_| !bounded) else { return Ok(Edge(None)) };
    WAITS.with(|waits| {
        if leads_back(waits, leader, me) {
            return Err(Cycle);
        }
        waits.edges.insert(me, Arc::clone(leader));
        Ok(Edge(Some(me)))
    })
}

/// Whether the chain that starts at `leader` ends at `me`.
fn leads_back(waits: &Waits, leader: &Arc<LeaderCell>, me: ThreadNumber) -> bool {
    let walk = || {
        let mut chain = alloc::vec::Vec::new();
        let mut flight = leader;
        loop {
            let leader = flight.get()?;
            // Nobody waits for a work that no thread polls: that one may do something else meanwhile.
            let thread = if leader.is_of_work() { *waits.polled.get(&leader)? } else { leader };
            chain.push(thread);
            if thread == me {
                return Some(chain);
            }
            // Circles that do not go through `me` do not come about, but a chain read while it changes may look like one.
            if chain.len() > waits.edges.len() + 1 {
                return None;
            }
            flight = waits.edges.get(&thread)?;
        }
    };
    // A leader read before it was known to wait may have stopped leading in between. While this lock is held no waiting
    // thread stops waiting, so none of those in the chain can begin or end a lead or a poll: what a second walk confirms is so.
    walk().is_some_and(|first| walk().is_some_and(|second| first == second))
}

impl Drop for Edge {
    fn drop(&mut self) {
        if let Some(me) = self.0 {
            WAITS.with(|waits| waits.edges.remove(&me));
        }
    }
}

/// The mark that this thread runs work of a flight of tasks; dropping it takes the mark back.
#[derive(Debug)]
#[must_use = "the work has been run when this is dropped"]
pub(crate) struct Run<'l>(&'l LeaderCell);

/// Marks this thread as the one that all wait for who wait for the flight of `leader`. Between the polls of its work they wait for
/// none.
pub(crate) fn begin_run(leader: &LeaderCell) -> Run<'_> {
    leader.set(ThreadNumber::current());
    Run(leader)
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// The mark that this thread polls a work; dropping it takes the mark back.
#[derive(Debug)]
#[must_use = "the poll is over when this is dropped"]
pub(crate) struct Polled(Option<ThreadNumber>);

/// Marks this thread as polling the work `number`, unless that is only the thread itself.
pub(crate) fn begin_poll(number: Option<ThreadNumber>) -> Polled {
    let work = number.filter(|number| number.is_of_work());
    if let Some((work, me)) = work.zip(ThreadNumber::current()) {
        WAITS.with(|waits| waits.polled.insert(work, me));
    }
    Polled(work)
}

impl Drop for Polled {
    fn drop(&mut self) {
        if let Some(work) = self.0 {
            WAITS.with(|waits| waits.polled.remove(&work));
        }
    }
}

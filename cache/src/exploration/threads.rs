//! The cache for threads, in the same way: each call has a thread, which is left alone until it has returned, waits in its loader, or
//! waits for another's. What threads do between these two moments they do at once, so not every order is tried of what happens there.

use super::oracle::{Checked, Got, Oracle, Plan};
use super::rules::{Budget, Outcome, Rules, Step, TICK, Write};
use super::search::Subject;
use super::site::{Blown, Page, Refused, Site};
use super::world::{KEY, builder, loaders_end, seconds};
use crate::blocking::Cache;
use crate::entry::{Fetched, Source};
use crate::error::Error;
use crate::stats::Stats;
use crate::store::BlockingStore;
use crate::test_util::ManualClock;
use crate::time::Time;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Threads that take longer than that wait for ever.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) struct Threads {
    left: Budget,
    /// Whether loaders may panic. Not where there are refreshes: after one that does, all who have joined it begin anew at the same
    /// time, and what comes of that depends on who is first.
    panics: bool,
    cache: Cache<u8, Page, Refused>,
    clock: ManualClock,
    site: Arc<Site>,
    threads: Vec<JoinHandle<()>>,
    /// Those that have not returned.
    busy: Vec<usize>,
    /// What the others have returned, as long as nobody has looked at it.
    returned: Arc<Mutex<Vec<(usize, Got)>>>,
    oracle: Oracle,
}

impl Subject for Threads {
    fn new(rules: &Rules) -> Checked<Self> {
        let (clock, site) = (ManualClock::new(), Arc::new(Site::default()));
        let cache = builder(rules, &clock).helper_threads(0).build_blocking();
        cache.set_coalescing(rules.coalescing);
        let mut threads = Self {
            left: rules.budget,
            panics: !rules.early && !rules.stale_while_revalidate,
            cache,
            clock,
            site,
            threads: Vec::new(),
            busy: Vec::new(),
            returned: Arc::default(),
            oracle: Oracle::new(*rules),
        };
        if rules.is_cached {
            let page = threads.site.page();
            threads.cache.put(&KEY, page).map_err(|error| error.to_string())?;
            threads.oracle.begins_with(page);
        }
        Ok(threads)
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = loaders_end(&self.site, &self.left);
        steps.retain(|step| self.panics || !matches!(step, Step::End(_, Outcome::Panic)));
        steps.extend(self.left.steps());
        steps
    }

    fn step(&mut self, step: Step) -> Checked {
        self.left.take(step);
        let mut begun = None;
        match step {
            Step::Read | Step::Ask => begun = Some(self.call(step == Step::Ask)),
            Step::End(loader, outcome) => self.site.end(loader, outcome),
            Step::Write(write) => self.write(write)?,
            Step::Tick => {
                self.clock.advance(seconds(TICK));
                self.oracle.now += TICK;
            }
            Step::Poll(_) | Step::Poke(_) | Step::Drop(_) => unreachable!("threads are not polled"),
        }
        self.settle(begun)?;
        let entry = BlockingStore::get(self.cache.store(), &KEY, Time::START).expect("memory does not fail");
        self.oracle.sees(entry.as_ref())
    }

    fn check(&mut self) -> Checked {
        self.oracle.counts_flights(self.cache.shared.group.in_flight())?;
        if self.oracle.may_get() {
            let got = self.cache.get(&KEY).map_err(|error| error.to_string())?;
            self.oracle.got(got.map(|fetched| (fetched.value, fetched.source)))?;
        }
        self.oracle.rests(|loader| self.site.is_waiting(loader))
    }

    fn finish(mut self, counts: bool) -> Checked<(usize, Stats)> {
        let mut steps = 0;
        while let Some(loader) = self.site.waiting().first() {
            self.step(Step::End(*loader, Outcome::Value))?;
            steps += 1;
        }
        if !self.busy.is_empty() {
            return Err(format!("{:?} wait for ever", self.busy));
        }
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| "a thread has panicked by itself")?;
        }
        self.check()?;
        self.oracle.nothing_is_left(&self.cache.shared.inner, self.cache.waiters(&KEY))?;
        if counts {
            self.oracle.counted(&self.cache.stats())?;
        }
        Ok((steps, self.oracle.counts))
    }
}

impl Threads {
    /// A call begins, in a thread of its own.
    fn call(&mut self, is_ask: bool) -> (usize, Plan) {
        let (actor, plan) = if is_ask { self.oracle.ask() } else { self.oracle.read() };
        let (cache, returned) = (self.cache.clone(), Arc::clone(&self.returned));
        let loader = self.site.blocking_loader();
        self.busy.push(actor);
        self.threads.push(thread::spawn(move || {
            let call = || if is_ask { cache.refresh(&KEY, loader) } else { cache.get_or_load(&KEY, loader) };
            let got = got(catch_unwind(AssertUnwindSafe(call)));
            // Before it is seen to have returned.
            drop(cache);
            returned.lock().push((actor, got));
        }));
        (actor, plan)
    }

    fn write(&mut self, write: Write) -> Checked {
        let page = self.site.write();
        let written = match write {
            Write::Put => self.cache.put(&KEY, page),
            Write::Invalidate => self.cache.invalidate(&KEY),
            Write::InvalidateAll => self.cache.invalidate_all(),
        };
        self.oracle.wrote(write, page);
        written.map_err(|error| error.to_string())
    }

    /// Waits until each thread waits for a loader that waits, and tells the oracle what happens meanwhile.
    fn settle(&mut self, mut begun: Option<(usize, Plan)>) -> Checked {
        let since = Instant::now();
        let mut returned = Vec::new();
        loop {
            // In this order: what a thread has done it has done before it returned.
            let more = std::mem::take(&mut *self.returned.lock());
            for event in self.site.take_events() {
                self.oracle.hears(event)?;
            }
            self.busy.retain(|busy| more.iter().all(|(actor, _)| actor != busy));
            returned.extend(more);
            // Whoever is to be served is in a flight at most for a moment, to see whether there is one.
            let is_due =
                |(actor, plan): &(usize, Plan)| matches!(plan, Plan::Served { .. }) && self.busy.contains(actor);
            if !begun.as_ref().is_some_and(is_due) && self.rest() {
                // Whoever has found a value comes before those who have got it from there, whoever was seen first to return.
                returned.sort_by_key(|(_, got)| !matches!(got, Got::Page(_, Source::Hit)));
                for (actor, got) in returned.drain(..) {
                    self.tell(&mut begun, actor, &got)?;
                }
                if !self.oracle.has_heirs() {
                    break;
                }
            }
            if since.elapsed() > LIMIT {
                return Err(format!("{:?} wait for nothing: {} in all flights", self.busy, self.waiters()));
            }
            thread::yield_now();
        }
        for actor in self.busy.clone() {
            self.tell(&mut begun, actor, &Got::Pending)?;
        }
        Ok(())
    }

    fn tell(&mut self, begun: &mut Option<(usize, Plan)>, actor: usize, got: &Got) -> Checked {
        match begun.take_if(|(begun, _)| *begun == actor) {
            Some((_, plan)) => self.oracle.began(actor, &plan, &[], got),
            None => self.oracle.told(actor, &[], got),
        }
    }

    fn waiters(&self) -> usize {
        self.cache.shared.group.snapshot().iter().map(|flight| flight.waiters).sum()
    }

    /// Whether all that have not returned wait.
    fn rest(&self) -> bool {
        let waiting = self.site.waiting().len() + self.waiters();
        // In this order: whoever has begun to wait just now has said so before.
        waiting == self.busy.len() && !self.site.has_events()
    }
}

fn got(call: thread::Result<Result<Fetched<Page>, Error<Refused>>>) -> Got {
    match call {
        Ok(Ok(fetched)) => Got::Page(fetched.value, fetched.source),
        Ok(Err(Error::Load(_))) => Got::Failed,
        Ok(Err(error)) => Got::Wrong(error.to_string()),
        Err(panic) if panic.is::<Blown>() => Got::Panicked,
        Err(_) => Got::Wrong("another panic".to_owned()),
    }
}

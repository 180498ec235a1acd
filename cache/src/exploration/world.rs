//! The cache that is explored, who uses it, and what it is held to after each step.

use super::oracle::{Checked, Got, Oracle, Plan};
use super::rules::{BACKOFF, Budget, Outcome, Rules, Step, TICK, TTL, Write};
use super::search::Subject;
use super::site::{Blown, Flag, Page, Refused, Site};
use crate::builder::Builder;
use crate::cache::{Cache, Shared};
use crate::entry::Fetched;
use crate::error::Error;
use crate::memory::Memory;
use crate::stats::Stats;
use crate::store::BlockingStore;
use crate::test_util::ManualClock;
use crate::time::Time;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(super) static KEY: u8 = 7;

/// What a call comes to; nothing if it is a refresh beside one.
type Answer = Option<Result<Fetched<Page>, Error<Refused>>>;

/// A call, or a refresh beside one.
struct Actor {
    future: Option<Pin<Box<dyn Future<Output = Answer>>>>,
    woken: Arc<Flag>,
}

pub(super) struct World {
    left: Budget,
    cache: Cache<u8, Page, Refused>,
    clock: ManualClock,
    site: Arc<Site>,
    actors: Vec<Actor>,
    oracle: Oracle,
}

pub(super) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A call that waits for nothing.
fn at_once<T>(future: impl Future<Output = T>) -> Checked<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err("what never waits has waited".to_owned()),
    }
}

/// The settings of the cache.
pub(super) fn builder(rules: &Rules, clock: &ManualClock) -> Builder<u8, Page, Refused> {
    Cache::builder()
        .memory(Memory::new(1))
        .ttl_of(|page: &Page| if page.is_kept { seconds(TTL) } else { Duration::ZERO })
        .ttl_jitter(0.0)
        .early_refresh(rules.policy())
        .stale_while_revalidate(seconds(rules.revalidate()))
        .stale_if_error(seconds(rules.if_error()))
        .backoff(seconds(BACKOFF), seconds(1_000))
        .load_timeout(None)
        .clock(clock.clone())
        .timer(clock.clone())
        .rng(|| 0.0)
}

/// Each loader that waits may end.
pub(super) fn loaders_end(site: &Site, left: &Budget) -> Vec<Step> {
    let outcomes = &Outcome::ALL[..if left.odd > 0 { 4 } else { 1 }];
    let waiting = site.waiting().into_iter();
    waiting.flat_map(|loader| outcomes.iter().map(move |outcome| Step::End(loader, *outcome))).collect()
}

impl Subject for World {
    fn new(rules: &Rules) -> Checked<Self> {
        let (clock, site) = (ManualClock::new(), Arc::new(Site::default()));
        let mut builder = builder(rules, &clock);
        if rules.spawner {
            let site = Arc::clone(&site);
            builder = builder.spawner(move |refresh| site.spawn(refresh));
        }
        let cache = builder.build();
        cache.set_coalescing(rules.coalescing);
        let mut world =
            Self { left: rules.budget, cache, clock, site, actors: Vec::new(), oracle: Oracle::new(*rules) };
        if rules.is_cached {
            let page = world.site.page();
            at_once(world.cache.put(&KEY, page))?.map_err(|error| error.to_string())?;
            world.oracle.begins_with(page);
        }
        Ok(world)
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let left = &self.left;
        let waiting = self.actors.iter().enumerate().filter(|(_, actor)| actor.future.is_some());
        for (number, actor) in waiting {
            if actor.woken.is_up() {
                steps.push(Step::Poll(number));
            } else if left.pokes > 0 {
                steps.push(Step::Poke(number));
            }
            if left.drops > 0 {
                steps.push(Step::Drop(number));
            }
        }
        steps.extend(loaders_end(&self.site, left));
        steps.extend(left.steps());
        steps
    }

    fn step(&mut self, step: Step) -> Checked {
        self.left.take(step);
        match step {
            Step::Read | Step::Ask => self.call(step == Step::Ask)?,
            Step::Poll(actor) | Step::Poke(actor) => {
                let got = self.poll(actor)?;
                self.oracle.told(actor, &self.site.take_events(), &got)?;
            }
            Step::Drop(actor) => {
                self.actors[actor].future = None;
                self.oracle.left(actor, &self.site.take_events())?;
            }
            Step::End(loader, outcome) => self.site.end(loader, outcome),
            Step::Write(write) => self.write(write)?,
            Step::Tick => {
                self.clock.advance(seconds(TICK));
                self.oracle.now += TICK;
            }
        }
        self.see_store()
    }

    fn check(&mut self) -> Checked {
        self.oracle.counts_flights(self.shared().group.in_flight())?;
        if self.oracle.may_get() {
            let got = at_once(self.cache.get(&KEY))?.map_err(|error| error.to_string())?;
            self.oracle.got(got.map(|fetched| (fetched.value, fetched.source)))?;
        }
        let woken = |actor: &Actor| actor.future.is_some() && actor.woken.is_up();
        if self.actors.iter().any(woken) { Ok(()) } else { self.oracle.rests(|loader| self.site.is_waiting(loader)) }
    }

    /// Lets every loader end, and polls whoever is woken, until nobody is left.
    fn finish(mut self, counts: bool) -> Checked<(usize, Stats)> {
        let mut steps = 0;
        loop {
            let woken = self.actors.iter().position(|actor| actor.future.is_some() && actor.woken.is_up());
            let step = match (woken, self.site.waiting().first()) {
                (Some(actor), _) => Step::Poll(actor),
                (None, Some(loader)) => Step::End(*loader, Outcome::Value),
                (None, None) => break,
            };
            self.step(step)?;
            steps += 1;
        }
        self.check()?;
        if let Some(actor) = self.actors.iter().position(|actor| actor.future.is_some()) {
            return Err(format!("{actor} waits for ever"));
        }
        self.oracle.nothing_is_left(&self.shared().inner, self.cache.waiters(&KEY))?;
        if counts {
            self.oracle.counted(&self.cache.stats())?;
        }
        let Self { cache, oracle, .. } = self;
        if Arc::strong_count(&cache.shared) == 1 {
            Ok((steps, oracle.counts))
        } else {
            Err("the cache is kept".to_owned())
        }
    }
}

impl World {
    fn call(&mut self, is_ask: bool) -> Checked {
        let (cache, loader) = (self.cache.clone(), self.site.loader());
        self.begin(async move {
            Some(if is_ask { cache.refresh(&KEY, loader).await } else { cache.get_or_load(&KEY, loader).await })
        });
        let (actor, plan) = if is_ask { self.oracle.ask() } else { self.oracle.read() };
        let got = self.poll(actor)?;
        self.oracle.began(actor, &plan, &self.site.take_events(), &got)?;
        let expected = usize::from(matches!(plan, Plan::Served { spawned: true, .. }));
        let spawned = self.site.take_spawned();
        if spawned.len() != expected {
            return Err(format!("{} refreshes were spawned, not {expected}", spawned.len()));
        }
        for refresh in spawned {
            self.begin(async move {
                refresh.await;
                None
            });
        }
        Ok(())
    }

    fn begin(&mut self, future: impl Future<Output = Answer> + 'static) {
        let woken = Arc::new(Flag::default());
        woken.set(true);
        self.actors.push(Actor { future: Some(Box::pin(future)), woken });
    }

    fn poll(&mut self, actor: usize) -> Checked<Got> {
        let Actor { future, woken } = &mut self.actors[actor];
        woken.set(false);
        let waker = Waker::from(Arc::clone(woken));
        let polled = future.as_mut().expect("it is not over");
        let polled = catch_unwind(AssertUnwindSafe(|| polled.as_mut().poll(&mut Context::from_waker(&waker))));
        let got = match polled {
            Ok(Poll::Pending) => return Ok(Got::Pending),
            Ok(Poll::Ready(None)) => Got::Over,
            Ok(Poll::Ready(Some(Ok(fetched)))) => Got::Page(fetched.value, fetched.source),
            Ok(Poll::Ready(Some(Err(Error::Load(_))))) => Got::Failed,
            Ok(Poll::Ready(Some(Err(error)))) => return Err(format!("{actor} got the error '{error}'")),
            Err(panic) if panic.is::<Blown>() => Got::Panicked,
            Err(panic) => resume_unwind(panic),
        };
        *future = None;
        Ok(got)
    }

    fn write(&mut self, write: Write) -> Checked {
        let page = self.site.write();
        let written = match write {
            Write::Put => at_once(self.cache.put(&KEY, page))?,
            Write::Invalidate => at_once(self.cache.invalidate(&KEY))?,
            Write::InvalidateAll => at_once(self.cache.invalidate_all())?,
        };
        written.map_err(|error| error.to_string())?;
        self.oracle.wrote(write, page);
        let events = self.site.take_events();
        if events.is_empty() { Ok(()) } else { Err(format!("{events:?} in a write")) }
    }

    fn shared(&self) -> &Shared<u8, Page, Refused, Memory<u8, Page>> {
        &self.cache.shared
    }

    /// As if it were the beginning, when nothing has expired: a look that changes nothing.
    fn see_store(&mut self) -> Checked {
        let entry = BlockingStore::get(self.cache.store(), &KEY, Time::START).expect("memory does not fail");
        self.oracle.sees(entry.as_ref())
    }
}

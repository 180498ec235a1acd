//! Collectors, and the loader that the callers of one share.

use super::plan::{End, Plan, Step};
use super::settings::Settings;
use super::stores::Shelf;
use super::tasks::Tasks;
use super::threads::Threads;
use super::world::{COLLECTED, Datum, Fault, World};
use crate::alarm::Alarm;
use crate::bomb::Blast;
use futures_lite::future::yield_now;
use oneflight_cache::{Collector, blocking};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What each run of the loader does.
struct Batches {
    world: Arc<World>,
    settings: Arc<Settings>,
    rng: Mutex<fastrand::Rng>,
}

/// A collector of `cache`, in rounds that have any.
pub(crate) fn for_tasks<S: Shelf>(
    cache: &Tasks<S>,
    world: &Arc<World>,
    settings: &Arc<Settings>,
    alarm: &Alarm,
    rng: fastrand::Rng,
) -> Option<Collector<u32, Datum, Fault, S>> {
    let window = settings.window?;
    let batches = Arc::new(Batches::new(world, settings, rng));
    let alarm = alarm.clone();
    let load = move |keys| Arc::clone(&batches).load(keys, alarm.clone());
    Some(cache.collector(load).window(window).max_batch(settings.max_batch).build())
}

/// As [`for_tasks`].
pub(crate) fn for_threads<S: Shelf>(
    cache: &Threads<S>,
    world: &Arc<World>,
    settings: &Arc<Settings>,
    rng: fastrand::Rng,
) -> Option<blocking::Collector<u32, Datum, Fault, S>> {
    let window = settings.window?;
    let batches = Batches::new(world, settings, rng);
    let load = move |keys: Vec<u32>| batches.load_blocking(&keys);
    Some(cache.collector(load).window(window).max_batch(settings.max_batch).build())
}

impl Batches {
    fn new(world: &Arc<World>, settings: &Arc<Settings>, rng: fastrand::Rng) -> Self {
        Self { world: Arc::clone(world), settings: Arc::clone(settings), rng: Mutex::new(rng) }
    }

    /// A loader of a batch may not ask for its keys.
    fn plan(&self, keys: &[u32]) -> Plan {
        let quiet = keys.iter().any(|&key| self.settings.is_quiet(key));
        let mut plan = Plan::random(&mut self.rng.lock().unwrap_or_else(PoisonError::into_inner), quiet);
        plan.steps.retain(|step| !matches!(step, Step::Recurse));
        plan
    }

    async fn load(self: Arc<Self>, keys: Vec<u32>, alarm: Alarm) -> Result<Vec<Datum>, Fault> {
        let since = self.world.load();
        let plan = self.plan(&keys);
        for step in &plan.steps {
            match *step {
                Step::Pause(time) => alarm.sleep(time).await,
                Step::Yield | Step::Recurse => yield_now().await,
            }
        }
        self.end(&plan, &keys, since)
    }

    fn load_blocking(&self, keys: &[u32]) -> Result<Vec<Datum>, Fault> {
        let since = self.world.load();
        let plan = self.plan(keys);
        for step in &plan.steps {
            match *step {
                Step::Pause(time) => thread::sleep(time),
                Step::Yield | Step::Recurse => thread::yield_now(),
            }
        }
        self.end(&plan, keys, since)
    }

    fn end(&self, plan: &Plan, keys: &[u32], since: u64) -> Result<Vec<Datum>, Fault> {
        match plan.end {
            End::Value => Ok(self.world.found(keys, COLLECTED, since)),
            End::Error => Err(self.world.fault(keys, since)),
            End::Panic => Blast::Work { call: COLLECTED }.go(),
        }
    }
}

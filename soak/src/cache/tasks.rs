//! What tasks do to a cache.

use super::plan::{End, Plan, Step};
use super::settings::Settings;
use super::stores::Shelf;
use super::threads::{check, done_with, only};
use super::world::{Datum, Fault, May, World};
use crate::alarm::Alarm;
use crate::bomb::{Blast, Fuse};
use crate::counts::{Counts, Ending};
use crate::manner::{Manner, drive};
use crate::watchdog::Watch;
use futures_lite::FutureExt;
use futures_lite::future::yield_now;
use oneflight_cache::{Cache, Collector, Error, Fetched};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Tasks<S> = Cache<u32, Datum, Fault, S>;

/// All that a loader needs. It may go on after its caller.
pub(crate) struct Field<S> {
    pub(crate) cache: Tasks<S>,
    /// In rounds that have one.
    pub(crate) collector: Option<Collector<u32, Datum, Fault, S>>,
    pub(crate) world: Arc<World>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) alarm: Alarm,
}

// Not derived: the store need not be `Clone`.
impl<S> Clone for Field<S> {
    fn clone(&self) -> Self {
        let Self { cache, collector, world, settings, alarm } = self;
        Self {
            cache: cache.clone(),
            collector: collector.clone(),
            world: Arc::clone(world),
            settings: Arc::clone(settings),
            alarm: alarm.clone(),
        }
    }
}

/// A task that calls.
pub(crate) struct Task<S> {
    pub(crate) field: Field<S>,
    pub(crate) rng: fastrand::Rng,
    pub(crate) watch: Watch,
    pub(crate) number: usize,
    pub(crate) counts: Counts,
}

type Values = Result<Vec<Fetched<Datum>>, Error<Fault>>;
type BoxCall<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl<S: Shelf> Task<S> {
    pub(crate) async fn run(mut self, calls: usize) -> Counts {
        for call in 0..calls {
            self.step(call > calls / 2).await;
        }
        self.counts
    }

    async fn step(&mut self, late: bool) {
        let field = self.field.clone();
        let Field { cache, collector, world, settings, .. } = &field;
        let key = self.rng.u32(..settings.keys);
        let quiet = settings.is_quiet(key);
        let plan = Plan::random(&mut self.rng, quiet);
        let may = settings.may();
        let field = &field;
        let load = |call: u64, plan: Plan| {
            let loading = field.load_one(call, key, plan);
            move || loading
        };
        match self.rng.u8(..if collector.is_some() { 41 } else { 35 }) {
            0..12 => {
                let run = |call| async move { list(cache.get_or_load(&key, load(call, plan)).await) };
                self.read("task: get_or_load", &[key], may, |call| Box::pin(run(call))).await;
            }
            12..15 if !quiet => {
                let limit = Duration::from_micros(self.rng.u64(..800));
                let run =
                    |call| async move { list(cache.call(&key).timeout(limit).get_or_load(load(call, plan)).await) };
                let may = May { deadline: true, ..may };
                self.read("task: call with a timeout", &[key], may, |call| Box::pin(run(call))).await;
            }
            15 if !quiet => {
                let run = |call| async move { list(cache.call(&key).bypass().get_or_load(load(call, plan)).await) };
                self.read("task: call past the cache", &[key], may, |call| Box::pin(run(call))).await;
            }
            16..18 if !quiet => {
                let run = |call| async move { list(cache.refresh(&key, load(call, plan)).await) };
                self.read("task: refresh", &[key], may, |call| Box::pin(run(call))).await;
            }
            18..21 => {
                let keys = self.some_keys();
                if keys.is_empty() {
                    return;
                }
                let keys = &keys;
                let run = |call| async move {
                    let load =
                        |missing: Vec<&u32>| field.load(call, missing.into_iter().copied().collect(), plan.clone());
                    cache.get_or_load_many(keys, load).await
                };
                self.read("task: get_or_load_many", keys, may, |call| Box::pin(run(call))).await;
            }
            21..24 if !quiet => {
                let mut write = world.write([key]);
                let (value, ttl) = (write.value(), self.rng.u64(..8));
                let (name, put): (_, BoxCall<'_, _>) = match ttl {
                    0..4 => {
                        let ttl = Duration::from_millis([0, 1, 5, 10_000][ttl as usize]);
                        ("task: put_with_ttl", Box::pin(cache.put_with_ttl(&key, value, ttl)))
                    }
                    _ => ("task: put", Box::pin(cache.put(&key, value))),
                };
                if self.other(name, key, put).await {
                    write.finish();
                } else {
                    // The value may be stored or not.
                    write.settle();
                }
            }
            24..27 if !quiet => {
                let write = world.write([key]);
                if self.other("task: invalidate", key, Box::pin(cache.invalidate(&key))).await {
                    write.finish();
                }
            }
            27 if !settings.calm => {
                let write = world.write(0..settings.keys);
                if self.other("task: invalidate_all", key, Box::pin(cache.invalidate_all())).await {
                    write.finish();
                }
            }
            28 if settings.closes && late && self.rng.u8(..16) == 0 => {
                let run = async {
                    _ = cache.close(Duration::from_millis(1)).await;
                    Ok(())
                };
                self.other("task: close", key, Box::pin(run)).await;
            }
            29 if !settings.calm => {
                let (on, early) = (self.rng.u8(..4) != 0, self.rng.bool());
                cache.set_coalescing(on);
                cache.set_early_refresh(early);
            }
            30 => _ = (cache.waiters(&key), cache.stats(), cache.store().held()),
            op @ 32..34 => {
                let (keys, limit) = (self.some_keys(), Duration::from_micros(self.rng.u64(..800)));
                if keys.is_empty() {
                    return;
                }
                let keys = &keys;
                let run = |call| async move {
                    let load =
                        |missing: Vec<&u32>| field.load(call, missing.into_iter().copied().collect(), plan.clone());
                    let call = cache.call_many(keys);
                    let call = if op == 32 { call.timeout(limit) } else { call.bypass() };
                    call.get_or_load(load).await
                };
                let name = if op == 32 { "task: call_many with a timeout" } else { "task: call_many past the cache" };
                let may = May { deadline: op == 32, ..may };
                self.read(name, keys, may, |call| Box::pin(run(call))).await;
            }
            34 => {
                let keys = &self.some_keys();
                if self.rng.bool() {
                    let write = world.write(keys.iter().copied());
                    if self.other("task: invalidate_many", key, Box::pin(cache.invalidate_many(keys))).await {
                        write.finish();
                    }
                } else {
                    let read = world.read(keys);
                    let run = async move { cache.get_many(keys).await.map(|found| read.found(&found)) };
                    self.other("task: get_many", key, Box::pin(run)).await;
                }
            }
            35..39 => {
                let run = async move { list(collector.as_ref().expect("there is one").load(&key).await) };
                let may = May { collected: true, ..may };
                self.read("task: collector, load", &[key], may, |_| Box::pin(run)).await;
            }
            39.. => {
                let keys = self.some_keys();
                if keys.is_empty() {
                    return;
                }
                let keys = &keys;
                let run = async move { collector.as_ref().expect("there is one").load_many(keys).await };
                let may = May { collected: true, ..may };
                self.read("task: collector, load_many", keys, may, |_| Box::pin(run)).await;
            }
            _ => {
                let run = async move {
                    match cache.get(&key).await {
                        Ok(Some(fetched)) => Ok(vec![fetched]),
                        // There is nothing to check.
                        Ok(None) => Err(Error::Deadline),
                        Err(error) => Err(error),
                    }
                };
                let may = May { deadline: true, ..may };
                self.read("task: get", &[key], may, |_| Box::pin(run)).await;
            }
        }
    }

    /// Some keys that may be loaded more than once.
    fn some_keys(&mut self) -> Vec<u32> {
        let settings = Arc::clone(&self.field.settings);
        let keys = (0..self.rng.usize(1..5)).map(|_| self.rng.u32(..settings.keys));
        keys.filter(|&key| !settings.is_quiet(key)).collect()
    }

    async fn read<'a>(
        &mut self,
        name: &'static str,
        keys: &[u32],
        may: May,
        run: impl FnOnce(u64) -> BoxCall<'a, Values>,
    ) {
        self.watch.begin(self.number, name, keys[0]);
        let world = Arc::clone(&self.field.world);
        let read = world.read(keys);
        // Nobody gives up a load that is to happen once.
        let quiet = self.field.settings.is_quiet(keys[0]);
        let manner = if quiet { Manner::Through } else { Manner::random(&mut self.rng) };
        let mut fuse = Fuse(None);
        let driven = drive(run(read.number), manner, &mut fuse, &self.field.alarm);
        let got = AssertUnwindSafe(driven).catch_unwind().await;
        self.watch.end(self.number);
        let ending = match got {
            Ok(None) => Ending::Dropped,
            Ok(Some(got)) => check(&read, may, Ok(got)),
            Err(payload) => check(&read, may, Err(payload)),
        };
        self.counts.add(name, ending);
    }

    /// Something that reads nothing. Returns whether it was done.
    async fn other<'a>(&mut self, name: &'static str, key: u32, run: BoxCall<'a, Result<(), Error<Fault>>>) -> bool {
        self.watch.begin(self.number, name, key);
        let manner = Manner::random(&mut self.rng);
        let done = drive(run, manner, &mut Fuse(None), &self.field.alarm).await;
        self.watch.end(self.number);
        let may = self.field.settings.may();
        let ending = done.map_or(Ending::Dropped, |done| done_with(done, key, may));
        let is_done = matches!(ending, Ending::Value);
        self.counts.add(name, ending);
        is_done
    }
}

fn list(fetched: Result<Fetched<Datum>, Error<Fault>>) -> Values {
    fetched.map(|fetched| vec![fetched])
}

impl<S: Shelf> Field<S> {
    fn load_one(&self, call: u64, key: u32, plan: Plan) -> impl Future<Output = Result<Datum, Fault>> + Send + use<S> {
        let load = self.load(call, vec![key], plan);
        async move { Ok(only(load.await?)) }
    }

    /// The loader. It begins when it is first polled.
    fn load(
        &self,
        call: u64,
        keys: Vec<u32>,
        plan: Plan,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Datum>, Fault>> + Send>> {
        let field = self.clone();
        Box::pin(async move {
            let since = field.world.load();
            for step in &plan.steps {
                match *step {
                    Step::Pause(time) => field.alarm.sleep(time).await,
                    Step::Yield => yield_now().await,
                    Step::Recurse if field.settings.recurs() => field.recurse(keys[0]).await,
                    Step::Recurse => {}
                }
            }
            match plan.end {
                End::Value => Ok(field.world.found(&keys, call, since)),
                End::Error => Err(field.world.fault(&keys, since)),
                End::Panic => Blast::Work { call }.go(),
            }
        })
    }

    /// Calls the cache for the key that is being loaded.
    async fn recurse(&self, key: u32) {
        let read = self.world.read(&[key]);
        let plan = Plan::leaf();
        let loading = self.load_one(read.number, key, plan);
        let call = self.cache.get_or_load(&key, move || loading);
        let call: Pin<Box<dyn Future<Output = _> + Send + '_>> = Box::pin(call);
        let got = call.await;
        // Its callers may have left it, and the round be over.
        let may = May { recursive: true, closed: true, ..self.settings.may() };
        check(&read, may, Ok(list(got)));
    }
}

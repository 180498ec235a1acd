//! What threads do to a blocking cache.

use super::plan::{End, Plan, Step};
use super::settings::Settings;
use super::stores::Shelf;
use super::world::{Datum, Fault, May, Read, World};
use crate::bomb::Blast;
use crate::breach::Breach;
use crate::counts::{Counts, Ending};
use crate::watchdog::Watch;
use oneflight_cache::blocking::Cache;
use oneflight_cache::{Error, Fetched, blocking};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(crate) type Threads<S> = Cache<u32, Datum, Fault, S>;

/// All that a loader needs. It may go on after its caller.
pub(crate) struct Field<S> {
    pub(crate) cache: Threads<S>,
    /// In rounds that have one.
    pub(crate) collector: Option<blocking::Collector<u32, Datum, Fault, S>>,
    pub(crate) world: Arc<World>,
    pub(crate) settings: Arc<Settings>,
}

// Not derived: the store need not be `Clone`.
impl<S> Clone for Field<S> {
    fn clone(&self) -> Self {
        let Self { cache, collector, world, settings } = self;
        Self {
            cache: cache.clone(),
            collector: collector.clone(),
            world: Arc::clone(world),
            settings: Arc::clone(settings),
        }
    }
}

/// A thread that calls.
pub(crate) struct Caller<S> {
    pub(crate) field: Field<S>,
    pub(crate) rng: fastrand::Rng,
    pub(crate) watch: Watch,
    pub(crate) number: usize,
    pub(crate) counts: Counts,
}

type Values = Result<Vec<Fetched<Datum>>, Error<Fault>>;

impl<S: Shelf> Caller<S> {
    pub(crate) fn run(mut self, calls: usize) -> Counts {
        for call in 0..calls {
            self.step(call > calls / 2);
        }
        self.counts
    }

    fn step(&mut self, late: bool) {
        let field = self.field.clone();
        let Field { cache, collector, world, settings } = &field;
        let key = self.rng.u32(..settings.keys);
        let quiet = settings.is_quiet(key);
        let plan = Plan::random(&mut self.rng, quiet);
        let may = settings.may();
        let one = |fetched| vec![fetched];
        match self.rng.u8(..if collector.is_some() { 41 } else { 35 }) {
            op @ 0..12 => {
                let name = if op < 8 { "thread: get_or_load" } else { "thread: get_or_load_inline" };
                self.read(name, &[key], may, |read| {
                    let field = field.clone();
                    let call = read.number;
                    let load = move || Ok(only(field.load(call, &[key], &plan)?));
                    let got = if op < 8 { cache.get_or_load(&key, load) } else { cache.get_or_load_inline(&key, load) };
                    got.map(one)
                });
            }
            12..15 if !quiet => {
                let limit = Duration::from_micros(self.rng.u64(..800));
                self.read("thread: call with a timeout", &[key], May { deadline: true, ..may }, |read| {
                    let field = field.clone();
                    let call = read.number;
                    let load = move || Ok(only(field.load(call, &[key], &plan)?));
                    cache.call(&key).timeout(limit).get_or_load(load).map(one)
                });
            }
            15 if !quiet => self.read("thread: call past the cache", &[key], may, |read| {
                let field = field.clone();
                let call = read.number;
                let load = move || Ok(only(field.load(call, &[key], &plan)?));
                cache.call(&key).bypass().get_or_load(load).map(one)
            }),
            16..18 if !quiet => self.read("thread: refresh", &[key], may, |read| {
                cache.refresh(&key, || Ok(only(field.load(read.number, &[key], &plan)?))).map(one)
            }),
            18..21 => {
                let keys = self.some_keys();
                if keys.is_empty() {
                    return;
                }
                self.read("thread: get_or_load_many", &keys, may, |read| {
                    cache.get_or_load_many(&keys, |missing| {
                        let missing: Vec<u32> = missing.into_iter().copied().collect();
                        field.load(read.number, &missing, &plan)
                    })
                });
            }
            op @ 21..24 if !quiet => {
                let ttl = Duration::from_millis([0, 1, 5, 10_000][self.rng.usize(..4)]);
                let with_ttl = op == 21;
                self.other(if with_ttl { "thread: put_with_ttl" } else { "thread: put" }, key, || {
                    let mut write = world.write([key]);
                    let value = write.value();
                    let done = if with_ttl { cache.put_with_ttl(&key, value, ttl) } else { cache.put(&key, value) };
                    write.end(&done);
                    done
                });
            }
            24..27 if !quiet => self.other("thread: invalidate", key, || {
                let write = world.write([key]);
                let done = cache.invalidate(&key);
                write.end(&done);
                done
            }),
            27 if !settings.calm => self.other("thread: invalidate_all", key, || {
                let write = world.write(0..settings.keys);
                let done = cache.invalidate_all();
                write.end(&done);
                done
            }),
            28 if settings.closes && late && self.rng.u8(..16) == 0 => self.other("thread: close", key, || {
                _ = cache.close(Duration::from_millis(1));
                Ok(())
            }),
            29 if !settings.calm => {
                let (on, early) = (self.rng.u8(..4) != 0, self.rng.bool());
                self.other("thread: switch", key, || {
                    cache.set_coalescing(on);
                    cache.set_early_refresh(early);
                    Ok(())
                });
            }
            30 => self.other("thread: look", key, || {
                _ = (cache.waiters(&key), cache.stats(), cache.store().held());
                Ok(())
            }),
            op @ 32..34 => {
                let (keys, limit) = (self.some_keys(), Duration::from_micros(self.rng.u64(..800)));
                if keys.is_empty() {
                    return;
                }
                let name =
                    if op == 32 { "thread: call_many with a timeout" } else { "thread: call_many past the cache" };
                self.read(name, &keys, May { deadline: op == 32, ..may }, |read| {
                    let call = cache.call_many(&keys);
                    let call = if op == 32 { call.timeout(limit) } else { call.bypass() };
                    call.get_or_load(|missing| {
                        let missing: Vec<u32> = missing.into_iter().copied().collect();
                        field.load(read.number, &missing, &plan)
                    })
                });
            }
            34 => {
                let keys = self.some_keys();
                if self.rng.bool() {
                    self.other("thread: invalidate_many", key, || {
                        let write = world.write(keys.iter().copied());
                        let done = cache.invalidate_many(&keys);
                        write.end(&done);
                        done
                    });
                } else {
                    let read = world.read(&keys);
                    self.other("thread: get_many", key, || cache.get_many(&keys).map(|found| read.found(&found)));
                }
            }
            35..39 => {
                self.read("thread: collector, load", &[key], May { collected: true, ..may }, |_| {
                    collector.as_ref().expect("there is one").load(&key).map(one)
                });
            }
            39.. => {
                let keys = self.some_keys();
                if keys.is_empty() {
                    return;
                }
                self.read("thread: collector, load_many", &keys, May { collected: true, ..may }, |_| {
                    collector.as_ref().expect("there is one").load_many(&keys)
                });
            }
            _ => {
                self.read("thread: get", &[key], may, |_| match cache.get(&key) {
                    Ok(Some(fetched)) => Ok(vec![fetched]),
                    // As if it had been dropped: there is nothing to check.
                    Ok(None) => Err(Error::Deadline),
                    Err(error) => Err(error),
                });
            }
        }
    }

    /// Some keys that may be loaded more than once.
    fn some_keys(&mut self) -> Vec<u32> {
        let settings = Arc::clone(&self.field.settings);
        let keys = (0..self.rng.usize(1..5)).map(|_| self.rng.u32(..settings.keys));
        keys.filter(|&key| !settings.is_quiet(key)).collect()
    }

    fn read(&mut self, name: &'static str, keys: &[u32], may: May, run: impl FnOnce(&Read) -> Values) {
        let may = if name == "thread: get" { May { deadline: true, ..may } } else { may };
        self.watch.begin(self.number, name, keys[0]);
        let world = Arc::clone(&self.field.world);
        let read = world.read(keys);
        let got = catch_unwind(AssertUnwindSafe(|| run(&read)));
        self.watch.end(self.number);
        self.counts.add(name, check(&read, may, got));
    }

    fn other(&mut self, name: &'static str, key: u32, run: impl FnOnce() -> Result<(), Error<Fault>>) {
        self.watch.begin(self.number, name, key);
        let done = run();
        self.watch.end(self.number);
        self.counts.add(name, done_with(done, key, self.field.settings.may()));
    }
}

/// What a call that reads has come to.
pub(crate) fn check(read: &Read, may: May, got: thread::Result<Values>) -> Ending {
    match got {
        Ok(Ok(values)) => {
            read.got(values.iter(), may);
            let own = values.iter().all(|fetched| fetched.value.call == read.loader(may));
            if own { Ending::Value } else { Ending::Followed }
        }
        Ok(Err(error)) => {
            read.failed(&error, may);
            Ending::Refused
        }
        Err(payload) => {
            if payload.downcast_ref::<Blast>() != Some(&Blast::Work { call: read.loader(may) }) {
                let what = payload.downcast_ref::<Blast>().map(|blast| format!("{blast:?}"));
                Breach::Panicked(format!("{what:?} in call {}", read.number)).raise(None);
            }
            Ending::Panicked
        }
    }
}

/// What a call has come to that reads nothing.
pub(crate) fn done_with(done: Result<(), Error<Fault>>, key: u32, may: May) -> Ending {
    match done {
        Ok(()) => Ending::Value,
        Err(Error::Store(_)) if may.shared => Ending::Refused,
        Err(error) => Breach::Failed(error.to_string()).raise(key),
    }
}

/// The one value of a list that has one.
pub(crate) fn only(values: Vec<Datum>) -> Datum {
    values.into_iter().next().expect("one key, one value")
}

impl<S: Shelf> Field<S> {
    /// The loader.
    fn load(&self, call: u64, keys: &[u32], plan: &Plan) -> Result<Vec<Datum>, Fault> {
        let since = self.world.load();
        for step in &plan.steps {
            match *step {
                Step::Pause(time) => thread::sleep(time),
                Step::Yield => thread::yield_now(),
                Step::Recurse if self.settings.recurs() => self.recurse(keys[0]),
                Step::Recurse => {}
            }
        }
        match plan.end {
            End::Value => Ok(self.world.found(keys, call, since)),
            End::Error => Err(self.world.fault(keys, since)),
            End::Panic => Blast::Work { call }.go(),
        }
    }

    /// Calls the cache for the key that is being loaded.
    fn recurse(&self, key: u32) {
        let read = self.world.read(&[key]);
        let call = read.number;
        let plan = Plan::leaf();
        let got = self.cache.get_or_load_inline(&key, || Ok(only(self.load(call, &[key], &plan)?)));
        // Its callers may have left it, and the round be over.
        let may = May { recursive: true, closed: true, ..self.settings.may() };
        check(&read, may, Ok(got.map(|fetched| vec![fetched])));
    }
}

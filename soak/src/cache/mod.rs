//! The cache as a subject, in memory: rounds of random calls on the same few keys, of threads to a blocking cache and of tasks to
//! one for tasks.

mod collected;
mod crowd;
#[path = "../../../cache/tests/support/model/mod.rs"]
mod model;
mod plan;
mod settings;
mod stores;
mod tasks;
mod threads;
mod world;

use crate::alarm::Alarm;
use crate::breach::Breach;
use crate::counts::Counts;
use crate::executors::{Executors, Kind, block_on};
use crate::options::Options;
use crate::outstanding::Outstanding;
use crate::watchdog::Watch;
pub(crate) use crowd::crowd;
use model::ModelStore;
use oneflight_cache::{BoxFuture, Clock, Error, Memory, Tiered, Time};
use settings::Settings;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use stores::{Process, Shelf};
use world::{Datum, World};

/// What all rounds share.
pub(crate) struct Caches {
    threads: usize,
    watch: Watch,
    executors: Executors,
    alarm: Alarm,
}

/// Calls of each caller in a round.
const CALLS: usize = 150;
/// How long a cache may take to close, by a clock that may be moved fast.
const CLOSING: Duration = Duration::from_secs(3_600);

impl Caches {
    pub(crate) fn new(options: &Options) -> Self {
        let callers = options.threads * (1 + Kind::ALL.len());
        Self {
            threads: options.threads,
            watch: Watch::start(callers, options.stuck),
            executors: Executors::start(),
            alarm: Alarm::start(),
        }
    }

    /// One round with new caches.
    pub(crate) fn round(&self, seed: u64) -> Counts {
        let mut rng = fastrand::Rng::with_seed(seed);
        let settings = Arc::new(Settings::random(&mut rng));
        let world = World::new(settings.keys);
        let Some(sharing) = settings.sharing else {
            let weigh = |_: &u32, datum: &Datum| datum.call % 4;
            let memory = || match settings.is_weighed {
                true => Memory::weighted(settings.capacity as u64, weigh),
                false => Memory::new(settings.capacity),
            };
            let worlds = [world, World::new(settings.keys)];
            return self.round_over([memory(), memory()], worlds, None, &settings, rng);
        };
        let server = settings.clock.clone().map_or_else(|| ModelStore::new(real_time()), ModelStore::new);
        let worlds = [world.elsewhere(), world];
        let processes = [server.clone(), server.another_process()]
            .map(|server| Process::new(server, rng.fork(), sharing.fails, self.alarm.clone()));
        match sharing.near {
            None => self.round_over(processes, worlds, Some(server), &settings, rng),
            Some(life) => {
                let tiers = processes.map(|process| Tiered::new(settings.capacity, life, process));
                self.round_over(tiers, worlds, Some(server), &settings, rng)
            }
        }
    }

    /// One round, of tasks with the one store and of threads with the other: each a process of `server`, if there is one.
    fn round_over<S: Shelf>(
        &self,
        stores: [S; 2],
        worlds: [World; 2],
        server: Option<ModelStore<Datum>>,
        settings: &Arc<Settings>,
        mut rng: fastrand::Rng,
    ) -> Counts {
        let ([for_tasks, for_threads], worlds) = (stores, worlds.map(Arc::new));
        let refreshes = Outstanding::default();
        let mut builder = settings.builder().store(for_tasks);
        if settings.spawner {
            builder = builder.spawner(self.spawner(rng.fork(), &refreshes)).detach_loads(settings.detach_loads);
        }
        let [world, other] = worlds;
        let cache = builder.build();
        let collector = collected::for_tasks(&cache, &world, settings, &self.alarm, rng.fork());
        let alarm = self.alarm.clone();
        let for_tasks = tasks::Field { cache, collector, world, settings: Arc::clone(settings), alarm };
        let (cache, world) = (settings.builder().store(for_threads).build_blocking(), other);
        let collector = collected::for_threads(&cache, &world, settings, rng.fork());
        let for_threads = threads::Field { cache, collector, world, settings: Arc::clone(settings) };
        let over = AtomicBool::new(false);
        let counts = thread::scope(|scope| {
            scope.spawn(|| keep_moving(settings, &over));
            let counts = self.callers(&mut rng, &for_threads, &for_tasks);
            close(&for_threads, &for_tasks, server.as_ref());
            over.store(true, Ordering::SeqCst);
            counts
        });
        let stats = [for_tasks.cache.stats(), for_threads.cache.stats()];
        match server {
            // What is loaded by the one is there for the other.
            Some(_) => check_loads(settings, &for_tasks.world, stats[0].loads + stats[1].loads),
            None => {
                check_loads(settings, &for_tasks.world, stats[0].loads);
                check_loads(settings, &for_threads.world, stats[1].loads);
            }
        }
        drop((for_tasks, for_threads, server));
        refreshes.wait();
        check_nothing_left();
        counts
    }

    fn callers<S: Shelf>(
        &self,
        rng: &mut fastrand::Rng,
        threads: &threads::Field<S>,
        tasks: &tasks::Field<S>,
    ) -> Counts {
        let (sender, results) = mpsc::channel();
        for kind in 0..Kind::ALL.len() * self.threads {
            let (field, watch) = (tasks.clone(), self.watch.clone());
            let task = tasks::Task { field, rng: rng.fork(), watch, number: kind, counts: Counts::default() };
            let sender = sender.clone();
            let run = async move {
                let counts = task.run(CALLS).await;
                _ = sender.send(counts);
            };
            self.executors.spawn(Kind::ALL[kind / self.threads], false, Box::pin(run));
        }
        let tasks = Kind::ALL.len() * self.threads;
        for number in tasks..tasks + self.threads {
            let (field, watch) = (threads.clone(), self.watch.clone());
            let caller = threads::Caller { field, rng: rng.fork(), watch, number, counts: Counts::default() };
            let sender = sender.clone();
            thread::spawn(move || _ = sender.send(caller.run(CALLS)));
        }
        drop(sender);
        let mut sum = Counts::default();
        let mut ended = 0;
        for counts in results {
            ended += 1;
            sum.merge(&counts);
        }
        if ended != tasks + self.threads {
            Breach::Panicked("a caller of the soak".to_owned()).raise(None);
        }
        sum
    }

    /// Refreshes go on on some executor; now and then one is dropped.
    fn spawner(&self, rng: fastrand::Rng, refreshes: &Outstanding) -> impl Fn(BoxFuture) + Send + Sync + 'static {
        let (executors, rng) = (self.executors.clone(), Mutex::new(rng));
        let refreshes = refreshes.counter();
        move |refresh| {
            let (kind, fate) = {
                let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
                (Kind::ALL[rng.usize(..Kind::ALL.len())], rng.u8(..8))
            };
            if fate == 0 {
                return drop(refresh);
            }
            let held = refreshes();
            let run = async move {
                refresh.await;
                drop(held);
            };
            executors.spawn(kind, false, Box::pin(run));
        }
    }
}

/// A clock that nobody moves.
fn real_time() -> impl Clock {
    let begun = Instant::now();
    move || Time::START.after(begun.elapsed())
}

/// Moves the clock, if it is to be moved by hand, until the round is over: those who sleep by it have to wake.
fn keep_moving(settings: &Settings, over: &AtomicBool) {
    let Some(clock) = &settings.clock else { return };
    while !over.load(Ordering::SeqCst) {
        clock.advance(Duration::from_micros(200));
        thread::sleep(Duration::from_micros(100));
    }
}

/// Both end what they do, and load nothing any more.
fn close<S: Shelf>(threads: &threads::Field<S>, tasks: &tasks::Field<S>, server: Option<&ModelStore<Datum>>) {
    let ended = [threads.cache.close(CLOSING), block_on(tasks.cache.close(CLOSING), false)];
    for ended in ended {
        if !ended {
            Breach::Left { what: "refreshes", count: 1 }.raise(None);
        }
    }
    // No round has this key.
    let refused = threads.cache.get_or_load(&u32::MAX, || unreachable!("a closed cache does not load"));
    if !matches!(refused, Err(Error::Closed)) {
        Breach::Failed("a closed cache answers".to_owned()).raise(None);
    }
    let refused = tasks.cache.get_or_load(&u32::MAX, || async { unreachable!("a closed cache does not load") });
    if !matches!(block_on(refused, false), Err(Error::Closed)) {
        Breach::Failed("a closed cache answers".to_owned()).raise(None);
    }
    for key in 0..tasks.settings.keys {
        let count = tasks.cache.waiters(&key) + threads.cache.waiters(&key);
        if count != 0 {
            Breach::Left { what: "waiters", count: 1 }.raise(key);
        }
    }
    // Loads that callers have left may take a moment to end.
    let begun = Instant::now();
    loop {
        let loads = tasks.cache.in_flight() + threads.cache.in_flight();
        let near = tasks.cache.store().held() + threads.cache.store().held();
        let values = world::alive() - (near + server.map_or(0, ModelStore::len)) as i64;
        let gathered = tasks.collector.as_ref().map_or(0, |collector| collector.gathered())
            + threads.collector.as_ref().map_or(0, |collector| collector.gathered());
        if loads == 0 && values <= 0 && gathered == 0 {
            return;
        }
        if begun.elapsed() > Duration::from_secs(10) {
            let (what, count) = match (loads, gathered) {
                (0, 0) => ("values that are not stored", values),
                (0, gathered) => ("gathered keys", gathered as i64),
                (loads, _) => ("loads", loads as i64),
            };
            Breach::Left { what, count }.raise(None);
        }
        thread::sleep(Duration::from_micros(200));
    }
}

fn check_loads(settings: &Settings, world: &World, counted: u64) {
    for key in (0..settings.keys).filter(|&key| settings.is_quiet(key)) {
        let loads = world.loads(key);
        if loads > 1 {
            Breach::LoadedAgain { loads }.raise(key);
        }
    }
    // Collectors load several keys in one run, and count what the keys wait for.
    if settings.window.is_none() && counted != world.runs() {
        Breach::Counter { what: "loads", counted, seen: world.runs() }.raise(None);
    }
}

/// Values are dropped with their cache, at the latest; loads that callers have left may take a moment to end.
fn check_nothing_left() {
    let begun = Instant::now();
    while world::alive() != 0 {
        if begun.elapsed() > Duration::from_secs(10) {
            Breach::Left { what: "values", count: world::alive() }.raise(None);
        }
        thread::sleep(Duration::from_micros(200));
    }
}

//! The cache on a Redis server of its own, beside the bare client: what a hit costs, what waiting costs the server, and what
//! becomes of processes that share a value.

mod processes;

#[allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "it is of a package that has std")]
#[path = "../../../cache/tests/redis_support/mod.rs"]
mod redis_support;

use alloc::sync::Arc;
use core::hint::black_box;
use core::time::Duration;
use oneflight_benches::contender::Kind;
use oneflight_benches::report::Bound::{AtLeast, AtMost};
use oneflight_benches::rounds::Spread;
use oneflight_benches::suite::Bench;
use oneflight_cache::redis::RedisStore;
use oneflight_cache::{BoxError, Cache, Source, blocking};
use redis_support::process::{Process, obey, role, tell};
use redis_support::server::Server;
use std::thread;
use std::time::Instant;

const CALLS: u32 = 500;
const KEY: &str = "products/4711";
const PAGE: usize = 200;

/// Processes, and callers in each.
const CROWD: (usize, usize) = (4, 500);
const LOAD: Duration = Duration::from_secs(2);
/// A flight that is told of pushes looks at the server after half of this at the earliest: `fill::Config::listening_poll`.
const POLL: Duration = Duration::from_millis(100);

const PART: &str = "redis";
type Workload = fn(&mut OnServer<'_>, &str);
const WORKLOADS: [(&str, Workload); 8] = [
    ("hit, thread", |on, name| on.hit(name)),
    ("hit, task on smol", |on, name| on.hit_of_task(name)),
    ("500 callers in each of 4 processes wait", |on, name| on.wait(name)),
    ("128 cold callers in 8 processes", |on, name| on.cold(name)),
    ("8 processes, the one that loads is killed", |on, name| on.killed(name)),
    ("8 processes, the one that loads stands still", |on, name| on.paused(name)),
    ("8 processes, a load of three leases", |on, name| on.long_load(name)),
    ("8 processes, early refresh", |on, name| on.refresh(name)),
];

/// Does what the parent says, if this process is one of those that wait.
pub(crate) fn obey_if_child() {
    if let Some(role) = role() {
        wait_as_told(&role);
    }
}

/// Finds out before anything is measured that there is no server to be had.
///
/// # Panics
///
/// If there is none, and a workload that needs it is wanted.
pub(crate) fn check(bench: &Bench) {
    if WORKLOADS.iter().any(|(name, _)| bench.options.wants(PART, name)) {
        drop(Server::start());
    }
}

/// Runs the workloads that are wanted, on a server that lives no longer.
pub(crate) fn run(bench: &mut Bench) {
    bench.report.begin(PART);
    let wanted: Vec<_> = WORKLOADS.iter().filter(|(name, _)| bench.can(name)).collect();
    if wanted.is_empty() {
        return;
    }
    let mut on_server = OnServer { bench, server: Server::start() };
    for (name, run) in wanted {
        run(&mut on_server, name);
    }
}

struct OnServer<'b> {
    bench: &'b mut Bench,
    server: Server,
}

impl OnServer<'_> {
    fn hit(&mut self, name: &str) {
        let store = RedisStore::builder().prefix("hits").connect_blocking(&self.server.url()).expect("a URL");
        let cache = blocking::Cache::<String, Vec<u8>>::builder().store(store).build_blocking();
        cache.put(KEY, vec![7; PAGE]).expect("the server is there");
        let key = self.name_of_value();
        let client = redis::Client::open(self.server.url()).expect("a URL");
        let mut bare = client.get_connection().expect("the server is there");
        let commands = self.commands(|| drop(black_box(cache.get_or_load(KEY, || Err("it is there".into())))));
        let mut rounds = self.bench.rounds();
        let ours = rounds.add("oneflight-cache", Kind::Ours, || {
            [micros(|| drop(black_box(cache.get_or_load(KEY, || Err("it is there".into())).expect("it is there"))))]
        });
        let floor = rounds.add("the client", Kind::Floor, || {
            [micros(|| {
                let read: (i64, Vec<u8>) = pipeline(&key).query(&mut bare).expect("the server is there");
                assert!(black_box(read).1.len() >= PAGE);
            })]
        });
        let samples = self.bench.measure(rounds, 100);
        self.bench.report.figures(name, &samples, 0, "us a call", 1.0);
        let ratio = samples.ratio(ours, floor, 0);
        self.bench.report.target(&format!("{name}: oneflight-cache / the client"), AtMost(1.15), ratio);
        self.judge(name, commands);
    }

    fn hit_of_task(&mut self, name: &str) {
        let store = RedisStore::builder().prefix("hits").connect(&self.server.url()).expect("a URL");
        let cache = Cache::<String, Vec<u8>>::builder().store(store).build();
        smol::block_on(cache.put(KEY, vec![7; PAGE])).expect("the server is there");
        let key = self.name_of_value();
        let client = redis::Client::open(self.server.url()).expect("a URL");
        let bare = smol::block_on(client.get_connection_manager()).expect("the server is there");
        let hit = || async { cache.get_or_load(KEY, || async { Err(BoxError::from("it is there")) }).await };
        let commands = self.commands(|| drop(smol::block_on(hit())));
        let mut rounds = self.bench.rounds();
        let ours = rounds.add("oneflight-cache", Kind::Ours, || {
            [micros(|| drop(black_box(smol::block_on(hit()).expect("it is there"))))]
        });
        let floor = rounds.add("the client", Kind::Floor, || {
            let mut bare = bare.clone();
            [micros(|| {
                let read = smol::block_on(pipeline(&key).query_async::<(i64, Vec<u8>)>(&mut bare));
                assert!(black_box(read).expect("the server is there").1.len() >= PAGE);
            })]
        });
        let samples = self.bench.measure(rounds, 100);
        self.bench.report.figures(name, &samples, 0, "us a call", 1.0);
        let ratio = samples.ratio(ours, floor, 0);
        self.bench.report.target(&format!("{name}: oneflight-cache / the client"), AtMost(1.15), ratio);
        self.judge(name, commands);
    }

    /// What the value of the only key is called on the server.
    fn name_of_value(&self) -> String {
        self.server.keys().into_iter().find(|name| name.ends_with(":v")).expect("it is there")
    }

    /// How many commands of each kind a call costs: PTTL, GET, scripts.
    fn commands(&self, call: impl Fn()) -> [f64; 3] {
        let count = || ["pttl", "get", "evalsha"].map(|command| self.server.calls(command));
        let (before, calls) = (count(), 100);
        (0..calls).for_each(|_| call());
        let after = count();
        core::array::from_fn(|command| (after[command] - before[command]) as f64 / f64::from(calls))
    }

    fn judge(&mut self, name: &str, [pttl, get, scripts]: [f64; 3]) {
        // Now and then a read also asks for the generation: one more GET in the same round trip.
        self.bench.report.target(&format!("{name}: PTTL a call"), AtMost(1.0), Spread::exact(pttl));
        self.bench.report.target(&format!("{name}: GET a call"), AtMost(1.05), Spread::exact(get));
        self.bench.report.target(&format!("{name}: scripts a call"), AtMost(0.0), Spread::exact(scripts));
    }

    fn wait(&mut self, name: &str) {
        let (processes, callers) = (CROWD.0, self.bench.options.size(CROWD.1));
        let begun = Instant::now();
        let children: Vec<Process> =
            (0..processes).map(|_| Process::start("", &format!("{callers} {}", self.server.url()))).collect();
        for child in &children {
            child.wait_for(1, "ready");
        }
        children.iter().for_each(|child| child.say("go"));
        // All of them wait when the first flight of each process has been told so.
        while self.server.calls("evalsha") < processes as u64 && begun.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(300));
        // Scripts: what those call counts among the other commands too, and nobody sends any of those while all wait.
        let (before, window) = (self.server.calls("evalsha"), Duration::from_secs(1));
        thread::sleep(window);
        let commands = (self.server.calls("evalsha") - before) as f64 / window.as_secs_f64();
        let loads: u32 = children
            .iter()
            .map(|child| {
                let (_, event) = child.wait_for(1, "loads");
                event.rsplit(' ').next().and_then(|loads| loads.parse::<u32>().ok()).expect("a number of loads")
            })
            .sum();
        let most = processes as f64 * 2.0 / POLL.as_secs_f64() + 20.0;
        self.bench.report.figure(name, "oneflight-cache", Kind::Ours, "commands a second", Spread::exact(commands));
        self.bench.report.target(&format!("{name}: commands a second"), AtMost(most), Spread::exact(commands));
        self.bench.report.target(&format!("{name}: loads, at most"), AtMost(1.0), Spread::exact(loads.into()));
        self.bench.report.target(&format!("{name}: loads, at least"), AtLeast(1.0), Spread::exact(loads.into()));
    }
}

fn pipeline(key: &str) -> redis::Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.cmd("PTTL").arg(key).cmd("GET").arg(key);
    pipeline
}

/// How long a call takes.
fn micros(mut call: impl FnMut()) -> f64 {
    (0..CALLS / 10).for_each(|_| call());
    let begun = Instant::now();
    (0..CALLS).for_each(|_| call());
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
}

/// A process full of callers of one key, whose load takes its time.
fn wait_as_told(role: &str) -> ! {
    let (callers, url) = role.split_once(' ').expect("a number and a URL");
    let callers: usize = callers.parse().expect("a number of callers");
    let store = RedisStore::builder().prefix("crowd").connect_blocking(url).expect("a URL");
    let cache = Arc::new(blocking::Cache::<String, Vec<u8>>::builder().store(store).build_blocking());
    tell("ready");
    obey(move |_| {
        let call = |cache: &blocking::Cache<String, Vec<u8>, BoxError, _>| {
            let page = cache.get_or_load(KEY, || {
                thread::sleep(LOAD);
                Ok(vec![7; PAGE])
            });
            u32::from(page.expect("it loads").source == Source::Loaded)
        };
        let loads: u32 = thread::scope(|scope| {
            let threads: Vec<_> = (0..callers).map(|_| scope.spawn(|| call(&cache))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a caller panicked")).sum()
        });
        tell(&format!("loads {loads}"));
    })
}

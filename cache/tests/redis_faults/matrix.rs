//! Who fails, and how, at random instants of a load that three processes want.
//!
//! | fails | killed | stopped | restarted | made to forget |
//! |---|---|---|---|---|
//! | the process that loads | yes | yes | | |
//! | a process that waits | yes | yes | | |
//! | the server | and started later | yes | yes | all keys and scripts |
//!
//! `ONEFLIGHT_MATRIX_ROUNDS` is how often each is tried (default 2), `ONEFLIGHT_MATRIX_SEED` repeats a round that has failed.

use super::peer::{Load, Peer, loads};
use super::settings::{Kind, Settings};
use super::watcher::{Watcher, version_in};
use crate::redis_support::server::Server;
use crate::redis_support::signal::Signal;
use crate::redis_support::until;
use std::env;
use std::thread;
use std::time::{Duration, Instant};

/// Of those who fail.
const LEASE: Duration = Duration::from_secs(1);
/// Of a server that answers, on a machine that is busy too.
const PATIENCE: Duration = Duration::from_secs(20);
const CALLERS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    HolderKilled,
    HolderStopped,
    WaiterKilled,
    WaiterStopped,
    ServerKilled,
    ServerStopped,
    ServerRestarted,
    ServerFlushed,
}

/// What happens in a round, beside the callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Fault,
    /// What was stopped goes on, what was killed is started.
    Over,
    /// The holder's load ends.
    Open,
    /// The process that does not fail writes the key.
    Put,
}

impl Fault {
    fn is_of_server(self) -> bool {
        matches!(self, Self::ServerKilled | Self::ServerStopped | Self::ServerRestarted | Self::ServerFlushed)
    }

    /// How many loads it may come to, in three processes. Without a server each loads by itself; otherwise one takes over.
    fn most_loads(self) -> usize {
        if self.is_of_server() { 3 } else { 2 }
    }

    /// How long an answer is waited for. A server that is stopped does not answer in time.
    fn response(self) -> Duration {
        if self == Self::ServerStopped { Duration::from_secs(2) } else { PATIENCE }
    }

    /// The leases of the process that loads, and of the others. Those of processes that go on do not run out before they have stored
    /// what they load, unless it is the server that fails: then nobody may be able to give one up.
    fn leases(self) -> [Duration; 2] {
        match self {
            Self::HolderKilled | Self::HolderStopped => [LEASE, PATIENCE * 30],
            Self::WaiterKilled | Self::WaiterStopped => [PATIENCE * 30; 2],
            _ => [LEASE; 2],
        }
    }
}

/// Three processes whose callers want one key.
struct Round {
    fault: Fault,
    server: Server,
    holder: Peer,
    /// The one that may fail.
    waiter: Peer,
    /// The one that does not.
    other: Peer,
    /// What the holder loads: the gate of its load.
    first: String,
}

impl Round {
    /// All callers wait. `None` if somebody has loaded before anything has failed, as the machine was late.
    fn new(kind: Kind, fault: Fault, database: &Server, load: u64) -> Option<Self> {
        let server = Server::start();
        let response = fault.response();
        let settings = Settings { database: database.port(), response, ..Settings::new(kind, server.url()) };
        let [first, others] = fault.leases().map(|lease| Settings { lease, ..settings.clone() });
        let holder = Peer::start(&first);
        let [waiter, other] = Peer::several(&others);
        holder.read("read", "k", CALLERS, Load::Gate, "version");
        let (_, event) = holder.wait_for(1, "load k ");
        let first = event.rsplit(' ').next().expect("rsplit returns one part at least").to_owned();
        for peer in [&waiter, &other] {
            peer.read("read", "k", CALLERS, Load::Millis(load), "version");
        }
        holder.wait_for_waiters("k", CALLERS - 1);
        let all_wait = [&waiter, &other].into_iter().all(|peer| peer.waits("k", CALLERS - 1));
        all_wait.then_some(Self { fault, server, holder, waiter, other, first })
    }

    fn take(&mut self, step: Step) {
        match (step, self.fault) {
            (Step::Open, _) => self.holder.open(&self.first),
            (Step::Put, _) => self.other.say("put put k version"),
            (Step::Fault, Fault::HolderKilled) => self.holder.signal(Signal::Kill),
            (Step::Fault, Fault::HolderStopped) => self.holder.signal(Signal::Stop),
            (Step::Over, Fault::HolderStopped) => self.holder.signal(Signal::Continue),
            (Step::Fault, Fault::WaiterKilled) => self.waiter.signal(Signal::Kill),
            (Step::Fault, Fault::WaiterStopped) => self.waiter.signal(Signal::Stop),
            (Step::Over, Fault::WaiterStopped) => self.waiter.signal(Signal::Continue),
            (Step::Fault, Fault::ServerKilled) => self.server.kill(),
            (Step::Over, Fault::ServerKilled) | (Step::Fault, Fault::ServerRestarted) => self.server.restart(),
            (Step::Fault, Fault::ServerStopped) => self.server.stop(),
            (Step::Over, Fault::ServerStopped) => self.server.cont(),
            (Step::Fault, Fault::ServerFlushed) => {
                self.server.flush_all();
                self.server.script_flush();
            }
            (Step::Over, _) => {}
        }
    }

    /// Those that have not been killed.
    fn alive(&self) -> Vec<&Peer> {
        match self.fault {
            Fault::HolderKilled => vec![&self.waiter, &self.other],
            Fault::WaiterKilled => vec![&self.holder, &self.other],
            _ => vec![&self.holder, &self.waiter, &self.other],
        }
    }

    /// The version that was put, if it was; `None` if the server did not let it.
    fn put(&self) -> Option<u64> {
        until("the put has ended", || {
            let events = self.other.events();
            let done = events.iter().find_map(|(_, event)| event.strip_prefix("done put "));
            let failed = events.iter().any(|(_, event)| event.starts_with("failed put ") && self.fault.is_of_server());
            done.map(version_in).or(failed.then_some(None))
        })
    }
}

/// Callers and writes as `seed` will have it. Panics if anything is wrong.
fn round(kind: Kind, fault: Fault, database: &Server, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let load = random.u64(20..300);
    // Nothing excuses a load if no lease is short and the server answers.
    let tries = if matches!(fault, Fault::WaiterKilled | Fault::WaiterStopped) { 1 } else { 5 };
    let mut round = (0..tries).find_map(|_| Round::new(kind, fault, database, load)).expect("all callers wait");
    let port = round.server.port();
    let watcher = Watcher::start(port);

    let lease = u64::try_from(LEASE.as_millis()).expect("it is short");
    let puts = random.bool();
    let mut moment = || Duration::from_millis(random.u64(0..lease * 3 / 2));
    let fails = moment();
    // It hangs for longer than anybody waits.
    let hangs = if fault == Fault::ServerStopped { fault.response() } else { Duration::ZERO };
    let mut steps = vec![(fails, Step::Fault), (fails + hangs + moment(), Step::Over), (moment(), Step::Open)];
    if puts {
        steps.push((moment(), Step::Put));
    }
    steps.sort_by_key(|(moment, _)| *moment);
    let begin = Instant::now();
    for (moment, step) in steps {
        thread::sleep(moment.saturating_sub(begin.elapsed()));
        round.take(step);
    }

    for peer in round.alive() {
        peer.wait_for_answers("read", CALLERS);
    }
    let put = puts.then(|| round.put()).flatten();
    let loads = loads([&round.holder, &round.waiter, &round.other], "k");
    assert!(loads <= fault.most_loads(), "{loads} loads");

    // Whoever asks now gets what is stored, or what is newer.
    let seen = watcher.seen(port);
    let newest = seen.versions.last().copied().max(put);
    for peer in round.alive() {
        peer.read("last", "k", 1, Load::Millis(0), "version");
        let version = version_in(&peer.wait_for_answers("last", 1).1[0]);
        assert!(version.is_some() && version >= newest, "{version:?} after {newest:?}");
    }
    let seen = watcher.seen(port);
    assert!(seen.endless.is_empty(), "{:?}", seen.endless);
    // But for a put, which wins whatever is there: only newer ones replace what is stored.
    let is_stale = |pair: &[u64]| pair[1] < pair[0] && Some(pair[1]) != put;
    assert!(!seen.versions.windows(2).any(is_stale), "{:?}, put {put:?}", seen.versions);
}

fn rounds(fault: Fault) {
    let number = |name| env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let rounds = number("ONEFLIGHT_MATRIX_ROUNDS").unwrap_or(2);
    let seed = number("ONEFLIGHT_MATRIX_SEED");
    // Nothing happens to this one.
    let database = Server::start();
    for round_number in 0..if seed.is_some() { 1 } else { rounds } {
        let seed = seed.unwrap_or_else(|| fastrand::u64(..));
        // So that a seed says everything.
        let kind = Kind::ALL[usize::try_from((seed % 4 + fault as u64) % 4).expect("it is less than 4")];
        println!("round {round_number}: {fault:?}, {kind:?}, ONEFLIGHT_MATRIX_SEED={seed}");
        round(kind, fault, &database, seed);
    }
}

macro_rules! tests {
    ($($name:ident: $fault:ident;)+) => { $(
        #[test]
        fn $name() {
            rounds(Fault::$fault);
        }
    )+ };
}

tests! {
    the_holder_is_killed: HolderKilled;
    the_holder_is_stopped: HolderStopped;
    a_waiter_is_killed: WaiterKilled;
    a_waiter_is_stopped: WaiterStopped;
    the_server_is_killed: ServerKilled;
    the_server_is_stopped: ServerStopped;
    the_server_restarts: ServerRestarted;
    the_server_forgets: ServerFlushed;
}

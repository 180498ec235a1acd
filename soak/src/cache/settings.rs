//! What a round is about.

use super::world::{Datum, Fault, May};
use oneflight_cache::fill::Fallback;
use oneflight_cache::test_util::ManualClock;
use oneflight_cache::{Builder, Cache, Policy};
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) keys: u32,
    /// The keys from this one on are not written, and their loader does not fail: they are loaded once.
    pub(crate) quiet: u32,
    /// Nothing expires, nothing is evicted, nobody gives up: the quiet keys can be counted on.
    pub(crate) calm: bool,
    /// A clock that is moved by hand, or that of the system.
    pub(crate) clock: Option<ManualClock>,
    pub(crate) closes: bool,
    pub(crate) helper_threads: usize,
    pub(crate) spawner: bool,
    /// How long collectors gather, in rounds that have any.
    pub(crate) window: Option<Duration>,
    pub(crate) max_batch: usize,
    /// In rounds in which both caches are processes of one server.
    pub(crate) sharing: Option<Sharing>,
    pub(crate) capacity: usize,
    /// Whether values weigh nothing to three, in memory that is not in front of a server.
    pub(crate) is_weighed: bool,
    ttl: Duration,
    /// Half of the values live for a third of that.
    ttl_of: bool,
    ttl_jitter: f64,
    stale: Duration,
    if_error: Duration,
    policy: Policy,
    max_refreshes: usize,
    /// Where there is a spawner for tasks.
    pub(crate) detach_loads: bool,
    load_timeout: Option<Duration>,
    max_loads: Option<usize>,
    max_waiters: Option<usize>,
}

/// How two caches share a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    /// How long each keeps in memory what the server has, if it does.
    pub(crate) near: Option<Duration>,
    /// One request in so many fails.
    pub(crate) fails: Option<u32>,
    lease: Duration,
    max_hold: Duration,
    wait: Duration,
    on_wait_timeout: Fallback,
    on_store_error: Fallback,
    max_uncached_loads: usize,
    /// After how many failures in a row the server is not asked for a millisecond.
    breaker: Option<u32>,
}

impl Settings {
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        let calm = rng.u8(..3) == 0;
        let hour = Duration::from_secs(3_600);
        let mut some = |one_in: u8, most: u64| (!calm && rng.u8(..one_in) == 0).then(|| rng.u64(1..most));
        let (load_timeout, max_loads, max_waiters) = (some(4, 4), some(5, 6), some(5, 4));
        let (stale, if_error) = (some(2, 20), some(2, 20));
        let keys = rng.u32(2..9);
        let policies = [
            Policy::Never,
            Policy::XFetch { beta: 1.0, max_window: 0.5 },
            Policy::Linear { window: 0.5 },
            Policy::Eager { window: 0.5 },
        ];
        Self {
            keys,
            quiet: keys - 1,
            calm,
            clock: rng.bool().then(ManualClock::new),
            closes: !calm && rng.u8(..4) == 0,
            helper_threads: rng.usize(..3),
            spawner: rng.bool(),
            window: rng.bool().then(|| Duration::from_micros([0, 50, 200, 1_000][rng.usize(..4)])),
            max_batch: rng.usize(1..7),
            ttl: if calm { hour } else { Duration::from_millis([0, 1, 3, 10, 10_000][rng.usize(..5)]) },
            ttl_of: rng.bool(),
            ttl_jitter: if rng.bool() { 0.3 } else { 0.0 },
            stale: Duration::from_millis(stale.unwrap_or(0)),
            if_error: Duration::from_millis(if_error.unwrap_or(0)),
            policy: if calm { Policy::Never } else { policies[rng.usize(..4)] },
            max_refreshes: rng.usize(..4),
            detach_loads: rng.bool(),
            load_timeout: load_timeout.map(Duration::from_millis),
            max_loads: max_loads.map(|loads| loads as usize),
            max_waiters: max_waiters.map(|waiters| waiters as usize),
            capacity: if calm || rng.bool() { 1_000 } else { rng.usize(1..4) },
            is_weighed: !calm && rng.u8(..4) == 0,
            sharing: rng.bool().then(|| Sharing::random(rng, calm)),
        }
    }

    /// Whether anything may be done with a key but to read it.
    pub(crate) fn is_quiet(&self, key: u32) -> bool {
        self.calm && key >= self.quiet
    }

    /// Whether loaders call the cache for their own key. If another process has written it meanwhile, nobody can join the load, and
    /// such a call waits for the lease that it has itself, for as long as it waits for any: in calm rounds that is long.
    pub(crate) fn recurs(&self) -> bool {
        self.sharing.is_none() || !self.calm
    }

    pub(crate) fn may(&self) -> May {
        May {
            collected: false,
            deadline: false,
            load_timed_out: self.load_timeout.is_some(),
            overloaded: self.max_loads.is_some() || self.max_waiters.is_some() || self.sharing.is_some(),
            closed: self.closes,
            recursive: false,
            shared: self.sharing.is_some(),
        }
    }

    pub(crate) fn builder(&self) -> Builder<u32, Datum, Fault> {
        let mut builder = Cache::builder()
            .capacity(self.capacity)
            .ttl(self.ttl)
            .stale_while_revalidate(self.stale)
            .stale_if_error(self.if_error)
            .ttl_jitter(self.ttl_jitter)
            .early_refresh(self.policy)
            .max_refreshes(self.max_refreshes)
            .backoff(Duration::from_micros(200), Duration::from_millis(2))
            .helper_threads(self.helper_threads);
        if self.ttl_of {
            let ttl = self.ttl;
            builder = builder.ttl_of(move |datum: &Datum| if datum.call.is_multiple_of(2) { ttl / 3 } else { ttl });
        }
        if let Some(sharing) = self.sharing {
            builder = builder
                .lease(sharing.lease)
                .max_hold(sharing.max_hold)
                .lease_wait(sharing.wait)
                .on_wait_timeout(sharing.on_wait_timeout)
                .on_store_error(sharing.on_store_error)
                .max_uncached_loads(sharing.max_uncached_loads);
            if let Some(failures) = sharing.breaker {
                builder = builder.breaker(failures, Duration::from_millis(1));
            }
        }
        if let Some(clock) = &self.clock {
            builder = builder.clock(clock.clone()).timer(clock.clone());
        }
        if let Some(limit) = self.load_timeout {
            builder = builder.load_timeout(limit);
        }
        if let Some(loads) = self.max_loads {
            builder = builder.max_loads(loads);
        }
        if let Some(waiters) = self.max_waiters {
            builder = builder.max_waiters(waiters);
        }
        builder
    }
}

impl Sharing {
    /// In a `calm` round leases last, and nothing fails.
    fn random(rng: &mut fastrand::Rng, calm: bool) -> Self {
        let minute = Duration::from_secs(60);
        let near = rng.bool().then(|| Duration::from_millis([1, 10, 10_000][rng.usize(..3)]));
        let mut millis = |most| Duration::from_millis(rng.u64(1..most));
        let (lease, max_hold, wait) = (millis(20), millis(20), millis(20));
        let fallbacks = [Fallback::LoadUncached, Fallback::Fail, Fallback::ServeStale];
        let mut fallback = || fallbacks[rng.usize(..3)];
        let (on_wait_timeout, on_store_error) = (fallback(), fallback());
        Self {
            near,
            fails: (!calm && rng.bool()).then(|| rng.u32(2..40)),
            lease: if calm { minute } else { lease },
            max_hold: if calm { minute } else { max_hold },
            wait: if calm { minute } else { wait },
            on_wait_timeout,
            on_store_error,
            max_uncached_loads: rng.usize(1..20),
            breaker: rng.bool().then(|| rng.u32(1..5)),
        }
    }
}

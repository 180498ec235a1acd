//! What threads do: to a group for threads, and to one for tasks.

use super::arena::{Arena, Group, Tasks, Threads};
use super::call::{Call, Got, May};
use super::common::{CallOptions, Forget, Share, forget, is_even, look, only, try_lead, unshared};
use super::ledger::{Ledger, Running};
use super::script::{Script, Step, start_all};
use crate::bomb::Armed;
use crate::counts::{Counts, Ending};
use crate::things::{Answer, Id, Key};
use crate::watchdog::Watch;
use oneflight::{CallError, Stats};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The ways in which a thread calls a group.
pub(crate) trait Blocking: Group {
    fn plain(&self, id: &Id, work: impl FnOnce() -> Answer) -> Answer;
    fn limited(&self, id: &Id, limit: Duration, work: impl FnOnce() -> Answer) -> Result<Answer, CallError>;
    fn with_options(&self, id: &Id, options: CallOptions, ledger: &Arc<Ledger>, work: impl FnOnce() -> Answer) -> Got;
    fn with_key(&self, id: &Id, work: impl FnOnce() -> Answer) -> Got;
    /// `None` if threads have no such way.
    fn tried(&self, id: &Id, work: impl FnOnce() -> Answer) -> Option<Answer>;
    fn many(
        &self,
        ids: &[&Id],
        limit: Option<Duration>,
        work: impl FnMut(Vec<&Id>) -> Vec<Answer>,
    ) -> Result<Vec<Answer>, CallError>;
}

/// The options that both groups have.
macro_rules! with {
    ($call:expr, $options:expr) => {{
        let mut call = $call;
        if let Some(attempts) = $options.attempts {
            call = call.max_attempts(attempts);
        }
        if let Some(on_abandon) = $options.on_abandon {
            call = call.on_abandon(on_abandon);
        }
        call
    }};
}
pub(crate) use with;

impl Blocking for Threads {
    fn plain(&self, id: &Id, work: impl FnOnce() -> Answer) -> Answer {
        self.do_call(id, work)
    }

    fn limited(&self, id: &Id, limit: Duration, work: impl FnOnce() -> Answer) -> Result<Answer, CallError> {
        self.do_call_wait_timeout(id, limit, work)
    }

    fn with_options(&self, id: &Id, options: CallOptions, ledger: &Arc<Ledger>, work: impl FnOnce() -> Answer) -> Got {
        let mut call = with!(self.call(id), options);
        if let Some(limit) = options.limit {
            call = call.wait_timeout(limit);
        }
        Got::of(match options.share {
            Share::Default => call.run(work),
            Share::Ok => call.share_ok().run(work),
            Share::Even => call.share_if(is_even(ledger)).run(work),
        })
    }

    fn with_key(&self, id: &Id, work: impl FnOnce() -> Answer) -> Got {
        Got::of(self.call_with(id, || Key::new(id.0)).run(work))
    }

    fn tried(&self, id: &Id, work: impl FnOnce() -> Answer) -> Option<Answer> {
        Some(self.try_do_call(id, || unshared(work())))
    }

    fn many(
        &self,
        ids: &[&Id],
        limit: Option<Duration>,
        work: impl FnMut(Vec<&Id>) -> Vec<Answer>,
    ) -> Result<Vec<Answer>, CallError> {
        let ids = ids.iter().copied();
        match limit {
            None => Ok(self.do_many(ids, work)),
            limit => self.run_many(ids, limit, work),
        }
    }
}

impl Blocking for Tasks {
    fn plain(&self, id: &Id, work: impl FnOnce() -> Answer) -> Answer {
        self.do_call_blocking(id, work)
    }

    fn limited(&self, id: &Id, limit: Duration, work: impl FnOnce() -> Answer) -> Result<Answer, CallError> {
        self.do_call_blocking_wait_timeout(id, limit, work)
    }

    fn with_options(&self, id: &Id, options: CallOptions, ledger: &Arc<Ledger>, work: impl FnOnce() -> Answer) -> Got {
        let call = with!(self.call(id), options);
        Got::of(match (options.share, options.limit) {
            (Share::Default, None) => call.run_blocking(work),
            (Share::Default, Some(limit)) => call.run_blocking_wait_timeout(limit, work),
            (Share::Ok, None) => call.share_ok().run_blocking(work),
            (Share::Ok, Some(limit)) => call.share_ok().run_blocking_wait_timeout(limit, work),
            (Share::Even, None) => call.share_if(is_even(ledger)).run_blocking(work),
            (Share::Even, Some(limit)) => call.share_if(is_even(ledger)).run_blocking_wait_timeout(limit, work),
        })
    }

    fn with_key(&self, id: &Id, work: impl FnOnce() -> Answer) -> Got {
        Got::of(self.call_with(id, || Key::new(id.0)).run_blocking(work))
    }

    fn tried(&self, _: &Id, _: impl FnOnce() -> Answer) -> Option<Answer> {
        None
    }

    fn many(
        &self,
        ids: &[&Id],
        limit: Option<Duration>,
        work: impl FnMut(Vec<&Id>) -> Vec<Answer>,
    ) -> Result<Vec<Answer>, CallError> {
        let ids = ids.iter().copied();
        match limit {
            None => Ok(self.do_many_blocking(ids, work)),
            limit => self.run_many_blocking(ids, limit, work),
        }
    }
}

/// A thread that calls.
pub(crate) struct Caller<'a, G> {
    pub(crate) arena: &'a Arena<G>,
    pub(crate) rng: fastrand::Rng,
    pub(crate) watch: &'a Watch,
    /// Its place there.
    pub(crate) number: usize,
    pub(crate) counts: Counts,
}

impl<G: Blocking> Caller<'_, G> {
    /// Makes so many random calls.
    pub(crate) fn run(mut self, calls: usize) -> Counts {
        let mut stats = Stats::default();
        for _ in 0..calls {
            self.step(&mut stats);
        }
        self.counts
    }

    fn step(&mut self, stats: &mut Stats) {
        let arena = self.arena;
        let settings = &arena.settings;
        let key = self.rng.u32(..settings.keys);
        let id = arena.id(key);
        let script = Script::random(&mut self.rng, settings.terms(), key, true);
        let mut may = May { wake: settings.faulty_wakers, ..May::default() };
        let seed = self.rng.u64(..);
        match self.rng.u8(..24) {
            0..5 => self.one("thread: do_call", key, may, |call| {
                Some(Got::One(arena.group.plain(id, || work(arena, call.number, key, &script, seed)), None))
            }),
            5..7 => {
                let limit = Duration::from_micros(self.rng.u64(..400));
                may.limit = Some(limit);
                may.abandoned = true;
                self.one("thread: do_call_wait_timeout", key, may, |call| {
                    let value = arena.group.limited(id, limit, || work(arena, call.number, key, &script, seed));
                    Some(Got::value(value))
                });
            }
            7..9 => self.one("thread: try_do_call", key, may, |call| {
                let value = arena.group.tried(id, || work(arena, call.number, key, &script, seed));
                value.map(|value| Got::One(value, None))
            }),
            9..13 => {
                let options = CallOptions::random(&mut self.rng);
                may.limit = options.limit.or(settings.wait_timeout);
                may.abandoned = true;
                self.one("thread: call with options", key, may, |call| {
                    let run = || work(arena, call.number, key, &script, seed);
                    Some(arena.group.with_options(id, options, &arena.ledger, run))
                });
            }
            13..14 => {
                may.limit = settings.wait_timeout;
                may.abandoned = true;
                self.one("thread: call_with", key, may, |call| {
                    Some(arena.group.with_key(id, || work(arena, call.number, key, &script, seed)))
                });
            }
            14..17 => {
                let with = self.rng.bool();
                let pause = Duration::from_micros(self.rng.u64(..200));
                self.one("thread: try_lead", key, may, |call| {
                    let guard = try_lead(arena, call.number, key, with)?;
                    guard.hold(|| thread::sleep(pause));
                    Some(guard.end(script.end, call.number))
                });
            }
            17..20 => self.many(may),
            20..22 if settings.forgets => {
                let which = [Forget::One, Forget::Unshared, Forget::All][self.rng.usize(..3)];
                self.one("forget", key, may, |_| {
                    forget(arena, key, which);
                    Some(Got::Nothing)
                });
            }
            _ => self.one("look", key, May { wake: true, ..may }, |_| {
                look(arena, key, stats);
                Some(Got::Nothing)
            }),
        }
    }

    fn many(&mut self, mut may: May) {
        let arena = self.arena;
        let keys = arena.some_keys(&mut self.rng);
        let ids: Vec<&Id> = keys.iter().map(|&key| arena.id(key)).collect();
        let greatest = keys.iter().copied().max().unwrap_or(0);
        let script = Script::random(&mut self.rng, arena.settings.terms(), greatest, false);
        may.limit = self.rng.bool().then(|| Duration::from_micros(self.rng.u64(..800)));
        let seed = self.rng.u64(..);
        let name = if may.limit.is_some() { "thread: run_many with a limit" } else { "thread: do_many" };
        self.all(name, &keys, may, |call| {
            let work = |missing: Vec<&Id>| {
                let keys: Vec<u32> = missing.iter().map(|id| id.0).collect();
                work_of(arena, call.number, &keys, &script, seed)
            };
            Some(Got::many(arena.group.many(&ids, may.limit, work)))
        });
    }

    fn one(&mut self, name: &'static str, key: u32, may: May, run: impl FnOnce(&Call) -> Option<Got>) {
        self.all(name, &[key], may, run);
    }

    /// One call, watched and checked. `None`: there was nothing to do.
    fn all(&mut self, name: &'static str, keys: &[u32], may: May, run: impl FnOnce(&Call) -> Option<Got>) {
        self.watch.begin(self.number, name, keys[0]);
        let call = Call::begin(&self.arena.ledger, keys, may);
        let mut fuse = call.fuse(&mut self.rng, self.arena.settings.bombs);
        let got = {
            let _armed = fuse.arm();
            catch_unwind(AssertUnwindSafe(|| run(&call)))
        };
        self.watch.end(self.number);
        match got {
            Ok(None) => {}
            Ok(Some(got)) => self.counts.add(name, call.end(Ok(got))),
            Err(payload) => self.counts.add(name, call.end(Err(payload))),
        }
    }
}

fn work<G: Blocking>(arena: &Arena<G>, call: u64, key: u32, script: &Script, seed: u64) -> Answer {
    only(work_of(arena, call, &[key], script, seed))
}

/// The work of a thread, for one key or several.
fn work_of<G: Blocking>(arena: &Arena<G>, call: u64, keys: &[u32], script: &Script, seed: u64) -> Vec<Answer> {
    // The caller's bomb is not meant for its work.
    let _calm = Armed::not();
    let all: Vec<Running> = start_all(&arena.ledger, call, keys);
    let _steps: Vec<_> = all.iter().map(Running::step).collect();
    let mut rng = fastrand::Rng::with_seed(seed);
    for step in &script.steps {
        match *step {
            Step::Pause(time) => thread::sleep(time),
            Step::Yield => thread::yield_now(),
            Step::Recurse => nested(arena, keys[0], true, &mut rng),
            Step::Descend(key) => nested(arena, key, false, &mut rng),
            Step::Forget => _ = forget(arena, keys[0], Forget::One),
        }
    }
    script.end.reach(call, &all)
}

/// A call that a work makes. It is checked like others.
fn nested<G: Blocking>(arena: &Arena<G>, key: u32, recursive: bool, rng: &mut fastrand::Rng) {
    let wake = arena.settings.faulty_wakers;
    let may = May { recursive, wake, abandoned: true, limit: arena.settings.wait_timeout };
    let script = Script::leaf(rng);
    let seed = rng.u64(..);
    let plain = rng.bool();
    let call = Call::begin(&arena.ledger, &[key], May { limit: may.limit.filter(|_| !plain), ..may });
    let run = || {
        let work = || work(arena, call.number, key, &script, seed);
        let options = CallOptions { limit: None, attempts: None, on_abandon: None, share: Share::Default };
        let id = arena.id(key);
        if plain {
            Got::One(arena.group.plain(id, work), None)
        } else {
            arena.group.with_options(id, options, &arena.ledger, work)
        }
    };
    let got = catch_unwind(AssertUnwindSafe(run));
    let _: Ending = call.end(got);
}

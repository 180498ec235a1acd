//! What tasks do.

use super::arena::Tasks;
use super::call::{Call, Got, May};
use super::common::{CallOptions, Forget, Share, forget, is_even, look, try_lead, unshared};
use super::script::Script;
use super::threads::with;
use super::work::Field;
use crate::counts::Counts;
use crate::manner::{Manner, drive};
use crate::things::{Answer, Id, Key};
use crate::watchdog::Watch;
use futures_lite::FutureExt;
use oneflight::Stats;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

type BoxCall<'a> = Pin<Box<dyn Future<Output = Got> + Send + 'a>>;

/// A task that calls.
pub(crate) struct Task {
    pub(crate) field: Field,
    pub(crate) rng: fastrand::Rng,
    pub(crate) watch: Watch,
    /// Its place there.
    pub(crate) number: usize,
    pub(crate) counts: Counts,
}

impl Task {
    /// Makes so many random calls.
    pub(crate) async fn run(mut self, calls: usize) -> Counts {
        let mut stats = Stats::default();
        for _ in 0..calls {
            self.step(&mut stats).await;
        }
        self.counts
    }

    async fn step(&mut self, stats: &mut Stats) {
        let field = self.field.clone();
        let (arena, group) = (&*field.arena, &field.arena.group);
        let settings = &arena.settings;
        let key = self.rng.u32(..settings.keys);
        let id = arena.id(key);
        let mut may = May { wake: settings.faulty_wakers, ..May::default() };
        match self.rng.u8(..30) {
            0..5 => {
                let run = |work: Work| async move { Got::One(group.do_call(id, || work.make()).await, None) };
                self.one("task: do_call", may, key, |work| Box::pin(run(work))).await;
            }
            5..8 => {
                let run = |work: Work| async move { Got::One(group.do_call_inline(id, || work.make()).await, None) };
                self.one("task: do_call_inline", may, key, |work| Box::pin(run(work))).await;
            }
            8..10 => {
                let run = |work: Work| async move {
                    let fallible = || {
                        let work = work.make();
                        async move { unshared(work.await) }
                    };
                    Got::One(group.try_do_call(id, fallible).await, None)
                };
                self.one("task: try_do_call", may, key, |work| Box::pin(run(work))).await;
            }
            10..17 => {
                may.abandoned = true;
                let options = CallOptions::random(&mut self.rng);
                let form = [Form::Owned, Form::Detached, Form::Inline][self.rng.usize(..3)];
                self.one(form.name(), may, key, |work| Box::pin(with_options(group, id, work, options, form))).await;
            }
            17 => {
                may.abandoned = true;
                let make_key = || Key::new(id.0);
                let run = |work: Work| async move { Got::of(group.call_with(id, make_key).run(|| work.make()).await) };
                self.one("task: call_with", may, key, |work| Box::pin(run(work))).await;
            }
            18..20 => {
                let (with, pause) = (self.rng.bool(), Duration::from_micros(self.rng.u64(..200)));
                let run = |work: Work| async move {
                    let Some(guard) = try_lead(arena, work.call, key, with) else { return Got::Nothing };
                    work.field.alarm.sleep(pause).await;
                    guard.hold(std::thread::yield_now);
                    guard.end(work.script.end, work.call)
                };
                self.one("task: try_lead", may, key, |work| Box::pin(run(work))).await;
            }
            20..24 => self.many(may, &field).await,
            24..26 if settings.forgets => {
                let which = [Forget::One, Forget::Unshared, Forget::All][self.rng.usize(..3)];
                let run = async move {
                    forget(arena, key, which);
                    Got::Nothing
                };
                self.one("forget", may, key, |_| Box::pin(run)).await;
            }
            _ => {
                let run = async move {
                    look(arena, key, stats);
                    Got::Nothing
                };
                self.one("look", may, key, |_| Box::pin(run)).await;
            }
        }
    }

    async fn many(&mut self, may: May, field: &Field) {
        let arena = &*field.arena;
        let keys = arena.some_keys(&mut self.rng);
        let greatest = keys.iter().copied().max().unwrap_or(0);
        let plain = self.rng.bool();
        let name = if plain { "task: do_many" } else { "task: run_many" };
        let script = Script::random(&mut self.rng, arena.settings.terms(), greatest, false);
        let ids: Vec<&Id> = keys.iter().map(|&key| arena.id(key)).collect();
        let run = |work: Work| async move {
            let load = |missing: Vec<&Id>| work.make_many(missing.iter().map(|id| id.0).collect());
            if plain {
                Got::Many(arena.group.do_many(ids, load).await)
            } else {
                Got::many(arena.group.run_many(ids, load).await)
            }
        };
        self.all(name, may, &keys, script, |work| Box::pin(run(work))).await;
    }

    async fn one<'a>(&mut self, name: &'static str, may: May, key: u32, run: impl FnOnce(Work) -> BoxCall<'a>) {
        let script = Script::random(&mut self.rng, self.field.arena.settings.terms(), key, true);
        self.all(name, may, &[key], script, run).await;
    }

    /// One call, driven in some manner, watched and checked.
    async fn all<'a>(
        &mut self,
        name: &'static str,
        may: May,
        keys: &[u32],
        script: Script,
        run: impl FnOnce(Work) -> BoxCall<'a>,
    ) {
        self.watch.begin(self.number, name, keys[0]);
        let call = Call::begin(&self.field.arena.ledger, keys, may);
        let mut fuse = call.fuse(&mut self.rng, self.field.arena.settings.bombs);
        let (key, seed) = (keys[0], self.rng.u64(..));
        let future = run(Work { field: self.field.clone(), call: call.number, key, script, seed });
        let driven = drive(future, Manner::random(&mut self.rng), &mut fuse, &self.field.alarm);
        let got = AssertUnwindSafe(driven).catch_unwind().await.map(|got| got.unwrap_or(Got::Dropped));
        self.watch.end(self.number);
        self.counts.add(name, call.end(got));
    }
}

/// The work that a call brings.
struct Work {
    field: Field,
    call: u64,
    key: u32,
    script: Script,
    seed: u64,
}

impl Work {
    fn make(self) -> impl Future<Output = Answer> + Send + use<> {
        self.field.work(self.call, self.key, self.script, self.seed)
    }

    fn make_many(&self, keys: Vec<u32>) -> impl Future<Output = Vec<Answer>> + Send + use<> {
        self.field.work_of(self.call, keys, self.script.clone(), self.seed)
    }
}

/// Whose the work is.
#[derive(Clone, Copy, Debug)]
enum Form {
    Owned,
    Detached,
    Inline,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Owned => "task: call with options",
            Self::Detached => "task: call, detached",
            Self::Inline => "task: call with options, inline",
        }
    }
}

async fn with_options(group: &Tasks, id: &Id, work: Work, options: CallOptions, form: Form) -> Got {
    let call = with!(group.call(id), options);
    let call = if matches!(form, Form::Detached) { call.detach() } else { call };
    let ledger = Arc::clone(&work.field.arena.ledger);
    let work = || work.make();
    Got::of(match (form, options.share) {
        (Form::Inline, Share::Default) => call.run_inline(work).await,
        (Form::Inline, Share::Ok) => call.share_ok().run_inline(work).await,
        (Form::Inline, Share::Even) => call.share_if(is_even(&ledger)).run_inline(work).await,
        (_, Share::Default) => call.run(work).await,
        (_, Share::Ok) => call.share_ok().run(work).await,
        (_, Share::Even) => call.share_if(is_even(&ledger)).run(work).await,
    })
}

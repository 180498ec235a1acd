//! The work of tasks.

use super::arena::{Arena, Tasks};
use super::call::{Call, Got, May};
use super::common::{Forget, forget, only};
use super::ledger::Running;
use super::script::{Script, Step, start_all};
use crate::alarm::Alarm;
use crate::bomb::Armed;
use crate::things::Answer;
use futures_lite::FutureExt;
use futures_lite::future::yield_now;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

/// All that a work needs. It may outlive its caller.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) arena: Arc<Arena<Tasks>>,
    pub(crate) alarm: Alarm,
}

type BoxWork = Pin<Box<dyn Future<Output = Vec<Answer>> + Send>>;

impl Field {
    /// The work for one key. What is done before the future is there belongs to the execution as well.
    pub(crate) fn work(
        &self,
        call: u64,
        key: u32,
        script: Script,
        seed: u64,
    ) -> impl Future<Output = Answer> + Send + use<> {
        let work = self.work_of(call, vec![key], script, seed);
        async move { only(work.await) }
    }

    /// The work for several keys.
    pub(crate) fn work_of(&self, call: u64, keys: Vec<u32>, script: Script, seed: u64) -> BoxWork {
        let field = self.clone();
        let all = start_all(&self.arena.ledger, call, &keys);
        let running: Arc<[Running]> = all.into();
        let stepped = Arc::clone(&running);
        let mut work = Box::pin(async move {
            field.steps(&keys, &script, seed).await;
            script.end.reach(call, &running)
        });
        Box::pin(poll_fn(move |cx| {
            // The bomb of whoever drives is not meant for the work.
            let _calm = Armed::not();
            let _steps: Vec<_> = stepped.iter().map(Running::step).collect();
            work.as_mut().poll(cx)
        }))
    }

    async fn steps(&self, keys: &[u32], script: &Script, seed: u64) {
        let mut rng = fastrand::Rng::with_seed(seed);
        for step in &script.steps {
            match *step {
                Step::Pause(time) => self.alarm.sleep(time).await,
                Step::Yield => yield_now().await,
                Step::Recurse => self.nested(keys[0], true, &mut rng).await,
                Step::Descend(key) => self.nested(key, false, &mut rng).await,
                Step::Forget => _ = forget(&*self.arena, keys[0], Forget::One),
            }
        }
    }

    /// A call that a work makes. It is checked like others.
    async fn nested(&self, key: u32, recursive: bool, rng: &mut fastrand::Rng) {
        let arena = &self.arena;
        let wake = arena.settings.faulty_wakers;
        let call = Call::begin(&arena.ledger, &[key], May { recursive, wake, abandoned: true, limit: None });
        let (number, seed, plain) = (call.number, rng.u64(..), rng.bool());
        let script = Script::leaf(rng);
        let field = self.clone();
        let work = move || field.work(number, key, script, seed);
        let id = arena.id(key);
        let run = async move {
            if plain {
                Got::One(arena.group.do_call(id, work).await, None)
            } else {
                Got::of(arena.group.call(id).run(work).await)
            }
        };
        // In a box, or the type of the work would contain itself.
        let run: Pin<Box<dyn Future<Output = Got> + Send + '_>> = Box::pin(run);
        let got = AssertUnwindSafe(run).catch_unwind().await;
        call.end(got);
    }
}

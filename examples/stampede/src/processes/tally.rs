//! What is known of a run while it is on.

use core::time::Duration;
use std::time::Instant;

use oneflight_cache::BoxError;

use super::crowd::{Crowd, Heard};
use super::cycles::Load;
use super::options::Ways;
use super::protocol::{Event, Order};

/// All that the processes of a run have told.
#[derive(Default)]
pub(crate) struct Tally {
    /// The processes whose loads have begun, one for each load.
    pub(crate) begun: Vec<usize>,
    /// The loads that are over.
    pub(crate) loads: Vec<Load>,
    /// The calls that are over.
    pub(crate) answers: Vec<Answer>,
    /// How many callers that went on calling have ended.
    pub(crate) ended: usize,
    /// Why the first call failed.
    pub(crate) error: Option<String>,
    stored: Option<Option<u32>>,
}

/// What became of a call.
pub(crate) struct Answer {
    /// The process of its caller.
    pub(crate) from: usize,
    pub(crate) took: Duration,
    /// The version that it got, if any.
    pub(crate) version: Option<u32>,
}

impl Tally {
    /// Listens until `enough` is true, which the result says, or it is too late.
    pub(crate) fn listen(
        &mut self,
        crowd: &mut Crowd,
        deadline: Instant,
        mut enough: impl FnMut(&Self) -> bool,
    ) -> bool {
        while !enough(self) {
            match crowd.next(deadline) {
                Some(heard) => self.hear(heard),
                None => return false,
            }
        }
        true
    }

    fn hear(&mut self, Heard { from, event }: Heard) {
        match event {
            // One that was killed. Another leaves its callers without answers, and those are counted.
            None | Some(Event::Ready) => {}
            Some(Event::Begun) => self.begun.push(from),
            Some(Event::Loaded { looked, begun, ended }) => self.loads.push(Load { looked, begun, ended }),
            Some(Event::Answer { micros, value }) => {
                let took = Duration::from_micros(micros);
                let version = value.map_err(|error| _ = self.error.get_or_insert(error)).ok();
                self.answers.push(Answer { from, took, version });
            }
            Some(Event::Answers { micros, failed, error }) => {
                let took = micros.into_iter().map(|micros| Duration::from_micros(micros.into()));
                self.answers.extend(took.map(|took| Answer { from, took, version: Some(0) }));
                let nothing = || Answer { from, took: Duration::ZERO, version: None };
                self.answers.extend((0..failed).map(|_| nothing()));
                self.error = self.error.take().or(error);
                self.ended += 1;
            }
            Some(Event::Stored(version)) => self.stored = Some(version),
        }
    }

    /// How many calls of these processes' callers are over.
    pub(crate) fn answered(&self, workers: &[usize]) -> usize {
        self.answers.iter().filter(|answer| workers.contains(&answer.from)).count()
    }

    /// How many calls of these processes' callers got a value.
    pub(crate) fn served(&self, workers: &[usize]) -> usize {
        self.answers.iter().filter(|answer| workers.contains(&answer.from) && answer.version.is_some()).count()
    }

    /// How long the calls of these processes' callers took that got a value, the shortest first.
    pub(crate) fn latencies(&self, workers: &[usize]) -> Vec<Duration> {
        let served = self.answers.iter().filter(|answer| workers.contains(&answer.from) && answer.version.is_some());
        let mut latencies: Vec<Duration> = served.map(|answer| answer.took).collect();
        latencies.sort_unstable();
        latencies
    }

    /// The version that is stored at this moment, as one of the processes sees it.
    pub(crate) fn look(&mut self, crowd: &mut Crowd, worker: usize, way: Ways) -> Result<Option<u32>, BoxError> {
        self.stored = None;
        crowd.order(&[worker], Order::Look)?;
        let deadline = Instant::now() + Duration::from_secs(30);
        self.listen(crowd, deadline, |tally| tally.stored.is_some());
        Ok(self.stored.ok_or_else(|| format!("{}: a process does not say what is stored", way.name()))?)
    }
}

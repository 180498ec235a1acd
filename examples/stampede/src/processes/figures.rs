//! What a run comes to, and what `oneflight-cache` promises about it.
//!
//! - **Loads**: how often the value was loaded, to the end or not. For `refresh` those of the counted lives of the value
//!   (see `cycles.rs`), so with one load a life it is the number of `--cycles`.
//! - **Lost**: callers that never got a value, other than those whose process was killed. For `refresh`, calls that failed.
//! - **Stale**: 1 if at the end an older version is stored than the database has.
//! - **Latency**: of the calls that got a value, in processes that were neither killed nor stopped, from the begin of the call
//!   to its return. For `refresh`, of all calls after the first value was there.

use core::time::Duration;

use serde::Serialize;

use super::options::{Scenarios, Ways};
use super::protocol::Terms;
use crate::measure::percentile_ms;

/// How much longer than a load a cold caller of ours may wait: one in a hundred may do so longer.
pub(crate) const ON_TOP: Duration = Duration::from_millis(30);

/// How much longer than what was left of the lease and a load it may take until all are served whose holder was killed.
const ON_TOP_OF_A_KILL: Duration = Duration::from_millis(100);

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A way, as it is.
    Way(Ways),
    /// Ours, with a lease that is never renewed.
    NotRenewed,
    /// Ours without leases.
    FlightsOnly,
}

impl Subject {
    /// Those that are run in a scenario; for people also what shows what the parts of ours are for.
    pub(crate) fn of(scenario: Scenarios, ways: Ways, json: bool) -> Vec<Self> {
        let mut subjects: Vec<Self> = ways.chosen().into_iter().map(Self::Way).collect();
        if subjects.contains(&Self::Way(Ways::Ours)) && !json {
            match scenario {
                Scenarios::Cold | Scenarios::Refresh => subjects.push(Self::FlightsOnly),
                Scenarios::LongLoad => subjects.push(Self::NotRenewed),
                Scenarios::Killed | Scenarios::Paused | Scenarios::All => {}
            }
        }
        subjects
    }

    pub(crate) fn way(self) -> Ways {
        match self {
            Self::Way(way) => way,
            Self::NotRenewed | Self::FlightsOnly => Ways::Ours,
        }
    }

    /// What people call it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Way(way) => way.name(),
            Self::NotRenewed => "ours, lease not renewed",
            Self::FlightsOnly => "ours, without leases",
        }
    }
}

/// The figures of a run.
#[derive(Debug, Serialize)]
pub struct Row {
    way: Ways,
    pub(crate) name: Scenarios,
    processes: usize,
    callers: usize,
    /// How often the value was loaded, to the end or not. For [`Scenarios::Refresh`] only in the lives that count.
    pub loads: usize,
    /// Callers that never got a value, other than those whose process was killed.
    pub lost: usize,
    /// 1 if at the end an older version is stored than the database has.
    pub stale: usize,
    /// The median of the latencies, in milliseconds.
    pub p50_ms: f64,
    /// What one in a hundred calls takes longer than, in milliseconds.
    pub p99_ms: f64,
    /// For [`Scenarios::Killed`], from the kill until the last of the others had a value.
    #[serde(skip)]
    pub served_after: Option<Duration>,
    /// For [`Scenarios::Refresh`], the lives whose loads were counted.
    #[serde(skip)]
    pub lives: usize,
    /// What was run.
    #[serde(skip)]
    pub(crate) subject: Subject,
    /// On which terms.
    #[serde(skip)]
    pub(crate) terms: Terms,
    /// What happened, in words.
    #[serde(skip)]
    pub(crate) story: String,
    /// Why the first call failed.
    #[serde(skip)]
    pub(crate) error: Option<String>,
}

/// What a run has left to be made into figures.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) loads: usize,
    pub(crate) lost: usize,
    pub(crate) served_after: Option<Duration>,
    pub(crate) lives: usize,
    /// The version that is stored at the end, if that was looked at and there is one.
    pub(crate) stored: Option<u32>,
    /// The version that the database has at the end.
    pub(crate) newest: u32,
    /// The shortest first.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) story: String,
    pub(crate) error: Option<String>,
}

impl Row {
    pub(crate) fn new(
        name: Scenarios,
        subject: Subject,
        (processes, callers): (usize, usize),
        terms: Terms,
        outcome: Outcome,
    ) -> Self {
        let Outcome { loads, lost, served_after, lives, stored, newest, latencies, story, error } = outcome;
        let [p50_ms, p99_ms] = [50, 99].map(|percent| percentile_ms(&latencies, percent));
        let stale = usize::from(stored.is_some_and(|version| version < newest));
        let way = subject.way();
        Self {
            way,
            name,
            processes,
            callers,
            loads,
            lost,
            stale,
            p50_ms,
            p99_ms,
            served_after,
            lives,
            subject,
            terms,
            story,
            error,
        }
    }

    /// How long it may take with ours: [`p99_ms`](Self::p99_ms) of [`Scenarios::Cold`], [`served_after`](Self::served_after) of
    /// [`Scenarios::Killed`].
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        let Terms { load, lease, .. } = self.terms;
        match self.name {
            Scenarios::Cold => Some(load + ON_TOP),
            // In the middle of the load, before the lease is renewed for the first time.
            Scenarios::Killed => Some(lease - load / 2 + load + ON_TOP_OF_A_KILL),
            _ => None,
        }
    }

    /// What ours has promised and did not keep.
    pub(crate) fn broken_promises(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.way != Ways::Ours || self.subject == Subject::FlightsOnly {
            return broken;
        }
        let (name, title) = (self.name.name(), self.subject.title());
        if self.lost > 0 {
            let error = self.error.as_deref().unwrap_or("no answer in time");
            broken.push(format!("{name}, {title}: {} without a value: {error}", self.lost));
        }
        if self.stale > 0 {
            broken.push(format!("{name}, {title}: an old value is stored over a newer one"));
        }
        if self.name == Scenarios::Cold && self.loads != 1 {
            broken.push(format!("{name}, {title}: {} loads, not one", self.loads));
        }
        broken
    }
}

/// Values for the tests of the table.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(name: Scenarios, subject: Subject, loads: usize) -> Row {
        let outcome = Outcome {
            loads,
            stored: Some(1),
            newest: 1,
            latencies: vec![Duration::from_micros(1_500), Duration::from_millis(1_234)],
            story: "all is well".to_owned(),
            ..Outcome::default()
        };
        Row::new(name, subject, (8, 128), super::super::scenarios::terms(name, 128), outcome)
    }

    #[test]
    fn ours_promises_one_cold_load_nothing_lost_and_nothing_stale() {
        let ours = Subject::Way(Ways::Ours);
        assert!(row(Scenarios::Cold, ours, 1).broken_promises().is_empty());
        assert_eq!(row(Scenarios::Cold, ours, 2).broken_promises().len(), 1);
        assert_eq!(row(Scenarios::Cold, ours, 0).broken_promises().len(), 1);
        assert!(row(Scenarios::Killed, ours, 2).broken_promises().is_empty());
        for subject in [ours, Subject::NotRenewed] {
            let row = Row { lost: 3, stale: 1, ..row(Scenarios::LongLoad, subject, 1) };
            assert_eq!(row.broken_promises().len(), 2);
        }
        for subject in [Subject::Way(Ways::None), Subject::Way(Ways::Naive), Subject::FlightsOnly] {
            assert!(Row { lost: 3, stale: 1, ..row(Scenarios::Cold, subject, 9) }.broken_promises().is_empty());
        }
    }

    #[test]
    fn the_limits_are_those_of_the_terms() {
        let limit = |name| row(name, Subject::Way(Ways::Ours), 1).limit();
        assert_eq!(limit(Scenarios::Cold), Some(Duration::from_millis(130)));
        // 350 ms of the lease are left in the middle of a load of 300 ms.
        assert_eq!(limit(Scenarios::Killed), Some(Duration::from_millis(350 + 300 + 100)));
        assert_eq!([Scenarios::Paused, Scenarios::LongLoad, Scenarios::Refresh].map(limit), [None; 3]);
    }

    #[test]
    fn scripts_get_one_run_of_each_way_and_people_more() {
        let ways = [Ways::None, Ways::Naive, Ways::Ours].map(Subject::Way);
        for scenario in Scenarios::All.chosen() {
            assert_eq!(Subject::of(scenario, Ways::All, true), ways);
            assert!(Subject::of(scenario, Ways::All, false).starts_with(&ways));
            assert_eq!(Subject::of(scenario, Ways::Naive, false), [Subject::Way(Ways::Naive)]);
        }
        assert!(Subject::of(Scenarios::LongLoad, Ways::Ours, false).contains(&Subject::NotRenewed));
    }
}

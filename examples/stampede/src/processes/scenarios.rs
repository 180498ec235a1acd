//! What happens to the processes: one function for each scenario, the same for every way.

use core::time::Duration;
use std::thread;
use std::time::Instant;

use oneflight_cache::BoxError;

use super::crowd::{Crowd, Signal};
use super::cycles::{Counter, loads_of_lives};
use super::figures::{ON_TOP, Outcome, Row, Subject};
use super::options::{Scenarios, Shared, Ways};
use super::protocol::{Order, Setup, Terms};
use super::server::Server;
use super::tally::Tally;
use crate::measure::percentile_ms;
use crate::report::milliseconds;

/// Who has no value after so long has lost: three times the longest lock and load.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads a second in `refresh`, of all callers together.
const READS: u32 = 1_200;

/// The process that is paused.
const HOLDER: usize = 0;

/// On which terms a scenario is played. They are the same for every way.
pub(crate) fn terms(scenario: Scenarios, callers: usize) -> Terms {
    let terms = Terms {
        load: Duration::from_millis(100),
        ttl: Duration::from_secs(60),
        // The defaults of ours; and the lock is as often seen with five seconds as with any other.
        lease: Duration::from_secs(5),
        renewed: true,
        leased: true,
        lock_seconds: 5,
        pause: Duration::from_secs(1) * callers as u32 / READS,
    };
    match scenario {
        Scenarios::Cold | Scenarios::All => terms,
        // What the lease costs if its holder dies may be chosen freely, as it is renewed. That of the lock may not: it must be
        // longer than the longest load.
        Scenarios::Killed | Scenarios::Paused => {
            Terms { load: Duration::from_millis(300), lease: Duration::from_millis(500), ..terms }
        }
        // The lock has whole seconds.
        Scenarios::LongLoad => {
            Terms { load: Duration::from_secs(3), lease: Duration::from_secs(1), lock_seconds: 1, ..terms }
        }
        Scenarios::Refresh => Terms { load: Duration::from_millis(40), ttl: Duration::from_millis(400), ..terms },
    }
}

/// Plays a scenario with processes of its own. `number` is that of the run: no two have the same.
pub(crate) fn play(
    scenario: Scenarios,
    subject: Subject,
    shared: &Shared,
    server: &Server,
    number: usize,
) -> Result<Row, BoxError> {
    let (processes, callers) = (usize::from(shared.processes), usize::from(shared.callers));
    let mut terms = terms(scenario, callers);
    terms.renewed = subject != Subject::NotRenewed;
    terms.leased = subject != Subject::FlightsOnly;
    let way = subject.way();
    // How many callers there are is set for each process.
    let setup = Setup { url: server.url().to_owned(), prefix: server.prefix(number), way, callers: 0, terms };
    let mut run = Run { crowd: Crowd::start(&setup, processes, callers)?, tally: Tally::default(), terms, way };
    let outcome = match scenario {
        Scenarios::Cold | Scenarios::All => run.cold(subject),
        Scenarios::Killed => run.killed(),
        Scenarios::Paused => run.paused(),
        Scenarios::LongLoad => run.long_load(),
        Scenarios::Refresh => run.refresh(shared.cycles),
    };
    Ok(Row::new(scenario, subject, (processes, callers), terms, outcome?))
}

struct Run {
    crowd: Crowd,
    tally: Tally,
    terms: Terms,
    way: Ways,
}

impl Run {
    /// All callers ask for a value that is not there.
    fn cold(&mut self, subject: Subject) -> Result<Outcome, BoxError> {
        let all = self.crowd.all();
        self.call(&all)?;
        self.wait_for(&all);
        let outcome = self.outcome(&all, &all, 1)?;
        let limit = self.terms.load + ON_TOP;
        let p99 = percentile_ms(&outcome.latencies, 99);
        let judged = if p99 <= percentile_ms(&[limit], 99) { "within" } else { "not within" };
        let loads = match outcome.loads {
            1 => "one load for all".to_owned(),
            loads if loads == self.crowd.callers(&all) => "every caller loads".to_owned(),
            loads if loads == all.len() && subject == Subject::FlightsOnly => "every process loads once".to_owned(),
            loads => format!("{loads} callers load"),
        };
        let story = format!("{loads}; p99 {judged} load + {} ms", ON_TOP.as_millis());
        Ok(Outcome { story, ..outcome })
    }

    /// The process that loads is killed in the middle.
    fn killed(&mut self) -> Result<Outcome, BoxError> {
        let all = self.crowd.all();
        self.call(&all)?;
        let holder = self.holder()?;
        thread::sleep(self.terms.load / 2);
        self.crowd.kill(holder)?;
        let killed = Instant::now();
        let others: Vec<usize> = all.into_iter().filter(|&worker| worker != holder).collect();
        let served_after = self.wait_for(&others).then(|| killed.elapsed());
        let story = match served_after {
            Some(after) => {
                let after = milliseconds(after.as_secs_f64() * 1_000.0);
                format!("the last of the others is served {after} after the kill")
            }
            None => format!("not all of the others are served in {} s", PATIENCE.as_secs()),
        };
        let outcome = self.outcome(&others, &others, 1)?;
        Ok(Outcome { served_after, story, ..outcome })
    }

    /// The process that loads stands still until others have stored a newer value, and goes on.
    fn paused(&mut self) -> Result<Outcome, BoxError> {
        let all = self.crowd.all();
        let others: Vec<usize> = all.iter().copied().filter(|&worker| worker != HOLDER).collect();
        // The others of that process ask when it goes on. They could share its load, or would wait for it in vain, and what
        // becomes of one who is stopped while he looks is another story.
        self.crowd.order(&[HOLDER], Order::CallFirst)?;
        self.holder()?;
        thread::sleep(self.terms.load / 2);
        self.crowd.signal(HOLDER, Signal::Stop)?;
        // The holder reads this order when it goes on; it has read the database before.
        self.crowd.order(&all, Order::Database(2))?;
        self.call(&others)?;
        self.wait_for(&others);
        self.crowd.signal(HOLDER, Signal::Continue)?;
        self.tally.listen(&mut self.crowd, Instant::now() + PATIENCE, |tally| tally.answered(&[HOLDER]) > 0);
        self.crowd.order(&[HOLDER], Order::CallRest)?;
        self.wait_for(&all);
        let outcome = self.outcome(&all, &others, 2)?;
        let story = match outcome.stored {
            Some(1) => "v1, which came late, is stored over v2",
            Some(_) => "v2 stays; v1, which came late, is not stored",
            None => "nothing is cached at the end",
        };
        Ok(Outcome { story: story.to_owned(), ..outcome })
    }

    /// The load takes longer than the lease and the lock.
    fn long_load(&mut self) -> Result<Outcome, BoxError> {
        let all = self.crowd.all();
        self.call(&all)?;
        self.wait_for(&all);
        let outcome = self.outcome(&all, &all, 1)?;
        let cached = if outcome.stored.is_some() { "the value" } else { "nothing" };
        Ok(Outcome { story: format!("{cached} is cached at the end"), ..outcome })
    }

    /// The value expires again and again, and is read all the time.
    fn refresh(&mut self, cycles: u32) -> Result<Outcome, BoxError> {
        let all = self.crowd.all();
        let callers = self.crowd.callers(&all);
        self.call(&all)?;
        self.wait_for(&all);
        let cold = self.tally.answers.len() - self.tally.served(&all);
        self.tally.answers.clear();

        self.crowd.order(&all, Order::Read)?;
        let mut counter = Counter::new(self.terms.ttl);
        let longest = PATIENCE + (self.terms.ttl + self.terms.load) * 3 * cycles;
        // One more: in the last one there may be loads that have begun and are not over.
        self.tally.listen(&mut self.crowd, Instant::now() + longest, |tally| counter.ended(&tally.loads) > cycles);
        self.crowd.order(&all, Order::Stop)?;
        self.tally.listen(&mut self.crowd, Instant::now() + PATIENCE, |tally| tally.ended == callers);

        let mut lives = loads_of_lives(&self.tally.loads, self.terms.ttl);
        lives.truncate(cycles as usize);
        let loads: usize = lives.iter().sum();
        let story = format!(
            "{:.2} loads a cycle, {} at worst, in {} cycles",
            loads as f64 / lives.len().max(1) as f64,
            lives.iter().max().copied().unwrap_or_default(),
            lives.len()
        );
        let failed = self.tally.answers.len() - self.tally.served(&all);
        let lost = cold + failed + (callers - self.tally.ended.min(callers));
        let latencies = self.tally.latencies(&all);
        let error = self.tally.error.take();
        Ok(Outcome { loads, lost, lives: lives.len(), newest: 1, latencies, story, error, ..Outcome::default() })
    }

    fn call(&mut self, workers: &[usize]) -> Result<(), BoxError> {
        Ok(self.crowd.order(workers, Order::Call)?)
    }

    /// The process whose load was the first to begin.
    fn holder(&mut self) -> Result<usize, BoxError> {
        self.tally.listen(&mut self.crowd, Instant::now() + PATIENCE, |tally| !tally.begun.is_empty());
        Ok(*self.tally.begun.first().ok_or("nobody loads")?)
    }

    /// Waits until the callers of these have returned, and says whether they have.
    fn wait_for(&mut self, workers: &[usize]) -> bool {
        let callers = self.crowd.callers(workers);
        let deadline = Instant::now() + PATIENCE;
        self.tally.listen(&mut self.crowd, deadline, |tally| tally.answered(workers) >= callers)
    }

    /// What it came to: `called` are those that should have got a value, `timed` those whose latency counts, `newest` is the
    /// version in the database.
    fn outcome(&mut self, called: &[usize], timed: &[usize], newest: u32) -> Result<Outcome, BoxError> {
        let lost = self.crowd.callers(called) - self.tally.served(called);
        let stored = self.tally.look(&mut self.crowd, timed[0], self.way)?;
        Ok(Outcome {
            loads: self.tally.begun.len(),
            lost,
            stored,
            newest,
            latencies: self.tally.latencies(timed),
            error: self.tally.error.take(),
            ..Outcome::default()
        })
    }
}

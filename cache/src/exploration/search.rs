//! Every sequence of steps, depth first, each from the beginning.

use super::oracle::Checked;
use super::rules::{Rules, Step};
use crate::stats::Stats;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What an exploration comes to.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) sequences: usize,
    /// Those included that bring a sequence to its end.
    pub(super) steps: usize,
    /// The statistics of all sequences together.
    pub(super) seen: Stats,
    pub(super) fault: Option<Fault>,
}

/// The first sequence that goes wrong, and what is wrong with it.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) what: String,
    pub(super) steps: Vec<Step>,
}

/// Which of so many steps is taken.
struct Choice {
    taken: usize,
    of: usize,
}

/// What is explored.
pub(super) trait Subject: Sized {
    fn new(rules: &Rules) -> Checked<Self>;

    /// All that may happen next.
    fn steps(&self) -> Vec<Step>;

    fn step(&mut self, step: Step) -> Checked;

    /// Looks at all that can be told from outside, which needs to be done once after the same steps.
    fn check(&mut self) -> Checked;

    /// Brings everything to its end. Tells how many steps that took. The statistics are looked at as well if `counts`, which takes
    /// longer than a sequence.
    fn finish(self, counts: bool) -> Checked<(usize, Stats)>;
}

pub(super) fn explore<S: Subject>(rules: &Rules) -> Found {
    let mut found = Found::default();
    let mut choices: Vec<Choice> = Vec::new();
    loop {
        let mut taken = Vec::new();
        let run =
            catch_unwind(AssertUnwindSafe(|| run::<S>(rules, &mut choices, &mut taken, found.sequences % 7 == 0)));
        let run = run.unwrap_or_else(|panic| {
            let says = panic.downcast_ref::<String>().cloned();
            Err(format!("a panic: {}", says.unwrap_or_else(|| "of another kind".to_owned())))
        });
        found.sequences += 1;
        match run {
            Ok((steps, stats)) => {
                found.steps += taken.len() + steps;
                found.seen.loads += stats.loads;
                found.seen.joins += stats.joins;
                found.seen.invalidated += stats.invalidated;
                found.seen.load_errors += stats.load_errors;
                found.seen.refreshes += stats.refreshes;
            }
            Err(what) => {
                found.fault = Some(Fault { what, steps: taken });
                return found;
            }
        }
        loop {
            let Some(last) = choices.last_mut() else { return found };
            last.taken += 1;
            if last.taken < last.of {
                break;
            }
            choices.pop();
        }
    }
}

/// One sequence: as it was chosen, and by the first step from then on.
fn run<S: Subject>(
    rules: &Rules,
    choices: &mut Vec<Choice>,
    taken: &mut Vec<Step>,
    counts: bool,
) -> Checked<(usize, Stats)> {
    let mut subject = S::new(rules)?;
    // What led there was looked at before.
    let known = choices.len().saturating_sub(1);
    for depth in 0..rules.depth {
        let steps = subject.steps();
        if steps.is_empty() {
            break;
        }
        if choices.len() == depth {
            choices.push(Choice { taken: 0, of: steps.len() });
        }
        // Of threads another may take over than the last time.
        let step = steps[choices[depth].taken.min(steps.len() - 1)];
        taken.push(step);
        subject.step(step)?;
        if depth >= known {
            subject.check()?;
        }
    }
    subject.finish(counts)
}

/// That of the fewest steps. No more are looked for than it takes.
pub(super) fn shortest<S: Subject>(rules: &Rules) -> Option<Fault> {
    (0..12).find_map(|depth| explore::<S>(&Rules { depth, ..*rules }).fault)
}

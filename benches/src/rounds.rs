//! Interleaved rounds: every contender once a round, in a fresh random order, so that whatever else the machine does hits
//! all of them alike. What counts is the median over the rounds of the ratio *within* a round.

use crate::contender::Kind;
use crate::machine::Machine;
use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

/// Contenders in one workload. A run of a contender gives `N` figures.
pub struct Rounds<'a, const N: usize> {
    contenders: Vec<Contender<'a, N>>,
    order: StdRng,
}

struct Contender<'a, const N: usize> {
    who: Who,
    run: Box<dyn FnMut() -> [f64; N] + Send + 'a>,
}

/// A contender, as a table shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Who {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

impl Who {
    /// A contender of this name.
    #[must_use]
    pub fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_string(), kind }
    }
}

/// A contender's place in the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(usize);

/// What the rounds gave: for each contender, the figures of each round.
#[derive(Debug)]
pub struct Samples<const N: usize> {
    contenders: Vec<Who>,
    figures: Vec<Vec<[f64; N]>>,
}

/// A median, and the quartiles around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// A quarter of the rounds gave less.
    pub low: f64,
    /// Half of the rounds gave less.
    pub median: f64,
    /// A quarter of the rounds gave more.
    pub high: f64,
}

/// What `measure` makes of the next of `loads` each time, round and round.
pub fn sampler<L>(loads: L, measure: impl Fn(L::Item) -> f64) -> impl FnMut() -> [f64; 1]
where
    L: IntoIterator<IntoIter: Clone>,
{
    let mut loads = loads.into_iter().cycle();
    move || [measure(loads.next().expect("there is at least one"))]
}

impl<'a, const N: usize> Rounds<'a, N> {
    /// No contenders yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { contenders: Vec::new(), order: StdRng::seed_from_u64(seed) }
    }

    /// Adds a contender, which `run` measures once.
    pub fn add(&mut self, name: &str, kind: Kind, run: impl FnMut() -> [f64; N] + Send + 'a) -> Id {
        self.contenders.push(Contender { who: Who::new(name, kind), run: Box::new(run) });
        Id(self.contenders.len() - 1)
    }

    /// Runs the rounds, on a thread that is pinned to the first core.
    ///
    /// # Panics
    ///
    /// If a contender does.
    #[must_use]
    pub fn run(mut self, machine: &Machine, rounds: u32) -> Samples<N> {
        // A thread of its own: whoever builds contenders must not be pinned, since some of them count the cores that they
        // may use.
        std::thread::scope(|scope| {
            let measured = scope.spawn(|| {
                machine.pin(0);
                self.measure(rounds)
            });
            measured.join().expect("a contender panicked")
        })
    }

    fn measure(&mut self, rounds: u32) -> Samples<N> {
        let contenders = self.contenders.iter().map(|contender| contender.who.clone()).collect();
        let mut figures: Vec<_> = self.contenders.iter().map(|_| Vec::new()).collect();
        let mut order: Vec<usize> = (0..self.contenders.len()).collect();
        for _ in 0..rounds {
            order.shuffle(&mut self.order);
            for &contender in &order {
                let sample = (self.contenders[contender].run)();
                figures[contender].push(sample);
            }
        }
        Samples { contenders, figures }
    }
}

impl<const N: usize> fmt::Debug for Rounds<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.contenders.iter().map(|contender| &contender.who.name)).finish()
    }
}

impl<const N: usize> Samples<N> {
    /// All contenders.
    pub fn everybody(&self) -> impl Iterator<Item = Id> + use<N> {
        (0..self.contenders.len()).map(Id)
    }

    /// All contenders of a kind.
    #[must_use]
    pub fn all(&self, kind: Kind) -> Vec<Id> {
        self.everybody().filter(|&id| self.who(id).kind == kind).collect()
    }

    /// The contender of this name.
    ///
    /// # Panics
    ///
    /// If it did not take part.
    #[must_use]
    pub fn named(&self, name: &str) -> Id {
        let found = self.everybody().find(|&id| self.who(id).name == name);
        found.unwrap_or_else(|| panic!("{name} did not take part"))
    }

    /// Of these contenders, the one with the least median. `None` if there are no contenders.
    #[must_use]
    pub fn least(&self, of: &[Id], figure: usize) -> Option<Id> {
        let median = |id: &Id| self.spread(*id, figure).median;
        of.iter().copied().min_by(|a, b| median(a).total_cmp(&median(b)))
    }

    /// The spread of one figure of one contender.
    #[must_use]
    pub fn spread(&self, of: Id, figure: usize) -> Spread {
        Spread::of(self.figures[of.0].iter().map(|sample| sample[figure]).collect())
    }

    /// Who a contender is.
    #[must_use]
    pub fn who(&self, of: Id) -> &Who {
        &self.contenders[of.0]
    }

    /// What `f` makes of the samples that two contenders had in the same round.
    #[must_use]
    pub fn pairs(&self, of: Id, to: Id, f: impl Fn(&[f64; N], &[f64; N]) -> f64) -> Spread {
        Spread::of(self.figures[of.0].iter().zip(&self.figures[to.0]).map(|(of, to)| f(of, to)).collect())
    }

    /// One figure of one contender over the same figure of another, round by round.
    #[must_use]
    pub fn ratio(&self, of: Id, to: Id, figure: usize) -> Spread {
        self.pairs(of, to, |of, to| of[figure] / to[figure])
    }
}

impl Spread {
    /// The median and the quartiles of these values.
    ///
    /// # Panics
    ///
    /// If there are none.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "there is no median of nothing");
        values.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * (values.len() - 1) as f64;
            let (below, above) = (values[place.floor() as usize], values[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Self { low: at(0.25), median: at(0.5), high: at(0.75) }
    }

    /// A value that does not vary.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { low: value, median: value, high: value }
    }

    /// The spread of what `f`, which must be monotonic, makes of the values.
    #[must_use]
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let (a, b) = (f(self.low), f(self.high));
        Self { low: a.min(b), median: f(self.median), high: a.max(b) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_and_quartiles_are_interpolated() {
        let spread = Spread::of(alloc::vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!(spread, Spread { low: 1.75, median: 2.5, high: 3.25 });
        assert_eq!(Spread::of(alloc::vec![7.0]), Spread::exact(7.0));
    }

    #[test]
    fn a_falling_function_swaps_the_quartiles() {
        let spread = Spread { low: 1.0, median: 2.0, high: 4.0 }.map(|value| 4.0 / value);
        assert_eq!(spread, Spread { low: 1.0, median: 2.0, high: 4.0 });
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let mut speed = [1.0, 10.0, 100.0].into_iter().cycle();
        let mut twice = [2.0, 20.0, 200.0].into_iter().cycle();
        let mut rounds = Rounds::new(1);
        let one = rounds.add("one", Kind::Ours, move || [speed.next().expect("it cycles")]);
        let two = rounds.add("two", Kind::Crate, move || [twice.next().expect("it cycles")]);
        let samples = rounds.run(&Machine::new(), 9);
        assert_eq!(samples.ratio(two, one, 0), Spread::exact(2.0));
        assert_eq!((samples.all(Kind::Ours), samples.all(Kind::Crate)), (alloc::vec![one], alloc::vec![two]));
        assert_eq!((samples.least(&[two, one], 0), samples.named("two")), (Some(one), two));
    }
}

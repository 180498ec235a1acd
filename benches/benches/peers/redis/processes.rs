//! Processes that share a value: what the demo `stampede` shows, as figures and targets. The processes are real; each is this
//! program.

use super::OnServer;
use oneflight_benches::contender::Kind;
use oneflight_benches::report::Bound::{self, AtLeast, AtMost};
use oneflight_benches::rounds::Spread;
use stampede::processes::{Row, Scenarios, Stage, Ways};

/// What the demo takes if it is not told otherwise.
const PROCESSES: u16 = 8;
const CALLERS: u16 = 128;
const CYCLES: u32 = 40;

/// What was found out about the ways to get the value, ours first.
struct Runs<'o, 'b> {
    on: &'o mut OnServer<'b>,
    workload: String,
    of_ways: Vec<(Ways, Vec<Row>)>,
}

impl<'b> OnServer<'b> {
    pub(super) fn cold(&mut self, name: &str) {
        let mut runs = self.play(name, Scenarios::Cold, 5);
        runs.loads(1);
        let limit = runs.limit();
        runs.figure("one in a hundred served after", "ms", |row| row.p99_ms);
        runs.target("one in a hundred served after", AtMost(limit), |row| row.p99_ms);
    }

    pub(super) fn killed(&mut self, name: &str) {
        let mut runs = self.play(name, Scenarios::Killed, 3);
        runs.loads(2);
        let limit = runs.limit();
        let served = |row: &Row| row.served_after.map_or(f64::MAX, |after| after.as_secs_f64() * 1e3);
        runs.figure("last one served, after the kill", "ms", served);
        runs.target("last one served, after the kill", AtMost(limit), served);
    }

    pub(super) fn paused(&mut self, name: &str) {
        let mut runs = self.play(name, Scenarios::Paused, 1);
        runs.loads(2);
        let stale = |row: &Row| row.stale as f64;
        runs.figure("old value stored over a newer one", "", stale);
        runs.target("old value stored over a newer one", AtMost(0.0), stale);
    }

    pub(super) fn long_load(&mut self, name: &str) {
        self.play(name, Scenarios::LongLoad, 1).loads(1);
    }

    pub(super) fn refresh(&mut self, name: &str) {
        let mut runs = self.play(name, Scenarios::Refresh, 1);
        let cycles = f64::from(runs.on.cycles());
        let a_cycle = |row: &Row| row.loads as f64 / row.lives.max(1) as f64;
        runs.figure("loads a cycle", "", a_cycle);
        runs.target("loads a cycle", AtMost(1.0), a_cycle);
        runs.target("cycles", AtLeast(cycles), |row| row.lives as f64);
        runs.target("calls that failed", AtMost(0.0), |row| row.lost as f64);
    }

    /// Plays a scenario so many times with each way, one after the other; only to see that it runs, once with ours.
    fn play(&mut self, name: &str, scenario: Scenarios, times: u32) -> Runs<'_, 'b> {
        let is_bench = self.bench.options.bench;
        let (processes, callers) = if is_bench { (PROCESSES, CALLERS) } else { (2, 4) };
        let mut ways = if is_bench { Ways::All } else { Ways::Ours }.chosen();
        ways.reverse();
        let stage = Stage::at(&self.server.url(), processes, callers, self.cycles());
        let mut stage = stage.expect("the server is there");
        let mut of_ways: Vec<(Ways, Vec<Row>)> = ways.into_iter().map(|way| (way, Vec::new())).collect();
        // Not more than these, however many rounds are asked for: they take seconds each.
        for _ in 0..self.bench.options.rounds(times).min(times) {
            for (way, rows) in &mut of_ways {
                rows.push(stage.play(scenario, *way).expect("the processes do what they are told"));
            }
        }
        Runs { on: self, workload: name.to_owned(), of_ways }
    }

    fn cycles(&self) -> u32 {
        if self.bench.options.bench { CYCLES } else { 2 }
    }
}

impl Runs<'_, '_> {
    /// A figure of all ways.
    fn figure(&mut self, what: &str, unit: &str, figure: impl Fn(&Row) -> f64) {
        let workload = format!("{}: {what}", self.workload);
        for (way, rows) in &self.of_ways {
            let (name, kind) = match way {
                Ways::Ours => ("oneflight-cache", Kind::Ours),
                Ways::Naive => ("a naive lock", Kind::Floor),
                Ways::None | Ways::All => ("no coalescing", Kind::Floor),
            };
            self.on.bench.report.figure(&workload, name, kind, unit, spread(rows, &figure));
        }
    }

    /// What is asked of ours.
    fn target(&mut self, what: &str, bound: Bound, figure: impl Fn(&Row) -> f64) {
        let got = spread(&self.of_ways[0].1, figure);
        self.on.bench.report.target(&format!("{}: {what}", self.workload), bound, got);
    }

    /// How often the value was loaded, and what is asked of that: it counts in the worst of the runs. And nobody may be left without a
    /// value in any of them.
    fn loads(&mut self, most: u32) {
        self.figure("loads", "", |row| row.loads as f64);
        let worst = |figure: fn(&Row) -> usize| self.of_ways[0].1.iter().map(figure).max().unwrap_or(0) as f64;
        let [loads, lost] = [worst(|row| row.loads), worst(|row| row.lost)];
        for (what, most, got) in [("loads", f64::from(most), loads), ("callers without a value", 0.0, lost)] {
            let what = format!("{}: {what}", self.workload);
            self.on.bench.report.target(&what, AtMost(most), Spread::exact(got));
        }
    }

    /// How many milliseconds it may take with ours.
    fn limit(&self) -> f64 {
        let limit = self.of_ways[0].1[0].limit();
        limit.expect("this scenario has a limit").as_secs_f64() * 1e3
    }
}

fn spread(rows: &[Row], figure: impl Fn(&Row) -> f64) -> Spread {
    Spread::of(rows.iter().map(figure).collect())
}

//! The command line of the benches that are no criterion benches.

use clap::Parser;

/// Measures oneflight beside other crates and hand-written floors, in interleaved rounds, and says which targets are met.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// Run only the workloads whose name contains this text
    filter: Option<String>,

    /// Exit with status 1 if a target is missed
    #[arg(long)]
    pub check: bool,

    /// Rounds of each workload, instead of the number that suits it
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// The same seed gives the same keys and the same orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Passed by `cargo bench`. Without it (`cargo test --benches`) everything runs once, only to see that it runs
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// Reads the command line; what makes no sense ends the program here.
    #[must_use]
    pub fn from_command_line() -> Self {
        Self::parse()
    }

    /// Whether the workload of this name shall run.
    #[must_use]
    pub fn wants(&self, workload: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| workload.contains(filter.as_str()))
    }

    /// Runs those of the workloads that are wanted, one after the other; without a second core, not those of two threads.
    pub fn run_wanted<'n, B>(
        &self,
        cores: usize,
        bench: &mut B,
        workloads: impl IntoIterator<Item = (&'n str, fn(&mut B, &str))>,
    ) {
        for (name, run) in workloads {
            if !self.wants(name) {
                continue;
            }
            if cores < 2 && (name.contains("2 threads") || name.contains("two threads")) {
                println!("left out, for want of a second core: {name}");
                continue;
            }
            eprintln!("running: {name}");
            run(bench, name);
        }
    }

    /// How large a crowd to gather where `usual` suits; a small one if it is only to see that it runs.
    #[must_use]
    pub fn size(&self, usual: usize) -> usize {
        if self.bench { usual } else { usual.min(200) }
    }

    /// How many rounds to run of a workload for which `usual` suits.
    #[must_use]
    pub fn rounds(&self, usual: u32) -> u32 {
        self.rounds.unwrap_or(if self.bench { usual } else { 1 })
    }
}

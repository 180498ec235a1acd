//! The command line of the benches that are no criterion benches.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use clap::Parser;
use std::path::PathBuf;

/// Measures oneflight beside other crates and hand-written floors, in interleaved rounds, prints every figure and every ratio,
/// and says which targets are missed. The exit status is 1 if one is
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// Run only the workloads of whose part and name ("threads: alone, u64 key") this text is a piece
    filter: Option<String>,

    /// Rounds of each workload, instead of the number that suits it
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,

    /// The same seed gives the same keys and the same orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Write the tables to this file too, in Markdown. A relative path starts at the root of the repository
    #[arg(long, value_name = "PATH")]
    pub table: Option<PathBuf>,

    /// Where to write the picture, if not to target/peers.svg
    #[arg(long, value_name = "PATH")]
    pub svg: Option<PathBuf>,

    /// Passed by `cargo bench`. Without it (`cargo test --benches`) everything runs once, only to see that it runs
    #[arg(long, hide = true)]
    pub bench: bool,

    /// Print what was found out for a program to read
    #[arg(long, hide = true)]
    pub lines: bool,
}

impl Options {
    /// Reads the command line; what makes no sense ends the program here.
    #[must_use]
    pub fn from_command_line() -> Self {
        Self::parse()
    }

    /// The command line of another program that shall do the same part of the work.
    #[must_use]
    pub fn for_a_child(&self) -> Vec<String> {
        let mut words = vec!["--lines".to_owned(), format!("--seed={}", self.seed)];
        words.extend(self.bench.then(|| "--bench".to_owned()));
        words.extend(self.filter.clone());
        words
    }

    /// Whether the workload of this part and name shall run.
    #[must_use]
    pub fn wants(&self, part: &str, workload: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| format!("{part}: {workload}").contains(filter.as_str()))
    }

    /// How large a crowd to gather where `usual` suits; a small one if it is only to see that it runs.
    #[must_use]
    pub fn size(&self, usual: usize) -> usize {
        if self.bench { usual } else { usual.min(200) }
    }

    /// How many rounds to run of a workload for which `usual` suits by itself.
    #[must_use]
    pub fn rounds(&self, usual: u32) -> u32 {
        // All workloads together take three to four minutes with seven.
        const MOST: u32 = 25;
        self.rounds.unwrap_or(if self.bench { usual.min(MOST) } else { 1 })
    }
}

//! The command line.

use crate::cases::{self, Case};
use crate::peers::{Entry, PEERS};
use clap::Parser;

/// Runs every case against every crate and prints the table of what they do. Takes a few minutes at most.
#[derive(Parser)]
#[command(about, version)]
pub(crate) struct Options {
    /// Writes the table into docs/behaviour.md.
    #[arg(long)]
    pub(crate) write: bool,

    /// Compares the table with the one in docs/behaviour.md; exit status 1 if they differ.
    #[arg(long, conflicts_with = "write")]
    pub(crate) check: bool,

    /// Runs this case alone, here, against one crate.
    #[arg(long, requires = "peer", value_parser = find_case, conflicts_with_all = ["write", "check"])]
    case: Option<&'static Case>,

    /// The crate for the one case.
    #[arg(long, requires = "case", value_parser = find_peer)]
    peer: Option<&'static Entry>,
}

impl Options {
    pub(crate) fn from_command_line() -> Self {
        Self::parse()
    }

    /// The one case that is asked for.
    pub(crate) fn one(&self) -> Option<(&'static Case, &'static Entry)> {
        self.case.zip(self.peer)
    }
}

fn find_case(id: &str) -> Result<&'static Case, String> {
    cases::all().find(|case| case.id == id).ok_or_else(|| known(cases::all().map(|case| case.id)))
}

fn find_peer(id: &str) -> Result<&'static Entry, String> {
    PEERS.iter().find(|peer| peer.id == id).ok_or_else(|| known(PEERS.iter().map(|peer| peer.id)))
}

fn known(ids: impl Iterator<Item = &'static str>) -> String {
    format!("known are {}", ids.collect::<Vec<_>>().join(", "))
}

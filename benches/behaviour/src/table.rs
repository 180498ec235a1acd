//! The table, in Markdown: a part for each kind of peer, a row for each case, a column for each peer.

use crate::cases::{self, Case, Outcome};
use crate::peers::{Entry, PEERS, Section};
use crate::run::Cell;
use std::fmt::Write as _;

/// What the versions are taken from: that which was built.
const LOCK_FILE: &str = include_str!("../../../Cargo.lock");

pub(crate) fn all(cells: &[Cell]) -> String {
    let parts = [
        (Section::Groups, "Tasks: groups"),
        (Section::Caches, "Tasks: caches"),
        (Section::Threads, "Threads: groups and caches"),
    ];
    let mut text = String::new();
    for (section, title) in parts {
        let peers: Vec<&Entry> = PEERS.iter().filter(|peer| peer.section == section).collect();
        writeln!(text, "### {title}\n").expect("a string takes everything");
        text += &part(&peers, cells);
        text.push('\n');
    }
    text
}

fn part(peers: &[&Entry], cells: &[Cell]) -> String {
    let mut text = String::from("| case | right |");
    for peer in peers {
        write!(text, " {} |", heading(peer)).expect("a string takes everything");
    }
    text.push_str("\n|---|---|");
    text += &"---|".repeat(peers.len());
    text.push('\n');
    for case in cases::all() {
        let outcomes: Vec<Option<&Outcome>> = peers.iter().map(|peer| outcome(case, peer, cells)).collect();
        // A row that says nothing about any of them is none.
        if outcomes.iter().all(Option::is_none) {
            continue;
        }
        write!(text, "| {} | {} |", case.row, case.right).expect("a string takes everything");
        for outcome in outcomes {
            write!(text, " {} |", shown(outcome)).expect("a string takes everything");
        }
        text.push('\n');
    }
    text
}

fn outcome<'a>(case: &Case, peer: &Entry, cells: &'a [Cell]) -> Option<&'a Outcome> {
    let cell = cells.iter().find(|cell| cell.case.id == case.id && cell.peer.id == peer.id)?;
    cell.outcome.as_ref()
}

fn shown(outcome: Option<&Outcome>) -> String {
    match outcome {
        None => "-".to_owned(),
        Some(Outcome { text, is_right: true }) => text.clone(),
        Some(Outcome { text, is_right: false }) => format!("**{text}**"),
    }
}

fn heading(peer: &Entry) -> String {
    let name = format!("{} {}", peer.package, version(peer.package));
    if peer.part.is_empty() { name } else { format!("{name}, `{}`", peer.part) }
}

/// The version that was built, as far as it tells what is compatible.
fn version(package: &str) -> String {
    let entry = format!("name = \"{package}\"\nversion = \"");
    let (_, rest) = LOCK_FILE.split_once(&entry).expect("every peer is a dependency");
    rest.split(['.', '"']).take(2).collect::<Vec<_>>().join(".")
}

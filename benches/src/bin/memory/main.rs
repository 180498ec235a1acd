//! Allocations, clones, heap and sizes: exact figures, so no rounds. A program of its own, since its allocator counts, and nothing
//! that is timed must run on that. The bench `peers` runs it; so can you:
//!
//!     cargo run --release -p oneflight-benches --bin memory -- --bench

extern crate alloc;

mod tasks;
mod threads;

use oneflight_benches::options::Options;
use oneflight_benches::report::{Report, lines};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = Options::from_command_line();
    let mut report = Report::default();
    threads::run(&options, &mut report);
    tasks::run(&options, &mut report);
    if options.lines {
        print!("{}", lines::write(&report));
        return ExitCode::SUCCESS;
    }
    report.finish(&options)
}

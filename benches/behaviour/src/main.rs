//! What oneflight and the crates that users would pick instead do when something goes wrong: a table, each cell of which comes
//! from running a case against a crate in a process of its own. `docs/behaviour.md` holds the table, and says what its rows mean.
//!
//! | file | job |
//! |---|---|
//! | `cases/` | what is tried, a subject a file |
//! | `peers/` | what it is tried on, a crate a file, behind the trait in `peers.rs` |
//! | `crowd/` | the callers: tasks polled by hand, or threads |
//! | `clock.rs`, `values.rs` | works that take no time, and keys and values that are counted |
//! | `run.rs` | a process for each cell |
//! | `table.rs`, `page.rs` | the table, and the page that it is on |

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod cases;
mod clock;
mod crowd;
mod options;
mod page;
mod peers;
mod run;
mod table;
mod values;

use options::Options;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = Options::from_command_line();
    if let Some((case, peer)) = options.one() {
        run::one(case, peer);
        return ExitCode::SUCCESS;
    }
    let table = table::all(&run::all());
    print!("{table}");
    let done = if options.write {
        page::write(&table)
    } else if options.check {
        page::check(&table)
    } else {
        Ok(())
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

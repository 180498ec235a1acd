//! What a cache stampede does to a database, and what `oneflight-cache` does about it: the program. What it does is in the library
//! beside it, whose `ways/` is the part to read.

use std::process::ExitCode;

fn main() -> ExitCode {
    stampede::main()
}

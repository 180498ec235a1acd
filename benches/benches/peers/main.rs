//! oneflight beside the crates that users would pick instead, and beside hand-written floors: every workload, every ratio, every
//! target.
//!
//!     cargo bench -p oneflight-benches --bench peers

extern crate alloc;

mod redis;

use oneflight_benches::machine;
use oneflight_benches::options::Options;
use oneflight_benches::report::{lines, picture, table};
use oneflight_benches::suite::Bench;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio, exit};
use std::time::Instant;

fn main() -> ExitCode {
    if let Some(code) = stampede::processes::as_worker() {
        return code;
    }
    redis::obey_if_child();
    let start = Instant::now();
    let mut bench = Bench::new(Options::from_command_line());
    let description = machine::description(&bench.machine);
    println!("{description}");
    redis::check(&bench);
    for path in bench.options.table.iter().chain(&bench.options.svg) {
        check(path);
    }
    bench.run();
    redis::run(&mut bench);
    memory(&mut bench);
    let Bench { options, report, .. } = bench;
    if let Some(path) = &options.table {
        write(path, &format!("{description}\n\n{}", table::page(&report)));
    }
    // What was run only to see that it runs is not worth a picture that takes the place of a real one.
    let usual = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers.svg");
    let path = options.svg.as_ref().or(options.bench.then_some(&usual));
    if let (Some(path), Some(picture)) = (path, picture::draw(&report, &description)) {
        write(path, &picture);
    }
    let code = report.finish(&options);
    println!("{} s", start.elapsed().as_secs());
    code
}

/// A program of its own: its allocator counts, and nothing that is timed must run on that.
fn memory(bench: &mut Bench) {
    eprintln!("running: memory");
    let mut program = Command::new(env!("CARGO_BIN_EXE_memory"));
    let output = program.args(bench.options.for_a_child()).stderr(Stdio::inherit()).output();
    let output = output.expect("cargo has built it beside this bench");
    assert!(output.status.success(), "the program of memory failed");
    let text = String::from_utf8_lossy(&output.stdout);
    lines::read(&text, &mut bench.report).expect("it was asked for lines");
}

/// What cannot be written in the end is not to be measured for minutes first.
fn check(path: &Path) {
    let path = from_root(path);
    if let Err(error) = File::options().append(true).create(true).open(&path) {
        eprintln!("error: {}: {error}", path.display());
        exit(2);
    }
}

fn write(path: &Path, text: &str) {
    let path = from_root(path);
    match fs::write(&path, text) {
        Ok(()) => println!("written: {}", path.display()),
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Cargo runs a bench in the directory of its package, which is not where the user is.
fn from_root(path: &Path) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is a part of a repository").join(path)
}
